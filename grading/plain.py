"""纯数据：学生函数的参数与返回值只以这里的几种类型往来。

A result is never trusted by its own operators: it is accepted by exact type, copied, and only then compared.
The same few types can cross to another process, so a check runs unchanged on a function that lives in a sandbox.
"""

import collections
import re

import numpy as np

SCALARS = (bool, int, float, complex, str, bytes, type(None))
MAPPINGS = (dict, collections.Counter, collections.defaultdict, collections.OrderedDict)  # all taken as a dict
SHOWN = 72  # elements of an array that a message still spells out
NAMES = {list: "列表（list）", tuple: "元组（tuple）"}


class NotPlain(TypeError):
    """A value that is neither numbers, text, arrays nor containers of them."""


class WrongKind(str):
    """What `difference` says when the value is of the wrong type or order altogether; `advice` says what to do about it."""

    def __new__(cls, wanted, got, advice):
        advice = "算出来的结果要 return；print 只是显示出来" if got is None else advice
        return cls.said(f"应返回{wanted}，得到 {kind_of(got)}", advice)

    @classmethod
    def said(cls, text, advice):
        sentence = super().__new__(cls, text)
        sentence.advice = advice
        return sentence


class Callback:
    """A function handed to the student's code: the source of one expression and the plain data that it reads.

    It holds no live object, so a remote side can rebuild it: `eval(source, {"np": numpy, **data})`.
    """

    def __init__(self, source, **data):
        self.source, self.data = source, data

    def __call__(self, *args, **kwargs):
        return eval(self.source, {"np": np, **self.data})(*args, **kwargs)  # noqa: S307  our own text, never a student's


def copied(value):
    """A deep copy made of exact plain types; anything else raises NotPlain."""
    kind = type(value)
    if kind in SCALARS or kind is Callback:
        return value
    if kind is np.ndarray:
        if value.dtype.kind not in "biufc":
            raise NotPlain(f"dtype 为 {value.dtype} 的数组")
        return np.array(value, copy=True, subok=False)
    if isinstance(value, np.generic) and value.dtype.kind in "biufc":
        return kind(value)
    if kind in (list, tuple, set, frozenset):
        return kind(copied(item) for item in value)
    if kind in MAPPINGS:
        return {copied(key): copied(item) for key, item in value.items()}
    if kind is np.random.Generator:
        twin = np.random.Generator(type(value.bit_generator)())
        twin.bit_generator.state = value.bit_generator.state
        return twin
    raise NotPlain(f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins."))


def same(a, b):
    """Whether two plain values agree in structure, types and, up to rounding of the last digits, in every number."""
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        if a.shape != b.shape or a.dtype != b.dtype:
            return False
        if a.dtype.kind not in "fc":
            return bool((a == b).all())
        with np.errstate(invalid="ignore", over="ignore"):
            close = np.isfinite(a) & (np.abs(a - b) <= 1e-12 + 1e-11 * np.abs(a))  # an infinite a is close to everything
            return bool(((a == b) | close | ((a != a) & (b != b))).all())
    if type(a) is not type(b) and not (isinstance(a, (list, tuple)) and isinstance(b, (list, tuple))):
        return False
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(value, b[key]) for key, value in a.items())
    if isinstance(a, (float, complex, np.number)):
        return same(np.asarray(a), np.asarray(b))
    if isinstance(a, np.random.Generator):
        return a.bit_generator.state == b.bit_generator.state
    return a is b or a == b


def difference(expected, got, rtol, atol):
    """None if `got` equals `expected`; otherwise one Chinese sentence that says where they part."""
    if isinstance(expected, np.ndarray):
        return _array_difference(expected, got, rtol, atol)
    if isinstance(expected, (list, tuple)):
        return _sequence_difference(expected, got, rtol, atol)
    if isinstance(expected, dict):
        return _mapping_difference(expected, got, rtol, atol)
    if isinstance(got, np.ndarray) and got.ndim == 0:
        got = got[()]
    if isinstance(expected, (bool, np.bool_)):
        right_kind, wanted, advice = isinstance(got, (bool, np.bool_)), "bool", "只答是或否：数组先用 .all() 或 .max() 合成一个数，再比较"
    elif isinstance(expected, (int, np.integer)):
        right_kind, wanted, advice = isinstance(got, (int, np.integer)) and not isinstance(got, bool), "int", "整数相除用 //"
    elif isinstance(expected, (float, np.floating)):
        right_kind, wanted = isinstance(got, (int, float, np.number)) and not isinstance(got, bool), "float"
        advice = "这里要的是一个数：检查求和或平均是否少走了一轴"
        if right_kind and np.isclose(got, expected, rtol=rtol, atol=atol, equal_nan=True):
            return None
    else:
        right_kind, wanted, advice = type(got) is type(expected), type(expected).__name__, "类型要与约定一致"
    if not right_kind:
        return WrongKind(f" {wanted}", got, advice)
    return None if got == expected else "应为 {}，得到 {}".format(*told_apart(expected, got))


def _array_difference(expected, got, rtol, atol):
    if isinstance(got, (int, float, np.generic)) and not isinstance(got, bool):
        got = np.asarray(got)
    if not isinstance(got, np.ndarray):
        return WrongKind(" NumPy 数组", got, "用 np.array(…) 包起来，或从头就用数组运算")
    if got.shape != expected.shape:
        return f"形状应为 {_shape(expected)}，得到 {_shape(got)}"
    if expected.dtype.kind == "b" and got.dtype.kind != "b":
        return f"应返回 bool 数组，得到 {got.dtype} 数组"
    with np.errstate(invalid="ignore", over="ignore"):
        close = np.isclose(got, expected, rtol=rtol, atol=atol, equal_nan=True)
        if close.all():
            return None
        gap = np.where(close, -1.0, np.nan_to_num(np.abs(got * 1.0 - expected * 1.0), nan=np.inf))
    worst = tuple(int(i) for i in np.unravel_index(np.argmax(gap), gap.shape))
    place = f"在 {list(worst)} 处相差最大：" if worst else ""
    return f"{place}应为 {expected[worst]:.10g}，得到 {got[worst]:.10g}"


def _shape(array):
    return str(list(array.shape)) if array.ndim else "[]（只有一个数）"


def _sequence_difference(expected, got, rtol, atol):
    if not isinstance(got, (list, tuple)):
        advice = "约定里有几个返回值就 return 几个，用逗号隔开" if len(expected) > 1 else "外层的括号不能少"
        return WrongKind(f" {len(expected)} 个值组成的{NAMES[type(expected)]}", got, advice)
    if len(got) != len(expected):
        return f"应有 {len(expected)} 个元素，得到 {len(got)} 个"
    for place, (want, have) in enumerate(zip(expected, got)):
        if found := difference(want, have, rtol, atol):
            joint = "的" if re.match(r"第 \d+ 个元素", found) else "（从 0 数起）："
            text = f"第 {place} 个元素{joint}{found}"
            return WrongKind.said(f"{text}（两个返回值的次序反了）", "约定里先写的先返回") if _swapped(expected, got) else text
    return None


def _swapped(expected, got):
    """Whether two arrays of different shapes came in the wrong order."""
    if len(expected) != 2 or not all(isinstance(item, np.ndarray) for item in (*expected, *got)):
        return False
    (first, second), shapes = (item.shape for item in expected), [item.shape for item in got]
    return first != second and shapes == [second, first]


def _mapping_difference(expected, got, rtol, atol):
    if not isinstance(got, dict):
        return f"应返回 dict，得到 {kind_of(got)}"
    if missing := [key for key in expected if key not in got]:
        return f"缺少键 {code(missing[0])}"
    if extra := [key for key in got if key not in expected]:
        return f"多出键 {code(extra[0])}"
    for key, want in expected.items():
        if found := difference(want, got[key], rtol, atol):
            return f"键 {code(key)}：{found}"
    return None


def kind_of(value):
    """What a reader calls the type of this value: 'None', 'list', '形状 [2, 3] 的 float64 数组'."""
    if value is None:
        return "None（忘了 return？）"
    if isinstance(value, np.ndarray):
        return f"形状 {list(value.shape)} 的 {value.dtype} 数组"
    return type(value).__name__


def told_apart(expected, got):
    """Both as code, rounded as far as they can still be told apart."""
    for digits in (6, 10, None):
        texts = code(expected, digits), code(got, digits)
        if texts[0] != texts[1]:
            break
    return texts


def code(value, digits=None):
    """The value as Python that a reader can paste; long arrays by their shape only. `digits` rounds results."""
    if isinstance(value, Callback):
        data = "".join(f", {name}={code(item)}" for name, item in value.data.items())
        return f"{value.source}" + (f"  # 其中 {data[2:]}" if data else "")
    if isinstance(value, np.ndarray):
        if value.size > SHOWN:
            return f"<形状 {list(value.shape)} 的 {value.dtype} 数组>"
        dtype = "" if value.dtype in (np.float64, np.int64, np.bool_) else f", dtype=np.{value.dtype}"
        if digits and value.dtype.kind == "f" and value.size:  # what rounding left of a zero
            value = np.where(np.abs(value) < 1e-13 * np.abs(value).max(initial=0, where=np.isfinite(value)), 0, value).astype(value.dtype)
        # str of a float32 is its shortest form: 2.1, not 2.0999999046325684
        items = value.tolist() if value.dtype != np.float32 else np.array([float(str(x)) for x in value.flat]).reshape(value.shape).tolist()
        return f"np.array({_numbers(items, digits)}{dtype})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{code(key)}: {code(item, digits)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        body = ", ".join(code(item, digits) for item in value)
        return f"[{body}]" if isinstance(value, list) else f"({body}{',' * (len(value) == 1)})"
    return _numbers(value, digits)


def _numbers(value, digits):
    if isinstance(value, list):
        return "[" + ", ".join(_numbers(item, digits) for item in value) + "]"
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        if value != value or value in (np.inf, -np.inf):
            return f"{'-' if value < 0 else ''}np.{'nan' if value != value else 'inf'}"
        return repr(value) if digits is None else f"{value + 0.0:.{digits}g}"
    text = repr(value)
    return text if len(text) <= 400 else text[:400] + "…"
