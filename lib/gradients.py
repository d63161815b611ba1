"""反向传播：每个前向函数旁边一个手写的 `*_backward`，没有自动求导。

写法都一样：`f_backward(dy, 前向的输入…)` 收到损失对输出的梯度 dy，给出损失对各个输入的梯度；
d 开头的名字总是「损失对它的梯度」，形状与它自己相同。带参数的函数还交回一个与 params 同样键的字典。

组合的函数（注意力、前馈、一层）需要前向途中的数组。它们先用 `_…_forward` 再走一遍前向并留下这些数组；
`loss_and_gradients` 只走一遍，把留下的数组（saved）直接交给反向。

符号：⊙ 是逐个相乘；n 个词元，每个宽 d；b 个句子，h 个头；n_q 个查询、n_k 个键；掩码 True = 可以看，或 0 / -inf。
"""
import math

import numpy as np

from lib._checks import as_float, as_ids  # 入口检查：实数数组、0…n-1 的编号；不合格就报错
from lib.attention import merge_heads, repeat_kv, sliding_window_mask, split_heads
from lib.feedforward import ACTIVATIONS
from lib.functional import cross_entropy, gelu, linear, sigmoid, silu, softmax
from lib.position import rotary

__all__ = ["linear_backward", "softmax_backward", "cross_entropy_backward", "relu_backward", "sigmoid_backward",
           "silu_backward", "gelu_backward", "gelu_and_slope", "embed_backward", "rotary_backward", "layer_norm_backward",
           "rms_norm_backward", "scaled_dot_product_attention_backward", "attention_forward", "attention_backward", "repeat_kv_backward",
           "multi_head_attention_backward", "feed_forward_backward", "swiglu_feed_forward_backward",
           "transformer_block_backward", "loss_and_gradients"]


# ---------------------------------------------------------------- 不带参数的函数


def linear_backward(dy, x, W):
    """y = x W + b：dx = dy Wᵀ，dW = xᵀ dy，db 是 dy 各行之和。

    形状：dy [..., d_out], x [..., d_in], W [d_in, d_out] -> dx [..., d_in], dW [d_in, d_out], db [d_out]
    错误：dy 的形状不是前向输出的形状时 ValueError。
    """
    dy, x = as_float(dy, "dy"), as_float(x, "x")
    _expect(dy, (*x.shape[:-1], W.shape[1]))
    rows = dy.reshape(-1, dy.shape[-1])  # 前面的轴摊平成行，一次乘完
    return (rows @ W.T).reshape(x.shape), x.reshape(-1, x.shape[-1]).T @ rows, rows.sum(0)


def softmax_backward(dp, p):
    """p = softmax(x)，沿最后一轴：dx = p ⊙ (dp - Σ dp ⊙ p)。只需要输出 p，不需要 x。

    每行的 dx 加起来是 0：给整行得分加同一个数，p 不变。

    形状：dp [..., n], p [..., n] -> [..., n]
    错误：dp 与 p 形状不同时 ValueError。
    """
    dp, p = as_float(dp, "dp"), as_float(p, "p")
    _expect(dp, p.shape)
    dx = dp - (dp * p).sum(-1, keepdims=True)
    dx *= p
    return dx


def cross_entropy_backward(logits, targets, ignore_index=-100):
    """平均交叉熵对 logits 的梯度：(softmax(logits) - 独热目标) / 目标数。被忽略的位置是 0。

    形状：logits [..., V], targets 整数 [...] -> [..., V]
    错误：形状对不上、目标全被忽略时 ValueError；目标编号不在词表内时 IndexError。
    """
    logits, targets = as_float(logits, "logits"), np.asarray(targets)
    keep = targets != ignore_index
    if logits.shape[:-1] != targets.shape or not keep.any():
        raise ValueError(f"targets 应是 {logits.shape[:-1]}，且不能全被忽略；收到形状 {targets.shape}")
    ids = as_ids(np.where(keep, targets, 0), "targets", logits.shape[-1])  # 被忽略的先填 0 占位
    dx = softmax(logits)
    rows = dx.reshape(-1, dx.shape[-1])  # dx 的视图，改它就是改 dx
    rows[np.arange(len(rows)), ids.ravel()] -= 1
    rows[~keep.ravel()] = 0
    dx /= int(keep.sum())
    return dx


def relu_backward(dy, x):
    """y = max(x, 0)：x > 0 处原样通过，其余为 0（0 处取 0）。

    形状：dy [...], x [...] -> [...]
    错误：dy 与 x 形状不同时 ValueError（下面几个激活函数也一样）。
    """
    dy, x = _same(dy, x)
    return dy * (x > 0)


def sigmoid_backward(dy, x):
    """y = σ(x)：dx = dy ⊙ y (1 - y)，最大也只有 dy 的四分之一。

    形状：dy [...], x [...] -> [...]
    """
    dy, x = _same(dy, x)
    y = sigmoid(x)
    return dy * y * (1 - y)


def silu_backward(dy, x):
    """y = x σ(x)，σ 是 sigmoid：dx = dy ⊙ (σ + x σ (1 - σ))。

    形状：dy [...], x [...] -> [...]
    """
    dy, x = _same(dy, x)
    gate = sigmoid(x)
    return dy * (gate * (1 + x * (1 - gate)))


def gelu_backward(dy, x, approximate="none"):
    """y = x Φ(x)：dx = dy ⊙ (Φ + x φ)，φ 是标准正态的密度。

    "tanh" 近似是 y = ½ x (1 + tanh u)，u = √(2/π) (x + 0.044715 x³)：dx = dy ⊙ (½ (1 + t) + ½ x (1 - t²) u′)，
    t = tanh u，u′ 是 u 对 x 的导数。

    形状：dy [...], x [...] -> [...]
    错误：approximate 不是 "none" 或 "tanh" 时 ValueError。
    """
    dy, x = _same(dy, x)
    if approximate == "tanh":
        c = math.sqrt(2 / math.pi)
        t = np.tanh(c * (x + 0.044715 * x * x * x))
        return dy * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * c * (1 + 3 * 0.044715 * x * x))
    nonzero = np.where(x == 0, 1, x)  # x = 0 处不能除：先用 1 占位，下一行填 Φ(0) = 0.5
    cumulative = np.where(x == 0, 0.5, gelu(nonzero, approximate) / nonzero)  # Φ(x) = gelu(x) / x
    density = np.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    return dy * (cumulative + x * density).astype(x.dtype, copy=False)


def gelu_and_slope(x, block=32768):
    """tanh 近似的 gelu 和它的导数，一起算、就地算：比 gelu 加 gelu_backward 快三倍，结果相同，训练用它。

    ½ (1 + tanh u) = σ(2u)，所以 gelu(x) = x σ(2u)，只需要一次 exp；导数是 σ + x σ (1 - σ) (2u)′。
    分块是为了让十几遍运算都在处理器缓存里进行。

    形状：x [..., n] -> 激活 [..., n], 导数 [..., n]
    """
    c = 2 * math.sqrt(2 / math.pi)  # 2u = c (x + 0.044715 x³)
    y, slope = np.empty(x.shape, x.dtype), np.empty(x.shape, x.dtype)
    flat_x, flat_y, flat_slope = (a.reshape(-1) for a in (np.ascontiguousarray(x), y, slope))
    for start in range(0, x.size, block):
        # 这一块的 x、激活、导数；a 和 s 是视图，写进去就是结果
        h, a, s = (array[start : start + block] for array in (flat_x, flat_y, flat_slope))
        square = h * h
        np.multiply(square, -0.044715 * c, out=s)  # s 依次是 -(2u)/x、-2u、e⁻²ᵘ、σ(2u)，最后是导数
        s -= c
        s *= h
        with np.errstate(over="ignore"):  # x 很负时溢出成 inf，倒数是 0，正是极限值
            np.exp(s, out=s)
        s += 1
        np.reciprocal(s, out=s)
        np.multiply(h, s, out=a)
        square *= 3 * 0.044715 * c  # (2u)′ = c (1 + 3·0.044715 x²)
        square += c
        square *= a  # a = x σ(2u)
        square *= 1 - s
        s += square
    return y, slope


# ---------------------------------------------------------------- 嵌入、位置、归一化


def embed_backward(dy, ids, n_rows):
    """查表的反向：同一个词元出现几次，它那一行就收到几份梯度之和；没出现的行是 0。

    形状：dy [..., d], ids 整数 [...], n_rows 整数 -> [n_rows, d]
    错误：dy 与 ids 对不上时 ValueError；编号不在表内时 IndexError。
    """
    dy, ids = as_float(dy, "dy"), as_ids(ids, "ids", n_rows)
    if dy.ndim == 0:
        raise ValueError("dy 应是 [..., d]，收到一个数")
    _expect(dy, (*ids.shape, dy.shape[-1]))
    table = np.zeros((n_rows, dy.shape[-1]), dy.dtype)
    # 按编号排好，再一段一段相加：与 np.add.at(table, ids, dy) 相同，快得多
    order = np.argsort(ids, axis=None, kind="stable")
    found, starts = np.unique(ids.ravel()[order], return_index=True)
    if found.size:
        table[found] = np.add.reduceat(dy.reshape(-1, dy.shape[-1])[order], starts, axis=0)
    return table


def rotary_backward(dy, positions, base=10000.0, layout="half"):
    """旋转的反向是反着转同样的角度：旋转矩阵的转置就是它的逆。

    形状：dy [..., n, d], positions 整数 [n] -> [..., n, d]（d % 2 == 0）
    错误：d 是奇数、positions 不是 [n]、layout 不认识时 ValueError。
    """
    return rotary(dy, -as_float(positions, "positions"), base, layout)


def layer_norm_backward(dy, x, gain=None, eps=1e-5):
    """y = gain ⊙ x̂ + bias，x̂ = (x - μ) / σ。先得 dx̂ = dy ⊙ gain，再

        dx = (dx̂ - mean(dx̂) - x̂ mean(dx̂ ⊙ x̂)) / σ

    μ 是均值，σ = √(方差 + eps)。减掉的两项，是因为 μ 和 σ 也随 x 变。gain=None 时当作全 1，dgain、dbias 照样给出。

    形状：dy [..., d], x [..., d], gain [d] -> dx [..., d], dgain [d], dbias [d]
    错误：dy 与 x 形状不同时 ValueError。
    """
    dy, x = _same(dy, x)
    return _normalize_backward(dy, *_normalize(x, "layer", eps), gain, "layer")


def rms_norm_backward(dy, x, gain=None, eps=1e-6):
    """y = gain ⊙ x / rms(x)，rms(x) = √(x² 的均值 + eps)：与 layer_norm 相同，只是没有减均值那一步。

    形状：dy [..., d], x [..., d], gain [d] -> dx [..., d], dgain [d]
    错误：dy 与 x 形状不同时 ValueError。
    """
    dy, x = _same(dy, x)
    return _normalize_backward(dy, *_normalize(x, "rms", eps), gain, "rms")[:2]


def _normalize(x, kind, eps):
    """x̂ 和 1/σ（kind="rms" 时是 1/rms）。vecdot 一行一个点积，不必先写出 x² 再求和。"""
    if kind == "layer":
        x = x - _mean(x)
    inverse = 1 / np.sqrt(np.vecdot(x, x)[..., None] / x.shape[-1] + eps)
    return x * inverse, inverse


def _mean(x):
    """每行的均值，写成与 1/d 的乘积：交给 BLAS，比 mean 快一倍多。"""
    d = x.shape[-1]
    return (x @ np.full(d, 1 / d, x.dtype))[..., None]


def _normalize_backward(dy, x_hat, inverse, gain, kind):
    """layer_norm_backward 的公式；x_hat 是 x̂，inverse 是 1/σ。返回 dx、dgain、dbias。"""
    dgain = np.einsum("ij,ij->j", _rows(dy), _rows(x_hat))  # 逐个相乘再按列求和，不写出乘积
    dx = dy.copy() if gain is None else dy * gain  # 先是 dx̂，下面就地改成 dx
    dx -= x_hat * (np.vecdot(dx, x_hat)[..., None] / x_hat.shape[-1])
    if kind == "layer":
        dx -= _mean(dx)  # x̂ 的均值是 0，所以这一步可以放在后面
    dx *= inverse
    return dx, dgain, _rows(dy).sum(0)


# ---------------------------------------------------------------- 注意力


def scaled_dot_product_attention_backward(dy, q, k, v, weights, scale=None):
    """y = A v，A = softmax(q kᵀ · scale + 掩码)。只要权重 A，不要掩码：被掩住的权重是 0，梯度也就是 0。

    形状：dy [..., n_q, d_v], q [..., n_q, d_head], k [..., n_k, d_head], v [..., n_k, d_v], weights [..., n_q, n_k]
        -> dq [..., n_q, d_head], dk [..., n_k, d_head], dv [..., n_k, d_v]
    错误：dy、weights 的形状与前向不符时 ValueError（q、k、v 前面的轴要相同，不广播）。
    """
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    _expect(dy, (*q.shape[:-1], v.shape[-1]))
    _expect(weights, (*q.shape[:-1], k.shape[-2]), "weights")
    dv = weights.swapaxes(-1, -2) @ dy  # 以下三行：y = A v 的两个输入，再穿过 softmax 和 q kᵀ
    dscores = softmax_backward(dy @ v.swapaxes(-1, -2), weights)
    return dscores @ k * scale, dscores.swapaxes(-1, -2) @ q * scale, dv


def attention_forward(q, k, v, mask):
    """与 scaled_dot_product_attention 相同（mask 是 0 / -inf，每行至少看得到一个），训练用：就地算，少过几遍内存。

    一次算少数几个句子，它们的得分矩阵小到留在处理器缓存里。交回的是没有除以行和的 eˢ（s 是减去每行最大值的得分），行和另给：
    除以行和推迟到输出的 n·d 个数上做，不在 n·n 个权重上做。输入不再检查。

    形状：q [b, h, n_q, d_head], k [b, h, n_k, d_head], v [b, h, n_k, d_v], mask [n_q, n_k]
        -> 输出 [b, h, n_q, d_v], 指数 [b, h, n_q, n_k], 行和 [b, h, n_q, 1]
    """
    output = _empty_heads(q.shape[:-1], v.shape[-1], q.dtype)
    exps = np.empty((*q.shape[:-1], k.shape[-2]), q.dtype)
    q = q * (1 / math.sqrt(q.shape[-1]))
    for i in _few_sentences(exps):
        scores = np.matmul(q[i], k[i].swapaxes(-1, -2), out=exps[i])
        scores += mask
        scores -= scores.max(-1, keepdims=True)
        np.exp(scores, out=scores)
        np.matmul(scores, v[i], out=output[i])
    sums = exps.sum(-1, keepdims=True)
    output /= sums
    return output, exps, sums


def attention_backward(dy, q, k, v, output, exps, sums):
    """与 scaled_dot_product_attention_backward 相同，训练用；后三项由 attention_forward 留下，权重 A = exps / sums。

    softmax 的反向要每行的 Σ dA ⊙ A；它等于 Σ dy ⊙ y，只有 n·d 个乘法，而不是 n·n 个。输入不再检查。

    形状：dy [b, h, n_q, d_v], q [b, h, n_q, d_head], k [b, h, n_k, d_head], v [b, h, n_k, d_v], output [b, h, n_q, d_v],
        exps [b, h, n_q, n_k], sums [b, h, n_q, 1] -> dq [b, h, n_q, d_head], dk [b, h, n_k, d_head], dv [b, h, n_k, d_v]
    来源：《FlashAttention》附录 B.2。
    """
    dq, dk, dv = (_empty_heads(a.shape[:-1], a.shape[-1], a.dtype) for a in (q, k, v))
    dy = dy / sums  # 除以行和只在这里做一次，下面便能用 exps 代替 A
    inner = np.vecdot(dy, output)[..., None]
    for i in _few_sentences(exps):
        np.matmul(exps[i].swapaxes(-1, -2), dy[i], out=dv[i])
        dscores = dy[i] @ v[i].swapaxes(-1, -2)
        dscores -= inner[i]
        dscores *= exps[i]
        np.matmul(dscores, k[i], out=dq[i])
        np.matmul(dscores.swapaxes(-1, -2), q[i], out=dk[i])
    scale = 1 / math.sqrt(q.shape[-1])
    dq *= scale  # 缩放乘在 n·d 个数上，而不是得分上
    dk *= scale
    return dq, dk, dv


def _few_sentences(scores, size=65536):
    """把 [b, h, n_q, n_k] 沿句子切开，每份约 size 个得分。"""
    step = max(1, size // max(1, scores[0].size)) if len(scores) else 1
    return [slice(i, i + step) for i in range(0, len(scores), step)]


def _empty_heads(shape, width, dtype):
    """[b, h, n, width] 的空数组，内存却按 [b, n, h, width] 排：merge_heads 时不必复制。"""
    b, h, n = shape
    return np.empty((b, n, h, width), dtype).swapaxes(1, 2)


def repeat_kv_backward(dy, groups):
    """一个键值头被 groups 个查询头共用，它的梯度是这几份之和。

    形状：dy [..., n_kv_heads*groups, n, d_head], groups 整数 -> [..., n_kv_heads, n, d_head]
    错误：头数不能被 groups 整除时 ValueError。
    """
    if groups == 1:
        return dy
    if dy.ndim < 3 or dy.shape[-3] % groups:
        raise ValueError(f"dy 应是 [..., 头数, n, d_head] 且头数能被 groups={groups} 整除，收到形状 {dy.shape}")
    return dy.reshape(*dy.shape[:-3], dy.shape[-3] // groups, groups, *dy.shape[-2:]).sum(-3)


def multi_head_attention_backward(dy, x, params, n_heads, n_kv_heads=None, mask=None, *, rope_base=None, saved=None):
    """多头注意力的反向，返回 dx 和各参数的梯度。mask 与前向相同（[n, n]，布尔或 0 / -inf）；
    用了旋转位置编码（RoPE）时给出 rope_base。n_kv_heads 小于 n_heads 时，几个查询头共用一个键值头（GQA）。

    形状：dy [..., n, d], x [..., n, d], params.W_Q [d, n_heads*d_head], params.W_K [d, n_kv_heads*d_head],
        params.W_V [d, n_kv_heads*d_head], params.W_O [n_heads*d_head, d], n_heads 整数, n_kv_heads 整数
        -> dx [..., n, d], 梯度 参数（n_heads % n_kv_heads == 0）
    错误：dy 与 x 形状不同、mask 有一行什么都不能看时 ValueError。
    """
    dy, x = _same(dy, x)
    n_kv_heads = n_heads if n_kv_heads is None else n_kv_heads
    if saved is None:
        _, saved = _attention_forward(x, params, n_heads, n_kv_heads, mask, rope_base)
    q, k, v, output, exps, sums = saved  # q、k 已经旋转过，k、v 已经重复到 n_heads 个头
    grads = {}
    dmerged = _linear_backward(_sentences(dy), merge_heads(output), params, "O", grads)
    dq, dk, dv = attention_backward(split_heads(dmerged, n_heads), q, k, v, output, exps, sums)
    groups = n_heads // n_kv_heads
    dk, dv = repeat_kv_backward(dk, groups), repeat_kv_backward(dv, groups)
    if rope_base is not None:
        positions = np.arange(q.shape[-2])
        dq, dk = rotary_backward(dq, positions, rope_base), rotary_backward(dk, positions, rope_base)
    dx = _linear_backward(merge_heads(dq), _sentences(x), params, "Q", grads)
    for name, dhead in (("K", dk), ("V", dv)):  # x 用了三次，dx 是三份之和
        dx += _linear_backward(merge_heads(dhead), _sentences(x), params, name, grads)
    return dx.reshape(x.shape), grads


def _attention_forward(x, params, n_heads, n_kv_heads, mask, rope_base):
    """与 multi_head_attention 相同，另外留下反向要用的数组。"""
    counts = {"Q": n_heads, "K": n_kv_heads, "V": n_kv_heads}
    q, k, v = (split_heads(_linear(_sentences(x), params, name), count) for name, count in counts.items())
    if rope_base is not None:
        positions = np.arange(q.shape[-2])
        q, k = rotary(q, positions, rope_base), rotary(k, positions, rope_base)
    if n_kv_heads < n_heads:
        k, v = repeat_kv(k, n_heads // n_kv_heads), repeat_kv(v, n_heads // n_kv_heads)
    output, exps, sums = attention_forward(q, k, v, _additive(mask, q.shape[-2], x.dtype))
    return _linear(merge_heads(output), params, "O").reshape(x.shape), (q, k, v, output, exps, sums)


def _additive(mask, n, dtype):
    """掩码统一成 0 / -inf 的 [n, n]。"""
    if mask is None:
        return np.zeros((n, n), dtype)
    mask = np.asarray(mask)
    mask = np.where(mask, 0, -np.inf).astype(dtype) if mask.dtype == bool else mask.astype(dtype, copy=False)
    if mask.shape != (n, n) or np.isneginf(mask).all(-1).any():
        raise ValueError(f"mask 应是 [{n}, {n}]，每行至少看得到一个键；收到形状 {mask.shape}")
    return mask


# ---------------------------------------------------------------- 前馈网络


def feed_forward_backward(dy, x, params, activation, *, saved=None):
    """前馈网络的反向，返回 dx 和各参数的梯度；activation 是 lib.feedforward.ACTIVATIONS 里的名字。

    形状：dy [..., n, d], x [..., n, d], params.W_1 [d, d_ff], params.b_1 [d_ff], params.W_2 [d_ff, d], params.b_2 [d],
        activation 激活名 -> dx [..., n, d], 梯度 参数
    错误：dy 与 x 形状不同、不认识的激活函数名时 ValueError。
    """
    dy, x = _same(dy, x)
    if saved is None:
        _, saved = _feed_forward_forward(x, params, activation)
    active, slope = saved
    grads = {}
    dhidden = _linear_backward(dy, active, params, "2", grads)
    dhidden *= slope
    return _linear_backward(dhidden, x, params, "1", grads), grads


def _feed_forward_forward(x, params, activation):
    """与 feed_forward 相同，另外留下激活后的值和激活函数的斜率。"""
    hidden = _linear(x, params, "1")
    if activation == "gelu":
        active, slope = gelu_and_slope(hidden)
    elif activation in _BACKWARDS:
        # 斜率就是 dy 全为 1 时的反向
        active, slope = ACTIVATIONS[activation](hidden), _BACKWARDS[activation](np.ones_like(hidden), hidden)
    else:
        raise ValueError(f"activation 应是 {'、'.join(ACTIVATIONS)} 之一，收到 {activation!r}")
    return _linear(active, params, "2"), (active, slope)


# 没有 "gelu"：它走更快的 gelu_and_slope
_BACKWARDS = {"relu": relu_backward, "silu": silu_backward, "gelu_exact": gelu_backward}


def swiglu_feed_forward_backward(dy, x, params, *, saved=None):
    """SwiGLU 的反向：两路相乘，每一路的梯度是乘积的梯度乘以另一路。

    形状：dy [..., n, d], x [..., n, d], params.W_gate [d, d_ff], params.W_up [d, d_ff], params.W_down [d_ff, d]
        -> dx [..., n, d], 梯度 参数
    错误：dy 与 x 形状不同时 ValueError。
    """
    dy, x = _same(dy, x)
    if saved is None:
        _, saved = _swiglu_forward(x, params)
    hidden, active, up = saved
    grads = {}
    dproduct = _linear_backward(dy, active * up, params, "down", grads)
    dx = _linear_backward(silu_backward(dproduct * up, hidden), x, params, "gate", grads)
    dx += _linear_backward(dproduct * active, x, params, "up", grads)
    return dx, grads


def _swiglu_forward(x, params):
    """与 swiglu_feed_forward 相同，另外留下门激活前后的值和另一路的值。"""
    hidden, up = _linear(x, params, "gate"), _linear(x, params, "up")
    active = silu(hidden)
    return _linear(active * up, params, "down"), (hidden, active, up)


# ---------------------------------------------------------------- 一层、整个模型


def transformer_block_backward(dy, x, params, config, mask=None, *, saved=None):
    """一层的反向，返回 dx 和与 params 同样布局的梯度。mask、config 与前向（transformer_block）相同；给了 saved 就用不到 x。

    残差的反向是把梯度抄成两份：一份直接往前传，一份进子层，最后相加。所以梯度总有一条不经过任何矩阵的直路。

    形状：dy [..., n, d], x [..., n, d], params 参数, config 设置 -> dx [..., n, d], 梯度 参数
    错误：dy 与 x 形状不同时 ValueError。
    """
    if saved is None:
        _expect(dy, np.shape(x))
        _, saved = _block_forward(as_float(x, "x"), params, config, mask)
    grads = {}
    for part, name in (("ffn", "norm_2"), ("attention", "norm_1")):
        normalized, inner, kept = saved[part]  # (x̂, 1/σ)、子层的输入、子层留下的数组
        if config.norm_position == "pre":  # x + f(norm(x))
            dinner, grads[part] = _part_backward(part, dy, inner, params[part], config, kept)
            dx, grads[name] = _norm_backward(dinner, normalized, params[name], config)
            dx += dy
        else:  # norm(x + f(x))
            dsum, grads[name] = _norm_backward(dy, normalized, params[name], config)
            dx, grads[part] = _part_backward(part, dsum, inner, params[part], config, kept)
            dx += dsum
        dy = dx
    return dx, grads


def _block_forward(x, params, config, mask):
    """与 transformer_block 相同，另外给每个子层留下：归一化的 x̂ 和 1/σ、子层的输入、子层自己留下的数组。"""
    saved = {}
    for part, name in (("attention", "norm_1"), ("ffn", "norm_2")):
        if config.norm_position == "pre":
            inner, normalized = _norm_forward(x, params[name], config)
            y, kept = _part_forward(part, inner, params[part], config, mask)
            y += x
            x, saved[part] = y, (normalized, inner, kept)
        else:
            y, kept = _part_forward(part, x, params[part], config, mask)
            y += x
            y, normalized = _norm_forward(y, params[name], config)
            x, saved[part] = y, (normalized, x, kept)
    return x, saved


def _part_forward(part, x, params, config, mask):
    """一个子层（"attention" 或 "ffn"）的前向：输出，和反向要用的数组。"""
    if part == "attention":
        return _attention_forward(x, params, config.n_heads, config.kv_heads, mask, _rope_base(config))
    if config.activation == "swiglu":
        return _swiglu_forward(x, params)
    return _feed_forward_forward(x, params, config.activation)


def _part_backward(part, dy, x, params, config, saved):
    """_part_forward 的反向：dx，和这个子层各参数的梯度。"""
    if part == "attention":
        return multi_head_attention_backward(dy, x, params, config.n_heads, config.kv_heads, rope_base=_rope_base(config),
                                             saved=saved)
    if config.activation == "swiglu":
        return swiglu_feed_forward_backward(dy, x, params, saved=saved)
    return feed_forward_backward(dy, x, params, config.activation, saved=saved)


def _norm_forward(x, params, config):
    """与 apply_norm 相同，另外留下 (x̂, 1/σ)。"""
    normalized = _normalize(x, config.norm, config.norm_eps)
    y = normalized[0] * params["gain"]
    if "bias" in params:
        y += params["bias"]
    return y, normalized


def _norm_backward(dy, normalized, params, config):
    """_norm_forward 的反向：dx，和 gain、bias（若有）的梯度。"""
    dx, dgain, dbias = _normalize_backward(dy, *normalized, params["gain"], config.norm)
    return dx, {"gain": dgain} | ({"bias": dbias} if "bias" in params else {})


def loss_and_gradients(model, ids, targets, group=768):
    """模型在 ids 上预测 targets 的平均交叉熵，以及它对每个参数的梯度（与 model.params 同样布局的嵌套字典）。

    targets[..., i] 是位置 i 该预测的下一个词元，通常是同一串里往后错一位取的编号；等于 -100 的位置不计入。
    一次只算约 group 个词元，再把各组的梯度相加：结果相同，而一组的中间数组留得在处理器缓存里。

    形状：ids 整数 [..., n], targets 整数 [..., n] -> 损失 [], 梯度 参数
    错误：形状对不上、目标全被忽略时 ValueError；编号不在词表内时 IndexError。
    """
    ids, targets = as_ids(ids, "ids", model.config.vocab_size), np.asarray(targets)
    counted = int((targets != -100).sum())
    if ids.ndim == 0 or targets.shape != ids.shape or counted == 0:
        raise ValueError(f"targets 应与 ids 一样是 {ids.shape}，且不能全被忽略；收到形状 {targets.shape}")
    n = ids.shape[-1]
    ids, targets = ids.reshape(-1, n), targets.reshape(-1, n)
    size = max(1, group // n)
    loss, grads = 0, None
    for start in range(0, len(ids), size):
        # share：这一组的目标占全部目标的几分之几
        some, wanted = ids[start : start + size], targets[start : start + size]
        share = int((wanted != -100).sum()) / counted
        if share:
            part, more = _group_gradients(model, some, wanted, share)
            loss, grads = loss + part, more if grads is None else _add(grads, more)
    return loss, grads


def _group_gradients(model, ids, targets, share):
    """一组句子 [b, n] 的前向与反向；平均损失和梯度都乘以 share，即这一组占全部目标的几分之几。"""
    config, params = model.config, model.params
    x = model._embed(ids, 0)  # 查表、加位置编码，与前向的第一步相同
    mask = np.where(sliding_window_mask(ids.shape[-1], config.window), 0, -np.inf).astype(x.dtype)
    saved = []
    for block in params["blocks"]:
        x, kept = _block_forward(x, block, config, mask)
        saved.append(kept)
    final = x
    if "norm_f" in params:
        final, normalized = _norm_forward(x, params["norm_f"], config)
    head = params["wte"].T if config.tie_embeddings else params["lm_head"]
    logits = linear(final, head)

    grads = {}
    dlogits = cross_entropy_backward(logits, targets)
    dlogits *= share
    dx, dhead, _ = linear_backward(dlogits, final, head)
    if "norm_f" in params:
        dx, grads["norm_f"] = _norm_backward(dx, normalized, params["norm_f"], config)
    blocks = []
    for block in reversed(params["blocks"]):
        # 用完一层就 pop 掉它留下的数组；有 saved，x 可以是 None
        dx, block_grads = transformer_block_backward(dx, None, block, config, mask, saved=saved.pop())
        blocks.append(block_grads)
    grads["blocks"] = blocks[::-1]
    grads |= _embedding_gradients(dx, ids, dhead, params, config)
    return cross_entropy(logits, targets) * share, grads


def _embedding_gradients(dx, ids, dhead, params, config):
    """嵌入表、位置表和输出层的梯度；共用一份参数时，它用了两次，梯度是两处之和。"""
    grads = {}
    if config.position == "learned":
        grads["wpe"] = np.zeros_like(params["wpe"])
        grads["wpe"][: dx.shape[-2]] = dx.sum(0)  # 每个句子都用同一行，所以对句子求和
    if config.scale_embeddings:
        dx = dx * math.sqrt(config.d_model)
    grads["wte"] = embed_backward(dx, ids, config.vocab_size)
    if config.tie_embeddings:
        grads["wte"] += dhead.T
    else:
        grads["lm_head"] = dhead
    return grads


def _add(total, more):
    """两份同样布局的梯度相加，加进 total。"""
    if isinstance(total, np.ndarray):
        total += more
        return total
    for key in total if isinstance(total, dict) else range(len(total)):
        _add(total[key], more[key])
    return total


# ---------------------------------------------------------------- 小工具


def _linear(x, params, name):
    """x W_名字 + b_名字，偏置可以没有。"""
    return linear(x, params[f"W_{name}"], params.get(f"b_{name}"))


def _linear_backward(dy, x, params, name, grads):
    """返回 dx，把 W_名字（和 b_名字）的梯度放进 grads。"""
    dx, grads[f"W_{name}"], db = linear_backward(dy, x, params[f"W_{name}"])
    if f"b_{name}" in params:
        grads[f"b_{name}"] = db
    return dx


def _sentences(x):
    """[n, d] 或 [..., n, d] → [b, n, d]。"""
    return x.reshape(-1, *x.shape[-2:])


def _rope_base(config):
    """RoPE 的 base；不用 RoPE 时是 None。"""
    return config.rope_base if config.position == "rotary" else None


def _rows(x):
    """[..., d] → [行数, d]。"""
    return x.reshape(-1, x.shape[-1])


def _same(dy, x):
    """输出与输入同形的函数：两者变成实数数组，形状必须相同。"""
    dy, x = as_float(dy, "dy"), as_float(x, "x")
    _expect(dy, x.shape)
    return dy, x


def _expect(dy, shape, name="dy"):
    if dy.shape != tuple(shape):
        raise ValueError(f"{name} 的形状应与前向的输出相同，是 {tuple(shape)}，收到 {dy.shape}")
