"""ex04-attention 的错误写法与其他正确写法。"""

import math

import numpy as np

from grading.mutants import mutant, right

SOFTMAX, LINEAR, MATRIX, MASK, SCALE, JACOBIAN = "4.2", "4.4", "4.5", "4.5", "4.6", "4.6"
ATTENTION = "scaled_dot_product_attention"
CONSISTENT = "consistent_with_linear_map"


def softmax(x, axis=-1):
    """The right one, for the mutants of what is built on it."""
    peak = x.max(axis, keepdims=True)
    e = np.exp(x - np.where(np.isneginf(peak), 0, peak))
    total = e.sum(axis, keepdims=True)
    return e / np.where(total == 0, 1, total)


def swap(k):
    return k.swapaxes(-1, -2)


def masked(scores, mask, fill=-np.inf):
    if mask is None:
        return scores
    return np.where(mask, scores, fill) if mask.dtype == bool else scores + mask


def scaled(q, scale):
    return 1 / math.sqrt(q.shape[-1]) if scale is None else scale


# ---- softmax：错误写法 -----------------------------------------------------------------------------------

@mutant("softmax", "没有取指数，直接除以总和", "先取 eˣ 再归一，负的得分才会变成正的权重", SOFTMAX, caught_by="values")
def no_exp(x, axis=-1):
    return x / x.sum(axis, keepdims=True)


@mutant("softmax", "以 2 为底", "底数是 e：用 np.exp", SOFTMAX, caught_by="values")
def base_two(x, axis=-1):
    e = 2.0 ** (x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


@mutant("softmax", "返回 softmax 的对数", "要的是权重本身，不要再取对数", SOFTMAX, caught_by="values")
def log_softmax(x, axis=-1):
    return np.log(softmax(x, axis))


@mutant("softmax", "分母加了 1e-6", "减去最大值之后分母至少是 1，不需要再加小数；加了以后和不再是 1", SOFTMAX, caught_by="values")
def epsilon_in_denominator(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / (e.sum(axis, keepdims=True) + 1e-6)


@mutant("softmax", "用 sigmoid 代替", "softmax 的每个权重取决于整行，sigmoid 只看自己，加起来也不是 1", SOFTMAX, caught_by="values")
def sigmoid(x, axis=-1):
    return 1 / (1 + np.exp(-x))


@mutant("softmax", "对整个数组归一", "求和要给 axis，每一行各自加起来是 1", SOFTMAX, caught_by="axis")
def whole_array(x, axis=-1):
    e = np.exp(x - x.max())
    return e / e.sum()


@mutant("softmax", "总是沿最后一轴", "最大值与求和都要用参数 axis", SOFTMAX, caught_by="axis")
def ignores_axis(x, axis=-1):
    return softmax(x, -1)


@mutant("softmax", "总是沿第 0 轴", "最大值与求和都要用参数 axis，默认是最后一轴", SOFTMAX, caught_by="axis")
def always_first_axis(x, axis=-1):
    return softmax(x, 0)


@mutant("softmax", "求和时没有 keepdims", "keepdims=True 保留归一的那一轴，除法才能按行对齐", SOFTMAX, caught_by="axis")
def without_keepdims(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis)


@mutant("softmax", "没有先减最大值", "e 的 1000 次方溢出成 inf，inf / inf 是 nan；每行先减去最大值", SOFTMAX, caught_by="shift")
def overflows(x, axis=-1):
    e = np.exp(x)
    return e / e.sum(axis, keepdims=True)


@mutant("softmax", "减的是整个数组的最大值", "别的行太大时，这一行全部下溢成 0，变成 0 / 0；每行减自己的最大值", SOFTMAX, caught_by="far-rows")
def global_peak(x, axis=-1):
    e = np.exp(x - x.max())
    return e / e.sum(axis, keepdims=True)


@mutant("softmax", "减的是平均值", "一行相差悬殊时最大的数减去平均值仍会溢出；减最大值才保证指数不超过 e⁰", SOFTMAX, caught_by="shift")
def minus_mean(x, axis=-1):
    e = np.exp(x - x.mean(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


@mutant("softmax", "把输入截到 ±50", "截断改变了得分，相差悬殊的行就不对了；减最大值不丢信息", SOFTMAX, caught_by="shift")
def clipped(x, axis=-1):
    return softmax(np.clip(x, -50, 50), axis)


@mutant("softmax", "就地减去最大值", "x -= … 改掉了调用者的数组；写成 x = x - …", SOFTMAX, caught_by="untouched")
def in_place(x, axis=-1):
    if x.dtype.kind != "f":
        x = x.astype(float)
    x -= np.where(np.isneginf(x.max(axis, keepdims=True)), 0, x.max(axis, keepdims=True))
    return softmax(x, axis)


@mutant("softmax", "总是算成 float64", "float32 的模型会因此变慢一倍；不要转换成 float64", SOFTMAX, caught_by="dtype")
def always_double(x, axis=-1):
    return softmax(np.asarray(x, dtype=np.float64), axis)


@mutant("softmax", "整行 -inf 时得到 nan", "(-inf) - (-inf) 是 nan；这样的行约定为全 0", MASK, caught_by="nothing",
        seen_in="pytorch/pytorch/pull/131060")
def nan_row(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


@mutant("softmax", "把 -inf 换成 -1e9", "整行都被遮住时会得到平均的权重：等于看了不该看的；这样的行约定为全 0", MASK, caught_by="nothing")
def finite_fill(x, axis=-1):
    return softmax(np.where(np.isneginf(x), -1e9, x), axis)


@mutant("softmax", "结果数组与整数输入同类型", "np.zeros_like(整数数组) 只能存整数，权重全被截成 0；先换成浮点数", SOFTMAX, caught_by="integers")
def integer_result(x, axis=-1):
    result = np.zeros_like(x)
    result[...] = softmax(x * 1.0, axis) if x.dtype.kind == "i" else softmax(x, axis)
    return result


# ---- softmax：其他正确写法 ---------------------------------------------------------------------------------

@right("softmax", "逐行循环，只用 math")
def rows_by_hand(x, axis=-1):
    moved = np.moveaxis(np.asarray(x), axis, -1)
    result = np.zeros(moved.shape, x.dtype if x.dtype.kind == "f" else float)
    for place in np.ndindex(moved.shape[:-1]):
        row = moved[place].tolist()
        peak = max(row)
        if peak > -math.inf:
            powers = [math.exp(value - peak) for value in row]
            result[place] = [power / sum(powers) for power in powers]
    return np.moveaxis(result, -1, axis)


@right("softmax", "logsumexp：先算对数再取指数")
def through_logarithm(x, axis=-1):
    x = x * np.ones((), x.dtype if x.dtype.kind == "f" else float)
    peak = np.max(x, axis, keepdims=True)
    peak = np.where(np.isfinite(peak), peak, np.zeros_like(peak))
    total = np.sum(np.exp(x - peak), axis, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        result = np.exp(x - (peak + np.log(total)))
    return np.where(total > 0, result, np.zeros_like(result))


@right("softmax", "两两相比：1 / Σⱼ e^(xⱼ − xᵢ)")
def pairwise(x, axis=-1):
    x = np.moveaxis(x if x.dtype.kind == "f" else x.astype(float), axis, -1)
    with np.errstate(over="ignore", invalid="ignore"):
        ratios = np.exp(x[..., None, :] - x[..., :, None])
    ratios = np.where(np.isneginf(x)[..., None, :], np.zeros((), x.dtype), ratios)
    total = ratios.sum(-1)
    result = np.where(np.isneginf(x), np.zeros((), x.dtype), 1 / np.where(total == 0, np.ones((), x.dtype), total))
    return np.moveaxis(result, -1, axis)


# ---- 注意力：错误写法 -------------------------------------------------------------------------------------

@mutant(ATTENTION, "没有缩放", "得分要乘 1/√d_head，否则 d_head 越大 softmax 越尖", SCALE, caught_by="values",
        seen_in="huggingface/blog/pull/2893")
def no_scale(q, k, v, mask=None, scale=None):
    w = softmax(masked(q @ swap(k) * (1 if scale is None else scale), mask))
    return w @ v, w


@mutant(ATTENTION, "除以 d_head", "要除以 √d_head：点积的标准差随 √d_head 增长，不是 d_head", SCALE, caught_by="values")
def divided_by_d(q, k, v, mask=None, scale=None):
    w = softmax(masked(q @ swap(k) * (1 / q.shape[-1] if scale is None else scale), mask))
    return w @ v, w


@mutant(ATTENTION, "乘以 √d_head", "方向反了：要除以 √d_head", SCALE, caught_by="values")
def multiplied(q, k, v, mask=None, scale=None):
    w = softmax(masked(q @ swap(k) * (math.sqrt(q.shape[-1]) if scale is None else scale), mask))
    return w @ v, w


@mutant(ATTENTION, "按 d_model 缩放", "应除以 √d_head：每个头的点积只加了 d_head 项", SCALE, caught_by="heads",
        seen_in=("karpathy/ng-video-lecture/pull/6", "lucidrains/vit-pytorch/issues/65",
                 "Graylab/DL4Proteins-notebooks/issues/12", "FareedKhan-dev/train-llm-from-scratch/pull/3"))
def scaled_by_model_width(q, k, v, mask=None, scale=None):
    width = q.shape[-1] * (q.shape[-3] if q.ndim > 2 else 1)
    w = softmax(masked(q @ swap(k) * (1 / math.sqrt(width) if scale is None else scale), mask))
    return w @ v, w


@mutant(ATTENTION, "按键的个数 √n_k 缩放", "应除以 √d_head：点积有 d_head 项，与有几个键无关", SCALE, caught_by="values")
def scaled_by_keys(q, k, v, mask=None, scale=None):
    w = softmax(masked(q @ swap(k) * (1 / math.sqrt(k.shape[-2]) if scale is None else scale), mask))
    return w @ v, w


@mutant(ATTENTION, "按值的宽度 √d_v 缩放", "应除以 √d_head：它是 q、k 的最后一轴，不是 v 的", SCALE, caught_by="values")
def scaled_by_values(q, k, v, mask=None, scale=None):
    w = softmax(masked(q @ swap(k) * (1 / math.sqrt(v.shape[-1]) if scale is None else scale), mask))
    return w @ v, w


@mutant(ATTENTION, "先 softmax 再缩放", "缩放要在 softmax 之前；之后再除，权重加起来就不是 1 了", SCALE, caught_by="values")
def scaled_afterwards(q, k, v, mask=None, scale=None):
    w = softmax(masked(q @ swap(k), mask)) * scaled(q, scale)
    return w @ v, w


@mutant(ATTENTION, "softmax 沿查询的那一轴", "每个查询的权重加起来是 1：softmax 沿最后一轴（键）", MATRIX, caught_by="values")
def softmax_over_queries(q, k, v, mask=None, scale=None):
    w = softmax(masked(q @ swap(k) * scaled(q, scale), mask), axis=-2)
    return w @ v, w


@mutant(ATTENTION, "没有 softmax", "得分要先变成非负、和为 1 的权重，才能给值加权", MATRIX, caught_by="values")
def no_softmax(q, k, v, mask=None, scale=None):
    w = masked(q @ swap(k) * scaled(q, scale), mask)
    return w @ v, w


@mutant(ATTENTION, "只返回输出", "要返回两样：先输出，后权重", MATRIX, caught_by="values")
def output_only(q, k, v, mask=None, scale=None):
    return softmax(masked(q @ swap(k) * scaled(q, scale), mask)) @ v


@mutant(ATTENTION, "先返回权重后返回输出", "次序是先输出、后权重", MATRIX, caught_by="values")
def swapped_results(q, k, v, mask=None, scale=None):
    w = softmax(masked(q @ swap(k) * scaled(q, scale), mask))
    return w, w @ v


@mutant(ATTENTION, "忽略参数 scale", "scale 不是 None 时用它乘得分", SCALE, caught_by="scale")
def ignores_scale(q, k, v, mask=None, scale=None):
    w = softmax(masked(q @ swap(k) * scaled(q, None), mask))
    return w @ v, w


@mutant(ATTENTION, "scale 与 1/√d_head 都乘上", "给了 scale 就只用它，不再除以 √d_head", SCALE, caught_by="scale")
def both_scales(q, k, v, mask=None, scale=None):
    w = softmax(masked(q @ swap(k) * scaled(q, None) * (1 if scale is None else scale), mask))
    return w @ v, w


@mutant(ATTENTION, "除以 scale", "scale 是乘上去的数：默认值是 1/√d_head", SCALE, caught_by="scale")
def divided_by_scale(q, k, v, mask=None, scale=None):
    w = softmax(masked(q @ swap(k) / (math.sqrt(q.shape[-1]) if scale is None else scale), mask))
    return w @ v, w


@mutant(ATTENTION, "把 scale=0 当作没给", "判断“没给”用 scale is None；scale or … 会把 0 也当成没给", SCALE, caught_by="limits")
def zero_means_missing(q, k, v, mask=None, scale=None):
    w = softmax(masked(q @ swap(k) * (scale or 1 / math.sqrt(q.shape[-1])), mask))
    return w @ v, w


@mutant(ATTENTION, "用 k.T 转置", ".T 会把所有轴倒过来，有头的轴时就错了；只交换最后两轴", MATRIX, caught_by="heads")
def reversed_axes(q, k, v, mask=None, scale=None):
    w = softmax(masked(q @ k.T * scaled(q, scale), mask))
    return w @ v, w


@mutant(ATTENTION, "没有用掩码", "掩码要在 softmax 之前作用到得分上", MASK, caught_by="boolean")
def ignores_mask(q, k, v, mask=None, scale=None):
    w = softmax(q @ swap(k) * scaled(q, scale))
    return w @ v, w


@mutant(ATTENTION, "掩码的 True 与 False 反了", "True 表示可以看，False 处的得分才换成 -inf", MASK, caught_by="boolean",
        seen_in="harvardnlp/annotated-transformer/issues/27")
def inverted_mask(q, k, v, mask=None, scale=None):
    w = softmax(masked(q @ swap(k) * scaled(q, scale), ~mask if mask is not None and mask.dtype == bool else mask))
    return w @ v, w


@mutant(ATTENTION, "先 softmax 再把被遮的权重清零", "清零之后一行不再加到 1，被遮的键也已经分走了权重；掩码要在 softmax 之前", MASK,
        caught_by="boolean", seen_in="lucidrains/memory-compressed-attention/issues/2")
def mask_after_softmax(q, k, v, mask=None, scale=None):
    w = softmax(masked(q @ swap(k) * scaled(q, scale), mask if mask is not None and mask.dtype != bool else None))
    w = w * mask if mask is not None and mask.dtype == bool else w
    return w @ v, w


@mutant(ATTENTION, "被遮处填 1e-10", "少写了负号：得分 0.0000000001 几乎就是 0，照样分到权重；填 -inf", MASK, caught_by="boolean",
        seen_in="karpathy/minGPT/issues/10")
def tiny_fill(q, k, v, mask=None, scale=None):
    w = softmax(masked(q @ swap(k) * scaled(q, scale), mask, fill=1e-10))
    return w @ v, w


@mutant(ATTENTION, "用得分乘掩码", "乘 0 得到的得分 0 不是“看不见”，e⁰ = 1；被遮处应为 -inf", MASK, caught_by="boolean",
        seen_in="NiuTrans/MTBook/issues/14")
def multiplied_mask(q, k, v, mask=None, scale=None):
    scores = q @ swap(k) * scaled(q, scale)
    w = softmax(scores * mask if mask is not None and mask.dtype == bool else masked(scores, mask))
    return w @ v, w


@mutant(ATTENTION, "把布尔掩码加到得分上", "True 当成 1、False 当成 0，谁也没遮住；布尔掩码要换成 -inf", MASK, caught_by="boolean")
def added_boolean(q, k, v, mask=None, scale=None):
    w = softmax(q @ swap(k) * scaled(q, scale) + (0 if mask is None else mask))
    return w @ v, w


@mutant(ATTENTION, "掩码乘 -inf 再加", "0 × -inf 是 nan；用 np.where 换成 -inf", MASK, caught_by="boolean",
        seen_in="NiuTrans/MTBook/issues/14")
def zero_times_infinity(q, k, v, mask=None, scale=None):
    scores = q @ swap(k) * scaled(q, scale)
    with np.errstate(invalid="ignore"):
        scores = scores + (1 - mask) * -np.inf if mask is not None and mask.dtype == bool else masked(scores, mask)
    w = softmax(scores)
    return w @ v, w


@mutant(ATTENTION, "掩码作用在查询的行上", "掩码 [i, j] 管的是第 i 个查询能否看第 j 个键：遮的是键的列", MASK, caught_by="boolean",
        seen_in="harvardnlp/annotated-transformer/issues/137")
def masks_rows(q, k, v, mask=None, scale=None):
    scores = q @ swap(k) * scaled(q, scale)
    if mask is not None and mask.dtype == bool:
        mask = np.broadcast_to(mask.all(-1, keepdims=True), mask.shape)
    w = softmax(masked(scores, mask))
    return w @ v, w


@mutant(ATTENTION, "把浮点数掩码当作布尔用", "0 会被当成 False、-inf 被当成 True，正好反了；浮点数掩码直接加到得分上", MASK, caught_by="additive")
def additive_as_boolean(q, k, v, mask=None, scale=None):
    scores = q @ swap(k) * scaled(q, scale)
    w = softmax(scores if mask is None else np.where(mask, scores, -np.inf))
    return w @ v, w


@mutant(ATTENTION, "浮点数掩码只认 -inf", "浮点数掩码里的其他数也要加到得分上（例如距离偏置）", MASK, caught_by="additive")
def additive_only_infinite(q, k, v, mask=None, scale=None):
    if mask is not None and mask.dtype != bool:
        mask = ~np.isneginf(mask)
    w = softmax(masked(q @ swap(k) * scaled(q, scale), mask))
    return w @ v, w


@mutant(ATTENTION, "掩码在缩放之前加", "浮点数掩码加到缩放后的得分上；先加后缩放会把它也缩小", MASK, caught_by="additive")
def mask_before_scale(q, k, v, mask=None, scale=None):
    w = softmax(masked(q @ swap(k), mask) * scaled(q, scale))
    return w @ v, w


@mutant(ATTENTION, "被遮处填 -1e4", "别的得分更小时它就漏了出来；填 -inf 才与得分大小无关", MASK, caught_by="strong")
def modest_fill(q, k, v, mask=None, scale=None):
    w = softmax(masked(q @ swap(k) * scaled(q, scale), mask, fill=-1e4))
    return w @ v, w


@mutant(ATTENTION, "先 softmax、清零、再归一", "被遮的键得分极高时，其余权重先下溢成 0，再归一就是 0 / 0；掩码要在 softmax 之前", MASK,
        caught_by="strong")
def renormalised_mask(q, k, v, mask=None, scale=None):
    if mask is None or mask.dtype != bool:
        w = softmax(masked(q @ swap(k) * scaled(q, scale), mask))
        return w @ v, w
    w = softmax(q @ swap(k) * scaled(q, scale)) * mask
    w = w / w.sum(-1, keepdims=True)
    return w @ v, w


@mutant(ATTENTION, "没有键可看时得到 nan", "整行 -inf 的 softmax 是 0 / 0；这样的行约定为全 0", MASK, caught_by="nothing",
        seen_in="pytorch/pytorch/pull/131060")
def nan_without_keys(q, k, v, mask=None, scale=None):
    scores = masked(q @ swap(k) * scaled(q, scale), mask)
    e = np.exp(scores - scores.max(-1, keepdims=True))
    w = e / e.sum(-1, keepdims=True)
    return w @ v, w


@mutant(ATTENTION, "被遮处填一个很大的负数", "全部被遮时各键同样“很小”，softmax 给出平均的权重：等于全看见了；填 -inf", MASK, caught_by="nothing")
def uniform_without_keys(q, k, v, mask=None, scale=None):
    w = softmax(masked(q @ swap(k) * scaled(q, scale), mask, fill=-1e30))
    return w @ v, w


@mutant(ATTENTION, "就地缩放 q", "q *= … 改掉了调用者的 q，再调用一次就缩放两次；写成 q = q * …", SCALE, caught_by="untouched")
def scales_in_place(q, k, v, mask=None, scale=None):
    q *= scaled(q, scale)
    w = softmax(masked(q @ swap(k), mask))
    return w @ v, w


@mutant(ATTENTION, "用 np.sqrt 的结果缩放", "np.sqrt(整数) 是 float64 标量，把 float32 的得分提升成 float64；用 math.sqrt", SCALE, caught_by="dtype")
def promoted(q, k, v, mask=None, scale=None):
    w = softmax(masked(q @ swap(k) * (1 / np.sqrt(q.shape[-1]) if scale is None else scale), mask))
    return w @ v, w


@mutant(ATTENTION, "多出来的键值被悄悄丢掉", "形状对不上时应报 ValueError，不要自己截齐", MATRIX, caught_by="mismatch")
def truncates(q, k, v, mask=None, scale=None):
    d, n = min(q.shape[-1], k.shape[-1]), min(k.shape[-2], v.shape[-2])
    q, k, v = q[..., :d], k[..., :n, :d], v[..., :n, :]
    w = softmax(masked(q @ swap(k) * scaled(q, scale), mask))
    return w @ v, w


# ---- 注意力：其他正确写法 ---------------------------------------------------------------------------------

@right(ATTENTION, "einsum，先缩放 q")
def with_einsum(q, k, v, mask=None, scale=None):
    scores = np.einsum("...id,...jd->...ij", q * scaled(q, scale), k)
    w = softmax(masked(scores, mask))
    return np.einsum("...ij,...jd->...id", w, v), w


@right(ATTENTION, "逐头、逐查询循环")
def query_by_query(q, k, v, mask=None, scale=None):
    if q.shape[-1] != k.shape[-1] or k.shape[-2] != v.shape[-2]:
        raise ValueError("形状不配")
    factor = scaled(q, scale)
    w = np.zeros((*q.shape[:-1], k.shape[-2]), q.dtype)
    output = np.zeros((*q.shape[:-1], v.shape[-1]), q.dtype)
    for *lead, i in np.ndindex(q.shape[:-1]):
        lead = tuple(lead)
        allowed = [j for j in range(k.shape[-2]) if mask is None or mask.dtype != bool or mask[..., i, j].all()]
        scores = [float(q[lead][i] @ k[lead][j]) * factor for j in allowed]
        if mask is not None and mask.dtype != bool:
            scores = [s + float(mask[i, j]) for s, j in zip(scores, allowed)]
        if not scores or max(scores) == -math.inf:
            continue
        powers = [math.exp(s - max(scores)) for s in scores]
        for power, j in zip(powers, allowed):
            w[lead][i, j] = power / sum(powers)
            output[lead][i] += w[lead][i, j] * v[lead][j]
    return output, w


@right(ATTENTION, "边看边加：逐个键更新最大值与分母")
def one_key_at_a_time(q, k, v, mask=None, scale=None):
    if q.shape[-1] != k.shape[-1] or k.shape[-2] != v.shape[-2]:
        raise ValueError("形状不配")
    scores = masked((q * scaled(q, scale)) @ swap(k), mask).astype(q.dtype)
    peak = np.full(q.shape[:-1], -np.inf, q.dtype)
    total, output = np.zeros(q.shape[:-1], q.dtype), np.zeros((*q.shape[:-1], v.shape[-1]), q.dtype)
    for j in range(k.shape[-2]):
        new = np.maximum(peak, scores[..., j])
        safe = np.where(np.isneginf(new), 0, new).astype(q.dtype)
        shrink, power = np.exp(peak - safe), np.exp(scores[..., j] - safe)
        total = total * shrink + power
        output = output * shrink[..., None] + power[..., None] * v[..., None, j, :]
        peak = new
    safe = np.where(np.isneginf(peak), 0, peak).astype(q.dtype)
    total = np.where(total == 0, 1, total).astype(q.dtype)
    return output / total[..., None], np.exp(scores - safe[..., None]) / total[..., None]


# ---- softmax_jacobian：错误写法 ---------------------------------------------------------------------------

def outer(p):
    return p[..., :, None] * p[..., None, :]


def eye(p):
    return np.eye(p.shape[-1], dtype=p.dtype)


@mutant("softmax_jacobian", "只有对角线", "改一个得分，别的权重也会变：对角线外是 −pᵢpⱼ", JACOBIAN, caught_by="values")
def diagonal_only(p):
    return eye(p) * (p * (1 - p))[..., None, :]


@mutant("softmax_jacobian", "返回向量 p(1 − p)", "那是 sigmoid 的导数；softmax 的导数是 n × n 的矩阵", JACOBIAN, caught_by="values")
def sigmoid_derivative(p):
    return p * (1 - p)


@mutant("softmax_jacobian", "漏了对角项", "还要加上 diag(p)", JACOBIAN, caught_by="values")
def no_diagonal(p):
    return -outer(p)


@mutant("softmax_jacobian", "符号反了", "是 diag(p) − p pᵀ：提高一个得分，它自己的权重上升", JACOBIAN, caught_by="values")
def wrong_sign(p):
    return outer(p) - eye(p) * p[..., None, :]


@mutant("softmax_jacobian", "用单位矩阵代替 diag(p)", "那里还要乘 pᵢ：对角线是 pᵢ(1 − pᵢ)，不是 1 − pᵢ²", JACOBIAN, caught_by="values")
def identity_instead(p):
    return eye(p) - outer(p)


@mutant("softmax_jacobian", "log softmax 的导数", "δᵢⱼ − pⱼ 是 log p 的导数；p 自己的还要乘 pᵢ", JACOBIAN, caught_by="values")
def log_derivative(p):
    return eye(p) - np.broadcast_to(p[..., None, :], (*p.shape, p.shape[-1]))


@mutant("softmax_jacobian", "两处都用了同一个下标", "pᵢ(δᵢⱼ − pⱼ)：括号里的是 pⱼ，不是 pᵢ", JACOBIAN, caught_by="values")
def same_index_twice(p):
    return p[..., :, None] * (eye(p) - p[..., :, None])


@mutant("softmax_jacobian", "又做了一次 softmax", "参数 p 已经是 softmax 的输出", JACOBIAN, caught_by="values")
def softmax_again(p):
    p = softmax(p)
    return eye(p) * p[..., None, :] - outer(p)


@mutant("softmax_jacobian", "用 np.outer 和 np.diag", "它们把批的轴也摊平了；用 p[..., :, None] * p[..., None, :]", JACOBIAN, caught_by="batch")
def flattens_batch(p):
    return np.diag(p.ravel()) - np.outer(p, p)


@mutant("softmax_jacobian", "对所有行求了和", "每一行有自己的 n × n 矩阵，不要在批的轴上合并", JACOBIAN, caught_by="batch")
def sums_batch(p):
    j = eye(p) * p[..., None, :] - outer(p)
    return j.reshape(-1, *j.shape[-2:]).sum(0) if p.ndim > 1 else j


@mutant("softmax_jacobian", "np.eye 带来了 float64", "给它 dtype=p.dtype，float32 才不会被提升", JACOBIAN, caught_by="dtype")
def promoted_by_eye(p):
    return np.eye(p.shape[-1]) * p[..., None, :] - outer(p)


@mutant("softmax_jacobian", "用有限差分算", "步长带来的误差有 1e-4 之多；公式 pᵢ(δᵢⱼ − pⱼ) 是准确的", JACOBIAN, caught_by="values")
def forward_difference(p):
    x, step = np.log(np.maximum(p, 1e-300)), 1e-4
    return np.stack([(softmax(x + step * e) - p) / step for e in np.eye(p.shape[-1])], axis=-1)


# ---- softmax_jacobian：其他正确写法 -------------------------------------------------------------------------

@right("softmax_jacobian", "逐个元素")
def entry_by_entry(p):
    n = p.shape[-1]
    result = np.zeros((*p.shape, n), p.dtype)
    for i in range(n):
        for j in range(n):
            result[..., i, j] = p[..., i] * (1 - p[..., i]) if i == j else -p[..., i] * p[..., j]
    return result


@right("softmax_jacobian", "einsum，再改对角线")
def einsum_then_diagonal(p):
    result = -np.einsum("...i,...j->...ij", p, p)
    places = np.arange(p.shape[-1])
    result[..., places, places] += p
    return result


@right("softmax_jacobian", "pᵢ(δᵢⱼ − pⱼ) 一步写出")
def one_line(p):
    return p[..., None] * (np.identity(p.shape[-1], p.dtype) - p[..., None, :])


# ---- consistent_with_linear_map：错误写法 -------------------------------------------------------------------

def best_map(X, Y):
    return np.linalg.lstsq(X, Y, rcond=None)[0]


def error(X, Y):
    if X.shape[0] != Y.shape[0]:
        raise ValueError("行数不同")
    return np.abs(X @ best_map(X, Y) - Y)


@mutant(CONSISTENT, "用 lstsq 返回的残差判断", "X 缺秩或 n ≤ d 时那个残差是空的，空数组求和是 0，于是总说一致；自己算 X W − Y", LINEAR, caught_by="textbook")
def trusts_residuals(X, Y, tol=1e-9):
    error(X, Y)
    return bool(np.linalg.lstsq(X, Y, rcond=None)[1].sum() <= tol)


@mutant(CONSISTENT, "只要 n ≤ d 就说一致", "还要各行线性无关：你 = 我 + 爱/2 时就不是", LINEAR, caught_by="textbook")
def counts_unknowns(X, Y, tol=1e-9):
    return X.shape[0] <= X.shape[1] or bool(error(X, Y).max() <= tol)


@mutant(CONSISTENT, "只要行不独立就说不一致", "行之间有关系时，Y 守同样的关系就仍然一致", LINEAR, caught_by="textbook")
def demands_independent_rows(X, Y, tol=1e-9):
    if X.shape[0] != Y.shape[0]:
        raise ValueError("行数不同")
    return bool(np.linalg.matrix_rank(X) == X.shape[0])


@mutant(CONSISTENT, "用逆矩阵求 W", "X 不一定是方阵，也不一定可逆；用最小二乘 np.linalg.lstsq 或伪逆", LINEAR, caught_by="textbook")
def inverts(X, Y, tol=1e-9):
    return bool(np.abs(X @ (np.linalg.inv(X) @ Y) - Y).max() <= tol)


@mutant(CONSISTENT, "用正规方程求 W", "X 缺秩时 XᵀX 不可逆；用最小二乘 np.linalg.lstsq 或伪逆", LINEAR, caught_by="textbook")
def normal_equations(X, Y, tol=1e-9):
    W = np.linalg.inv(X.T @ X) @ X.T @ Y
    return bool(np.abs(X @ W - Y).max() <= tol)


@mutant(CONSISTENT, "求的是从 Y 到 X 的映射", "是 X W = Y：W 把 X 变成 Y", LINEAR, caught_by="textbook")
def reversed_direction(X, Y, tol=1e-9):
    return bool(error(Y, X).max() <= tol)


@mutant(CONSISTENT, "只看第一列", "Y 的每一列都要能由 X 得到", LINEAR, caught_by="textbook")
def first_column(X, Y, tol=1e-9):
    return bool(error(X, Y[:, :1]).max() <= tol)


@mutant(CONSISTENT, "只查有没有相同的行", "相同的行只是关系的一种；线性组合也必须守住", LINEAR, caught_by="textbook")
def only_duplicates(X, Y, tol=1e-9):
    if X.shape[0] != Y.shape[0]:
        raise ValueError("行数不同")
    return not any(np.array_equal(X[i], X[j]) and np.abs(Y[i] - Y[j]).max() > tol
                   for i in range(len(X)) for j in range(i))


@mutant(CONSISTENT, "允许了偏置", "线性映射没有偏置：不要给 X 添一列 1", LINEAR, caught_by="textbook")
def with_bias(X, Y, tol=1e-9):
    return bool(error(np.hstack([X, np.ones((X.shape[0], 1))]), Y).max() <= tol)


@mutant(CONSISTENT, "比的是平均误差", "一个元素不对就是不一致：取误差的最大值", LINEAR, caught_by="tolerance")
def average_error(X, Y, tol=1e-9):
    return bool(error(X, Y).mean() <= tol)


@mutant(CONSISTENT, "比的是误差平方的平均", "平方让小误差更小；取绝对误差的最大值与 tol 比", LINEAR, caught_by="tolerance")
def mean_square(X, Y, tol=1e-9):
    return bool((error(X, Y) ** 2).mean() <= tol)


@mutant(CONSISTENT, "没有用参数 tol", "容差由调用者给：与 tol 比", LINEAR, caught_by="tolerance")
def own_tolerance(X, Y, tol=1e-9):
    return bool(error(X, Y).max() <= 1e-9)


@mutant(CONSISTENT, "返回残差而不是判断", "最后与 tol 比较，返回 True 或 False", LINEAR, caught_by="textbook")
def returns_error(X, Y, tol=1e-9):
    return float(error(X, Y).max())


@mutant(CONSISTENT, "行数不同时返回 False", "行数不同是调用错了，不是不一致：报 ValueError", LINEAR, caught_by="mismatch")
def mismatch_is_false(X, Y, tol=1e-9):
    return X.shape[0] == Y.shape[0] and bool(error(X, Y).max() <= tol)


# ---- consistent_with_linear_map：其他正确写法 ------------------------------------------------------------------

def same_rows(X, Y):
    if X.shape[0] != Y.shape[0]:
        raise ValueError(f"X 有 {X.shape[0]} 行，Y 有 {Y.shape[0]} 行")


@right(CONSISTENT, "伪逆")
def pseudo_inverse(X, Y, tol=1e-9):
    return bool((abs(X @ (np.linalg.pinv(X) @ Y) - Y) <= tol).all())


@right(CONSISTENT, "左零空间：X 的每个行关系，Y 也要守")
def left_null_space(X, Y, tol=1e-9):
    same_rows(X, Y)
    u, s, _ = np.linalg.svd(X)
    null = u[:, (s > 1e-10 * s.max(initial=0)).sum():]
    return bool(np.abs(null @ (null.T @ Y)).max(initial=0) <= tol)


@right(CONSISTENT, "Gram–Schmidt：逐列从 Y 中减去投影")
def gram_schmidt(X, Y, tol=1e-9):
    same_rows(X, Y)
    basis = []
    for column in X.T:
        rest = column.copy()
        for _ in range(2):  # 做两遍，压住舍入误差
            for b in basis:
                rest = rest - (b @ rest) * b
        if np.linalg.norm(rest) > 1e-9 * max(1.0, np.linalg.norm(column)):
            basis.append(rest / np.linalg.norm(rest))
    left = Y - sum((np.outer(b, b @ Y) for b in basis), np.zeros(Y.shape))
    return bool(np.abs(left).max() <= tol)
