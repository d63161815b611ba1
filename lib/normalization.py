"""归一化：LayerNorm 和 RMSNorm 在每个词元自己的 d 个数里归一，BatchNorm 跨词元归一（对照用）。

方差都是总体方差（除以 d，不是 d-1），eps 在根号里面，防止除以 0。
"""
import numpy as np

from lib._checks import as_float  # 入口检查：变成实数数组，不合格就报错

__all__ = ["layer_norm", "rms_norm", "batch_norm", "apply_norm"]


def layer_norm(x, gain=None, bias=None, eps=1e-5):
    """每个词元减去自己的均值、除以自己的标准差，再乘增益、加偏置。一行全相等时归一后是 0。

    形状：x [..., d], gain [d], bias [d] -> [..., d]
    错误：gain、bias 不是 [d]，eps 为负，或 eps=0 而某行全相等时 ValueError。
    来源：《Layer Normalization》式 (4)。
    """
    x = _check(x, eps)
    centered = x - x.mean(-1, keepdims=True)
    variance = (centered * centered).mean(-1, keepdims=True)
    return _affine(_divide_by_root(centered, variance, eps), gain, bias)


def rms_norm(x, gain=None, eps=1e-6):
    """只除以均方根，不减均值：比 LayerNorm 少一步，Llama 用它。均方根不是标准差，除非均值恰好是 0。

    形状：x [..., d], gain [d] -> [..., d]
    错误：gain 不是 [d]，eps 为负，或 eps=0 而某行全 0 时 ValueError。
    来源：《Root Mean Square Layer Normalization》式 (4)。
    """
    x = _check(x, eps)
    mean_square = (x * x).mean(-1, keepdims=True)
    return _affine(_divide_by_root(x.copy(), mean_square, eps), gain, None)  # 复制一份：下面就地除，不能改动输入


def batch_norm(x, gain=None, bias=None, eps=1e-5, running=None):
    """每个特征跨所有词元（除最后一轴外的全部轴）归一；running=(均值, 方差) 时改用训练时记下的统计量。

    一个词元的结果取决于同批的其他词元，所以语言模型不用它。

    形状：x [..., n, d], gain [d], bias [d] -> [..., n, d]（n > 1）
    错误：没有 running 而只有一行时 ValueError（一行减去自己的均值总是 0）；其余同 layer_norm。
    来源：《Batch Normalization》算法 1。
    """
    x = _check(x, eps)
    axes = tuple(range(x.ndim - 1))  # 除最后一轴外的全部轴
    if running is not None:
        mean, variance = (_feature(value, name, x) for value, name in zip(running, ("均值", "方差"), strict=True))
        if (variance < 0).any():
            raise ValueError(f"running 的方差应不小于 0，收到最小值 {variance.min()}；顺序是（均值, 方差）")
    elif x.size == x.shape[-1]:  # 总共只有一个词元
        raise ValueError(f"x 只有一行（形状 {x.shape}），跨词元的方差无从谈起；推理时请传 running=(均值, 方差)")
    else:
        mean, variance = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    return _affine(_divide_by_root(x - mean, variance, eps), gain, bias)


def apply_norm(x, params, kind, eps):
    """按名字选归一化：kind="layer" 用 params 里的 gain 和 bias（可没有），kind="rms" 只用 gain。

    形状：x [..., n, d], params.gain [d], kind 归一化名, eps 标量 -> [..., n, d]
    错误：kind 不认识时 ValueError；其余同 layer_norm、rms_norm。
    """
    if kind == "layer":
        return layer_norm(x, params.get("gain"), params.get("bias"), eps)
    if kind != "rms":
        raise ValueError(f'归一化应是 "layer" 或 "rms"，收到 {kind!r}')
    return rms_norm(x, params.get("gain"), eps)


def _divide_by_root(y, variance, eps):
    """y / √(variance + eps)，写回 y。"""
    if eps == 0 and (variance == 0).any():
        raise ValueError("eps=0，而有一行（BatchNorm 是一列）的方差为 0，除不了；请给 eps 一个小的正数，如 1e-5")
    y /= np.sqrt(variance + eps)  # y 是刚建的数组，就地除
    return y


def _affine(y, gain, bias):
    """乘增益、加偏置，写回 y；是 None 的那一步跳过。"""
    if gain is not None:
        y *= _feature(gain, "gain", y)
    if bias is not None:
        y += _feature(bias, "bias", y)
    return y


def _feature(value, name, x):
    """每个特征一个数的数组 [d]，换成与 x 同样的精度。"""
    value = as_float(value, name).astype(x.dtype, copy=False)
    if value.shape != x.shape[-1:]:
        raise ValueError(f"{name} 应是 {x.shape[-1:]}（每个特征一个数），收到 {value.shape}")
    return value


def _check(x, eps):
    x = as_float(x, "x")
    if x.size == 0 or x.ndim == 0:
        raise ValueError(f"x 应是 [..., d] 且不为空，收到形状 {x.shape}")
    if not eps >= 0:  # 写成 not：eps 是 nan 时也报错
        raise ValueError(f"eps 应不小于 0，收到 {eps}")
    return x
