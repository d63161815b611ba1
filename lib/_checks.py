"""入口检查：把传进来的东西变成数组，说不通的当场说清楚（收到什么、应是什么、怎么办）。"""
import numpy as np


def as_float(x, name):
    """实数数组：float32 / float64 原样保留，整数和布尔变成 float64，其余报错。"""
    array = _as_array(x, name)
    if array.dtype.kind in "biu":
        return array.astype(np.float64)
    if array.dtype.kind != "f":
        raise TypeError(f"{name} 应是实数数组，收到 dtype={array.dtype}；请先转换成 float32 或 float64")
    return array


def as_ids(ids, name, n):
    """编号数组：整数，且都在 0…n-1 之内（负数不会像 NumPy 下标那样从末尾数起）。"""
    array = _as_array(ids, name)
    if array.size == 0:
        return array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} 应是整数编号，收到 dtype={array.dtype}；浮点数和布尔值不能当编号")
    low, high = array.min(), array.max()
    if low < 0 or high >= n:
        raise IndexError(f"{name} 里有编号 {low if low < 0 else high}，表只有 {n} 行，编号应在 0…{n - 1} 之内")
    return array


def as_count(value, name, minimum=1):
    """个数：不小于 minimum 的整数（True / False 和 3.0 都不算）。"""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} 应是整数，收到 {value!r}（{type(value).__name__}）")
    if value < minimum:
        raise ValueError(f"{name} 应不小于 {minimum}，收到 {value}")
    return int(value)


def _as_array(x, name):
    try:
        return np.asarray(x)
    except ValueError as error:
        raise ValueError(f"{name} 各行长短不一，不能组成数组；请补齐到同样长度") from error
