"""ex03-position 的错误写法与其他正确写法。"""

import math

import numpy as np

from grading.mutants import mutant, right

ORDER, ENCODING, SHIFT, ROPE = "3.1", "3.3", "3.4", "3.6"
PE, EQUI = "sinusoidal_encoding", "is_equivariant"


def even(d):
    if d % 2:
        raise ValueError("d 应是偶数")


def omega(d, base):
    return float(base) ** (-np.arange(0, d, 2) / d)


def interleave(angles):
    table = np.empty((*angles.shape[:-1], 2 * angles.shape[-1]))
    table[..., 0::2], table[..., 1::2] = np.sin(angles), np.cos(angles)
    return table


def blocks(angles, sign=1.0):
    """The block rotation for row vectors; sign −1 gives its transpose."""
    d = 2 * len(angles)
    M, even_places, odd_places = np.zeros((d, d)), np.arange(0, d, 2), np.arange(1, d, 2)
    M[even_places, even_places] = M[odd_places, odd_places] = np.cos(angles)
    M[odd_places, even_places], M[even_places, odd_places] = sign * np.sin(angles), -sign * np.sin(angles)
    return M


def places(d, layout):
    if layout not in ("half", "interleaved"):
        raise ValueError("不认识的 layout")
    return (np.s_[..., : d // 2], np.s_[..., d // 2 :]) if layout == "half" else (np.s_[..., 0::2], np.s_[..., 1::2])


def turn(x, angles, layout="half"):
    """angles [n, d/2]"""
    a, b = places(x.shape[-1], layout)
    cos, sin = np.cos(angles).astype(x.dtype), np.sin(angles).astype(x.dtype)
    y = np.empty_like(x)
    y[a], y[b] = x[a] * cos - x[b] * sin, x[a] * sin + x[b] * cos
    return y


def angles_of(x, positions, base):
    even(x.shape[-1])
    return np.asarray(positions, np.float64)[..., None] * omega(x.shape[-1], base)


# ---- sinusoidal_encoding：错误写法 ------------------------------------------------------------------------

@mutant(PE, "前一半放正弦，后一半放余弦", "原论文交错排列：偶数维正弦，奇数维余弦；排法要与移位矩阵一致", ENCODING, caught_by="start")
def halves(n, d, base=10000.0):
    even(d)
    angles = np.arange(n)[:, None] * omega(d, base)
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)


@mutant(PE, "正弦与余弦对调", "偶数维是正弦，奇数维是余弦：位置 0 应是 0、1、0、1", ENCODING, caught_by="start")
def swapped(n, d, base=10000.0):
    even(d)
    table = interleave(np.arange(n)[:, None] * omega(d, base))
    return np.stack([table[:, 1::2], table[:, 0::2]], axis=-1).reshape(n, d)


@mutant(PE, "全用了正弦", "每一对要有一个正弦一个余弦；只有正弦就没有“移几位是一次旋转”", ENCODING, caught_by="start")
def only_sine(n, d, base=10000.0):
    even(d)
    return np.sin(np.arange(n)[:, None] * np.repeat(omega(d, base), 2))


@mutant(PE, "位置从 1 数起", "第一个词元的位置是 0", ENCODING, caught_by="start")
def one_based(n, d, base=10000.0):
    even(d)
    return interleave(np.arange(1, n + 1)[:, None] * omega(d, base))


@mutant(PE, "行列颠倒", "一行一个位置：形状是 [n, d]", ENCODING, caught_by="start")
def transposed(n, d, base=10000.0):
    even(d)
    return interleave(np.arange(n)[:, None] * omega(d, base)).T


@mutant(PE, "每一维各用各的指数", "余弦那一维与它前面的正弦共用 2k/d；写成 (2k+1)/d，两维就不同频了", ENCODING, caught_by="circle",
        seen_in=("luhengshiwo/LLMForEverybody/issues/106", "HIT-SCIR/plm-nlp-code/pull/17"))
def own_exponent(n, d, base=10000.0):
    even(d)
    angles = np.arange(n)[:, None] * float(base) ** (-np.arange(d) / d)
    return np.where(np.arange(d) % 2 == 0, np.sin(angles), np.cos(angles))


@mutant(PE, "把维度的编号当成了 k", "公式里的 k 数的是第几对：第 i 维属于第 i // 2 对，指数是 2(i // 2)/d", ENCODING, caught_by="circle")
def dimension_as_pair(n, d, base=10000.0):
    even(d)
    angles = np.arange(n)[:, None] * float(base) ** (-2 * np.arange(d) / d)
    return np.where(np.arange(d) % 2 == 0, np.sin(angles), np.cos(angles))


@mutant(PE, "把每行缩放成了单位长", "每行的长度就是 √(d/2)，不用归一化", ENCODING, caught_by="start")
def unit_rows(n, d, base=10000.0):
    even(d)
    return interleave(np.arange(n)[:, None] * omega(d, base)) / math.sqrt(d / 2)


@mutant(PE, "指数用了 k/d", "k 数的是第几对，指数是 2k/d", ENCODING, caught_by="values")
def half_exponent(n, d, base=10000.0):
    even(d)
    return interleave(np.arange(n)[:, None] * float(base) ** (-np.arange(d // 2) / d))


@mutant(PE, "指数用了 4k/d", "np.arange(0, d, 2) 里的数已经是 2k，不要再乘 2", ENCODING, caught_by="values")
def double_exponent(n, d, base=10000.0):
    even(d)
    return interleave(np.arange(n)[:, None] * float(base) ** (-2 * np.arange(0, d, 2) / d))


@mutant(PE, "分母用了 d − 2", "原论文是 2k/d；有的库用 (d/2 − 1) 作分母，频率略有不同", ENCODING, caught_by="values")
def other_denominator(n, d, base=10000.0):
    even(d)
    return interleave(np.arange(n)[:, None] * float(base) ** (-np.arange(0, d, 2) / max(d - 2, 1)))


@mutant(PE, "乘了 10000^(2k/d)", "要除以它：越往后的维度转得越慢", ENCODING, caught_by="values")
def multiplied(n, d, base=10000.0):
    even(d)
    return interleave(np.arange(n)[:, None] / omega(d, base))


@mutant(PE, "把除数当成了波长", "10000^(2k/d) 是除数；波长是它的 2π 倍，公式里没有另一个 2π", ENCODING, caught_by="values")
def wavelength(n, d, base=10000.0):
    even(d)
    return interleave(2 * math.pi * np.arange(n)[:, None] * omega(d, base))


@mutant(PE, "角度当成了度数", "角是弧度，不要用 np.deg2rad", ENCODING, caught_by="values")
def degrees(n, d, base=10000.0):
    even(d)
    return interleave(np.deg2rad(np.arange(n)[:, None] * omega(d, base)))


@mutant(PE, "每对维度同一个频率", "第 k 对除以 base^(2k/d)：越往后越慢", ENCODING, caught_by="values")
def one_frequency(n, d, base=10000.0):
    even(d)
    return interleave(np.arange(n)[:, None] * np.ones(d // 2))


@mutant(PE, "没有用参数 base", "10000 是默认值，公式里要写 base", ENCODING, caught_by="base")
def fixed_base(n, d, base=10000.0):
    even(d)
    return interleave(np.arange(n)[:, None] * omega(d, 10000.0))


@mutant(PE, "奇数的 d 少填了一维", "d 是奇数时最后一维没有伙伴，应报 ValueError", ENCODING, caught_by="odd")
def odd_accepted(n, d, base=10000.0):
    return interleave(np.arange(n)[:, None] * omega(d, base))[:, :d]


# ---- sinusoidal_encoding：其他正确写法 --------------------------------------------------------------------

@right(PE, "两重循环，一个数一个数地填")
def by_loops(n, d, base=10000.0):
    even(d)
    return np.array([[(math.sin, math.cos)[j % 2](p / base ** (2 * (j // 2) / d)) for j in range(d)] for p in range(n)])


@right(PE, "余弦写成移了 π/2 的正弦")
def by_phase(n, d, base=10000.0):
    even(d)
    rates, phases = np.repeat(omega(d, base), 2), np.tile([0.0, math.pi / 2], d // 2)
    return np.sin(np.arange(n)[:, None] * rates + phases)


@right(PE, "复数：e^(iθ) 的虚部与实部")
def by_complex(n, d, base=10000.0):
    if d % 2 == 1:
        raise ValueError("d 应是偶数")
    spins = np.exp(1j * np.outer(np.arange(n), [1 / base ** (2 * k / d) for k in range(d // 2)]))
    return np.stack([spins.imag, spins.real], axis=-1).reshape(n, d)


# ---- shift_matrix：错误写法 -------------------------------------------------------------------------------

@mutant("shift_matrix", "转反了方向", "行向量乘在左边：正弦那一列是 cos、sin，余弦那一列是 −sin、cos；照搬列向量的公式会往回移", SHIFT,
        caught_by="moves")
def backwards(offset, d, base=10000.0):
    even(d)
    return blocks(offset * omega(d, base), -1.0)


@mutant("shift_matrix", "两个正弦同号", "旋转矩阵里两个正弦一正一负；同号的不是旋转", SHIFT, caught_by="moves")
def both_positive(offset, d, base=10000.0):
    even(d)
    return np.where(np.eye(d, dtype=bool), blocks(offset * omega(d, base)), np.abs(blocks(offset * omega(d, base))))


@mutant("shift_matrix", "只有余弦，没有正弦", "移位要把正弦与余弦混合：非对角线上是 ± sin", SHIFT, caught_by="moves")
def only_cosine(offset, d, base=10000.0):
    even(d)
    return np.diag(np.repeat(np.cos(offset * omega(d, base)), 2))


@mutant("shift_matrix", "多移了一位", "offset 就是移几位，不用加 1", SHIFT, caught_by="moves")
def one_more(offset, d, base=10000.0):
    even(d)
    return blocks((offset + 1) * omega(d, base))


@mutant("shift_matrix", "每对维度转同样的角", "第 k 对转 offset·ω_k，ω_k = base^(−2k/d)", SHIFT, caught_by="moves")
def same_angle(offset, d, base=10000.0):
    even(d)
    return blocks(offset * np.ones(d // 2))


@mutant("shift_matrix", "按前后两半配对", "本章的编码是交错排列：第 2k 维与第 2k + 1 维成对，2×2 的小块排在对角线上", SHIFT, caught_by="moves")
def half_blocks(offset, d, base=10000.0):
    even(d)
    order = np.concatenate([np.arange(0, d, 2), np.arange(1, d, 2)])
    return blocks(offset * omega(d, base))[np.ix_(order, order)]


@mutant("shift_matrix", "频率用了 k/d", "k 数的是第几对，指数是 2k/d", SHIFT, caught_by="moves")
def slow_frequencies(offset, d, base=10000.0):
    even(d)
    return blocks(offset * float(base) ** (-np.arange(d // 2) / d))


@mutant("shift_matrix", "频率的次序倒了", "第 0 对转得最快，越往后越慢", SHIFT, caught_by="moves")
def reversed_frequencies(offset, d, base=10000.0):
    even(d)
    return blocks(offset * omega(d, base)[::-1])


@mutant("shift_matrix", "offset 取了绝对值", "负的 offset 是往回移，矩阵是它的逆", SHIFT, caught_by="back")
def absolute(offset, d, base=10000.0):
    even(d)
    return blocks(abs(offset) * omega(d, base))


@mutant("shift_matrix", "移一位的矩阵连乘", "连乘要求 offset 是非负整数；直接用 offset·ω_k 作角，就没有这个限制", SHIFT, caught_by="back")
def repeated_product(offset, d, base=10000.0):
    even(d)
    M = np.eye(d)
    for _ in range(int(offset)):
        M = M @ blocks(omega(d, base))
    return M


@mutant("shift_matrix", "offset 取了整", "offset 可以是半位：不要用 int()", SHIFT, caught_by="fraction")
def truncated(offset, d, base=10000.0):
    even(d)
    return blocks(int(offset) * omega(d, base))


@mutant("shift_matrix", "没有用参数 base", "10000 是默认值，公式里要写 base", SHIFT, caught_by="base")
def fixed_shift_base(offset, d, base=10000.0):
    even(d)
    return blocks(offset * omega(d, 10000.0))


@mutant("shift_matrix", "奇数的 d 也接受", "d 是奇数时最后一维没有伙伴，应报 ValueError", SHIFT, caught_by="odd")
def odd_shift(offset, d, base=10000.0):
    return blocks(offset * omega(d, base))[:d, :d]


# ---- shift_matrix：其他正确写法 ---------------------------------------------------------------------------

@right("shift_matrix", "一块一块地填")
def block_by_block(offset, d, base=10000.0):
    even(d)
    M = np.zeros((d, d))
    for k in range(d // 2):
        angle = offset / base ** (2 * k / d)
        M[2 * k : 2 * k + 2, 2 * k : 2 * k + 2] = [[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]]
    return M


@right("shift_matrix", "解方程：由编码表反推")
def by_solving(offset, d, base=10000.0):
    even(d)
    starts = np.arange(4 * d)[:, None] * 997.0 % 6283
    table, moved = (interleave((starts + by) * omega(d, base)) for by in (0, offset))
    return np.linalg.lstsq(table, moved, rcond=None)[0]


@right("shift_matrix", "单位矩阵的每一行当作 (sin, cos)，转过去")
def by_turning_identity(offset, d, base=10000.0):
    even(d)
    eye, angles = np.eye(d), offset * omega(d, base)
    M = np.empty((d, d))
    M[:, 0::2] = eye[:, 0::2] * np.cos(angles) + eye[:, 1::2] * np.sin(angles)
    M[:, 1::2] = eye[:, 1::2] * np.cos(angles) - eye[:, 0::2] * np.sin(angles)
    return M


# ---- rotary：错误写法 -------------------------------------------------------------------------------------

@mutant("rotary", "转反了方向", "新的 a 是 a cos − b sin，新的 b 是 a sin + b cos；反过来转，与别人的权重就不配", ROPE, caught_by="pair")
def clockwise(x, positions, base=10000.0, layout="half"):
    return turn(x, -angles_of(x, positions, base), layout)


@mutant("rotary", "算新的 b 时用了新的 a", "先把两个新值都算好再写回；就地写会用到已经转过的数", ROPE, caught_by="pair")
def overwritten(x, positions, base=10000.0, layout="half"):
    angles = angles_of(x, positions, base)
    a, b = places(x.shape[-1], layout)
    cos, sin = np.cos(angles).astype(x.dtype), np.sin(angles).astype(x.dtype)
    y = x.copy()
    y[a] = y[a] * cos - y[b] * sin
    y[b] = y[a] * sin + y[b] * cos
    return y


@mutant("rotary", "两处都是加号", "新的 a 里 b·sin 前面是减号；两处都加就不是旋转，长度也变了", ROPE, caught_by="pair")
def both_plus(x, positions, base=10000.0, layout="half"):
    angles = angles_of(x, positions, base)
    a, b = places(x.shape[-1], layout)
    cos, sin = np.cos(angles).astype(x.dtype), np.sin(angles).astype(x.dtype)
    y = np.empty_like(x)
    y[a], y[b] = x[a] * cos + x[b] * sin, x[a] * sin + x[b] * cos
    return y


@mutant("rotary", "把位置编码加了上去", "RoPE 不加任何东西，它把向量转一个角", ROPE, caught_by="pair")
def added(x, positions, base=10000.0, layout="half"):
    angles, y = angles_of(x, positions, base), x.copy()
    a, b = places(x.shape[-1], layout)
    y[a] += np.sin(angles).astype(x.dtype)
    y[b] += np.cos(angles).astype(x.dtype)
    return y


@mutant("rotary", "位置从 1 数起", "positions 里是几就转几：位置 0 不转", ROPE, caught_by="pair")
def one_more_position(x, positions, base=10000.0, layout="half"):
    return turn(x, angles_of(x, np.asarray(positions) + 1, base), layout)


@mutant("rotary", "自己从 0 数位置", "用缓存生成时位置接着旧的数：转多少由参数 positions 决定", ROPE, caught_by="positions",
        seen_in=("ml-explore/mlx-lm/pull/93", "skyzh/tiny-llm/pull/46"))
def counts_itself(x, positions, base=10000.0, layout="half"):
    return turn(x, angles_of(x, np.arange(x.shape[-2]), base), layout)


@mutant("rotary", "从第一个位置起连续地数", "positions 不一定连续：每个位置用它自己的数", ROPE, caught_by="positions")
def consecutive(x, positions, base=10000.0, layout="half"):
    return turn(x, angles_of(x, positions[0] + np.arange(x.shape[-2]), base), layout)


@mutant("rotary", "位置减去了第一个", "位置是绝对的；得分只取决于差，但 q 和 k 的第一个位置可以不同，不能各自归零", ROPE, caught_by="positions")
def rebased(x, positions, base=10000.0, layout="half"):
    return turn(x, angles_of(x, np.asarray(positions) - positions[0], base), layout)


@mutant("rotary", "默认用了交错排法", 'layout="half" 是第 k 维配第 k + d/2 维；权重是哪种排法就要用哪种', ROPE, caught_by="half")
def interleaved_by_default(x, positions, base=10000.0, layout="interleaved"):
    return turn(x, angles_of(x, positions, base), layout)


@mutant("rotary", "频率用了 k/d", "k 数的是第几对，指数是 2k/d", ROPE, caught_by="half")
def slower(x, positions, base=10000.0, layout="half"):
    even(x.shape[-1])
    rates = float(base) ** (-np.arange(x.shape[-1] // 2) / x.shape[-1])
    return turn(x, np.asarray(positions, np.float64)[..., None] * rates, layout)


@mutant("rotary", "每对维度同一个频率", "第 k 对用 ω_k = base^(−2k/d)：越往后越慢", ROPE, caught_by="half")
def single_frequency(x, positions, base=10000.0, layout="half"):
    even(x.shape[-1])
    return turn(x, np.asarray(positions, np.float64)[..., None] * np.ones(x.shape[-1] // 2), layout)


@mutant("rotary", "后一半倒着配对", "第 k 维配第 k + d/2 维，不是配倒数第 k 维", ROPE, caught_by="half")
def mirrored(x, positions, base=10000.0, layout="half"):
    if layout != "half":
        return turn(x, angles_of(x, positions, base), layout)
    angles, d = angles_of(x, positions, base), x.shape[-1]
    order = np.concatenate([np.arange(d // 2), np.arange(d - 1, d // 2 - 1, -1)])
    return turn(x[..., order], angles, "half")[..., order]


@mutant("rotary", "忽略了 layout", '"interleaved" 是第 2k 维配第 2k + 1 维，与 "half" 差一次维度重排', ROPE, caught_by="interleaved")
def ignores_layout(x, positions, base=10000.0, layout="half"):
    places(x.shape[-1], layout)
    return turn(x, angles_of(x, positions, base), "half")


@mutant("rotary", "交错取，却按前后一半放回", "转完之后要写回原来的位置：y[..., 0::2] 与 y[..., 1::2]", ROPE, caught_by="interleaved")
def put_back_in_halves(x, positions, base=10000.0, layout="half"):
    y = turn(x, angles_of(x, positions, base), layout)
    return np.concatenate([y[..., 0::2], y[..., 1::2]], -1) if layout == "interleaved" else y


@mutant("rotary", "位置对到了头的轴上", "位置在倒数第二轴：角度是 [n, d/2]，让它自己广播", ROPE, caught_by="heads")
def wrong_axis(x, positions, base=10000.0, layout="half"):
    angles = angles_of(x, positions, base)
    if x.ndim == 2:
        return turn(x, angles, layout)
    index = np.arange(x.shape[-3]) % len(angles)
    return turn(x, angles[index][:, None, :] * np.ones((1, x.shape[-2], 1)), layout)


@mutant("rotary", "没有用参数 base", "10000 是默认值，公式里要写 base；长文本的模型会把它调大", ROPE, caught_by="base")
def fixed_rotary_base(x, positions, base=10000.0, layout="half"):
    return turn(x, angles_of(x, positions, 10000.0), layout)


@mutant("rotary", "结果成了 float64", "cos 与 sin 是 float64，乘上去就把 x 提升了；先换成 x.dtype", ROPE, caught_by="dtype")
def promoted(x, positions, base=10000.0, layout="half"):
    return turn(x.astype(np.float64), angles_of(x, positions, base), layout)


@mutant("rotary", "就地转动了 x", "写进新数组；调用者还要用没转过的 x", ROPE, caught_by="untouched")
def in_place(x, positions, base=10000.0, layout="half"):
    x[...] = turn(x, angles_of(x, positions, base), layout)
    return x


@mutant("rotary", "奇数的 d 留下最后一维不转", "d 是奇数时最后一维没有伙伴，应报 ValueError", ROPE, caught_by="refused")
def odd_kept(x, positions, base=10000.0, layout="half"):
    paired = x.shape[-1] // 2 * 2
    y = x.copy()
    y[..., :paired] = turn(x[..., :paired], angles_of(x[..., :paired], positions, base), layout)
    return y


@mutant("rotary", "不认识的 layout 当作 half", "拼错的名字应当报 ValueError，而不是悄悄换一种排法", ROPE, caught_by="refused")
def unknown_layout(x, positions, base=10000.0, layout="half"):
    return turn(x, angles_of(x, positions, base), layout if layout == "interleaved" else "half")


# ---- rotary：其他正确写法 ---------------------------------------------------------------------------------

@right("rotary", "复数乘法：(a + ib)·e^(iθ)")
def complex_product(x, positions, base=10000.0, layout="half"):
    a, b = places(x.shape[-1], layout)
    spun = (x[a] + 1j * x[b]) * np.exp(1j * angles_of(x, positions, base))
    y = np.empty_like(x)
    y[a], y[b] = spun.real, spun.imag
    return y


@right("rotary", "x·cos + rotate_half(x)·sin（Llama 代码的写法）")
def rotate_half(x, positions, base=10000.0, layout="half"):
    angles, d = angles_of(x, positions, base), x.shape[-1]
    places(d, layout)
    if layout == "half":
        full, partner = np.concatenate([angles, angles], -1), np.concatenate([-x[..., d // 2 :], x[..., : d // 2]], -1)
    else:
        full, partner = np.repeat(angles, 2, -1), np.stack([-x[..., 1::2], x[..., 0::2]], -1).reshape(x.shape)
    return x * np.cos(full).astype(x.dtype) + partner * np.sin(full).astype(x.dtype)


@right("rotary", "一个位置一个矩阵")
def matrix_by_matrix(x, positions, base=10000.0, layout="half"):
    d = x.shape[-1]
    even(d)
    places(d, layout)
    y = np.empty_like(x)
    for i, position in enumerate(np.asarray(positions).tolist()):
        R = np.zeros((d, d))
        for k in range(d // 2):
            a, b = (k, k + d // 2) if layout == "half" else (2 * k, 2 * k + 1)
            angle = position / base ** (2 * k / d)
            R[a, a] = R[b, b] = math.cos(angle)
            R[a, b], R[b, a] = math.sin(angle), -math.sin(angle)
        y[..., i, :] = x[..., i, :] @ R.astype(x.dtype)
    return y


# ---- is_equivariant：错误写法 -----------------------------------------------------------------------------

@mutant(EQUI, "把等变当成了输出不变", "等变是输出跟着同样打乱：f(x[perm]) 与 f(x)[perm] 比，不是与 f(x) 比", ORDER, caught_by="rows")
def invariance(f, x, perm, tol=1e-9):
    return bool(np.abs(f(x[perm]) - f(x)).max() <= tol)


@mutant(EQUI, "一边用了逆排列", "两边用同一个 perm；要用逆排列，就该把输出打乱回去：f(x[perm])[逆] 与 f(x) 比", ORDER, caught_by="rows")
def inverse_order(f, x, perm, tol=1e-9):
    return bool(np.abs(f(x[perm]) - f(x)[np.argsort(perm)]).max() <= tol)


@mutant(EQUI, "真与假反了", "差不超过 tol 返回 True", ORDER, caught_by="rows")
def negated(f, x, perm, tol=1e-9):
    return not bool(np.abs(f(x[perm]) - f(x)[perm]).max() <= tol)


@mutant(EQUI, "返回了误差", "返回的是 True 或 False：与 tol 比较之后的结果", ORDER, caught_by="rows")
def returns_error(f, x, perm, tol=1e-9):
    return float(np.abs(f(x[perm]) - f(x)[perm]).max())


@mutant(EQUI, "只看 f(x) 的每行是否只取决于自己", "注意力的每行都取决于别的行，照样等变：不要逐行去算 f(x[i])", ORDER, caught_by="attention")
def row_by_row(f, x, perm, tol=1e-9):
    alone = np.concatenate([f(x[i : i + 1]) for i in range(len(x))])
    return bool(np.abs(alone[perm] - f(x[perm])).max() <= tol and np.abs(alone - f(x)).max() <= tol)


@mutant(EQUI, "总是返回 True", "要真的比较两种算法", ORDER, caught_by="masked")
def always_true(f, x, perm, tol=1e-9):
    return True


@mutant(EQUI, "只比了总和", "行的次序错了总和也一样；每个元素都要比", ORDER, caught_by="positions")
def sums(f, x, perm, tol=1e-9):
    return bool(abs(f(x[perm]).sum() - f(x).sum()) <= max(tol, 1e-9))


@mutant(EQUI, "取了平均误差", "一行的错会被几十行摊薄；取最大值", ORDER, caught_by="one-row")
def mean_error(f, x, perm, tol=1e-9):
    return bool(np.abs(f(x[perm]) - f(x)[perm]).mean() <= max(tol, 1e-7))


@mutant(EQUI, "只比了第一行", "每一行都要比", ORDER, caught_by="one-row")
def first_row(f, x, perm, tol=1e-9):
    return bool(np.abs(f(x[perm])[0] - f(x)[perm][0]).max() <= tol)


@mutant(EQUI, "用了 np.allclose 的默认容差", "np.allclose 另有相对容差 1e-5：数大的时候会放过明显的差；直接比绝对误差", ORDER, caught_by="one-row")
def allclose_defaults(f, x, perm, tol=1e-9):
    return bool(np.allclose(f(x[perm]), f(x)[perm]))


@mutant(EQUI, "没有用参数 tol", "1e-9 是默认值；给了 tol 就用给的", ORDER, caught_by="tolerance")
def fixed_tolerance(f, x, perm, tol=1e-9):
    return bool(np.abs(f(x[perm]) - f(x)[perm]).max() <= 1e-9)


@mutant(EQUI, "返回了 NumPy 的布尔值", "np.bool_ 不是 bool：用 bool(...) 换成 Python 的", ORDER, caught_by="plain")
def numpy_bool(f, x, perm, tol=1e-9):
    return np.abs(f(x[perm]) - f(x)[perm]).max() <= tol


# ---- is_equivariant：其他正确写法 --------------------------------------------------------------------------

@right(EQUI, "打乱回去再比")
def undo(f, x, perm, tol=1e-9):
    back = np.argsort(perm)
    return bool(np.abs(f(x[perm])[back] - f(x)).max() <= tol)


@right(EQUI, "写成置换矩阵")
def by_matrix(f, x, perm, tol=1e-9):
    P = np.eye(len(perm))[perm]
    return bool(np.max(np.abs(f(P @ x) - P @ f(x))) <= tol)


@right(EQUI, "逐行比较")
def loops(f, x, perm, tol=1e-9):
    before, after = f(x), f(x[perm])
    for place, source in enumerate(perm):
        if any(abs(a - b) > tol for a, b in zip(np.ravel(after[place]), np.ravel(before[source]))):
            return False
    return True
