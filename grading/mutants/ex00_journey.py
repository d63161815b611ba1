"""ex00-journey 的错误写法与其他正确写法。"""

import numpy as np

from grading.mutants import mutant, right

SHAPES = "0.1"


@mutant("shape_of", "只给了长度，不是元组", "一个轴的形状也是元组：(n,)，逗号不能少", SHAPES, caught_by="list")
def only_length(x):
    return len(x) if len(np.shape(x)) == 1 else np.shape(x)


@mutant("shape_of", "给的是元素的总数", "形状是每个轴的长度，总数是它们的乘积", SHAPES, caught_by="list")
def size(x):
    return int(np.size(x))


@mutant("shape_of", "给的是轴的个数", "形状是每个轴的长度，轴的个数是 len(形状)", SHAPES, caught_by="list")
def ndim(x):
    return int(np.ndim(x))


@mutant("shape_of", "只看了最外一层", "列表里还是列表时，要一层层看进去", SHAPES, caught_by="nested")
def outermost(x):
    return (np.shape(x)[0],) if np.ndim(x) else ()


@mutant("shape_of", "从内到外", "最外层的长度写在最前面", SHAPES, caught_by="nested")
def inside_out(x):
    return np.shape(x)[::-1]


@mutant("shape_of", "最多看两层", "轴可以有任意多个：带头的权重表就有三个", SHAPES, caught_by="nested")
def two_levels(x):
    return np.shape(x)[:2]


@mutant("shape_of", "丢掉了长度为 1 的轴", "长度为 1 的轴也是一个轴", SHAPES, caught_by="nested")
def squeezed(x):
    return tuple(n for n in np.shape(x) if n != 1)


@mutant("shape_of", "返回列表", "形状是元组：它要能当字典的键，也不该被改", SHAPES, caught_by="tuple")
def as_list(x):
    return list(np.shape(x))


@mutant("shape_of", "不认得数组", "NumPy 数组的形状就是它的 shape", SHAPES, caught_by="array")
def lists_only(x):
    if isinstance(x, list):
        return np.shape(x)
    return ()


@mutant("shape_of", "一个数的形状写成了 (1,)", "一个数没有轴：()。(1,) 是只有一个数的列表", SHAPES, caught_by="number")
def scalar_as_one(x):
    return np.shape(x) or (1,)


@mutant("shape_of", "一个数没有长度，出了错", "先看是不是列表或数组，都不是就返回 ()", SHAPES, caught_by="number")
def needs_length(x):
    len(x)
    return np.shape(x)


@mutant("shape_of", "空列表时出错", "看第一个元素之前先确认有元素；空列表是 (0,)", SHAPES, caught_by="empty")
def needs_first(x):
    if isinstance(x, list):
        x[0]
    return np.shape(x)


@mutant("shape_of", "只看了第一个元素", "后面的元素可能长短不一：都要相同，否则报 ValueError", SHAPES, caught_by="ragged")
def first_only(x):
    if isinstance(x, np.ndarray):
        return x.shape
    shape = []
    while isinstance(x, list):
        shape.append(len(x))
        x = x[0] if x else None
    return tuple(shape)


@mutant("shape_of", "长短不一时停在外面那层", "dtype=object 会把长短不一的行当成一个个对象；没有形状就该报 ValueError", SHAPES, caught_by="ragged")
def object_array(x):
    return x.shape if isinstance(x, np.ndarray) else np.array(x, dtype=object).shape if not _ragged(x) else _common(x)


def _ragged(x):
    try:
        np.shape(x)
    except ValueError:
        return True
    return False


def _common(x):
    """The shape down to where the lengths part."""
    shapes = {_common(item) if _ragged(item) else np.shape(item) for item in x}
    shared = []
    for lengths in zip(*shapes):
        if len(set(lengths)) > 1:
            break
        shared.append(lengths[0])
    return (len(x), *shared)


@mutant("shape_of", "边看边取走了元素", "pop 会改掉调用者的列表：用下标看，不要取走", SHAPES, caught_by="untouched")
def pops(x):
    shape = np.shape(x)
    if isinstance(x, list) and x:
        x.pop()
    return shape


@right("shape_of", "交给 NumPy")
def with_numpy(x):
    return np.shape(x)


@right("shape_of", "递归，比较所有元素")
def recursive(x):
    if isinstance(x, np.ndarray):
        return x.shape
    if not isinstance(x, (list, tuple)):
        return ()
    inner = [recursive(item) for item in x]
    if any(shape != inner[0] for shape in inner):
        raise ValueError("各行长短不一")
    return (len(x), *(inner[0] if inner else ()))


@right("shape_of", "一层层摊平")
def level_by_level(x):
    if isinstance(x, np.ndarray):
        return tuple(int(n) for n in x.shape)
    shape, level = (), [x]
    while level and all(isinstance(item, list) for item in level):
        lengths = {len(item) for item in level}
        if len(lengths) > 1:
            raise ValueError(f"长短不一：{sorted(lengths)}")
        shape += (lengths.pop(),)
        level = [inner for item in level for inner in item]
    if any(isinstance(item, list) for item in level):
        raise ValueError("有的是列表，有的不是")
    return shape
