"""采样：从最后一行 logits 里选出下一个词元。

顺序是 温度 → top-k → top-p → 抽取。筛掉的词元得到 -inf，softmax 之后概率恰好是 0，剩下的自动重新归一。
V 是词表大小；T、k、p 是三步各自的参数。
"""
import numpy as np

from lib._checks import as_count, as_float  # 入口检查：正整数、实数数组；不合格就报错
from lib.functional import softmax

__all__ = ["greedy", "apply_temperature", "top_k_filter", "top_p_filter", "sample"]


def greedy(logits):
    """贪心：选得分最高的词元；并列时选编号小的。

    形状：logits [..., V] -> 整数 [...]
    错误：有 nan，或一行全是 -inf（没有可选的）时 ValueError。
    """
    return _check(logits).argmax(-1)


def apply_temperature(logits, T):
    """logits / T：T < 1 拉大差距，T > 1 抹平差距，不改变排名。

    T = 0 定义为贪心：只留下最大的那个（并列时编号小的），其余 -inf；公式本身在这里是除以 0。

    形状：logits [..., V], T 标量 -> [..., V]
    错误：T 为负或 nan 时 ValueError。
    """
    logits = _check(logits)
    if not T >= 0:
        raise ValueError(f"温度 T 应不小于 0，收到 {T}；T=0 是贪心，T=1 不改变分布")
    if T == 0:
        best = np.arange(logits.shape[-1]) == greedy(logits)[..., None]
        return np.where(best, logits, -np.inf)
    with np.errstate(over="ignore", invalid="ignore"):  # 溢出和 -inf / inf 在下面处理
        scaled = logits / T
        if not np.isfinite(scaled.max(-1)).all():  # T 太小，除法溢出：先减去最大值，分布不变
            scaled = (logits - logits.max(-1, keepdims=True)) / T
    return np.where(np.isneginf(logits), logits, scaled)  # T = inf 时 -inf / T 是 nan，换回 -inf


def top_k_filter(logits, k):
    """只留得分最高的 k 个，其余 -inf；第 k 名并列时留编号小的；k 不小于词表时原样返回。

    形状：logits [..., V], k 整数 -> [..., V]
    错误：k 不是正整数时报错。
    """
    logits, k = _check(logits), as_count(k, "k")
    if k >= logits.shape[-1]:
        return logits.copy()
    kth = np.partition(logits, -k, axis=-1)[..., -k, None]  # 第 k 名的得分，不必给整个词表排序
    above, tied = logits > kth, logits == kth
    seats = k - above.sum(-1, keepdims=True)  # 留给并列者的名额
    return np.where(above | tied & (tied.cumsum(-1) <= seats), logits, -np.inf)


def top_p_filter(logits, p):
    """按概率从大到小累加，留到总和达到 p 为止；跨过 p 的那一个也留下，所以至少留一个。

    形状：logits [..., V], p 标量 -> [..., V]
    错误：p 不在 (0, 1] 内时 ValueError。
    来源：《The Curious Case of Neural Text Degeneration》3.1。
    """
    logits = _check(logits)
    if not 0 < p <= 1:
        raise ValueError(f"p 应在 (0, 1] 内，收到 {p}；p=1 保留全部")
    if p == 1:
        return logits.copy()  # 不去累加：舍入会让尾巴上的词元被误删
    order = np.argsort(-logits, axis=-1, kind="stable")
    # 按得分从高到低排好；用 float64 累加，舍入误差更小
    probabilities = np.take_along_axis(softmax(logits.astype(np.float64)), order, axis=-1)
    before = probabilities.cumsum(-1) - probabilities  # 排在它前面的总和；不到 p 就留下
    keep = np.zeros(logits.shape, dtype=bool)
    np.put_along_axis(keep, order, before < p, axis=-1)
    return np.where(keep, logits, -np.inf)


def sample(logits, rng, temperature=1.0, top_k=None, top_p=None):
    """按 softmax 概率抽一个词元；temperature=0 是贪心，不用随机数（rng 可以是 None）。top_k、top_p 是 None 就不筛。

    形状：logits [..., V], rng 随机数 -> 整数 [...]
    错误：temperature > 0 而 rng 不是 numpy.random.Generator 时 TypeError；其余同各个筛选函数。
    """
    logits = apply_temperature(logits, temperature)
    if temperature == 0:
        return greedy(logits)
    if not isinstance(rng, np.random.Generator):
        raise TypeError(f"rng 应是 numpy.random.default_rng(种子)，收到 {type(rng).__name__}；只有温度为 0 时可以不给")
    if top_k is not None:
        logits = top_k_filter(logits, top_k)
    if top_p is not None:
        logits = top_p_filter(logits, top_p)
    # cdf 是累积概率：把 0 到 1 按概率分成 V 格，随机数落在哪一格就选哪个词元
    cdf = softmax(logits.astype(np.float64)).cumsum(-1)
    cdf /= cdf[..., -1:]  # 末位恰好是 1，而 rng.random() < 1，所以总能落在一格里
    return (cdf <= rng.random(logits.shape[:-1] + (1,))).sum(-1)  # 概率为 0 的格子没有宽度，永远抽不到


def _check(logits):
    """实数数组 [..., V]，每行至少有一个有限的得分，没有 nan 和 +inf。"""
    logits = as_float(logits, "logits")
    if logits.ndim == 0 or logits.size == 0:
        raise ValueError(f"logits 应是 [..., V] 且不为空，收到形状 {logits.shape}")
    peak = logits.max(-1)
    if not np.isfinite(peak).all():
        raise ValueError("logits 的每一行应有至少一个有限的最大值；收到了 nan、+inf 或整行 -inf（没有可选的词元）")
    return logits
