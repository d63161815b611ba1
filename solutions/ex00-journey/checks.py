"""ex00-journey 的隐藏检查：读形状。"""

import math

import numpy as np

from grading.checks import check

SHAPES = "0.1"


def nested(rng, *shape):
    """Numbers in lists of lists, all sizes given."""
    return rng.integers(0, 10, shape).tolist()


@check("shape_of", "list", section=SHAPES, claim="一层列表的形状是它的长度：(n,)", hint="长度放进元组：(len(x),)，逗号不能少")
def shape_of_list(student, rng):
    for n in (3, 5):
        student(nested(rng, n)).equals((n,))


@check("shape_of", "nested", section=SHAPES, claim="几层列表就有几个数，从外到内",
       hint="最外层的长度在前，后面接上第一个元素的形状")
def shape_of_nested(student, rng):
    for shape in ((2, 3), (4, 3, 2), (1, 5, 1, 2)):
        student(nested(rng, *shape)).equals(shape)


@check("shape_of", "tuple", section=SHAPES, claim="结果是元组，里面是整数", hint="return 一个元组，不是列表，也不是数组")
def shape_of_tuple(student, rng):
    def plain(shape):
        return type(shape) is tuple and all(type(n) is int for n in shape)

    student(nested(rng, 2, 3)).satisfies(plain, "应返回由整数组成的元组")


@check("shape_of", "array", section=SHAPES, claim="NumPy 数组也一样：就是它的 shape", hint="数组没有列表那样的层，先看它是不是 np.ndarray")
def shape_of_array(student, rng):
    for shape in ((3, 96), (4, 3, 3)):
        student(np.arange(math.prod(shape), dtype=np.float64).reshape(shape)).equals(shape)


@check("shape_of", "number", section=SHAPES, claim="一个数没有轴，形状是空元组 ()", hint="不是列表也不是数组时，返回 ()")
def shape_of_number(student, rng):
    student(7).equals(())
    student(2.5).equals(())


@check("shape_of", "empty", section=SHAPES, claim="空列表的形状是 (0,)", hint="看第一个元素之前先确认有元素")
def shape_of_empty(student, rng):
    student([]).equals((0,))


@check("shape_of", "ragged", section=SHAPES, claim="各行长短不一就没有形状：报 ValueError",
       hint="每个元素的形状都要相同，不能只看第一个")
def shape_of_ragged(student, rng):
    student([nested(rng, 3), nested(rng, 2)]).raises(ValueError)
    student([nested(rng, 2, 3), [nested(rng, 3), nested(rng, 4)]]).raises(ValueError)


@check("shape_of", "untouched", section=SHAPES, claim="传进来的列表不被改动", hint="不要 pop")
def shape_of_untouched(student, rng):
    student(nested(rng, 2, 3)).keeps_arguments()
