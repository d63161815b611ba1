"""前馈网络（FFN）：对每个词元单独做同一个两层小网络；词元之间不交换信息。

d 是词元向量的宽度，d_ff 是中间那一层的宽度；⊙ 是逐个相乘。
"""
from functools import partial

from lib.functional import gelu, linear, relu, silu

__all__ = ["ACTIVATIONS", "feed_forward", "swiglu_feed_forward"]

# "gelu" 是 GPT-2 用的 tanh 近似；"gelu_exact" 用标准正态的累积概率本身，不近似
ACTIVATIONS = {"relu": relu, "gelu": partial(gelu, approximate="tanh"), "gelu_exact": gelu, "silu": silu}


def feed_forward(x, params, activation):
    """激活(x W_1 + b_1) W_2 + b_2：先升到 d_ff 维，过激活函数，再回到 d 维。偏置可以没有。

    没有激活函数，两个矩阵就能合成一个；activation 是 ACTIVATIONS 里的名字，或一个函数。

    形状：x [..., n, d], params.W_1 [d, d_ff], params.b_1 [d_ff], params.W_2 [d_ff, d], params.b_2 [d], activation 函数
        -> [..., n, d]
    错误：缺少权重、形状对不上、不认识的激活函数名时 ValueError。
    来源：《Attention Is All You Need》式 (2)。
    """
    if not callable(activation) and activation not in ACTIVATIONS:
        raise ValueError(f"activation 应是 {'、'.join(ACTIVATIONS)} 之一或一个函数，收到 {activation!r}")
    _check(params, "W_1", "W_2")
    activate = activation if callable(activation) else ACTIVATIONS[activation]
    return linear(activate(linear(x, params["W_1"], params.get("b_1"))), params["W_2"], params.get("b_2"))


def swiglu_feed_forward(x, params):
    """(silu(x W_gate) ⊙ x W_up) W_down：一路算候选信息，一路算门，逐个相乘后压回 d 维。

    三个矩阵比两个多一半参数，所以 d_ff 通常取 8/3·d 而不是 4·d。偏置可以没有。

    形状：x [..., n, d], params.W_gate [d, d_ff], params.W_up [d, d_ff], params.W_down [d_ff, d] -> [..., n, d]
    错误：缺少权重、形状对不上时 ValueError。
    来源：《GLU Variants Improve Transformer》式 (6)。
    """
    _check(params, "W_gate", "W_up", "W_down")
    hidden = silu(linear(x, params["W_gate"], params.get("b_gate")))
    up = linear(x, params["W_up"], params.get("b_up"))
    if up.shape != hidden.shape:
        raise ValueError(f"W_gate 和 W_up 的列数应相同：收到 {params['W_gate'].shape} 和 {params['W_up'].shape}")
    hidden *= up  # hidden 是刚建的数组，就地乘
    return linear(hidden, params["W_down"], params.get("b_down"))


def _check(params, *names):
    """缺少哪个权重，当场说清楚。"""
    missing = [name for name in names if name not in params]
    if missing:
        raise ValueError(f"params 缺少 {'、'.join(missing)}；收到 {sorted(params)}")
