"""注意力：谁能看谁（掩码）、看多少（softmax 权重）、看到什么（加权的 V），以及把它分成多个头。

符号：n_q 个查询、n_k 个键，q 和 k 每个头宽 d_head，v 宽 d_v；n_heads 个查询头，n_kv_heads 个键值头。
GQA（分组查询注意力）让几个查询头共用一个键值头；MQA（多查询注意力）让全部查询头共用一个。
掩码有两种写法，处处通用：布尔（True = 可以看）或加到得分上的浮点数（0 / -inf）。
n_k 大于 n_q 时最后一个查询对齐最后一个键：前面多出来的是键值缓存里的旧词元。
"""
import math

import numpy as np

from lib._checks import as_count, as_float  # 入口检查：正整数、实数数组；不合格就报错
from lib.functional import linear, softmax

__all__ = ["causal_mask", "sliding_window_mask", "scaled_dot_product_attention", "causal_attention",
           "split_heads", "merge_heads", "repeat_kv", "multi_head_attention"]


def causal_mask(n_q, n_k=None):
    """因果掩码：第 i 个查询只能看它自己和之前的键（含对角线）。

    形状：n_q 整数, n_k 整数 -> 布尔 [n_q, n_k]（n_k >= n_q）
    错误：n_q、n_k 不是正整数，或 n_k < n_q 时 TypeError / ValueError。
    来源：《Attention Is All You Need》3.2.3。
    """
    n_q = as_count(n_q, "n_q")
    n_k = n_q if n_k is None else as_count(n_k, "n_k")
    if n_k < n_q:
        raise ValueError(f"n_k={n_k} 小于 n_q={n_q}：键至少要包括查询自己，缓存只会让键更多")
    return np.tri(n_q, n_k, n_k - n_q, dtype=bool)  # 下三角；n_k - n_q 列旧词元人人可见


def sliding_window_mask(n_q, window, n_k=None):
    """滑动窗口掩码：在因果掩码之上，只看包括自己在内最近的 window 个键；window=None 即不限。

    形状：n_q 整数, window 整数, n_k 整数 -> 布尔 [n_q, n_k]（n_k >= n_q）
    错误：同 causal_mask；window 不是正整数时报错。
    来源：《Mistral 7B》2 节。
    """
    causal = causal_mask(n_q, n_k)
    if window is None:
        return causal
    n_q, n_k = causal.shape
    # 第二个下三角是比自己早 window 个以上（含 window）的键，从看得见的里面去掉
    return causal & ~np.tri(n_q, n_k, n_k - n_q - as_count(window, "window"), dtype=bool)


def scaled_dot_product_attention(q, k, v, mask=None, scale=None):
    """缩放点积注意力：softmax(q kᵀ · scale + 掩码) v，返回（输出, 权重）。

    scale=None 即 1/√d_head，scale=1 即不缩放。一行什么都不能看时，它的权重和输出都是 0。

    形状：q [..., n_q, d_head], k [..., n_k, d_head], v [..., n_k, d_v] -> 输出 [..., n_q, d_v], 权重 [..., n_q, n_k]
    错误：形状对不上时 ValueError；掩码既不是布尔也不是浮点数时 TypeError。
    来源：《Attention Is All You Need》式 (1)。
    """
    q, k, v = _check_qkv(q, k, v)
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    scores = (q * scale) @ k.swapaxes(-1, -2)  # 缩放 q 而不是得分：n·d 个数，而不是 n·n 个
    if mask is not None:
        scores = _masked(scores, mask)
    weights = softmax(scores)
    return weights @ v, weights


def causal_attention(q, k, v, scale=None, window=None, block=32):
    """与 scaled_dot_product_attention 加因果（或滑动窗口）掩码的输出相同，但不算看不见的那一半，也不留权重。

    查询分块：一块里谁都看不到的键根本不去算；一块得分小到留在处理器缓存里。
    k、v 的头可以比 q 少（GQA）：同组的查询头看同一份键值，不必复制。

    形状：q [..., n_kv_heads*groups, n_q, d_head], k [..., n_kv_heads, n_k, d_head], v [..., n_kv_heads, n_k, d_v]
        -> [..., n_kv_heads*groups, n_q, d_v]（n_k >= n_q）
    错误：形状对不上、n_k < n_q 时 ValueError。
    来源：分块的想法见《FlashAttention》；这里一块一次看全它的键，所以不需要边读边改最大值与行和（在线 softmax）。
    """
    q, k, v, heads = _group_queries(q, k, v)
    n_q, n_k = q.shape[-2], k.shape[-2]
    if n_k < n_q:
        raise ValueError(f"n_k={n_k} 小于 n_q={n_q}：键至少要包括查询自己，缓存只会让键更多")
    block, window = as_count(block, "block"), window if window is None else as_count(window, "window")
    q = q * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    # lead 是最后两轴之前的轴：批和头；分组时头占两个轴 [n_kv_heads, groups]
    lead = np.broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2])
    q, k, v = (np.broadcast_to(x, (*lead, *x.shape[-2:])) for x in (q, k, v))  # 视图，不复制
    output = np.empty((*lead, n_q, v.shape[-1]), q.dtype)
    batch = lead[:-2] if heads else lead[:-1]
    for index in np.ndindex(batch):  # 一个序列一个序列地算，它的得分才留得在缓存里
        _attend_in_blocks(q[index], k[index], v[index], output[index], window, block)
    return output.reshape(*output.shape[:-4], heads, n_q, v.shape[-1]) if heads else output


def _attend_in_blocks(q, k, v, output, window, block):
    """一个序列的各头：一次 block 个查询，结果写进 output。q 已经缩放过。"""
    n_q, n_k = q.shape[-2], k.shape[-2]
    ahead = _additive(causal_mask(min(block, n_q)), q.dtype)  # 一块之内：排在自己后面的键加 -inf
    for start in range(0, n_q, block):
        stop = min(start + block, n_q)
        last = n_k - n_q + stop  # 这一块的最后一个查询只看得到 last 个键
        # 块里第一个查询的窗口从哪里开始；再往前的键，这一块谁都看不到
        first = 0 if window is None else max(0, last - (stop - start) - window + 1)
        scores = q[..., start:stop, :] @ k[..., first:last, :].swapaxes(-1, -2)
        if window is None:
            scores[..., start - stop :] += ahead[: stop - start, : stop - start]  # 只有对角线上那一小块要掩
        elif stop - start > 1:  # 只有一个查询时（逐个生成），窗口里的键它全看得到
            scores += _additive(sliding_window_mask(stop - start, window, last - first), q.dtype)
        scores -= scores.max(-1, keepdims=True)
        np.exp(scores, out=scores)
        y = scores @ v[..., first:last, :]
        y /= scores.sum(-1, keepdims=True)  # 除 n·d 个输出，而不是 n·n 个权重
        output[..., start:stop, :] = y


def split_heads(x, n_heads):
    """把每个词元的宽度切成 n_heads 段，并把头移到词元之前。

    先 reshape 再交换两轴；直接 reshape 成 [h, n, d_head] 形状对，但会把不同词元的数混进同一个头。

    形状：x [..., n, n_heads*d_head], n_heads 整数 -> [..., n_heads, n, d_head]
    错误：宽度不能被 n_heads 整除时 ValueError。
    """
    x, n_heads = as_float(x, "x"), as_count(n_heads, "n_heads")
    if x.ndim < 2 or x.shape[-1] % n_heads:
        raise ValueError(f"x 应是 [..., n, d] 且 d 能被 n_heads={n_heads} 整除，收到形状 {x.shape}")
    return x.reshape(*x.shape[:-1], n_heads, x.shape[-1] // n_heads).swapaxes(-2, -3)


def merge_heads(x):
    """split_heads 的逆：把各头的输出按头的顺序接回一行。

    形状：x [..., n_heads, n, d_head] -> [..., n, n_heads*d_head]
    错误：x 少于三个轴时 ValueError。
    """
    x = as_float(x, "x")
    if x.ndim < 3:
        raise ValueError(f"x 应是 [..., n_heads, n, d_head]，收到形状 {x.shape}")
    x = x.swapaxes(-2, -3)
    return x.reshape(*x.shape[:-2], -1)


def repeat_kv(x, groups):
    """GQA：每个键值头供相邻的 groups 个查询头使用，所以把它连着重复 groups 次（0 0 1 1，不是 0 1 0 1）。

    形状：x [..., n_kv_heads, n, d_head], groups 整数 -> [..., n_kv_heads*groups, n, d_head]
    错误：x 少于三个轴、groups 不是正整数时报错。
    来源：《GQA》2.2 节。
    """
    x = as_float(x, "x")
    if x.ndim < 3:
        raise ValueError(f"x 应是 [..., n_kv_heads, n, d_head]，收到形状 {x.shape}")
    return np.repeat(x, as_count(groups, "groups"), axis=-3)


def multi_head_attention(x, params, n_heads, n_kv_heads=None, mask=None, *, rotate=None, cache=None,
                         is_causal=False, window=None, need_weights=True):
    """多头注意力：先用完整的 W_Q、W_K、W_V 投影，再切成头；每个头都看得到全部 d 维。

    n_kv_heads 小于 n_heads 是 GQA，等于 1 是 MQA。rotate(头, 起始位置) 给 q、k 加上旋转位置编码。
    偏置 params.b_Q、b_K、b_V、b_O 可以没有。is_causal=True 由函数自己加因果掩码（window 是滑动窗口，None = 不限），
    不必传 mask；此时 need_weights=False 改走更快的 causal_attention，权重返回 None；传了 mask 就只按 mask。
    cache.append(k, v) 存下新的键值并交回全部，cache.length 是已有的个数；
    有缓存而没有掩码时一定是因果的，因为旧词元的键值没有看过新词元。

    形状：x [..., n, d], params.W_Q [d, n_heads*d_head], params.W_K [d, n_kv_heads*d_head],
        params.W_V [d, n_kv_heads*d_head], params.W_O [n_heads*d_head, d], n_heads 整数, n_kv_heads 整数
        -> 输出 [..., n, d], 权重 [..., n_heads, n, n]（n_heads % n_kv_heads == 0）
    错误：缺少权重、形状对不上、n_heads 不能被 n_kv_heads 整除时 ValueError。
    来源：《Attention Is All You Need》3.2.2；《GQA》2.2 节。
    """
    n_kv_heads = n_heads if n_kv_heads is None else n_kv_heads
    if as_count(n_heads, "n_heads") % as_count(n_kv_heads, "n_kv_heads"):
        raise ValueError(f"n_heads={n_heads} 应能被 n_kv_heads={n_kv_heads} 整除：每个键值头服务同样多的查询头")
    q, k, v = _project_qkv(x, params)
    q, k, v = split_heads(q, n_heads), split_heads(k, n_kv_heads), split_heads(v, n_kv_heads)
    if rotate is not None:
        start = 0 if cache is None else cache.length
        q, k = rotate(q, start), rotate(k, start)
    if cache is not None:
        k, v = cache.append(k, v)
    if mask is None and (is_causal or cache is not None):
        if not need_weights:
            return _project(merge_heads(causal_attention(q, k, v, window=window)), params, "O"), None
        mask = sliding_window_mask(q.shape[-2], window, k.shape[-2])
    groups = n_heads // n_kv_heads
    output, weights = scaled_dot_product_attention(q, repeat_kv(k, groups), repeat_kv(v, groups), mask)
    return _project(merge_heads(output), params, "O"), weights


def _project(x, params, name):
    """x W_名字 + b_名字，偏置可以没有。"""
    if f"W_{name}" not in params:
        raise ValueError(f"params 缺少 W_{name}；应含 W_Q、W_K、W_V、W_O（可选 b_Q…b_O），收到 {sorted(params)}")
    return linear(x, params[f"W_{name}"], params.get(f"b_{name}"))


def _project_qkv(x, params):
    """三个投影。W_Q、W_K、W_V 若是一个大矩阵并排的三段（lib.model.pack 这样存），就一次乘完再切开，结果相同而更快。"""
    whole = _side_by_side([params.get(f"W_{name}") for name in "QKV"])
    if whole is None:
        return [_project(x, params, name) for name in "QKV"]
    everything, parts, start = linear(x, whole), [], 0
    for name in "QKV":
        stop = start + params[f"W_{name}"].shape[1]
        parts.append(everything[..., start:stop])
        if params.get(f"b_{name}") is not None:
            parts[-1][...] += params[f"b_{name}"]  # 切出的是视图，[...] 就地加进 everything
        start = stop
    return parts


def _side_by_side(matrices):
    """几个矩阵若恰是同一块内存从左到右的视图，交回那个大矩阵，否则 None；视图永远与它一致，所以不怕参数被改动。"""
    whole = getattr(matrices[0], "base", None)  # NumPy 视图的 base 是它所在的那个数组
    if whole is None or whole.ndim != 2 or any(getattr(W, "base", None) is not whole for W in matrices):
        return None
    start = 0
    for W in matrices:
        segment = whole[:, start : start + W.shape[1]]
        # 形状、步长、起始地址都相同，才是同一段内存
        if W.shape != segment.shape or W.strides != segment.strides or W.ctypes.data != segment.ctypes.data:
            return None
        start += W.shape[1]
    return whole if start == whole.shape[1] else None


def _masked(scores, mask):
    """布尔掩码：看不见的得分换成 -inf；浮点掩码：直接相加。都在 softmax 之前，所以看不见的权重恰好是 0。"""
    mask = np.asarray(mask)
    try:
        np.broadcast_shapes(mask.shape, scores.shape)
    except ValueError:
        raise ValueError(f"mask 应能广播到得分的形状 {scores.shape}（[..., n_q, n_k]），收到 {mask.shape}") from None
    if mask.dtype == bool:
        return np.where(mask, scores, -np.inf)
    if mask.dtype.kind != "f":
        raise TypeError(f"mask 应是布尔（True = 可以看）或浮点（0 / -inf），收到 dtype={mask.dtype}；0/1 请先 .astype(bool)")
    if np.isnan(mask).any():
        raise ValueError("mask 里有 nan：常见原因是 0 * -inf，请用 np.where(可以看, 0, -np.inf)")
    if (mask == 1).any() and np.isin(mask, (0, 1)).all():
        raise ValueError("mask 是 0 和 1 组成的浮点数组：浮点掩码会加到得分上，1 并不表示可以看；请先 .astype(bool)")
    return scores + mask.astype(scores.dtype, copy=False)


def _additive(mask, dtype):
    """布尔掩码（True = 可以看）变成加到得分上的 0 / -inf。"""
    return np.where(mask, 0, -np.inf).astype(dtype)


def _check_qkv(q, k, v):
    q, k, v = as_float(q, "q"), as_float(k, "k"), as_float(v, "v")
    shapes = f"收到 q {q.shape}、k {k.shape}、v {v.shape}"
    if min(q.ndim, k.ndim, v.ndim) < 2:
        raise ValueError(f"q、k、v 至少要有 [n, d_head] 两个轴，{shapes}")
    if q.shape[-1] != k.shape[-1] or q.shape[-1] == 0:
        raise ValueError(f"q 和 k 的最后一轴（d_head）应相同，点积才有意义；{shapes}")
    if k.shape[-2] != v.shape[-2] or k.shape[-2] == 0:
        raise ValueError(f"k 和 v 的个数（倒数第二轴 n_k）应相同且不为 0；{shapes}")
    try:
        np.broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2])
    except ValueError:
        raise ValueError(f"q、k、v 前面的轴（批、头）应能互相广播；{shapes}") from None
    return q, k, v


def _group_queries(q, k, v):
    """键值头比查询头少时，把查询头按组排成 [n_kv_heads, groups]，k、v 添一个长度为 1 的组轴去广播。

    第四项是查询头数，用来把输出排回去；头数相同或没有头那一轴时不分组，它是 None。
    """
    q, k, v = as_float(q, "q"), as_float(k, "k"), as_float(v, "v")
    if min(q.ndim, k.ndim, v.ndim) < 3 or q.shape[-3] == k.shape[-3]:
        return *_check_qkv(q, k, v), None
    heads, n_kv_heads = q.shape[-3], k.shape[-3]
    if heads % n_kv_heads:
        raise ValueError(f"q 的 {heads} 个头应能被 k 的 {n_kv_heads} 个头整除：每个键值头服务同样多的查询头")
    q = q.reshape(*q.shape[:-3], n_kv_heads, heads // n_kv_heads, *q.shape[-2:])
    return *_check_qkv(q, k[..., None, :, :], v[..., None, :, :]), heads
