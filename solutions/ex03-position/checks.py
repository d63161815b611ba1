"""ex03-position 的隐藏检查。参考值由这里逐个数算出，不用 lib，也不用学生那种整块数组的写法。"""

import math

import numpy as np

from grading.checks import Callback, check, small

ORDER, MASK, ENCODING, SHIFT, ROPE = "3.1", "3.2", "3.3", "3.4", "3.6"


# ---- 参考：一次一对维度 ------------------------------------------------------------------------------------

def frequency(k, d, base=10000.0):
    return base ** (-2 * k / d)


def encoding(n, d, base=10000.0):
    table = np.zeros((n, d))
    for p in range(n):
        for k in range(d // 2):
            table[p, 2 * k], table[p, 2 * k + 1] = math.sin(p * frequency(k, d, base)), math.cos(p * frequency(k, d, base))
    return table


def shift(offset, d, base=10000.0):
    matrix = np.zeros((d, d))
    for k in range(d // 2):
        s, c = math.sin(offset * frequency(k, d, base)), math.cos(offset * frequency(k, d, base))
        matrix[2 * k : 2 * k + 2, 2 * k : 2 * k + 2] = [[c, -s], [s, c]]
    return matrix


def turned(x, positions, base=10000.0, layout="half"):
    """Every vector on its own, every pair on its own."""
    x, d = np.asarray(x, dtype=np.float64), x.shape[-1]
    result = np.zeros(x.shape)
    for *lead, i in np.ndindex(x.shape[:-1]):
        for k in range(d // 2):
            a, b = (k, k + d // 2) if layout == "half" else (2 * k, 2 * k + 1)
            angle = float(positions[i]) * frequency(k, d, base)
            first, second = x[*lead, i, a], x[*lead, i, b]
            result[*lead, i, a] = first * math.cos(angle) - second * math.sin(angle)
            result[*lead, i, b] = first * math.sin(angle) + second * math.cos(angle)
    return result


def off_grid(rng, *shape):
    """Short numbers, none of them zero."""
    return small(rng, *shape, around=0.05)


# ---- sinusoidal_encoding ---------------------------------------------------------------------------------

PE = "sinusoidal_encoding"


@check(PE, "start", section=ENCODING, claim="位置从 0 数起；位置 0 的编码是 0、1、0、1……：偶数维是正弦，奇数维是余弦",
       hint="结果是 [n, d]：先建一张空表，table[:, 0::2] 放正弦，table[:, 1::2] 放余弦")
def pe_start(student, rng):
    for n, d in ((1, 4), (3, 6)):
        first = encoding(n, d)[0]
        student(n, d).satisfies(lambda table, n=n, d=d, first=first: table.shape == (n, d) and np.allclose(table[0], first),
                                f"sinusoidal_encoding({n}, {d}) 应是 {n}×{d} 的表，第 0 行是 {first.astype(int).tolist()}")


@check(PE, "circle", section=ENCODING, claim="每一对维度（2k 与 2k+1）是同一个角的正弦与余弦，平方和处处是 1，整行长 √(d/2)",
       hint="一对维度共用一个角：pos / base^(2k/d)，k 从 0 到 d/2 − 1")
def pe_circle(student, rng):
    n, d = 7, 8
    student(n, d).satisfies(lambda table: np.allclose(table[:, 0::2] ** 2 + table[:, 1::2] ** 2, 1),
                            "有的位置上，第 2k 与 2k+1 维的平方和不是 1：它们不是同一个角的正弦与余弦")


@check(PE, "values", section=ENCODING, claim="第 k 对维度的角是 pos / 10000^(2k/d)",
       hint="k 数的是第几对（0 到 d/2 − 1），指数是 2k/d；写成 np.arange(0, d, 2) / d 正好")
def pe_values(student, rng):
    for n, d in ((4, 8), (6, 2), (5, 6)):
        student(n, d).equals(encoding(n, d))


@check(PE, "base", section=ENCODING, claim="base 换了，频率跟着换", hint="不要把 10000 写死在公式里")
def pe_base(student, rng):
    student(4, 6, base=100.0).equals(encoding(4, 6, 100.0))


@check(PE, "odd", section=ENCODING, claim="d 是奇数时报 ValueError：正弦和余弦要成对",
       hint="先检查 d % 2")
def pe_odd(student, rng):
    student(3, 5).raises(ValueError)


# ---- shift_matrix ----------------------------------------------------------------------------------------

@check("shift_matrix", "moves", section=SHIFT, claim="任何位置的编码乘上它（行向量，乘在右边），就移到 offset 位之后",
       hint="PE(p) @ M 的第 2k 维是 sin(p ω)·M[2k, 2k] + cos(p ω)·M[2k+1, 2k]，与 sin((p + offset) ω) 的和角公式对照")
def shift_moves(student, rng):
    offset = int(rng.integers(2, 6))
    student(offset, 2).equals(shift(offset, 2))
    table = encoding(12, 6)
    for offset in (1, 3):
        student(offset, 6).satisfies(lambda M, offset=offset: np.allclose(table[:8] @ M, table[offset : offset + 8]),
                                     f"PE(p) @ M 与 PE(p + {offset}) 不同")


@check("shift_matrix", "values", section=SHIFT, claim="对角线上 d/2 个 2×2 旋转，第 k 个转 offset·ω_k；其余全是 0",
       hint="ω_k = base^(−2k/d)，每一对用自己的频率")
def shift_values(student, rng):
    for offset, d in ((3, 8), (10, 4)):
        student(offset, d).equals(shift(offset, d))


@check("shift_matrix", "back", section=SHIFT, claim="offset 可以是负数（往回移，是逆矩阵），是 0 时是单位矩阵",
       hint="正弦是奇函数：offset 变号，sin 变号而 cos 不变。不要取绝对值")
def shift_back(student, rng):
    student(0, 6).equals(np.eye(6))
    forward = student(3, 6).value
    student(-3, 6).satisfies(lambda M: np.allclose(M @ forward, np.eye(6)), "移 −3 位的矩阵乘移 3 位的矩阵，不是单位矩阵")


@check("shift_matrix", "fraction", section=SHIFT, claim="offset 不必是整数：移半位两次等于移一位",
       hint="不要把 offset 取整，也不要用整数次的矩阵乘方")
def shift_fraction(student, rng):
    half = student(0.5, 4).value
    student(1, 4).satisfies(lambda M: np.allclose(half @ half, M), "移半位的矩阵乘自己，不等于移一位的矩阵")


@check("shift_matrix", "base", section=SHIFT, claim="base 换了，频率跟着换：对角线上是 cos(offset·base^(−2k/d))", hint="不要把 10000 写死在公式里")
def shift_base(student, rng):
    wanted = np.diag(shift(2, 6, 100.0))
    student(2, 6, base=100.0).satisfies(lambda M: np.allclose(np.diag(M), wanted), "base=100 时对角线上的余弦不对")


@check("shift_matrix", "odd", section=SHIFT, claim="d 是奇数时报 ValueError", hint="先检查 d % 2")
def shift_odd(student, rng):
    student(1, 3).raises(ValueError)


# ---- rotary ----------------------------------------------------------------------------------------------

@check("rotary", "pair", section=ROPE, claim="一对维度 (a, b) 转 pos·ω 弧度：a cos − b sin 与 a sin + b cos",
       hint="逆时针转：新的 a 里 b 带负号，新的 b 里 a 带正号；算新的 b 时要用旧的 a")
def rotary_pair(student, rng):
    x, positions = off_grid(rng, 3, 2), np.array([0, 1, 2])
    student(x, positions).equals(turned(x, positions))


@check("rotary", "positions", section=ROPE, claim="转多少由 positions 决定，它不必从 0 数起，也不必连续",
       hint="角度是 positions[:, None] * ω；不要在函数里自己用 np.arange 数位置")
def rotary_positions(student, rng):
    x = off_grid(rng, 3, 2)
    for positions in ([5, 6, 7], [4, 0, 9]):
        student(x, np.array(positions)).equals(turned(x, positions))


@check("rotary", "half", section=ROPE, claim='layout="half"（默认）：第 k 维与第 k + d/2 维成对，第 k 对用 ω_k',
       hint="前一半和后一半各自是一整块：x[..., : d // 2] 与 x[..., d // 2 :]，角度只有 d/2 个")
def rotary_half(student, rng):
    x, positions = off_grid(rng, 3, 6), np.array([1, 4, 2])
    student(x, positions).equals(turned(x, positions))


@check("rotary", "interleaved", section=ROPE, claim='layout="interleaved"：第 2k 维与第 2k + 1 维成对',
       hint="x[..., 0::2] 与 x[..., 1::2]；结果也要写回原来的位置")
def rotary_interleaved(student, rng):
    x, positions = off_grid(rng, 3, 6), np.array([1, 4, 2])
    student(x, positions, layout="interleaved").equals(turned(x, positions, layout="interleaved"))


@check("rotary", "relative", section=ROPE, claim="两个位置一起后移，旋转之后的点积不变；向量的长度不变",
       hint="旋转不改变长度，也不改变夹角；若变了，多半混进了别的运算")
def rotary_relative(student, rng):
    pair = off_grid(rng, 2, 4)
    scores = []
    for m, n in ((0, 3), (17, 20)):
        scores.append(float(np.dot(*turned(pair, [m, n]))))
        student(pair, np.array([m, n])).satisfies(
            lambda y: abs(float(y[0] @ y[1]) - scores[0]) < 1e-9 and np.allclose((y * y).sum(-1), (pair * pair).sum(-1)),
            "相隔同样是 3，点积却变了，或者向量的长度变了")


@check("rotary", "heads", section=ROPE, claim="前面可以有批和头的轴，每个头转同样的角",
       hint="角度的形状是 [n, d/2]，会自动广播到 [..., n, d/2]：位置在倒数第二轴")
def rotary_heads(student, rng):
    positions = np.array([2, 0, 5])
    for shape in ((2, 3, 4), (2, 2, 3, 4)):
        x = off_grid(rng, *shape)
        student(x, positions).equals(turned(x, positions))


@check("rotary", "base", section=ROPE, claim="base 换了，频率跟着换", hint="不要把 10000 写死在公式里")
def rotary_base(student, rng):
    x, positions = off_grid(rng, 2, 6), np.array([3, 8])
    student(x, positions, base=500.0).equals(turned(x, positions, 500.0))


@check("rotary", "dtype", section=ROPE, claim="float32 进，float32 出", hint="角度可以用 float64 算，cos 与 sin 乘上去之前换成 x.dtype")
def rotary_dtype(student, rng):
    x, positions = off_grid(rng, 2, 4), np.array([1, 3])
    student(x.astype(np.float32), positions).has_dtype(np.float32).equals(turned(x, positions), atol=1e-5)


@check("rotary", "untouched", section=ROPE, claim="x 与 positions 都不被改动", hint="写进一个新数组：y = np.empty_like(x)")
def rotary_untouched(student, rng):
    student(off_grid(rng, 2, 4), np.array([1, 3])).keeps_arguments()


@check("rotary", "refused", section=ROPE, claim="d 是奇数、layout 不认识时报 ValueError", hint="先检查 x.shape[-1] % 2 与 layout")
def rotary_refused(student, rng):
    student(off_grid(rng, 2, 3), np.array([0, 1])).raises(ValueError)
    student(off_grid(rng, 2, 4), np.array([0, 1]), layout="pairs").raises(ValueError)


# ---- is_equivariant --------------------------------------------------------------------------------------

EQUI = "is_equivariant"
CYCLE = np.array([1, 2, 3, 0])  # its own inverse it is not
ATTEND = "lambda x: (lambda e: e @ x / e.sum(1, keepdims=True))(np.exp(x @ A @ x.T / 4))"


@check(EQUI, "rows", section=ORDER, claim="每行各算各的函数是等变的：先打乱再算，等于先算再打乱",
       hint="比较 f(x[perm]) 与 f(x)[perm]：同一个 perm，用在输入与输出的行上")
def equi_rows(student, rng):
    x = small(rng, 4, 3)
    W = small(rng, 3, 2)
    for order in (CYCLE, np.array([1, 0, 3, 2])):
        student(Callback("lambda x: np.tanh(x @ W)", W=W), x, order).equals(True)


@check(EQUI, "attention", section=ORDER, claim="没有掩码的注意力是等变的，尽管每行都看得到别的行",
       hint="等变不是“输出不变”，也不是“行与行无关”：输出要跟着同样打乱")
def equi_attention(student, rng):
    x = small(rng, 4, 3)
    student(Callback(ATTEND, A=small(rng, 3, 3)), x, CYCLE).equals(True)


@check(EQUI, "masked", section=MASK, claim="只看前文的函数不是等变的", hint="结果对不上时返回 False")
def equi_masked(student, rng):
    x = off_grid(rng, 4, 3)
    student(Callback("lambda x: np.cumsum(x, axis=0)"), x, CYCLE).equals(False)


@check(EQUI, "positions", section=ENCODING, claim="加了位置编码的函数不是等变的", hint="结果对不上时返回 False")
def equi_positions(student, rng):
    x = small(rng, 4, 3)
    student(Callback("lambda x: x + np.arange(len(x))[:, None]"), x, CYCLE).equals(False)


@check(EQUI, "one-row", section=ORDER, claim="只有一行对不上，也不是等变的", hint="每个元素都要比：取差的绝对值，再取最大值")
def equi_one_row(student, rng):
    x = small(rng, 40, 3)
    order = np.roll(np.arange(40), 1)
    bump = np.zeros((40, 3))
    bump[int(rng.integers(1, 38))] = [1e-6, -1e-6, 0.0]  # the sum is zero, and the mean is tiny
    for size in (1.0, 1e6):
        student(Callback("lambda x: x + bump", bump=size * bump), x, order).equals(False)


@check(EQUI, "tolerance", section=ORDER, claim="差不超过 tol 算相等：默认 1e-9，给了就用给的", hint="用 <= tol 比较绝对误差；np.allclose 另有自己的相对容差")
def equi_tolerance(student, rng):
    x = np.round(1000 * off_grid(rng, 4, 3))
    nudge = Callback("lambda x: x + 1e-4 * np.arange(len(x))[:, None]")
    student(nudge, x, CYCLE, tol=1e-2).equals(True)
    student(nudge, x, CYCLE, tol=1e-5).equals(False)
    student(nudge, x, CYCLE).equals(False)


@check(EQUI, "plain", section=ORDER, claim="返回 Python 的 True 或 False；x 与 perm 不被改动", hint="最后一步：return bool(误差 <= tol)")
def equi_plain(student, rng):
    x = small(rng, 4, 3)
    student(Callback("lambda x: 2 * x"), x, CYCLE).equals(True).satisfies(lambda r: type(r) is bool, "应返回 Python 的 bool").keeps_arguments()
