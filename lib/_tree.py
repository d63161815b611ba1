"""嵌套的参数：字典和列表套成的树，叶子是数组。"""


def leaves(tree, path=""):
    """每个叶子与它的路径，按次序交出：("blocks.0.attention.W_Q", 数组)。"""
    if isinstance(tree, (dict, list)):
        for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from leaves(value, f"{path}.{key}" if path else str(key))
    else:
        yield path, tree
