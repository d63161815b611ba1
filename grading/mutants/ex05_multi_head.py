"""ex05-multi-head 的错误写法与其他正确写法。"""

import math

import numpy as np

from grading.mutants import mutant, right

SPLIT, OUTPUT, EXAMPLE = "5.2", "5.3", "5.5"
MULTI, SOLVE = "multi_head_attention", "solve_projection"
COPIED = ("649453932/Chinese-Text-Classification-Pytorch/issues/53", "reczoo/FuxiCTR/issues/30", "hyunwoongko/transformer/issues/15")


# ---- 正确的零件 -------------------------------------------------------------------------------------------

def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def attend(q, k, v, mask=None, width=None, axis=-1):
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(width or q.shape[-1])
    weights = softmax(scores if mask is None else np.where(mask, scores, -np.inf), axis)
    return weights @ v, weights


def split(x, h):
    return x.reshape(*x.shape[:-1], h, x.shape[-1] // h).swapaxes(-2, -3)


def merge(x):
    x = x.swapaxes(-2, -3)
    return x.reshape(*x.shape[:-2], -1)


def project(x, params):
    return [x @ params[name] for name in ("W_Q", "W_K", "W_V")]


# ---- split_heads：错误写法 ----------------------------------------------------------------------------------

@mutant("split_heads", "直接 reshape 成 [h, n, d_head]", "形状对，词元却混了：先 reshape 成 [n, h, d_head]，再交换两轴", SPLIT,
        caught_by="arange", seen_in=COPIED)
def reshaped(x, h):
    return x.reshape(*x.shape[:-2], h, x.shape[-2], x.shape[-1] // h)


@mutant("split_heads", "忘了交换两轴", "reshape 之后头的轴在词元之后，还要换到前面", SPLIT, caught_by="arange")
def not_swapped(x, h):
    return x.reshape(*x.shape[:-1], h, x.shape[-1] // h)


@mutant("split_heads", "隔 h 个取一个", "第 t 个头取连续的一段 [t·d_head, (t+1)·d_head)，不是每隔 h 个取一个", SPLIT, caught_by="arange")
def interleaved(x, h):
    return np.stack([x[..., t::h] for t in range(h)], axis=-3)


@mutant("split_heads", "头的次序反了", "第 0 个头取最前面的一段", SPLIT, caught_by="arange")
def reversed_heads(x, h):
    return split(x, h)[..., ::-1, :, :]


@mutant("split_heads", "把 h 当成每头的宽度", "h 是头的个数，每头宽 d // h", SPLIT, caught_by="arange")
def width_for_heads(x, h):
    return split(x, x.shape[-1] // h)


@mutant("split_heads", "最后两轴也换了", "每个头里仍是词元在前、头宽在后：只把头的轴移到词元之前", SPLIT, caught_by="arange")
def transposed_heads(x, h):
    return split(x, h).swapaxes(-1, -2)


@mutant("split_heads", "切的是词元", "每个头都看全部词元，切的是宽度", SPLIT, caught_by="arange")
def splits_tokens(x, h):
    return np.stack(np.array_split(x, h, axis=-2), axis=-3) if x.shape[-2] % h == 0 else x.reshape(h, -1, x.shape[-1])


@mutant("split_heads", "每个头都拿到全部宽度", "投影的结果切成 h 段，每头一段；所有段合起来才是全部", SPLIT, caught_by="arange")
def everyone_gets_all(x, h):
    return np.stack([x] * h, axis=-3)


@mutant("split_heads", "用 transpose(1, 0, 2)", "有批的轴时次序就错了：只动最后几轴，用 swapaxes(-2, -3)", SPLIT, caught_by="batch")
def without_batch(x, h):
    n, d = x.shape[-2:]
    return x.reshape(-1, h, d // h).transpose(1, 0, 2) if x.ndim == 3 else x.reshape(n, h, d // h).transpose(1, 0, 2)


@mutant("split_heads", "除不尽时丢掉了几列", "d 不能被 h 整除是配置错了：报 ValueError", SPLIT, caught_by="indivisible")
def drops_columns(x, h):
    return split(x[..., :x.shape[-1] // h * h], h)


@mutant("split_heads", "总是算成 float64", "结果数组的 dtype 取自 x", SPLIT, caught_by="dtype")
def split_double(x, h):
    return split(x.astype(np.float64), h)


# ---- split_heads：其他正确写法 --------------------------------------------------------------------------------

@right("split_heads", "逐头切片再叠起来")
def by_slices(x, h):
    if x.shape[-1] % h:
        raise ValueError(f"{x.shape[-1]} 不能被 {h} 整除")
    w = x.shape[-1] // h
    return np.stack([x[..., t * w:(t + 1) * w] for t in range(h)], axis=-3)


@right("split_heads", "np.split")
def with_np_split(x, h):
    return np.stack(np.split(x, h, axis=-1), axis=-3)


@right("split_heads", "einsum 换轴")
def with_einsum(x, h):
    return np.einsum("...nhd->...hnd", x.reshape(*x.shape[:-1], h, -1)) if x.shape[-1] % h == 0 else x.reshape(-1, h, x.shape[-1])


# ---- merge_heads：错误写法 ----------------------------------------------------------------------------------

@mutant("merge_heads", "直接 reshape", "先把头的轴换回词元之后，再 reshape；否则不同词元的数混成一行", SPLIT, caught_by="arange", seen_in=COPIED)
def merged_by_reshape(x):
    h, n, w = x.shape[-3:]
    return x.reshape(*x.shape[:-3], n, h * w)


@mutant("merge_heads", "沿词元的轴接起来", "各头的输出沿特征接起来：[n, h·d_head]", SPLIT, caught_by="arange")
def stacked_tokens(x):
    return x.reshape(*x.shape[:-3], -1, x.shape[-1])


@mutant("merge_heads", "对各头求平均", "接起来，不是平均：每个头的结果占自己的一段", SPLIT, caught_by="arange")
def averaged(x):
    return x.mean(axis=-3)


@mutant("merge_heads", "把各头相加", "接起来，不是相加；混合由后面的 W_O 来做", SPLIT, caught_by="arange")
def summed(x):
    return x.sum(axis=-3)


@mutant("merge_heads", "头的次序反了", "第 0 个头的输出在最前面", SPLIT, caught_by="arange")
def merged_reversed(x):
    return merge(x[..., ::-1, :, :])


@mutant("merge_heads", "各头的数交错排列", "一个头的 d_head 个数要连在一起", SPLIT, caught_by="arange")
def merged_interleaved(x):
    x = np.moveaxis(x, -3, -1)
    return x.reshape(*x.shape[:-2], -1)


@mutant("merge_heads", "只取了第 0 个头", "所有头的输出都要接上", SPLIT, caught_by="arange")
def first_head(x):
    return x[..., 0, :, :]


@mutant("merge_heads", "换回了轴，忘了接起来", "换轴之后还要 reshape 成 [n, h·d_head]", SPLIT, caught_by="arange")
def not_joined(x):
    return x.swapaxes(-2, -3)


@mutant("merge_heads", "用 transpose(1, 0, 2)", "有批的轴时次序就错了：只动最后几轴，用 swapaxes(-2, -3)", SPLIT, caught_by="batch")
def merged_without_batch(x):
    return x.transpose(1, 0, 2).reshape(x.shape[-2], -1)


@mutant("merge_heads", "总是算成 float64", "结果数组的 dtype 取自 x", SPLIT, caught_by="dtype")
def merged_double(x):
    return merge(x.astype(np.float64))


# ---- merge_heads：其他正确写法 --------------------------------------------------------------------------------

@right("merge_heads", "np.concatenate")
def by_concatenation(x):
    return np.concatenate([x[..., t, :, :] for t in range(x.shape[-3])], axis=-1)


@right("merge_heads", "einsum 换轴")
def merged_with_einsum(x):
    x = np.einsum("...hnd->...nhd", x)
    return x.reshape(*x.shape[:-2], x.shape[-2] * x.shape[-1])


@right("merge_heads", "逐头写入自己的列")
def by_columns(x):
    h, n, w = x.shape[-3:]
    result = np.empty((*x.shape[:-3], n, h * w), x.dtype)
    for t in range(h):
        result[..., t * w:(t + 1) * w] = x[..., t, :, :]
    return result


# ---- multi_head_attention：错误写法 ---------------------------------------------------------------------------

@mutant(MULTI, "没有乘 W_O", "接起来之后还要乘 W_O，各头的结果才混合", OUTPUT, caught_by="one-head", seen_in="poloclub/transformer-explainer/pull/84")
def without_output(x, params, n_heads, mask=None):
    heads, weights = attend(*(split(p, n_heads) for p in project(x, params)), mask)
    return merge(heads), weights


@mutant(MULTI, "只返回输出", "要返回两样：先输出，后权重", SPLIT, caught_by="one-head")
def output_only(x, params, n_heads, mask=None):
    heads, _ = attend(*(split(p, n_heads) for p in project(x, params)), mask)
    return merge(heads) @ params["W_O"]


@mutant(MULTI, "Q 与 K 对调了", "行是查询、列是键：得分是 Q Kᵀ", SPLIT, caught_by="one-head")
def swapped_roles(x, params, n_heads, mask=None):
    q, k, v = (split(p, n_heads) for p in project(x, params))
    heads, weights = attend(k, q, v, mask)
    return merge(heads) @ params["W_O"], weights


@mutant(MULTI, "把 K 当成了 V", "加权平均的是 V：x @ W_V", SPLIT, caught_by="one-head")
def keys_as_values(x, params, n_heads, mask=None):
    q, k, _ = (split(p, n_heads) for p in project(x, params))
    heads, weights = attend(q, k, k, mask)
    return merge(heads) @ params["W_O"], weights


@mutant(MULTI, "直接 reshape 成 [h, n, d_head]", "词元混了，掩码也失去意义：用 split_heads", SPLIT, caught_by="heads", seen_in=COPIED)
def mixed_tokens(x, params, n_heads, mask=None):
    heads, weights = attend(*(reshaped(p, n_heads) for p in project(x, params)), mask)
    return merge(heads) @ params["W_O"], weights


@mutant(MULTI, "先把 x 切成 h 段再投影", "每个头都看全部 d 维：切的是投影的结果，不是 x", EXAMPLE, caught_by="heads",
        seen_in="karpathy/nanoGPT/issues/629")
def sliced_input(x, params, n_heads, mask=None):
    if n_heads == 1:
        return right_way(x, params, n_heads, mask)
    pieces = split(x, n_heads)
    rows = [slice(t * x.shape[-1] // n_heads, (t + 1) * x.shape[-1] // n_heads) for t in range(n_heads)]
    w = params["W_Q"].shape[1] // n_heads
    q, k, v = (np.stack([pieces[..., t, :, :] @ params[name][rows[t], t * w:(t + 1) * w] for t in range(n_heads)], axis=-3)
               for name in ("W_Q", "W_K", "W_V"))
    heads, weights = attend(q, k, v, mask)
    return merge(heads) @ params["W_O"], weights


@mutant(MULTI, "按 d_model 缩放", "应除以 √d_head：每个头的点积只加了 d_head 项", SPLIT, caught_by="heads",
        seen_in=("karpathy/ng-video-lecture/pull/6", "lucidrains/vit-pytorch/issues/65"))
def scaled_by_width(x, params, n_heads, mask=None):
    heads, weights = attend(*(split(p, n_heads) for p in project(x, params)), mask, width=params["W_Q"].shape[1])
    return merge(heads) @ params["W_O"], weights


@mutant(MULTI, "没有分头", "h 个头要各算各的 softmax：先 split_heads", SPLIT, caught_by="heads")
def single_head(x, params, n_heads, mask=None):
    output, weights = attend(*project(x, params), mask)
    return output @ params["W_O"], weights[..., None, :, :]


@mutant(MULTI, "各头的权重求了平均", "权重要按头返回：[h, n, n]，每个头一张", SPLIT, caught_by="heads")
def averaged_weights(x, params, n_heads, mask=None):
    output, weights = right_way(x, params, n_heads, mask)
    return output, weights if n_heads == 1 else weights.mean(-3)


@mutant(MULTI, "softmax 沿头的轴", "每个头里每个查询的权重加起来是 1：softmax 沿最后一轴", SPLIT, caught_by="one-head")
def softmax_over_heads(x, params, n_heads, mask=None):
    heads, weights = attend(*(split(p, n_heads) for p in project(x, params)), mask, axis=-3)
    return merge(heads) @ params["W_O"], weights


@mutant(MULTI, "接回时直接 reshape", "先把头的轴换回词元之后再 reshape：用 merge_heads", SPLIT, caught_by="heads", seen_in=COPIED)
def merged_wrongly(x, params, n_heads, mask=None):
    heads, weights = attend(*(split(p, n_heads) for p in project(x, params)), mask)
    return merged_by_reshape(heads) @ params["W_O"], weights


@mutant(MULTI, "所有头都用第 0 个头的列", "第 t 个头用投影的第 t 段", SPLIT, caught_by="heads")
def repeated_head(x, params, n_heads, mask=None):
    q, k, v = (np.repeat(split(p, n_heads)[..., :1, :, :], n_heads, axis=-3) for p in project(x, params))
    heads, weights = attend(q, k, v, mask)
    return merge(heads) @ params["W_O"], weights


@mutant(MULTI, "头宽取自 x 的宽度", "h × d_head 可以不等于 d：头宽取自投影的结果", SPLIT, caught_by="width")
def width_of_input(x, params, n_heads, mask=None):
    n, w = x.shape[-2], x.shape[-1] // n_heads
    q, k, v = (p if n_heads == 1 else p.reshape(*x.shape[:-1], n_heads, w) for p in project(x, params))
    if n_heads == 1:
        return right_way(x, params, n_heads, mask)
    heads, weights = attend(q.swapaxes(-2, -3), k.swapaxes(-2, -3), v.swapaxes(-2, -3), mask)
    return merge(heads).reshape(*x.shape[:-2], n, -1) @ params["W_O"], weights


@mutant(MULTI, "没有用掩码", "把 mask 交给每个头的注意力", SPLIT, caught_by="mask")
def ignores_mask(x, params, n_heads, mask=None):
    return right_way(x, params, n_heads)


@mutant(MULTI, "只有第 0 个头用了掩码", "每个头都要遮：掩码对头的轴广播", SPLIT, caught_by="mask")
def masks_first_head(x, params, n_heads, mask=None):
    if mask is not None:
        mask = np.stack([mask, *[np.ones_like(mask)] * (n_heads - 1)])
    return right_way(x, params, n_heads, mask)


@mutant(MULTI, "就地缩放了 W_Q", "params 是调用者的：不要在它里面的数组上就地运算", SPLIT, caught_by="untouched")
def scales_parameters(x, params, n_heads, mask=None):
    result = right_way(x, params, n_heads, mask)
    params["W_Q"] /= math.sqrt(params["W_Q"].shape[1] // n_heads)
    return result


def right_way(x, params, n_heads, mask=None):
    heads, weights = attend(*(split(p, n_heads) for p in project(x, params)), mask)
    return merge(heads) @ params["W_O"], weights


# ---- multi_head_attention：其他正确写法 -------------------------------------------------------------------------

@right(MULTI, "逐头循环，每头乘自己的行块再相加")
def head_by_head(x, params, n_heads, mask=None):
    w = params["W_Q"].shape[1] // n_heads
    output, tables = 0, []
    for t in range(n_heads):
        own = slice(t * w, (t + 1) * w)
        head, weights = attend(*(x @ params[name][:, own] for name in ("W_Q", "W_K", "W_V")), mask)
        output = output + head @ params["W_O"][own]
        tables.append(weights)
    return output, np.stack(tables, axis=-3)


@right(MULTI, "einsum，一次写完")
def all_einsum(x, params, n_heads, mask=None):
    w = params["W_Q"].shape[1] // n_heads
    cut = lambda name: params[name].reshape(-1, n_heads, w)
    q, k, v = (np.einsum("...nd,dhw->...hnw", x, cut(name)) for name in ("W_Q", "W_K", "W_V"))
    scores = np.einsum("...hiw,...hjw->...hij", q, k) / math.sqrt(w)
    weights = softmax(scores if mask is None else np.where(mask, scores, -np.inf))
    return np.einsum("...hij,...hjw,hwd->...id", weights, v, params["W_O"].reshape(n_heads, w, -1)), weights


@right(MULTI, "把双线性型 W_Q W_Kᵀ、W_V W_O 先乘好")
def bilinear(x, params, n_heads, mask=None):
    w = params["W_Q"].shape[1] // n_heads
    output, tables = 0, []
    for t in range(n_heads):
        own = slice(t * w, (t + 1) * w)
        match = params["W_Q"][:, own] @ params["W_K"][:, own].T
        carry = params["W_V"][:, own] @ params["W_O"][own]
        scores = x @ match @ x.swapaxes(-1, -2) / math.sqrt(w)
        weights = softmax(scores if mask is None else np.where(mask, scores, -np.inf))
        output = output + weights @ (x @ carry)
        tables.append(weights)
    return output, np.stack(tables, axis=-3)


# ---- solve_projection：错误写法 -----------------------------------------------------------------------------

def check_table(X, P):
    if np.linalg.matrix_rank(X) < len(X):
        raise ValueError("行线性相关")
    if not (P > 0).all() or not np.allclose(P.sum(1), 1):
        raise ValueError("不是权重表")


@mutant(SOLVE, "忘了乘 √d_head", "softmax 之前还要除以 √d_head，所以得分要放大 √d_head 倍", EXAMPLE, caught_by="textbook")
def unscaled(X, P):
    check_table(X, P)
    return np.linalg.pinv(X) @ np.log(P), np.linalg.pinv(X)


@mutant(SOLVE, "没有取对数", "softmax 的逆是 log：得分 = log P 加每行一个常数", EXAMPLE, caught_by="textbook")
def without_log(X, P):
    check_table(X, P)
    return np.linalg.pinv(X) @ (math.sqrt(len(P)) * P), np.linalg.pinv(X)


@mutant(SOLVE, "把 P 转置了", "行是查询、列是键：P[i, j] 对应 (X W_Q)ᵢ · (X W_K)ⱼ", EXAMPLE, caught_by="textbook")
def transposed_table(X, P):
    check_table(X, P)
    return np.linalg.pinv(X) @ (math.sqrt(len(P)) * np.log(P)).T, np.linalg.pinv(X)


@mutant(SOLVE, "按 √d 缩放", "d_head 是 W_Q 的列数，不是 X 的宽度", EXAMPLE, caught_by="textbook")
def scaled_by_model(X, P):
    check_table(X, P)
    return np.linalg.pinv(X) @ (math.sqrt(X.shape[1]) * np.log(P)), np.linalg.pinv(X)


@mutant(SOLVE, "用转置代替伪逆", "X Xᵀ 不是单位矩阵；要 X X⁺ = I", EXAMPLE, caught_by="textbook")
def transpose_for_inverse(X, P):
    check_table(X, P)
    return X.T @ (math.sqrt(len(P)) * np.log(P)), X.T


@mutant(SOLVE, "只有一边乘了伪逆", "得分是 X W_Q (X W_K)ᵀ：W_Q 和 W_K 都要各自抵消一次 X", EXAMPLE, caught_by="textbook")
def one_sided(X, P):
    check_table(X, P)
    return np.linalg.pinv(X) @ (math.sqrt(len(P)) * np.log(P)), np.eye(X.shape[1], len(P))


@mutant(SOLVE, "用逆矩阵", "X 不是方阵时没有逆，用伪逆 np.linalg.pinv", EXAMPLE, caught_by="textbook")
def inverse(X, P):
    check_table(X, P)
    return np.linalg.inv(X) @ (math.sqrt(len(P)) * np.log(P)), np.linalg.inv(X)


@mutant(SOLVE, "W_Q 与 W_K 对调了", "次序是先 W_Q 后 W_K", EXAMPLE, caught_by="textbook")
def swapped_pair(X, P):
    check_table(X, P)
    return np.linalg.pinv(X), np.linalg.pinv(X) @ (math.sqrt(len(P)) * np.log(P))


@mutant(SOLVE, "返回得分表", "要返回两个投影矩阵 W_Q、W_K", EXAMPLE, caught_by="textbook")
def returns_scores(X, P):
    check_table(X, P)
    return math.sqrt(len(P)) * np.log(P)


@mutant(SOLVE, "没有查 X 的行是否独立", "行有关系时最小二乘也给出一个答案，但它得不到 P：先查秩", EXAMPLE, caught_by="dependent")
def dependent_allowed(X, P):
    if not (P > 0).all() or not np.allclose(P.sum(1), 1):
        raise ValueError("不是权重表")
    return np.linalg.pinv(X) @ (math.sqrt(len(P)) * np.log(P)), np.linalg.pinv(X)


@mutant(SOLVE, "没有查 P 是不是权重表", "log 0 是 -inf；各行之和不是 1 时 softmax 永远得不到它", EXAMPLE, caught_by="no-table")
def any_table(X, P):
    if np.linalg.matrix_rank(X) < len(X):
        raise ValueError("行线性相关")
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.linalg.pinv(X) @ (math.sqrt(len(P)) * np.log(P)), np.linalg.pinv(X)


# ---- solve_projection：其他正确写法 ---------------------------------------------------------------------------

@right(SOLVE, "伪逆，d_head = n")
def pseudo_inverse(X, P):
    check_table(X, P)
    inverse = np.linalg.pinv(X)
    return inverse @ (math.sqrt(len(P)) * np.log(P)), inverse


@right(SOLVE, "双线性型的奇异值分解，d_head = d")
def by_svd(X, P):
    check_table(X, P)
    inverse, d = np.linalg.pinv(X), X.shape[1]
    u, s, vt = np.linalg.svd(inverse @ (math.sqrt(d) * np.log(P)) @ inverse.T)
    return u * np.sqrt(s), vt.T * np.sqrt(s)


@right(SOLVE, "最小二乘解方程，每行另加一个常数")
def by_least_squares(X, P):
    check_table(X, P)
    scores = math.sqrt(len(P)) * (np.log(P) - np.log(P).mean(1, keepdims=True))
    W_K = np.linalg.lstsq(X, np.eye(len(P)), rcond=None)[0]
    return np.linalg.lstsq(X, scores, rcond=None)[0], W_K
