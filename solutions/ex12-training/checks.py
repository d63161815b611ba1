"""ex12-training 的隐藏检查。参考值由这里逐个数算出，不用 lib，也不用学生那种整块数组的写法。"""

import math

import numpy as np

from grading.checks import Callback, check, small

LOSS, ADAM, NUMERIC = "12.1", "12.1", "12.1"


# ---- 参考 ------------------------------------------------------------------------------------------------

def probabilities(row):
    peak = max(row)
    powers = [math.exp(z - peak) for z in row]
    total = math.fsum(powers)
    return [p / total for p in powers]


def loss(logits, targets):
    rows = [max(z) + math.log(math.fsum(math.exp(v - max(z)) for v in z)) - z[y] for z, y in zip(logits.tolist(), targets.tolist())]
    return math.fsum(rows) / len(rows)


def slope(logits, targets):
    n = len(targets)
    return np.array([[(p - (j == y)) / n for j, p in enumerate(probabilities(z))] for z, y in zip(logits.tolist(), targets.tolist())])


def adam(w, g, m, v, t, lr, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.0):
    """One number after another."""
    out = []
    for a, b, c, d in zip(*(array.ravel().tolist() for array in (w, g, m, v))):
        c = beta1 * c + (1 - beta1) * b
        d = beta2 * d + (1 - beta2) * b * b
        step = (c / (1 - beta1**t)) / (math.sqrt(d / (1 - beta2**t)) + eps)
        out.append((a - lr * weight_decay * a - lr * step, c, d))
    return tuple(np.array(column).reshape(w.shape) for column in zip(*out))


def sample(rng, n=3, V=4):
    return small(rng, n, V, scale=2.0), rng.integers(0, V, n)


def state(rng, *shape):
    """w, g, m, v in the middle of a training; no gradient is zero."""
    w, g, m = (small(rng, *shape, around=0.05) for _ in range(3))
    return w, g, m, np.round(small(rng, *shape) ** 2 + 0.1, 2)


# ---- cross_entropy ---------------------------------------------------------------------------------------

@check("cross_entropy", "values", section=LOSS, claim="每行是正确词元概率的负对数，对各行取平均",
       hint="log-softmax，取出正确的那一格，取负，平均")
def loss_values(student, rng):
    for n in (3, 5):
        logits, targets = sample(rng, n)
        student(logits, targets).equals(loss(logits, targets))


@check("cross_entropy", "uniform", section=LOSS, claim="得分全同时，损失是 ln V", hint="自然对数；softmax 沿最后一轴")
def loss_uniform(student, rng):
    student(np.zeros((2, 7)), np.array([3, 0])).equals(math.log(7))


@check("cross_entropy", "large", section=LOSS, claim="得分大到 1000 也不溢出；概率小到 0 也不是无穷",
       hint="先减最大值，直接算对数；不要先算概率再取对数")
def loss_large(student, rng):
    logits, targets = sample(rng)
    student(logits + 1000.0, targets).equals(loss(logits, targets), rtol=1e-6)
    student(np.array([[0.0, 2000.0]]), np.array([0])).equals(2000.0)


@check("cross_entropy", "untouched", section=LOSS, claim="logits 与 targets 不变", hint="logits -= … 会改掉调用者的数组")
def loss_untouched(student, rng):
    student(*sample(rng)).keeps_arguments()


# ---- cross_entropy_gradient ------------------------------------------------------------------------------

@check("cross_entropy_gradient", "values", section=LOSS, claim="梯度是（p − 独热）除以行数，与 logits 同形",
       hint="先算 softmax，再在正确的那一格减 1，再除以 n：损失对各行取了平均")
def gradient_values(student, rng):
    for n in (3, 2):
        logits, targets = sample(rng, n)
        student(logits, targets).equals(slope(logits, targets))


@check("cross_entropy_gradient", "one", section=LOSS, claim="只有一行时就是 p − 独热", hint="p − y")
def gradient_one(student, rng):
    logits, targets = sample(rng, 1)
    student(logits, targets).equals(slope(logits, targets))


@check("cross_entropy_gradient", "large", section=LOSS, claim="得分大到 1000 也没有 nan", hint="softmax 先减最大值")
def gradient_large(student, rng):
    logits, targets = sample(rng)
    student(logits + 1000.0, targets).equals(slope(logits, targets), rtol=1e-6, atol=1e-9)


@check("cross_entropy_gradient", "dtype", section=LOSS, claim="float32 进，float32 出", hint="np.eye 默认是 float64")
def gradient_dtype(student, rng):
    logits, targets = sample(rng)
    student(logits.astype(np.float32), targets).has_dtype(np.float32)


@check("cross_entropy_gradient", "untouched", section=LOSS, claim="logits 与 targets 不变", hint="在自己刚建的数组上减 1")
def gradient_untouched(student, rng):
    student(*sample(rng)).keeps_arguments()


# ---- adam_step -------------------------------------------------------------------------------------------

@check("adam_step", "first", section=ADAM, claim="第一步（m、v 为 0，t = 1）走的大小约等于学习率，与梯度的大小无关",
       hint="偏差修正：m / (1 − β₁ᵗ)、v / (1 − β₂ᵗ)；t 从 1 数起")
def adam_first(student, rng):
    w, g, _, _ = state(rng, 3)
    zero = np.zeros(3)
    for scale in (1.0, 1000.0):
        scaled = np.round(scale * g, 2)
        student(w, scaled, zero, zero, 1, 0.1).equals(adam(w, scaled, zero, zero, 1, 0.1), rtol=1e-6, atol=1e-6)


@check("adam_step", "later", section=ADAM, claim="m 是梯度的滑动平均，v 是梯度平方的滑动平均；先更新它们，再走一步；返回 (w, m, v)",
       hint="m = β₁m + (1 − β₁)g；v = β₂v + (1 − β₂)g²；w − lr · m̂ / (√v̂ + ε)")
def adam_later(student, rng):
    w, g, m, v = state(rng, 4)
    for t in (3, 10):
        student(w, g, m, v, t, 0.05).equals(adam(w, g, m, v, t, 0.05))


@check("adam_step", "settings", section=ADAM, claim="β₁、β₂、ε 用传进来的值", hint="不要写死 0.9 与 0.999")
def adam_settings(student, rng):
    w, g, m, v = state(rng, 2, 3)
    student(w, g, m, v, 4, 0.05, 0.5, 0.8, 0.3).equals(adam(w, g, m, v, 4, 0.05, 0.5, 0.8, 0.3))


@check("adam_step", "decay", section=ADAM, claim="权重衰减直接作用在 w 上：w 先减 lr·λ·w，不混进梯度",
       hint="AdamW 的 W：衰减不经过 m、v，也不被 √v 除")
def adam_decay(student, rng):
    w, g, m, v = state(rng, 3)
    student(w, g, m, v, 5, 0.1, 0.9, 0.999, 1e-8, 0.2).equals(adam(w, g, m, v, 5, 0.1, weight_decay=0.2))


@check("adam_step", "quiet", section=ADAM, claim="梯度一直是 0 时不动，也没有 nan", hint="ε 加在根号之外：√v̂ + ε")
def adam_quiet(student, rng):
    w, zero = small(rng, 3), np.zeros(3)
    student(w, zero, zero, zero, 1, 0.1).equals((w, zero, zero))


@check("adam_step", "untouched", section=ADAM, claim="传进来的数组都不变：返回新的", hint="m *= β₁ 会改掉调用者的数组")
def adam_untouched(student, rng):
    student(*state(rng, 3), 2, 0.1).keeps_arguments()


# ---- numeric_gradient ------------------------------------------------------------------------------------

CUBIC = Callback("lambda x: float((c * x**3).sum() + x.ravel()[0] * x.ravel()[-1])", c=np.array([[1.0, -2.0, 0.5], [0.3, 1.5, -1.0]]))
SQUARE = Callback("lambda x: float((x**2).sum())")
STEEP = Callback("lambda x: float((1000 * x**4).sum())")


def cubic_slope(x):
    c = np.array([[1.0, -2.0, 0.5], [0.3, 1.5, -1.0]])
    g = 3 * c * x**2
    g.ravel()[0] += x.ravel()[-1]
    g.ravel()[-1] += x.ravel()[0]
    return g


@check("numeric_gradient", "values", section=NUMERIC, claim="逐个分量挪动，看函数值变了多少：（f(x+h) − f(x−h)) / 2h",
       hint="每次只动一个分量，动完还原")
def numeric_values(student, rng):
    x = small(rng, 4)
    student(SQUARE, x).equals(2 * x, rtol=1e-6, atol=1e-6)


@check("numeric_gradient", "shape", section=NUMERIC, claim="任何形状的 x 都行，结果与 x 同形", hint="np.ndindex(x.shape) 走遍每个下标")
def numeric_shape(student, rng):
    x = small(rng, 2, 3)
    student(CUBIC, x).equals(cubic_slope(x), rtol=1e-6, atol=1e-6)


@check("numeric_gradient", "central", section=NUMERIC, claim="用中心差分：误差是 h² 的量级，单边差分是 h 的量级",
       hint="两边各挪 h，分母是 2h")
def numeric_central(student, rng):
    x = np.round(np.abs(small(rng, 3)) + 0.5, 1)
    student(STEEP, x, 1e-3).equals(4000 * x**3, rtol=2e-5, atol=1e-9)


@check("numeric_gradient", "integers", section=NUMERIC, claim="整数的 x 也算得对：先换成 float64", hint="整数数组加 1e-5 会被截掉")
def numeric_integers(student, rng):
    x = rng.integers(1, 5, 3)
    student(SQUARE, x).equals(2.0 * x, rtol=1e-6, atol=1e-6)


@check("numeric_gradient", "untouched", section=NUMERIC, claim="x 不变", hint="在副本上挪动；还原不等于没动过，舍入会留下痕迹")
def numeric_untouched(student, rng):
    student(SQUARE, small(rng, 3, around=0.03)).keeps_arguments()
