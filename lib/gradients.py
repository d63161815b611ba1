"""反向传播：每个前向函数旁边一个手写的 `*_backward`，没有自动求导。

写法都一样：`f_backward(dy, 前向的输入…)` 收到损失对输出的梯度 dy，给出损失对各个输入的梯度；
d 开头的名字总是「损失对它的梯度」，形状与它自己相同。带参数的函数还交回一个与 params 同样键的字典。

组合的函数（注意力、前馈、一层）需要前向途中的数组。它们先用 `_…_forward` 再走一遍前向并留下这些数组；
`loss_and_gradients` 只走一遍，把留下的数组（saved）直接交给反向。
"""
import math

import numpy as np

from lib._checks import as_float, as_ids
from lib.attention import merge_heads, repeat_kv, scaled_dot_product_attention, sliding_window_mask, split_heads
from lib.functional import cross_entropy, gelu, linear, relu, sigmoid, softmax
from lib.normalization import apply_norm
from lib.position import rotary

__all__ = ["linear_backward", "softmax_backward", "cross_entropy_backward", "relu_backward", "sigmoid_backward",
           "silu_backward", "gelu_backward", "embed_backward", "rotary_backward", "layer_norm_backward",
           "rms_norm_backward", "scaled_dot_product_attention_backward", "repeat_kv_backward",
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
    rows = dy.reshape(-1, dy.shape[-1])
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
    错误：同 cross_entropy。
    """
    logits, targets = as_float(logits, "logits"), np.asarray(targets)
    keep = targets != ignore_index
    if logits.shape[:-1] != targets.shape or not keep.any():
        raise ValueError(f"targets 应是 {logits.shape[:-1]}，且不能全被忽略；收到形状 {targets.shape}")
    ids = as_ids(np.where(keep, targets, 0), "targets", logits.shape[-1])
    dx = softmax(logits)
    rows = dx.reshape(-1, dx.shape[-1])
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
    """y = x σ(x)：dx = dy ⊙ (σ + x σ (1 - σ))。

    形状：dy [...], x [...] -> [...]
    """
    dy, x = _same(dy, x)
    gate = sigmoid(x)
    return dy * (gate * (1 + x * (1 - gate)))


def gelu_backward(dy, x, approximate="none"):
    """y = x Φ(x)：dx = dy ⊙ (Φ + x φ)，φ 是标准正态的密度；"tanh" 近似见 _gelu_slope。

    形状：dy [...], x [...] -> [...]
    错误：approximate 不是 "none" 或 "tanh" 时 ValueError。
    """
    dy, x = _same(dy, x)
    if approximate == "tanh":
        return dy * _gelu_slope(x, _gelu_gate(x))
    ones = np.where(x == 0, 1, x)
    cumulative = np.where(x == 0, 0.5, gelu(ones, approximate) / ones)  # Φ(x) = gelu(x) / x
    density = np.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    return dy * (cumulative + x * density).astype(x.dtype, copy=False)


_C = 2 * math.sqrt(2 / math.pi)


def _gelu_gate(x):
    """tanh 近似的另一种写法：½(1 + tanh u) = σ(2u)，于是 gelu(x) = x σ(2u)，只需要一次 exp。"""
    return sigmoid(x * (_C + _C * 0.044715 * x * x))


def _gelu_slope(x, gate):
    """x σ(2u) 的导数：σ + x σ (1 - σ) (2u)′，其中 (2u)′ = 2√(2/π) (1 + 3·0.044715 x²)。"""
    return gate * (1 + x * (1 - gate) * (_C + 3 * _C * 0.044715 * x * x))


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
    错误：同 rotary。
    """
    return rotary(dy, -as_float(positions, "positions"), base, layout)


def layer_norm_backward(dy, x, gain=None, eps=1e-5):
    """y = gain ⊙ x̂ + bias，x̂ = (x - μ) / σ。先得 dx̂ = dy ⊙ gain，再

        dx = (dx̂ - mean(dx̂) - x̂ mean(dx̂ ⊙ x̂)) / σ

    减掉的两项，是因为 μ 和 σ 也随 x 变。gain=None 时当作全 1，dgain、dbias 照样给出。

    形状：dy [..., d], x [..., d], gain [d] -> dx [..., d], dgain [d], dbias [d]
    错误：dy 与 x 形状不同时 ValueError。
    """
    dy, x = _same(dy, x)
    centered = x - x.mean(-1, keepdims=True)
    inverse = 1 / np.sqrt(np.square(centered).mean(-1, keepdims=True) + eps)
    dx, dgain = _normalized_backward(dy, centered, inverse, gain)
    dx -= dx.mean(-1, keepdims=True)  # x̂ 的均值是 0，所以这一步也可以放在最后
    return dx, dgain, _rows(dy).sum(0)


def rms_norm_backward(dy, x, gain=None, eps=1e-6):
    """y = gain ⊙ x / rms(x)：与 layer_norm 相同，只是没有减均值那一步。

    形状：dy [..., d], x [..., d], gain [d] -> dx [..., d], dgain [d]
    错误：dy 与 x 形状不同时 ValueError。
    """
    dy, x = _same(dy, x)
    inverse = 1 / np.sqrt(np.square(x).mean(-1, keepdims=True) + eps)
    return _normalized_backward(dy, x, inverse, gain)


def _normalized_backward(dy, x, inverse, gain):
    """y = gain ⊙ x̂，x̂ = x · inverse，inverse = 1/√(mean(x²) + eps) 也随 x 变。"""
    x_hat = x * inverse
    product = dy * x_hat
    dgain = _rows(product).sum(0)
    dx = dy
    if gain is not None:
        dx = dy * gain
        product *= gain
    x_hat *= product.mean(-1, keepdims=True)
    dx = np.subtract(dx, x_hat, out=x_hat)
    dx *= inverse
    return dx, dgain


# ---------------------------------------------------------------- 注意力


def scaled_dot_product_attention_backward(dy, q, k, v, weights, scale=None):
    """y = A v，A = softmax(q kᵀ · scale + 掩码)。只有权重 A，不需要掩码：被掩住的权重是 0，梯度也就是 0。

    形状：dy [..., n_q, d_v], q [..., n_q, d_head], k [..., n_k, d_head], v [..., n_k, d_v], weights [..., n_q, n_k]
        -> dq [..., n_q, d_head], dk [..., n_k, d_head], dv [..., n_k, d_v]
    错误：dy、weights 的形状与前向不符时 ValueError（q、k、v 前面的轴要相同，不广播）。
    """
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    _expect(dy, (*q.shape[:-1], v.shape[-1]))
    _expect(weights, (*q.shape[:-1], k.shape[-2]), "weights")
    dv = weights.swapaxes(-1, -2) @ dy
    ds = softmax_backward(dy @ v.swapaxes(-1, -2), weights)
    dq, dk = ds @ k, ds.swapaxes(-1, -2) @ q
    dq *= scale  # 乘 n·d 个数，而不是 n·n 个
    dk *= scale
    return dq, dk, dv


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
    """多头注意力的反向，返回 dx 和各参数的梯度。mask 与前向相同；用了旋转位置编码时给出 rope_base。

    形状：dy [..., n, d], x [..., n, d], params.W_Q [d, n_heads*d_head], params.W_K [d, n_kv_heads*d_head],
        params.W_V [d, n_kv_heads*d_head], params.W_O [n_heads*d_head, d], n_heads 整数, n_kv_heads 整数
        -> dx [..., n, d], 梯度 参数（n_heads % n_kv_heads == 0）
    """
    n_kv_heads = n_heads if n_kv_heads is None else n_kv_heads
    if saved is None:
        _, saved = _attention_forward(x, params, n_heads, n_kv_heads, mask, rope_base)
    q, k, v, weights, merged = saved
    grads = {}
    dmerged = _linear_backward(dy, merged, params, "O", grads)
    dq, dk, dv = scaled_dot_product_attention_backward(split_heads(dmerged, n_heads), q, k, v, weights)
    groups = n_heads // n_kv_heads
    dk, dv = repeat_kv_backward(dk, groups), repeat_kv_backward(dv, groups)
    if rope_base is not None:
        positions = np.arange(q.shape[-2])
        dq, dk = rotary_backward(dq, positions, rope_base), rotary_backward(dk, positions, rope_base)
    dx = _linear_backward(merge_heads(dq), x, params, "Q", grads)
    dx += _linear_backward(merge_heads(dk), x, params, "K", grads)
    dx += _linear_backward(merge_heads(dv), x, params, "V", grads)
    return dx, grads


def _attention_forward(x, params, n_heads, n_kv_heads, mask, rope_base):
    """与 multi_head_attention 相同，另外留下反向要用的数组。"""
    heads = {"Q": n_heads, "K": n_kv_heads, "V": n_kv_heads}
    q, k, v = (split_heads(_linear(x, params, name), count) for name, count in heads.items())
    if rope_base is not None:
        positions = np.arange(q.shape[-2])
        q, k = rotary(q, positions, rope_base), rotary(k, positions, rope_base)
    groups = n_heads // n_kv_heads
    if groups > 1:
        k, v = repeat_kv(k, groups), repeat_kv(v, groups)
    output, weights = scaled_dot_product_attention(q, k, v, mask)
    merged = merge_heads(output)
    return _linear(merged, params, "O"), (q, k, v, weights, merged)


# ---------------------------------------------------------------- 前馈网络


def feed_forward_backward(dy, x, params, activation, *, saved=None):
    """前馈网络的反向，返回 dx 和各参数的梯度；activation 是 lib.feedforward.ACTIVATIONS 里的名字。

    形状：dy [..., n, d], x [..., n, d], params.W_1 [d, d_ff], params.b_1 [d_ff], params.W_2 [d_ff, d], params.b_2 [d],
        activation 激活名 -> dx [..., n, d], 梯度 参数
    错误：没有写过反向的激活函数 ValueError。
    """
    if saved is None:
        _, saved = _feed_forward_forward(x, params, activation)
    hidden, gate, active = saved
    grads = {}
    dactive = _linear_backward(dy, active, params, "2", grads)
    if activation == "relu":
        dhidden = dactive * (hidden > 0)
    elif activation == "gelu":
        dhidden = dactive * _gelu_slope(hidden, gate)
    elif activation == "silu":
        dhidden = dactive * (gate * (1 + hidden * (1 - gate)))
    else:
        dhidden = gelu_backward(dactive, hidden)
    return _linear_backward(dhidden, x, params, "1", grads), grads


def _feed_forward_forward(x, params, activation):
    """与 feed_forward 相同，另外留下：激活前的值、门（激活是 x·门 的形式时）、激活后的值。"""
    hidden, gate = _linear(x, params, "1"), None
    if activation == "relu":
        active = relu(hidden)
    elif activation in ("gelu", "silu"):
        gate = _gelu_gate(hidden) if activation == "gelu" else sigmoid(hidden)
        active = hidden * gate
    elif activation == "gelu_exact":
        active = gelu(hidden)
    else:
        raise ValueError(f"activation 应是 relu、gelu、gelu_exact、silu 之一，收到 {activation!r}：别的函数没有写反向")
    return _linear(active, params, "2"), (hidden, gate, active)


def swiglu_feed_forward_backward(dy, x, params, *, saved=None):
    """SwiGLU 的反向：相乘的两路，每一路的梯度是 dy 乘以另一路。

    形状：dy [..., n, d], x [..., n, d], params.W_gate [d, d_ff], params.W_up [d, d_ff], params.W_down [d_ff, d]
        -> dx [..., n, d], 梯度 参数
    """
    if saved is None:
        _, saved = _swiglu_forward(x, params)
    hidden, gate, up, active = saved
    grads = {}
    dproduct = _linear_backward(dy, active, params, "down", grads)
    dup = dproduct * hidden * gate
    dproduct *= up
    dhidden = dproduct * (gate * (1 + hidden * (1 - gate)))
    dx = _linear_backward(dhidden, x, params, "gate", grads)
    dx += _linear_backward(dup, x, params, "up", grads)
    return dx, grads


def _swiglu_forward(x, params):
    hidden, up = _linear(x, params, "gate"), _linear(x, params, "up")
    gate = sigmoid(hidden)
    active = hidden * gate * up
    return _linear(active, params, "down"), (hidden, gate, up, active)


# ---------------------------------------------------------------- 一层、整个模型


def transformer_block_backward(dy, x, params, config, mask=None, *, saved=None):
    """一层的反向，返回 dx 和与 params 同样布局的梯度。mask 与前向相同。

    残差的反向是把梯度抄成两份：一份直接往前传，一份进子层，最后相加。梯度因此总有一条不经过任何矩阵的直路。

    形状：dy [..., n, d], x [..., n, d], params 参数, config 设置 -> dx [..., n, d], 梯度 参数
    """
    if saved is None:
        _, saved = _block_forward(x, params, config, mask)
    grads = {}
    dx = _sublayer_backward(dy, "ffn", "norm_2", params, config, mask, saved["ffn"], grads)
    return _sublayer_backward(dx, "attention", "norm_1", params, config, mask, saved["attention"], grads), grads


def _block_forward(x, params, config, mask):
    """与 transformer_block 相同，另外留下两个子层反向要用的数组。"""
    saved = {}
    for part, name in (("attention", "norm_1"), ("ffn", "norm_2")):
        pre = config.norm_position == "pre"
        inner = apply_norm(x, params[name], config.norm, config.norm_eps) if pre else x
        y, kept = _part_forward(part, inner, params[part], config, mask)
        y += x  # y 是刚建的数组
        saved[part] = (x if pre else y, inner, kept)
        x = y if pre else apply_norm(y, params[name], config.norm, config.norm_eps)
    return x, saved


def _sublayer_backward(dy, part, name, params, config, mask, saved, grads):
    """Pre-LN 的 x + f(norm(x))，或 Post-LN 的 norm(x + f(x))。"""
    normed, inner, kept = saved  # 归一化的输入、子层的输入、子层留下的数组
    if config.norm_position == "pre":
        dinner, grads[part] = _part_backward(part, dy, inner, params[part], config, mask, kept)
        dx = _norm_backward(dinner, normed, name, params, config, grads)
        dx += dy
    else:
        dy = _norm_backward(dy, normed, name, params, config, grads)
        dx, grads[part] = _part_backward(part, dy, inner, params[part], config, mask, kept)
        dx += dy
    return dx


def _part_forward(part, x, params, config, mask):
    if part == "attention":
        return _attention_forward(x, params, config.n_heads, config.kv_heads, mask, _rope_base(config))
    if config.activation == "swiglu":
        return _swiglu_forward(x, params)
    return _feed_forward_forward(x, params, config.activation)


def _part_backward(part, dy, x, params, config, mask, saved):
    if part == "attention":
        return multi_head_attention_backward(dy, x, params, config.n_heads, config.kv_heads, mask,
                                             rope_base=_rope_base(config), saved=saved)
    if config.activation == "swiglu":
        return swiglu_feed_forward_backward(dy, x, params, saved=saved)
    return feed_forward_backward(dy, x, params, config.activation, saved=saved)


def _norm_backward(dy, x, name, params, config, grads):
    gain = params[name]["gain"]
    if config.norm == "rms":
        dx, dgain = rms_norm_backward(dy, x, gain, config.norm_eps)
        grads[name] = {"gain": dgain}
        return dx
    dx, dgain, dbias = layer_norm_backward(dy, x, gain, config.norm_eps)
    grads[name] = {"gain": dgain} | ({"bias": dbias} if "bias" in params[name] else {})
    return dx


def loss_and_gradients(model, ids, targets):
    """模型在 ids 上预测 targets 的平均交叉熵，以及它对每个参数的梯度（与 model.params 同样布局的嵌套字典）。

    targets[..., i] 是位置 i 该预测的下一个词元，通常就是 ids 左移一位；等于 -100 的位置不计入。

    形状：ids 整数 [..., n], targets 整数 [..., n] -> 损失 [], 梯度 参数
    错误：形状对不上时 ValueError；编号不在词表内时 IndexError。
    """
    config, params = model.config, model.params
    ids = as_ids(ids, "ids", config.vocab_size)
    x = model._embed(ids, 0)
    mask = np.where(sliding_window_mask(ids.shape[-1], config.window), 0, -np.inf).astype(x.dtype)
    saved = []
    for block in params["blocks"]:
        x, kept = _block_forward(x, block, config, mask)
        saved.append(kept)
    final = apply_norm(x, params["norm_f"], config.norm, config.norm_eps) if "norm_f" in params else x
    head = params["wte"].T if config.tie_embeddings else params["lm_head"]
    logits = linear(final, head)
    loss = cross_entropy(logits, targets)

    grads = {}
    dx, dhead, _ = linear_backward(cross_entropy_backward(logits, targets), final, head)
    if "norm_f" in params:
        dx = _norm_backward(dx, x, "norm_f", params, config, grads)
    blocks = []
    for block, kept in zip(reversed(params["blocks"]), reversed(saved)):
        dx, block_grads = transformer_block_backward(dx, None, block, config, mask, saved=kept)
        blocks.append(block_grads)
    grads["blocks"] = blocks[::-1]
    if config.position == "learned":
        grads["wpe"] = np.zeros_like(params["wpe"])
        grads["wpe"][: dx.shape[-2]] = dx.reshape(-1, *dx.shape[-2:]).sum(0)
    if config.scale_embeddings:
        dx = dx * math.sqrt(config.d_model)
    grads["wte"] = embed_backward(dx, ids, config.vocab_size)
    if config.tie_embeddings:
        grads["wte"] += dhead.T  # 同一份参数用了两次，梯度是两处之和
    else:
        grads["lm_head"] = dhead
    return loss, grads


# ---------------------------------------------------------------- 小工具


def _linear(x, params, name):
    return linear(x, params[f"W_{name}"], params.get(f"b_{name}"))


def _linear_backward(dy, x, params, name, grads):
    """返回 dx，把 W_名字（和 b_名字）的梯度放进 grads。"""
    dx, grads[f"W_{name}"], db = linear_backward(dy, x, params[f"W_{name}"])
    if f"b_{name}" in params:
        grads[f"b_{name}"] = db
    return dx


def _rope_base(config):
    return config.rope_base if config.position == "rotary" else None


def _rows(x):
    return x.reshape(-1, x.shape[-1])


def _same(dy, x):
    dy, x = as_float(dy, "dy"), as_float(x, "x")
    _expect(dy, x.shape)
    return dy, x


def _expect(dy, shape, name="dy"):
    if dy.shape != tuple(shape):
        raise ValueError(f"{name} 的形状应与前向的输出相同，是 {tuple(shape)}，收到 {dy.shape}")
