"""Every shape that a docstring of `lib` states, checked by calling the function at random sizes."""
import importlib
import inspect
from types import SimpleNamespace

import numpy as np
import pytest

from lib.generation import LayerCache
from lib.gradients import loss_and_gradients
from lib.model import GPT, Config
from tests.lib.shapes import Item, parse, statements

MODULES = ["functional", "attention", "normalization", "block", "feedforward", "embedding", "position", "sampling",
           "model", "generation", "accounting", "checkpoint", "gradients", "training"]
# Public, but no array goes in or comes out: settings, files, lists of ids, counts.
NO_ARRAYS = {"Config", "GPT", "PRESETS", "parameter_shapes", "KVCache", "LayerCache", "window_start", "generate", "stream",
             "ACTIVATIONS", "pack", "parameter_table", "count_parameters", "flops_table", "forward_flops", "kv_cache_bytes",
             "moe_parameters", "Row", "Published", "MODELS", "read_folder", "read_gguf", "assemble", "write_folder", "AdamW", "evaluate",
             "warmup_cosine", "gradient_norm", "train", "save_checkpoint", "load_checkpoint"}
METHODS = {"GPT.__call__": GPT.__call__, "LayerCache.append": LayerCache.append}


def public():
    for name in MODULES:
        module = importlib.import_module(f"lib.{name}")
        for attribute in module.__all__:
            if attribute not in NO_ARRAYS:
                yield pytest.param(getattr(module, attribute), id=f"{name}.{attribute}")
    for name, method in METHODS.items():
        yield pytest.param(method, id=name)


@pytest.mark.parametrize("function", list(public()))
def test_stated_shapes_hold(function):
    stated = statements(function.__doc__)
    assert stated, f"{function.__qualname__} states no shape"
    rng = np.random.default_rng(0)
    for statement in stated:
        named = {item.name.split(".")[0] for item in statement.inputs}
        required = {name for name, p in inspect.signature(function).parameters.items() if p.default is p.empty}
        assert required - {"self", "model"} <= named, "every required argument is stated"
        for trial in range(12):
            dtype = (np.float32, np.float64)[trial % 2]
            check(function, statement, draw_sizes(statement, rng), rng, dtype)


def check(function, statement, sizes, rng, dtype):
    owner = SimpleNamespace(dtype=dtype)
    leading = tuple(rng.integers(1, 4, rng.integers(0, 3)))
    arguments = {}
    for item in statement.inputs:
        put(arguments, item.name, value(item, statement, sizes, leading, rng, owner))
    before = {name: copy(v) for name, v in arguments.items()}
    result = bind(function, sizes, dtype)(**arguments)
    results = result if len(statement.outputs) > 1 else (result,)
    assert len(results) == len(statement.outputs)
    takes_floats = any(item.dims is not None and item.kind is None for item in statement.inputs)
    for array, item in zip(results, statement.outputs):
        if item.dims is None:  # gradients, in the layout of the parameters
            assert item.kind == "参数" and same_layout(array, arguments.get("params", array))
            continue
        where = f"{function.__qualname__} {item} at {sizes}, leading {leading}"
        assert np.shape(array) == item.shape(sizes, leading), where
        expected = {"整数": "iu", "布尔": "b"}.get(item.kind, "f")
        assert np.asarray(array).dtype.kind in expected, where
        if takes_floats and expected == "f":
            assert np.asarray(array).dtype == dtype, f"{where}: {dtype.__name__} became {np.asarray(array).dtype}"
    assert all(same(before[name], v) for name, v in arguments.items()), f"{function.__qualname__} changed an input"


def draw_sizes(statement, rng):
    for _ in range(10_000):
        sizes = {name: int(rng.integers(1, 8)) for name in statement.names()}
        if statement.allows(sizes):
            return sizes
    raise AssertionError(f"no sizes satisfy {statement.conditions}")


def value(item, statement, sizes, leading, rng, owner):
    shape = item.shape(sizes, leading)
    bound = next((sizes[name] for name in ("V", "vocab_size", "n_rows", "n") if name in sizes), 5)
    if shape is None:
        return {"整数": lambda: sizes[item.name], "标量": lambda: float(rng.uniform(0.1, 1)), "函数": lambda: np.tanh,
                "编号": lambda: int(rng.integers(bound)), "随机数": lambda: np.random.default_rng(1),
                "归一化名": lambda: "layer", "激活名": lambda: "gelu", "设置": lambda: block_config(sizes),
                "参数": lambda: GPT(block_config(sizes), dtype=owner.dtype).params["blocks"][0]}[item.kind]()
    if item.kind == "整数":
        return rng.integers(0, bound, shape)
    if item.kind == "布尔":
        return rng.random(shape) < 0.5
    return rng.standard_normal(shape).astype(owner.dtype)


def block_config(sizes):
    return Config(5, 8, sizes["d"], 1, sizes["d"], d_ff=3)


def bind(function, sizes, dtype):
    if function is GPT.__call__:
        model = GPT(Config(sizes["vocab_size"], sizes["context_length"], 6, 2, 3))
        return lambda ids: model(ids)
    if function is loss_and_gradients:
        return lambda ids, targets: loss_and_gradients(GPT(Config(8, 8, 6, 2, 3)), ids, targets)
    if function is LayerCache.append:
        cache = LayerCache((sizes["batch"], sizes["n_kv_heads"], sizes["n"] + 2, sizes["d_head"]), dtype)
        return lambda k, v: cache.append(k, v)
    return function


def put(arguments, name, value):
    top, _, entry = name.partition(".")
    if entry:
        arguments.setdefault(top, {})[entry] = value
    else:
        arguments[top] = value


def copy(v):
    return {k: copy(x) for k, x in v.items()} if isinstance(v, dict) else v.copy() if isinstance(v, np.ndarray) else v


def same_layout(a, b):
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(same_layout(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same_layout, a, b))
    return a.shape == b.shape


def same(a, b):
    if isinstance(a, dict):
        return all(same(a[k], b[k]) for k in a)
    return np.array_equal(a, b) if isinstance(a, np.ndarray) else True


def test_parser_reads_the_whole_form():
    s = parse("q [..., n_q, d], params.W [h*d, d], mask 布尔 [n_q, n_k], k 整数, f 函数 "
              "-> 输出 [..., n_q, d], 整数 [k]（n_k >= n_q, d % 2 == 0）")
    assert s.inputs[1] == Item("params.W", None, ("h*d", "d"))
    assert s.inputs[2] == Item("mask", "布尔", ("n_q", "n_k")) and s.inputs[4] == Item("f", "函数", None)
    assert s.outputs == (Item("输出", None, ("...", "n_q", "d")), Item(None, "整数", ("k",)))
    assert s.names() == ["d", "h", "k", "n_k", "n_q"]
    assert s.allows(dict(n_k=3, n_q=2, d=4)) and not s.allows(dict(n_k=1, n_q=2, d=4))
    assert s.inputs[1].shape(dict(h=3, d=4), ()) == (12, 4)
    assert parse("x [...] -> []").outputs[0].shape({}, (2, 3)) == ()


@pytest.mark.parametrize("text", ["x [n]", "x [n] -> ", "x n -> [n]", "x [n] -> [n]（__import__('os')）", "x [n], -> [n]"])
def test_parser_refuses_what_is_not_in_the_form(text):
    with pytest.raises((ValueError, SyntaxError)):
        parse(text)


@pytest.mark.parametrize("wrong", ["x [..., n] -> [..., n, n]", "x [..., n] -> 整数 [..., n]", "x [..., n] -> 输出 [..., n], 权重 [n]"])
def test_a_false_statement_is_caught(wrong):
    from lib.functional import softmax
    with pytest.raises((AssertionError, ValueError)):
        for seed in range(5):
            rng = np.random.default_rng(seed)
            check(softmax, parse(wrong), {"n": 3}, rng, np.float32)
