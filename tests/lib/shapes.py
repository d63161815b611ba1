"""The fixed form in which `lib` docstrings state shapes, and its parser.

A statement starts with `形状：` and may run over more deeply indented lines:

    形状：q [..., n_q, d], mask 布尔 [n_q, n_k], k 整数 -> 输出 [..., n_q, d], 权重 [..., n_q, n_k]（n_k >= n_q）

    statement := items " -> " items [ "（" condition {", " condition} "）" ]
    items     := item {", " item}
    item      := [name] [kind] ["[" [dim {", " dim}] "]"]        at least one of them
    name      := argument of the function, `params.W_Q` for an entry of a dictionary, or a label of an output
    kind      := 整数 | 布尔 (an array with shape, or a single value) | 标量 | 函数 | any other Chinese word (an object)
    dim       := "..." (any leading axes, the same for every item) | arithmetic over names: n, d_head, n_heads*d_head
    condition := comparison over the same names, in Python

A scalar `整数` item takes the value of the size with its own name. A function may have several statements.
"""
import ast
import re
from dataclasses import dataclass

_KIND = r"[\u4e00-\u9fff]+"


@dataclass(frozen=True)
class Item:
    name: str | None
    kind: str | None
    dims: tuple[str, ...] | None

    def shape(self, sizes, leading):
        """Concrete shape under the given sizes; None for something that is no array."""
        if self.dims is None:
            return None
        shape = []
        for dim in self.dims:
            shape.extend(leading if dim == "..." else [int(_evaluate(dim, sizes))])
        return tuple(shape)


@dataclass(frozen=True)
class Statement:
    inputs: tuple[Item, ...]
    outputs: tuple[Item, ...]
    conditions: tuple[str, ...]

    def names(self):
        """Every size that the statement speaks of."""
        text = [dim for item in self.inputs + self.outputs for dim in item.dims or () if dim != "..."]
        text += [item.name for item in self.inputs if item.kind == "整数" and item.dims is None]
        return sorted({name for part in [*text, *self.conditions] for name in re.findall(r"[A-Za-z_]\w*", part)})

    def allows(self, sizes):
        return all(_evaluate(condition, sizes) for condition in self.conditions)


def statements(docstring):
    """All statements of a docstring, in order."""
    found, lines = [], (docstring or "").splitlines()
    for i, line in enumerate(lines):
        if line.lstrip().startswith("形状："):
            indent = len(line) - len(line.lstrip())
            text = line.strip().removeprefix("形状：")
            for more in lines[i + 1 :]:
                if not more.strip() or len(more) - len(more.lstrip()) <= indent:
                    break
                text += " " + more.strip()
            found.append(parse(text))
    return found


def parse(text):
    match = re.fullmatch(r"(.+?) -> (.+?)(?:（(.+)）)?", text)
    if not match:
        raise ValueError(f"not a shape statement: {text!r}")
    inputs, outputs, conditions = match.groups()
    conditions = tuple(c.strip() for c in conditions.split(",")) if conditions else ()
    for condition in conditions:
        if not isinstance(ast.parse(condition, mode="eval").body, ast.Compare):
            raise ValueError(f"not a comparison: {condition!r} in {text!r}")
    return Statement(_items(inputs), _items(outputs), conditions)


def _items(text):
    items = []
    for part in re.split(r",\s*(?![^\[]*\])", text):
        match = re.fullmatch(rf"(?:([A-Za-z_][\w.]*|{_KIND}))?(?: ?({_KIND}))?(?: ?\[([^\]]*)\])?", part.strip())
        if not match or not part.strip():
            raise ValueError(f"not an item: {part!r} in {text!r}")
        name, kind, dims = match.groups()
        if name in ("整数", "布尔"):  # an unnamed output of that kind
            name, kind = None, name
        items.append(Item(name, kind, None if dims is None else tuple(d.strip() for d in dims.split(",") if d.strip())))
    return tuple(items)


def _evaluate(expression, sizes):
    tree = ast.parse(expression, mode="eval")
    allowed = (ast.Expression, ast.BinOp, ast.Compare, ast.Name, ast.Constant, ast.operator, ast.cmpop, ast.Load)
    if not all(isinstance(node, allowed) for node in ast.walk(tree)):
        raise ValueError(f"only arithmetic and comparisons are allowed: {expression!r}")
    return eval(compile(tree, "<shape>", "eval"), {"__builtins__": {}}, sizes)
