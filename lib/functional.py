"""不带参数的小函数：softmax、交叉熵、线性层和激活函数，名字与 PyTorch 的同名函数一致。

约定（整个 lib 都一样）：行向量，`x @ W`；最前面有几个轴都行；float32 进 float32 出；输入从不被改动。
docstring 里的「形状：」一行由测试读出来，用随机大小逐一验证；V 是词表大小。
输入不是实数数组时都报 TypeError，下面不再重复。
"""
import math

import numpy as np

from lib._checks import as_float, as_ids  # 入口检查：实数数组；0…n-1 之内的整数编号。不合格就报错

__all__ = ["softmax", "log_softmax", "cross_entropy", "linear", "relu", "sigmoid", "silu", "gelu"]


def softmax(x, axis=-1):
    """把一行得分变成一行权重：都不小于 0，加起来等于 1；整行都是 -inf（什么都不能看）时给出全 0。

    形状：x [..., n] -> [..., n]
    错误：没有 axis 这一轴，或它的长度为 0 时 ValueError。
    来源：《Attention Is All You Need》3.2.1。
    """
    x = _with_axis(x, axis)
    e = x - _finite_max(x, axis)  # 减去最大值：结果不变，指数最大是 e⁰ = 1，不会溢出
    np.exp(e, out=e)  # e 是刚建的数组，就地算，不再多占一份内存
    e /= _nonzero_sum(e, axis)
    return e


def log_softmax(x, axis=-1):
    """softmax 的对数，不经过 softmax 算：很小的概率也不会先变成 0 再取对数。

    形状：x [..., n] -> [..., n]
    错误：同 softmax。整行 -inf 时给出整行 -inf。
    """
    x = _with_axis(x, axis)
    shifted = x - _finite_max(x, axis)
    return shifted - np.log(_nonzero_sum(np.exp(shifted), axis))


def cross_entropy(logits, targets, ignore_index=-100, reduction="mean"):
    """目标词元的负对数概率，默认对所有位置取平均；目标等于 ignore_index 的位置不计入。

    reduction="sum" 求和而不平均；"none" 不合并，返回每个位置的损失（与 targets 同形，不计入的位置是 0）。

    形状：logits [..., V], targets 整数 [...] -> []
    错误：形状对不上、目标全被忽略、reduction 不认识时 ValueError；目标编号不在词表内时 IndexError。
    """
    logits, targets = as_float(logits, "logits"), np.asarray(targets)
    if logits.ndim == 0 or targets.shape != logits.shape[:-1]:
        raise ValueError(f"targets 应比 logits 少最后一轴：logits {logits.shape} 配 targets "
                         f"{logits.shape[:-1]}，收到 {targets.shape}")
    keep = targets != ignore_index
    if not keep.any():
        raise ValueError(f"没有可以计算损失的目标：{targets.size} 个目标全等于 ignore_index={ignore_index}")
    ids = as_ids(np.where(keep, targets, 0), "targets", logits.shape[-1])  # 不计入的先填 0 占位
    losses = -np.take_along_axis(log_softmax(logits), ids[..., None], axis=-1)[..., 0]
    if reduction == "none":
        return np.where(keep, losses, losses.dtype.type(0))  # 0 与 losses 同精度
    if reduction not in ("mean", "sum"):
        raise ValueError(f'reduction 应是 "mean"、"sum" 或 "none"，收到 {reduction!r}')
    return losses[keep].mean() if reduction == "mean" else losses[keep].sum()


def linear(x, W, b=None):
    """线性层 x W + b，行向量写法：W 的每一列是一个输出特征（PyTorch 存的是它的转置）。

    形状：x [..., d_in], W [d_in, d_out], b [d_out] -> [..., d_out]
    错误：x、W、b 的宽度对不上时 ValueError。
    """
    x, W = as_float(x, "x"), as_float(W, "W")
    if x.ndim == 0 or W.ndim != 2 or x.shape[-1] != W.shape[0]:
        raise ValueError(f"x 的最后一轴应等于 W 的行数：收到 x {x.shape}、W {W.shape}")
    # 先摊平成一个大矩阵再乘：一次矩阵乘法，而不是每个句子一次
    y = (x.reshape(-1, x.shape[-1]) @ W).reshape(*x.shape[:-1], W.shape[1])
    if b is not None:
        if np.shape(b) != W.shape[1:]:
            raise ValueError(f"偏置 b 应是 {W.shape[1:]}（W 的列数），收到 {np.shape(b)}")
        y += b
    return y


def relu(x):
    """负数变 0，正数不变。

    形状：x [...] -> [...]
    """
    return np.maximum(as_float(x, "x"), 0)


def sigmoid(x):
    """S 形曲线 1 / (1 + e⁻ˣ)，把任何数压进 0 与 1 之间。

    形状：x [...] -> [...]
    """
    x = as_float(x, "x")
    with np.errstate(over="ignore"):  # x 很负时 e⁻ˣ 溢出成 inf，1 / inf = 0 正是极限值
        return 1 / (1 + np.exp(-x))


def silu(x):
    """x · sigmoid(x)，又叫 Swish；最小值约 -0.278，所以它不是 0 到 1 的门。

    形状：x [...] -> [...]
    """
    x = as_float(x, "x")
    with np.errstate(over="ignore"):  # x 很负时 e⁻ˣ 溢出成 inf，x / inf = 0 正是极限值
        e = np.exp(-x)
    e += 1  # e 是刚建的数组，就地加
    return x / e  # x · sigmoid(x) = x / (1 + e⁻ˣ)


def gelu(x, approximate="none"):
    """x · Φ(x)：Φ 是标准正态分布的累积概率。approximate="tanh" 是 GPT-2 用的近似式，最多差 4.7e-4。

    形状：x [...] -> [...]
    错误：approximate 不是 "none" 或 "tanh" 时 ValueError。
    来源：《Gaussian Error Linear Units》2 节。
    """
    x = as_float(x, "x")
    if approximate == "none":
        # NumPy 没有 erf：逐个调用 C 库的 math.erf，准确但慢，这正是近似式流行的原因
        erf = np.fromiter(map(math.erf, (x / math.sqrt(2)).ravel().tolist()), x.dtype, x.size)
        return 0.5 * x * (1 + erf.reshape(x.shape))  # Φ(x) = (1 + erf(x / √2)) / 2
    if approximate != "tanh":
        raise ValueError(f'approximate 应是 "none" 或 "tanh"，收到 {approximate!r}')
    # 公式 0.5·x·(1 + tanh u)，u = √(2/π)·(x + 0.044715x³)。因为 (1 + tanh u) / 2 = sigmoid(2u)，它等于 x / (1 + e^(-2u))，
    # 少几步，又能就地算：比照公式直写快三倍。√ 用 math.sqrt：np.sqrt 返回 float64 标量，会把整个网络提升成 float64；
    # x³ 写成连乘：x**3 对 float32 慢三十倍。
    c = 2 * math.sqrt(2 / math.pi)
    minus_2u = x * x
    minus_2u *= -0.044715 * c
    minus_2u -= c
    minus_2u *= x
    with np.errstate(over="ignore"):  # x 很负时溢出成 inf，x / inf = 0 正是极限值
        e = np.exp(minus_2u)
    e += 1
    return x / e


def _with_axis(x, axis):
    """x 变成实数数组，并确认有 axis 这一轴、它的长度不为 0。"""
    x = as_float(x, "x")
    if x.ndim == 0 or not -x.ndim <= axis < x.ndim:
        raise ValueError(f"x 没有第 {axis} 轴：收到形状 {x.shape}")
    if x.shape[axis] == 0:
        raise ValueError(f"x 的第 {axis} 轴长度为 0（形状 {x.shape}），没有东西可以归一")
    return x


def _finite_max(x, axis):
    """每行的最大值；整行都是 -inf 时取 0，免得算出 -inf - (-inf) = nan。"""
    peak = x.max(axis, keepdims=True)
    peak[np.isneginf(peak)] = 0
    return peak


def _nonzero_sum(e, axis):
    """每行的和，作除数用：是 0 就换成 1。"""
    total = e.sum(axis, keepdims=True)
    total[total == 0] = 1  # 只有整行 -inf 时和才会是 0；除以 1 就留下全 0
    return total
