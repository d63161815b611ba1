"""ex08-block 的错误写法与其他正确写法。"""

import math

import numpy as np

from grading.mutants import mutant, right

LN, BN, RMS, ORDER = "8.3", "8.4", "8.5", "8.6"


def floating(x):
    return x if x.dtype.kind == "f" else x.astype(np.float64)


def affine(y, gain=None, bias=None):
    for vector in (gain, bias):
        if vector is not None and vector.shape != y.shape[-1:]:
            raise ValueError(f"应是 {y.shape[-1:]}，收到 {vector.shape}")
    y = y if gain is None else y * gain
    return y if bias is None else y + bias


def moments(x, axis=-1):
    return x.mean(axis, keepdims=True), x.var(axis, keepdims=True)


# ---- layer_norm：错误写法 -----------------------------------------------------------------------------------

@mutant("layer_norm", "方差除以 d − 1", "LayerNorm 用总体方差，除以 d；ddof=1 和许多库的 std 默认除以 d − 1", LN, caught_by="values",
        seen_in="harvardnlp/annotated-transformer/pull/119")
def sample_variance(x, gain=None, bias=None, eps=1e-5):
    x = floating(x)
    return affine((x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, ddof=1, keepdims=True) + eps), gain, bias)


@mutant("layer_norm", "除以方差而不是标准差", "方差要先开方", LN, caught_by="values")
def divided_by_variance(x, gain=None, bias=None, eps=1e-5):
    mean, variance = moments(floating(x))
    return affine((x - mean) / (variance + eps), gain, bias)


@mutant("layer_norm", "没有减均值", "那是 RMSNorm 的做法（8.5）；LayerNorm 先减去均值", LN, caught_by="values")
def not_centred(x, gain=None, bias=None, eps=1e-5):
    x = floating(x)
    return affine(x / np.sqrt((x * x).mean(-1, keepdims=True) + eps), gain, bias)


@mutant("layer_norm", "减了均值，却除以没减均值的均方根", "标准差量的是离均值多远：先减均值，再求平方的平均", LN, caught_by="values")
def centred_over_rms(x, gain=None, bias=None, eps=1e-5):
    x = floating(x)
    return affine((x - x.mean(-1, keepdims=True)) / np.sqrt((x * x).mean(-1, keepdims=True) + eps), gain, bias)


@mutant("layer_norm", "除以平均绝对离差", "LayerNorm 除以标准差：离差先平方，平均后再开方", LN, caught_by="values")
def mean_absolute(x, gain=None, bias=None, eps=1e-5):
    x = floating(x)
    centred = x - x.mean(-1, keepdims=True)
    return affine(centred / (np.abs(centred).mean(-1, keepdims=True) + eps), gain, bias)


@mutant("layer_norm", "跨位置归一", "那是 BatchNorm 的方向（8.4）：LayerNorm 沿最后一轴，每个位置用自己的 d 个数", LN, caught_by="rows")
def across_positions(x, gain=None, bias=None, eps=1e-5):
    x = floating(x)
    mean, variance = moments(x, 0 if x.ndim == 1 else tuple(range(x.ndim - 1)))
    return affine((x - mean) / np.sqrt(variance + eps), gain, bias)


@mutant("layer_norm", "对整个数组归一", "每个位置有自己的均值和方差：沿最后一轴，keepdims=True", LN, caught_by="rows")
def whole_array(x, gain=None, bias=None, eps=1e-5):
    x = floating(x)
    return affine((x - x.mean()) / np.sqrt(x.var() + eps), gain, bias)


@mutant("layer_norm", "对最后两轴一起归一", "只沿最后一轴：同一句话里各位置也互不相干", LN, caught_by="rows")
def last_two_axes(x, gain=None, bias=None, eps=1e-5):
    x = floating(x)
    mean, variance = moments(x, tuple(range(max(0, x.ndim - 2), x.ndim)))
    return affine((x - mean) / np.sqrt(variance + eps), gain, bias)


@mutant("layer_norm", "求均值时没有 keepdims", "keepdims=True 保留最后一轴，减法才能按行对齐", LN, caught_by="rows")
def without_keepdims(x, gain=None, bias=None, eps=1e-5):
    x = floating(x)
    return affine((x - x.mean(-1)) / np.sqrt(x.var(-1) + eps), gain, bias)


@mutant("layer_norm", "先加偏置再乘增益", "次序是乘增益、再加偏置；否则偏置也被放大了", LN, caught_by="affine")
def bias_first(x, gain=None, bias=None, eps=1e-5):
    mean, variance = moments(floating(x))
    y = affine((x - mean) / np.sqrt(variance + eps), None, bias)
    return affine(y, gain)


@mutant("layer_norm", "在归一之前乘增益、加偏置", "归一会把它们抹掉：增益和偏置用在归一之后", LN, caught_by="affine")
def affine_before(x, gain=None, bias=None, eps=1e-5):
    x = affine(floating(x), gain, bias)
    mean, variance = moments(x)
    return (x - mean) / np.sqrt(variance + eps)


@mutant("layer_norm", "忽略增益", "归一之后要乘 gain", LN, caught_by="affine")
def no_gain(x, gain=None, bias=None, eps=1e-5):
    mean, variance = moments(floating(x))
    affine(x, gain, bias)
    return affine((x - mean) / np.sqrt(variance + eps), None, bias)


@mutant("layer_norm", "忽略偏置", "乘增益之后要加 bias", LN, caught_by="affine")
def no_bias(x, gain=None, bias=None, eps=1e-5):
    mean, variance = moments(floating(x))
    affine(x, gain, bias)
    return affine((x - mean) / np.sqrt(variance + eps), gain)


@mutant("layer_norm", "只在给了增益时才加偏置", "gain 与 bias 各自独立，没给的那个当作 1 或 0", LN, caught_by="affine")
def bias_needs_gain(x, gain=None, bias=None, eps=1e-5):
    mean, variance = moments(floating(x))
    affine(x, gain, bias)
    return affine((x - mean) / np.sqrt(variance + eps), gain, None if gain is None else bias)


@mutant("layer_norm", "ε 加在根号外面", "ε 加在方差上：√(σ² + ε)，不是 σ + ε", LN, caught_by="eps")
def eps_outside(x, gain=None, bias=None, eps=1e-5):
    mean, variance = moments(floating(x))
    return affine((x - mean) / (np.sqrt(variance) + eps), gain, bias)


@mutant("layer_norm", "没有用参数 eps", "ε 的大小由参数给，不要在函数里写死", LN, caught_by="eps")
def fixed_eps(x, gain=None, bias=None, eps=1e-5):
    mean, variance = moments(floating(x))
    return affine((x - mean) / np.sqrt(variance + 1e-5), gain, bias)


@mutant("layer_norm", "没有 ε", "一行全相等时方差为 0，0 / 0 是 nan；方差上要加 ε", LN, caught_by="eps")
def no_eps(x, gain=None, bias=None, eps=1e-5):
    mean, variance = moments(floating(x))
    return affine((x - mean) / np.sqrt(variance), gain, bias)


@mutant("layer_norm", "方差算成“平方的平均 − 平均的平方”", "均值很大时两个大数相减，有效数字全丢了；先减均值再平方", LN, caught_by="offset")
def cancelling_variance(x, gain=None, bias=None, eps=1e-5):
    x = floating(x)
    mean = x.mean(-1, keepdims=True)
    variance = np.maximum((x * x).mean(-1, keepdims=True) - mean * mean, 0)
    return affine((x - mean) / np.sqrt(variance + eps), gain, bias)


@mutant("layer_norm", "增益被悄悄广播", "形状不是 [d] 的增益是调用错了：报 ValueError", LN, caught_by="shapes")
def broadcasts(x, gain=None, bias=None, eps=1e-5):
    mean, variance = moments(floating(x))
    y = (x - mean) / np.sqrt(variance + eps)
    y = y if gain is None else y * gain
    return y if bias is None else y + bias


@mutant("layer_norm", "总是算成 float64", "float32 进、float32 出：不要转换成 float64", LN, caught_by="dtype")
def always_double(x, gain=None, bias=None, eps=1e-5):
    mean, variance = moments(x.astype(np.float64))
    return affine((x - mean) / np.sqrt(variance + eps), gain, bias)


@mutant("layer_norm", "就地减均值", "x -= … 改掉了调用者的数组；写成 x = x - …", LN, caught_by="untouched")
def in_place(x, gain=None, bias=None, eps=1e-5):
    if x.dtype.kind != "f":
        x = x.astype(np.float64)
    x -= x.mean(-1, keepdims=True)
    return affine(x / np.sqrt((x * x).mean(-1, keepdims=True) + eps), gain, bias)


# ---- layer_norm：其他正确写法 --------------------------------------------------------------------------------

@right("layer_norm", "逐行循环，只用 math")
def rows_by_hand(x, gain=None, bias=None, eps=1e-5):
    x = floating(x)
    result = np.empty_like(x)
    for place in np.ndindex(x.shape[:-1]):
        row = x[place].tolist()
        mean = sum(row) / len(row)
        root = math.sqrt(sum((value - mean) ** 2 for value in row) / len(row) + eps)
        result[place] = [(value - mean) / root for value in row]
    return affine(result, gain, bias)


@right("layer_norm", "投影矩阵 I − 11ᵀ/d，再用 einsum 求长度")
def projection(x, gain=None, bias=None, eps=1e-5):
    x = floating(x)
    x = x - x[..., :1]  # 平移不改变结果，却让大的均值先消失
    d = x.shape[-1]
    centred = x @ (np.eye(d, dtype=x.dtype) - x.dtype.type(1 / d))
    square = np.einsum("...i,...i->...", centred, centred)[..., None]
    return affine(centred / np.sqrt(square / d + eps), gain, bias)


@right("layer_norm", "np.std 与转置")
def transposed(x, gain=None, bias=None, eps=1e-5):
    x = np.moveaxis(floating(x), -1, 0)
    y = (x - x.mean(0)) * (x.std(0) ** 2 + eps) ** -0.5
    return affine(np.moveaxis(y, 0, -1), gain, bias)


# ---- rms_norm：错误写法 -------------------------------------------------------------------------------------

def mean_square(x, axis=-1):
    return (x * x).mean(axis, keepdims=True)


@mutant("rms_norm", "除以标准差", "标准差里已经减了均值；RMSNorm 除以均方根 √(mean(x²))", RMS, caught_by="values")
def over_std(x, gain=None, eps=1e-6):
    x = floating(x)
    return affine(x / np.sqrt(x.var(-1, keepdims=True) + eps), gain)


@mutant("rms_norm", "减了均值", "那是 LayerNorm（8.3）；RMSNorm 不减均值", RMS, caught_by="values")
def centred(x, gain=None, eps=1e-6):
    mean, variance = moments(floating(x))
    return affine((x - mean) / np.sqrt(variance + eps), gain)


@mutant("rms_norm", "用平方和代替平方的平均", "要除以 d 再开方；否则是归一到长度 1，宽度越大输出越小", RMS, caught_by="values")
def unit_length(x, gain=None, eps=1e-6):
    x = floating(x)
    return affine(x / np.sqrt((x * x).sum(-1, keepdims=True) + eps), gain)


@mutant("rms_norm", "没有开方", "平方的平均要开方才与 x 同一尺度", RMS, caught_by="values")
def no_root(x, gain=None, eps=1e-6):
    x = floating(x)
    return affine(x / (mean_square(x) + eps), gain)


@mutant("rms_norm", "除以平均绝对值", "均方根是先平方、再平均、再开方", RMS, caught_by="values")
def mean_magnitude(x, gain=None, eps=1e-6):
    x = floating(x)
    return affine(x / (np.abs(x).mean(-1, keepdims=True) + eps), gain)


@mutant("rms_norm", "乘以均方根", "要除以它：输出的均方根应当是 1", RMS, caught_by="values")
def multiplied(x, gain=None, eps=1e-6):
    x = floating(x)
    return affine(x * np.sqrt(mean_square(x) + eps), gain)


@mutant("rms_norm", "跨位置求均方根", "沿最后一轴：每个位置用自己的 d 个数", RMS, caught_by="rows")
def rms_across(x, gain=None, eps=1e-6):
    x = floating(x)
    return affine(x / np.sqrt(mean_square(x, 0 if x.ndim == 1 else tuple(range(x.ndim - 1))) + eps), gain)


@mutant("rms_norm", "对整个数组求均方根", "沿最后一轴，keepdims=True", RMS, caught_by="rows")
def rms_whole(x, gain=None, eps=1e-6):
    x = floating(x)
    return affine(x / np.sqrt((x * x).mean() + eps), gain)


@mutant("rms_norm", "忽略增益", "归一之后要乘 gain", RMS, caught_by="gain")
def rms_no_gain(x, gain=None, eps=1e-6):
    x = floating(x)
    return x / np.sqrt(mean_square(x) + eps)


@mutant("rms_norm", "加上增益", "增益是乘上去的", RMS, caught_by="gain")
def added_gain(x, gain=None, eps=1e-6):
    x = floating(x)
    return affine(x / np.sqrt(mean_square(x) + eps), None, gain)


@mutant("rms_norm", "乘 1 + gain", "有的模型（Gemma）存的是增益减 1，这里存的就是增益", RMS, caught_by="gain")
def one_plus_gain(x, gain=None, eps=1e-6):
    x = floating(x)
    return affine(x / np.sqrt(mean_square(x) + eps), None if gain is None else 1 + gain)


@mutant("rms_norm", "在归一之前乘增益", "均方根要用原来的 x 求，增益用在归一之后", RMS, caught_by="gain")
def gain_before(x, gain=None, eps=1e-6):
    x = affine(floating(x), gain)
    return x / np.sqrt(mean_square(x) + eps)


@mutant("rms_norm", "ε 加在根号外面", "ε 加在平方的平均上：√(mean(x²) + ε)", RMS, caught_by="eps")
def rms_eps_outside(x, gain=None, eps=1e-6):
    x = floating(x)
    return affine(x / (np.sqrt(mean_square(x)) + eps), gain)


@mutant("rms_norm", "没有用参数 eps", "ε 的大小由参数给，不要写死", RMS, caught_by="eps")
def rms_fixed_eps(x, gain=None, eps=1e-6):
    x = floating(x)
    return affine(x / np.sqrt(mean_square(x) + 1e-6), gain)


@mutant("rms_norm", "没有 ε", "全 0 的一行会变成 0 / 0；平方的平均上要加 ε", RMS, caught_by="eps")
def rms_no_eps(x, gain=None, eps=1e-6):
    x = floating(x)
    return affine(x / np.sqrt(mean_square(x)), gain)


@mutant("rms_norm", "总是算成 float64", "float32 进、float32 出：不要转换成 float64", RMS, caught_by="dtype")
def rms_double(x, gain=None, eps=1e-6):
    x = x.astype(np.float64)
    return affine(x / np.sqrt(mean_square(x) + eps), gain)


@mutant("rms_norm", "就地除", "x /= … 改掉了调用者的数组；写成 x / …", RMS, caught_by="untouched")
def rms_in_place(x, gain=None, eps=1e-6):
    if x.dtype.kind != "f":
        x = x.astype(np.float64)
    x /= np.sqrt(mean_square(x) + eps)
    return affine(x.copy(), gain)


# ---- rms_norm：其他正确写法 ----------------------------------------------------------------------------------

@right("rms_norm", "逐行循环，只用 math")
def rms_by_hand(x, gain=None, eps=1e-6):
    x = floating(x)
    result = np.empty_like(x)
    for place in np.ndindex(x.shape[:-1]):
        row = x[place].tolist()
        root = math.sqrt(sum(value * value for value in row) / len(row) + eps)
        result[place] = [value / root for value in row]
    return affine(result, gain)


@right("rms_norm", "向量长度除以 √d")
def rms_by_length(x, gain=None, eps=1e-6):
    x = floating(x)
    d = x.shape[-1]
    length = np.sqrt(np.einsum("...i,...i->...", x, x) + d * eps)
    return affine(x * (math.sqrt(d) / length)[..., None], gain)


@right("rms_norm", "补一个 √(d·ε) 的分量，再求长度")
def rms_with_extra(x, gain=None, eps=1e-6):
    x = floating(x)
    d = x.shape[-1]
    extra = np.full((*x.shape[:-1], 1), math.sqrt(d * eps), x.dtype)
    length = np.linalg.norm(np.concatenate([x, extra], axis=-1), axis=-1, keepdims=True)
    return affine(x / (length / math.sqrt(d)), gain)


# ---- batch_norm：错误写法 -----------------------------------------------------------------------------------

def statistics(x, running):
    """The right mean and variance, for the mutants that go wrong elsewhere."""
    if running is not None:
        return running
    if x.size == x.shape[-1]:
        raise ValueError("只有一行")
    rows = tuple(range(x.ndim - 1))
    return x.mean(rows), x.var(rows)


@mutant("batch_norm", "沿最后一轴归一", "那是 LayerNorm（8.3）；BatchNorm 同一个特征跨所有行", BN, caught_by="columns")
def batch_as_layer(x, gain=None, bias=None, eps=1e-5, running=None):
    mean, variance = moments(x) if running is None else running
    if running is None and x.size == x.shape[-1]:
        raise ValueError("只有一行")
    return affine((x - mean) / np.sqrt(variance + eps), gain, bias)


@mutant("batch_norm", "方差除以 n − 1", "归一化用总体方差，除以行数 n", BN, caught_by="columns")
def batch_sample_variance(x, gain=None, bias=None, eps=1e-5, running=None):
    mean, variance = statistics(x, running)
    if running is None:
        variance = x.var(tuple(range(x.ndim - 1)), ddof=1)
    return affine((x - mean) / np.sqrt(variance + eps), gain, bias)


@mutant("batch_norm", "对整个数组归一", "每个特征（列）有自己的均值和方差", BN, caught_by="columns")
def batch_whole(x, gain=None, bias=None, eps=1e-5, running=None):
    statistics(x, running)
    mean, variance = (x.mean(), x.var()) if running is None else running
    return affine((x - mean) / np.sqrt(variance + eps), gain, bias)


@mutant("batch_norm", "除以方差而不是标准差", "方差要先开方", BN, caught_by="columns")
def batch_over_variance(x, gain=None, bias=None, eps=1e-5, running=None):
    mean, variance = statistics(x, running)
    return affine((x - mean) / (variance + eps), gain, bias)


@mutant("batch_norm", "只沿第 0 轴统计", "多于两轴时，除最后一轴外的所有轴都要合在一起", BN, caught_by="leading")
def first_axis_only(x, gain=None, bias=None, eps=1e-5, running=None):
    mean, variance = statistics(x, running)
    if running is None:
        mean, variance = x.mean(0), x.var(0)
    return affine((x - mean) / np.sqrt(variance + eps), gain, bias)


@mutant("batch_norm", "每个句子各自统计", "所有句子的所有位置合在一起，才是“一批”", BN, caught_by="leading")
def sentence_by_sentence(x, gain=None, bias=None, eps=1e-5, running=None):
    mean, variance = statistics(x, running)
    if running is None:
        mean, variance = moments(x, -2)
    return affine((x - mean) / np.sqrt(variance + eps), gain, bias)


@mutant("batch_norm", "先加偏置再乘增益", "次序是乘增益、再加偏置", BN, caught_by="affine")
def batch_bias_first(x, gain=None, bias=None, eps=1e-5, running=None):
    mean, variance = statistics(x, running)
    return affine(affine((x - mean) / np.sqrt(variance + eps), None, bias), gain)


@mutant("batch_norm", "忽略增益和偏置", "归一之后乘 gain、加 bias，没给的当作 1 和 0", BN, caught_by="affine")
def batch_without_affine(x, gain=None, bias=None, eps=1e-5, running=None):
    mean, variance = statistics(x, running)
    return affine((x - mean) / np.sqrt(variance + eps))


@mutant("batch_norm", "忽略 running", "推理时用训练时记下的统计量，不看这一批", BN, caught_by="running")
def ignores_running(x, gain=None, bias=None, eps=1e-5, running=None):
    if running is None:
        statistics(x, None)
    rows = tuple(range(x.ndim - 1))
    return affine((x - x.mean(rows)) / np.sqrt(x.var(rows) + eps), gain, bias)


@mutant("batch_norm", "把 running 的方差当作标准差", "running 的第二项是方差，要开方", BN, caught_by="running")
def running_as_std(x, gain=None, bias=None, eps=1e-5, running=None):
    mean, variance = statistics(x, running)
    return affine((x - mean) / (np.sqrt(variance + eps) if running is None else variance + eps), gain, bias)


@mutant("batch_norm", "running 的次序反了", "次序是先均值、后方差", BN, caught_by="running")
def running_swapped(x, gain=None, bias=None, eps=1e-5, running=None):
    mean, variance = statistics(x, None if running is None else (running[1], running[0]))
    return affine((x - mean) / np.sqrt(variance + eps), gain, bias)


@mutant("batch_norm", "只用了 running 的均值", "方差也要用 running 的，否则结果仍取决于同批的样本", BN, caught_by="running")
def running_mean_only(x, gain=None, bias=None, eps=1e-5, running=None):
    mean, variance = statistics(x, running)
    if running is not None:
        variance = x.var(tuple(range(x.ndim - 1)))
    return affine((x - mean) / np.sqrt(variance + eps), gain, bias)


@mutant("batch_norm", "把这一批混进了 running", "那是训练时更新 running 的做法；推理时只读不混", BN, caught_by="running")
def running_mixed(x, gain=None, bias=None, eps=1e-5, running=None):
    mean, variance = statistics(x, running)
    if running is not None:
        rows = tuple(range(x.ndim - 1))
        mean, variance = 0.9 * mean + 0.1 * x.mean(rows), 0.9 * variance + 0.1 * x.var(rows)
    return affine((x - mean) / np.sqrt(variance + eps), gain, bias)


@mutant("batch_norm", "ε 加在根号外面", "ε 加在方差上：√(σ² + ε)", BN, caught_by="eps")
def batch_eps_outside(x, gain=None, bias=None, eps=1e-5, running=None):
    mean, variance = statistics(x, running)
    return affine((x - mean) / (np.sqrt(variance) + eps), gain, bias)


@mutant("batch_norm", "没有用参数 eps", "ε 的大小由参数给，不要写死", BN, caught_by="eps")
def batch_fixed_eps(x, gain=None, bias=None, eps=1e-5, running=None):
    mean, variance = statistics(x, running)
    return affine((x - mean) / np.sqrt(variance + 1e-5), gain, bias)


@mutant("batch_norm", "一行也照样归一", "一行减去自己的均值总是 0，什么信息都不剩：没有 running 时报 ValueError", BN, caught_by="one-row")
def one_row_allowed(x, gain=None, bias=None, eps=1e-5, running=None):
    rows = tuple(range(x.ndim - 1))
    mean, variance = (x.mean(rows), x.var(rows)) if running is None else running
    return affine((x - mean) / np.sqrt(variance + eps), gain, bias)


@mutant("batch_norm", "就地更新了 running", "推理时 running 只读：不要在它上面做 += 或 *=", BN, caught_by="untouched")
def updates_running(x, gain=None, bias=None, eps=1e-5, running=None):
    mean, variance = statistics(x, running)
    result = affine((x - mean) / np.sqrt(variance + eps), gain, bias)
    if running is not None:
        mean *= 0.9
        mean += 0.1 * x.mean(tuple(range(x.ndim - 1)))
    return result


@mutant("batch_norm", "就地减均值", "x -= … 改掉了调用者的数组", BN, caught_by="untouched")
def batch_in_place(x, gain=None, bias=None, eps=1e-5, running=None):
    mean, variance = statistics(x, running)
    x -= mean
    return affine(x / np.sqrt(variance + eps), gain, bias)


# ---- batch_norm：其他正确写法 --------------------------------------------------------------------------------

@right("batch_norm", "摊平成两轴，逐列循环")
def column_by_column(x, gain=None, bias=None, eps=1e-5, running=None):
    flat = x.reshape(-1, x.shape[-1])
    if running is None and len(flat) == 1:
        raise ValueError("只有一行，请给 running")
    columns = []
    for j in range(flat.shape[1]):
        column = flat[:, j]
        mean = column.sum() / len(column) if running is None else running[0][j]
        variance = ((column - mean) ** 2).sum() / len(column) if running is None else running[1][j]
        columns.append((column - mean) / math.sqrt(variance + eps))
    return affine(np.stack(columns, axis=-1).reshape(x.shape), gain, bias)


@right("batch_norm", "einsum")
def batch_with_einsum(x, gain=None, bias=None, eps=1e-5, running=None):
    flat = x.reshape(-1, x.shape[-1])
    if running is None:
        if flat.shape[0] < 2:
            raise ValueError("只有一行，请给 running")
        mean = np.einsum("nd->d", flat) / len(flat)
        running = mean, np.einsum("nd,nd->d", flat - mean, flat - mean) / len(flat)
    mean, variance = running
    return affine((x - mean) / np.sqrt(variance + eps), gain, bias)


@right("batch_norm", "合成一次乘加：x · a + b")
def folded(x, gain=None, bias=None, eps=1e-5, running=None):
    mean, variance = statistics(x, running)
    factor = (1.0 if gain is None else gain) / np.sqrt(variance + eps)
    return x * factor + ((0.0 if bias is None else bias) - mean * factor)


# ---- pre_ln_block：错误写法 ----------------------------------------------------------------------------------

@mutant("pre_ln_block", "归一化盖掉了残差", "x = norm(x) 之后，残差加的已经不是原来的 x；写成 x + attention(norm_1(x))", ORDER, caught_by="identity",
        seen_in=("datawhalechina/happy-llm/issues/21", "pytorch/pytorch/issues/61165"))
def overwritten(x, attention, feed_forward, norm_1, norm_2):
    x = norm_1(x)
    x = x + attention(x)
    x = norm_2(x)
    return x + feed_forward(x)


@mutant("pre_ln_block", "第一个子层的残差被归一化盖掉了", "h = norm_1(x) 之后又写 h + attention(h)，加的已经不是 x；是 x + attention(norm_1(x))", ORDER, caught_by="identity")
def first_overwritten(x, attention, feed_forward, norm_1, norm_2):
    h = norm_1(x)
    h = h + attention(h)
    return h + feed_forward(norm_2(h))


@mutant("pre_ln_block", "写成了 Post-LN", "Pre-LN 的归一化在子层之前：x + attention(norm_1(x))", ORDER, caught_by="identity",
        seen_in="harvardnlp/annotated-transformer/issues/13")
def post_instead(x, attention, feed_forward, norm_1, norm_2):
    h = norm_1(x + attention(x))
    return norm_2(h + feed_forward(h))


@mutant("pre_ln_block", "子层前后都归一", "norm(x + attention(norm(x))) 既不是 Pre-LN 也不是 Post-LN；Pre-LN 的主干上没有归一化", ORDER, caught_by="identity")
def normed_twice(x, attention, feed_forward, norm_1, norm_2):
    h = norm_1(x + attention(norm_1(x)))
    return norm_2(h + feed_forward(norm_2(h)))


@mutant("pre_ln_block", "没有残差", "子层的输出要加到原来的 x 上", ORDER, caught_by="identity")
def no_residual(x, attention, feed_forward, norm_1, norm_2):
    return feed_forward(norm_2(attention(norm_1(x))))


@mutant("pre_ln_block", "层的末尾又归一了一次", "最后的归一化属于整个模型，在所有层之后做一次；一层之内没有", ORDER, caught_by="identity")
def final_norm(x, attention, feed_forward, norm_1, norm_2):
    h = x + attention(norm_1(x))
    return norm_2(h + feed_forward(norm_2(h)))


@mutant("pre_ln_block", "前馈那一步没有残差", "第二个子层也要加残差：h + feed_forward(norm_2(h))", ORDER, caught_by="identity")
def second_without_residual(x, attention, feed_forward, norm_1, norm_2):
    return feed_forward(norm_2(x + attention(norm_1(x))))


@mutant("pre_ln_block", "注意力没有先归一", "子层看的是 norm_1(x)，不是 x", ORDER, caught_by="attention")
def raw_attention(x, attention, feed_forward, norm_1, norm_2):
    h = x + attention(x)
    return h + feed_forward(norm_2(h))


@mutant("pre_ln_block", "归一化套在子层的输出上", "是 attention(norm_1(x))，不是 norm_1(attention(x))", ORDER, caught_by="attention")
def norm_after_sublayer(x, attention, feed_forward, norm_1, norm_2):
    h = x + norm_1(attention(x))
    return h + norm_2(feed_forward(h))


@mutant("pre_ln_block", "两个归一化对调了", "norm_1 给注意力，norm_2 给前馈", ORDER, caught_by="attention")
def norms_swapped(x, attention, feed_forward, norm_1, norm_2):
    h = x + attention(norm_2(x))
    return h + feed_forward(norm_1(h))


@mutant("pre_ln_block", "两处都用 norm_1", "前馈之前用 norm_2：它有自己的增益", ORDER, caught_by="feed-forward")
def same_norm(x, attention, feed_forward, norm_1, norm_2):
    h = x + attention(norm_1(x))
    return h + feed_forward(norm_1(h))


@mutant("pre_ln_block", "前馈没有先归一", "前馈看的是 norm_2(h)，不是 h", ORDER, caught_by="feed-forward")
def raw_feed_forward(x, attention, feed_forward, norm_1, norm_2):
    h = x + attention(norm_1(x))
    return h + feed_forward(h)


@mutant("pre_ln_block", "先前馈后注意力", "次序是先注意力（互相看），再前馈（各自想）", ORDER, caught_by="both")
def wrong_order(x, attention, feed_forward, norm_1, norm_2):
    h = x + feed_forward(norm_2(x))
    return h + attention(norm_1(h))


@mutant("pre_ln_block", "两个子层并排", "前馈要读注意力之后的 h；并排（parallel）是另一种结构", ORDER, caught_by="both")
def parallel(x, attention, feed_forward, norm_1, norm_2):
    return x + attention(norm_1(x)) + feed_forward(norm_2(x))


@mutant("pre_ln_block", "第二次残差加的是 x", "第二次残差加的是 h：注意力的结果不能丢", ORDER, caught_by="attention")
def residual_from_input(x, attention, feed_forward, norm_1, norm_2):
    h = x + attention(norm_1(x))
    return x + feed_forward(norm_2(h))


@mutant("pre_ln_block", "就地累加到 x 上", "x += … 改掉了调用者的数组；写成 h = x + …", ORDER, caught_by="untouched")
def adds_in_place(x, attention, feed_forward, norm_1, norm_2):
    x += attention(norm_1(x))
    return x + feed_forward(norm_2(x))


@mutant("pre_ln_block", "对批的轴求了和", "每个句子各算各的，不要合并批的轴", ORDER, caught_by="batch")
def merges_batch(x, attention, feed_forward, norm_1, norm_2):
    x = x.reshape(-1, *x.shape[-2:]).sum(0) if x.ndim > 2 else x
    h = x + attention(norm_1(x))
    return h + feed_forward(norm_2(h))


# ---- pre_ln_block：其他正确写法 -------------------------------------------------------------------------------

@right("pre_ln_block", "一个子层一步的循环")
def pre_in_a_loop(x, attention, feed_forward, norm_1, norm_2):
    for layer, norm in ((attention, norm_1), (feed_forward, norm_2)):
        x = x + layer(norm(x))
    return x


@right("pre_ln_block", "先收集两次改动，最后一起加")
def pre_increments(x, attention, feed_forward, norm_1, norm_2):
    changes = [attention(norm_1(x))]
    changes.append(feed_forward(norm_2(x + changes[0])))
    return x + np.sum(changes, axis=0)


@right("pre_ln_block", "函数的复合，逐个句子")
def pre_composed(x, attention, feed_forward, norm_1, norm_2):
    step = lambda layer, norm: lambda h: np.add(h, layer(norm(h)))
    first, second = step(attention, norm_1), step(feed_forward, norm_2)
    if x.ndim > 2:
        return np.stack([pre_composed(s, attention, feed_forward, norm_1, norm_2) for s in x])
    return second(first(x))


# ---- post_ln_block：错误写法 ---------------------------------------------------------------------------------

@mutant("post_ln_block", "写成了 Pre-LN", "Post-LN 先加残差，再归一：norm_1(x + attention(x))", ORDER, caught_by="identity",
        seen_in="harvardnlp/annotated-transformer/issues/13")
def pre_instead(x, attention, feed_forward, norm_1, norm_2):
    h = x + attention(norm_1(x))
    return h + feed_forward(norm_2(h))


@mutant("post_ln_block", "归一化只套在子层的输出上", "归一的是加完残差的和：norm_1(x + attention(x))", ORDER, caught_by="identity")
def post_norm_of_output(x, attention, feed_forward, norm_1, norm_2):
    h = x + norm_1(attention(x))
    return h + norm_2(feed_forward(h))


@mutant("post_ln_block", "漏了第二次归一", "每个子层之后都要归一：前馈之后用 norm_2", ORDER, caught_by="identity")
def post_without_second(x, attention, feed_forward, norm_1, norm_2):
    h = norm_1(x + attention(x))
    return h + feed_forward(h)


@mutant("post_ln_block", "漏了第一次归一", "每个子层之后都要归一：注意力之后用 norm_1", ORDER, caught_by="identity")
def post_without_first(x, attention, feed_forward, norm_1, norm_2):
    h = x + attention(x)
    return norm_2(h + feed_forward(h))


@mutant("post_ln_block", "两个归一化对调了", "norm_1 在注意力之后，norm_2 在前馈之后", ORDER, caught_by="identity")
def post_norms_swapped(x, attention, feed_forward, norm_1, norm_2):
    h = norm_2(x + attention(x))
    return norm_1(h + feed_forward(h))


@mutant("post_ln_block", "两处都用 norm_1", "前馈之后用 norm_2：它有自己的增益", ORDER, caught_by="identity")
def post_same_norm(x, attention, feed_forward, norm_1, norm_2):
    h = norm_1(x + attention(x))
    return norm_1(h + feed_forward(h))


@mutant("post_ln_block", "没有残差", "归一之前要把 x 加回来：norm_1(x + attention(x))", ORDER, caught_by="identity")
def post_no_residual(x, attention, feed_forward, norm_1, norm_2):
    h = norm_1(attention(x))
    return norm_2(feed_forward(h))


@mutant("post_ln_block", "子层前后都归一", "Post-LN 的子层看原来的 x：norm_1(x + attention(x))", ORDER, caught_by="attention")
def post_normed_twice(x, attention, feed_forward, norm_1, norm_2):
    h = norm_1(x + attention(norm_1(x)))
    return norm_2(h + feed_forward(norm_2(h)))


@mutant("post_ln_block", "第二次残差加的是 x", "第二次残差加的是 h", ORDER, caught_by="identity")
def post_residual_from_input(x, attention, feed_forward, norm_1, norm_2):
    h = norm_1(x + attention(x))
    return norm_2(x + feed_forward(h))


@mutant("post_ln_block", "前馈读的是 x", "前馈读注意力之后的 h", ORDER, caught_by="feed-forward")
def post_feeds_input(x, attention, feed_forward, norm_1, norm_2):
    h = norm_1(x + attention(x))
    return norm_2(h + feed_forward(x))


@mutant("post_ln_block", "先前馈后注意力", "次序是先注意力，再前馈；归一化的次序不变", ORDER, caught_by="attention")
def post_wrong_order(x, attention, feed_forward, norm_1, norm_2):
    h = norm_1(x + feed_forward(x))
    return norm_2(h + attention(h))


@mutant("post_ln_block", "就地累加到 x 上", "x += … 改掉了调用者的数组；写成 h = norm_1(x + …)", ORDER, caught_by="untouched")
def post_in_place(x, attention, feed_forward, norm_1, norm_2):
    x += attention(x)
    h = norm_1(x)
    return norm_2(h + feed_forward(h))


@mutant("post_ln_block", "对批的轴求了和", "每个句子各算各的，不要合并批的轴", ORDER, caught_by="batch")
def post_merges_batch(x, attention, feed_forward, norm_1, norm_2):
    x = x.reshape(-1, *x.shape[-2:]).sum(0) if x.ndim > 2 else x
    h = norm_1(x + attention(x))
    return norm_2(h + feed_forward(h))


# ---- post_ln_block：其他正确写法 ------------------------------------------------------------------------------

@right("post_ln_block", "一个子层一步的循环")
def post_in_a_loop(x, attention, feed_forward, norm_1, norm_2):
    for layer, norm in ((attention, norm_1), (feed_forward, norm_2)):
        x = norm(x + layer(x))
    return x


@right("post_ln_block", "逐个句子")
def post_by_sentence(x, attention, feed_forward, norm_1, norm_2):
    if x.ndim > 2:
        return np.stack([post_by_sentence(s, attention, feed_forward, norm_1, norm_2) for s in x])
    h = norm_1(np.add(x, attention(x)))
    return norm_2(np.add(h, feed_forward(h)))


@right("post_ln_block", "函数的复合")
def post_composed(x, attention, feed_forward, norm_1, norm_2):
    def step(h, layer, norm):
        changed = h.copy()
        changed += layer(h)
        return norm(changed)
    return step(step(x, attention, norm_1), feed_forward, norm_2)
