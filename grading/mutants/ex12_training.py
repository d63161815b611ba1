"""ex12-training 的错误写法与其他正确写法。"""

import math

import numpy as np

from grading.mutants import mutant, right

LOSS, ADAM, NUMERIC = "12.1", "12.1", "12.1"
GRAD, NUM = "cross_entropy_gradient", "numeric_gradient"


def log_softmax(z):
    z = z - z.max(-1, keepdims=True)
    return z - np.log(np.exp(z).sum(-1, keepdims=True))


def chosen(table, targets):
    return table[np.arange(len(targets)), targets]


# ---- cross_entropy：错误写法 -------------------------------------------------------------------------------

@mutant("cross_entropy", "求和而没有平均", "对各行取平均，损失才与批的大小无关", LOSS, caught_by="values")
def summed(logits, targets):
    return -chosen(log_softmax(logits), targets).sum()


@mutant("cross_entropy", "每行一个损失，没有平均", "损失是一个数：各行的负对数再取平均", LOSS, caught_by="values")
def one_per_row(logits, targets):
    return -chosen(log_softmax(logits), targets)


@mutant("cross_entropy", "取成了每行的所有目标", "table[:, targets] 取出 n × n 个数；每行只取自己的目标：table[np.arange(n), targets]", LOSS, caught_by="values")
def all_pairs(logits, targets):
    return -log_softmax(logits)[:, targets].mean()


@mutant("cross_entropy", "忘了负号", "概率的对数是负的，损失是它的相反数", LOSS, caught_by="values")
def negative(logits, targets):
    return chosen(log_softmax(logits), targets).mean()


@mutant("cross_entropy", "没有取对数", "损失是 −ln p，不是 1 − p", LOSS, caught_by="values")
def one_minus_p(logits, targets):
    return 1 - np.exp(chosen(log_softmax(logits), targets)).mean()


@mutant("cross_entropy", "先平均概率再取对数", "先对每行取对数，再平均", LOSS, caught_by="values")
def log_of_mean(logits, targets):
    return -np.log(np.exp(chosen(log_softmax(logits), targets)).mean())


@mutant("cross_entropy", "直接取得分", "得分不是概率：先归一，再取对数", LOSS, caught_by="values")
def raw(logits, targets):
    return -chosen(logits, targets).mean()


@mutant("cross_entropy", "softmax 沿批的那一轴", "沿最后一轴（词表）归一", LOSS, caught_by="values")
def wrong_axis(logits, targets):
    z = logits - logits.max(0, keepdims=True)
    return -chosen(z - np.log(np.exp(z).sum(0, keepdims=True)), targets).mean()


@mutant("cross_entropy", "做了两次 softmax", "输入已经是概率的话就不能再 softmax；这里的输入是得分，只做一次", LOSS, caught_by="values")
def twice(logits, targets):
    return -chosen(log_softmax(np.exp(log_softmax(logits))), targets).mean()


@mutant("cross_entropy", "用了以 2 为底的对数", "用自然对数", LOSS, caught_by="values")
def bits(logits, targets):
    return -chosen(log_softmax(logits), targets).mean() / math.log(2)


@mutant("cross_entropy", "除以 n·V", "平均的是 n 行，不是 n·V 个格子", LOSS, caught_by="values")
def over_cells(logits, targets):
    return -chosen(log_softmax(logits), targets).sum() / logits.size


@mutant("cross_entropy", "先算概率再取对数", "概率小到 0 时对数是 −∞：减去最大值之后直接算对数", LOSS, caught_by="large")
def through_p(logits, targets):
    e = np.exp(logits - logits.max(-1, keepdims=True))
    return -np.log(chosen(e / e.sum(-1, keepdims=True), targets)).mean()


@mutant("cross_entropy", "没有减去最大值", "e 的 1000 次方溢出：先减去最大值", LOSS, caught_by="large")
def overflowing(logits, targets):
    return -(chosen(logits, targets) - np.log(np.exp(logits).sum(-1))).mean()


@mutant("cross_entropy", "就地减去了最大值", "logits -= … 改掉了调用者的数组", LOSS, caught_by="untouched")
def in_place(logits, targets):
    logits -= logits.max(-1, keepdims=True)
    return -chosen(log_softmax(logits), targets).mean()


@right("cross_entropy", "对数归一再取格子")
def good_loss(logits, targets):
    return -chosen(log_softmax(logits), targets).mean()


@right("cross_entropy", "logaddexp 归约")
def with_logaddexp(logits, targets):
    return (np.logaddexp.reduce(logits, axis=-1) - chosen(logits, targets)).mean()


@right("cross_entropy", "逐行循环")
def row_by_row(logits, targets):
    total = 0.0
    for z, y in zip(logits, targets):
        peak = z.max()
        total += peak + math.log(np.exp(z - peak).sum()) - z[y]
    return total / len(targets)


# ---- cross_entropy_gradient：错误写法 ----------------------------------------------------------------------

def softmax(z):
    return np.exp(log_softmax(z))


def hot(logits, targets):
    return (np.arange(logits.shape[-1]) == targets[:, None]).astype(logits.dtype)


@mutant(GRAD, "没有除以行数", "损失对 n 行取了平均，梯度也要除以 n", LOSS, caught_by="values")
def undivided(logits, targets):
    return softmax(logits) - hot(logits, targets)


@mutant(GRAD, "符号反了", "是 p − y：给错的往下压，更新时再取负", LOSS, caught_by="values")
def reversed_sign(logits, targets):
    return (hot(logits, targets) - softmax(logits)) / len(targets)


@mutant(GRAD, "只给了正确那一格", "每一格都有梯度：别的格子要往下压", LOSS, caught_by="values")
def only_target(logits, targets):
    return (softmax(logits) - 1) * hot(logits, targets) / len(targets)


@mutant(GRAD, "给的是对概率的梯度", "−y/p 是对概率的；再乘上 softmax 的雅可比，才是对得分的 p − y", LOSS, caught_by="values")
def for_probabilities(logits, targets):
    return -hot(logits, targets) / softmax(logits) / len(targets)


@mutant(GRAD, "用得分减去独热", "先 softmax 成概率", LOSS, caught_by="values")
def scores_minus(logits, targets):
    return (logits - hot(logits, targets)) / len(targets)


@mutant(GRAD, "在每行的所有目标处都减了 1", "p[:, targets] 选中整列；每行只减自己的目标：p[np.arange(n), targets]", LOSS, caught_by="values")
def all_targets(logits, targets):
    p = softmax(logits)
    p[:, targets] -= 1
    return p / len(targets)


@mutant(GRAD, "忘了减独热", "正确的那一格要减 1", LOSS, caught_by="values")
def only_p(logits, targets):
    return softmax(logits) / len(targets)


@mutant(GRAD, "除以了 n·V", "除以行数 n，不是格子数", LOSS, caught_by="values")
def over_all_cells(logits, targets):
    return (softmax(logits) - hot(logits, targets)) / logits.size


@mutant(GRAD, "除以了词表大小", "除以行数 n", LOSS, caught_by="values")
def over_vocabulary(logits, targets):
    return (softmax(logits) - hot(logits, targets)) / logits.shape[-1]


@mutant(GRAD, "对各行求了和", "与 logits 同形：每行有自己的梯度", LOSS, caught_by="values")
def summed_rows(logits, targets):
    return ((softmax(logits) - hot(logits, targets)) / len(targets)).sum(0)


@mutant(GRAD, "softmax 没有减最大值", "e 的 1000 次方溢出", LOSS, caught_by="large")
def overflowing_gradient(logits, targets):
    e = np.exp(logits)
    return (e / e.sum(-1, keepdims=True) - hot(logits, targets)) / len(targets)


@mutant(GRAD, "提升成了 float64", "np.eye 默认是 float64：用 logits.dtype", LOSS, caught_by="dtype")
def promoted(logits, targets):
    return (softmax(logits) - np.eye(logits.shape[-1])[targets]) / len(targets)


@mutant(GRAD, "在 logits 上就地减 1", "在自己刚建的数组上减", LOSS, caught_by="untouched")
def changes_logits(logits, targets):
    result = (softmax(logits) - hot(logits, targets)) / len(targets)
    logits[np.arange(len(targets)), targets] -= 1
    return result


@right(GRAD, "先 softmax，再在格子里减 1")
def subtract_in_cells(logits, targets):
    g = softmax(logits)
    g[np.arange(len(targets)), targets] -= 1
    return g / len(targets)


@right(GRAD, "独热矩阵")
def with_hot(logits, targets):
    return (softmax(logits) - hot(logits, targets)) / len(targets)


@right(GRAD, "雅可比乘上游梯度")
def through_jacobian(logits, targets):
    rows = []
    for z, y in zip(logits, targets):
        e = np.exp(z - z.max())
        p = e / e.sum()
        upstream = np.zeros_like(p)
        upstream[y] = 1
        rows.append(p * upstream.sum() - upstream if p[y] == 0 else (np.diag(p) - np.outer(p, p)) @ (-upstream / p[y]))
    return np.array(rows, dtype=logits.dtype) / logits.dtype.type(len(targets))


# ---- adam_step：错误写法 -----------------------------------------------------------------------------------

def adam(w, g, m, v, t, lr, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.0):
    m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
    step = m / (1 - beta1**t) / (np.sqrt(v / (1 - beta2**t)) + eps)
    return w * (1 - lr * weight_decay) - lr * step, m, v


@mutant("adam_step", "没有偏差修正", "m、v 从 0 开始，头几步偏小：除以 1 − βᵗ", ADAM, caught_by="first")
def uncorrected(w, g, m, v, t, lr, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.0):
    m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
    return w * (1 - lr * weight_decay) - lr * m / (np.sqrt(v) + eps), m, v


@mutant("adam_step", "只修正了 m", "v 也要除以 1 − β₂ᵗ", ADAM, caught_by="first")
def half_corrected(w, g, m, v, t, lr, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.0):
    m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
    return w * (1 - lr * weight_decay) - lr * m / (1 - beta1**t) / (np.sqrt(v) + eps), m, v


@mutant("adam_step", "朝上坡走", "减去，不是加上：往损失变小的方向", ADAM, caught_by="first")
def uphill(w, g, m, v, t, lr, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.0):
    new, m, v = adam(w, g, m, v, t, lr, beta1, beta2, eps)
    return w * (1 - lr * weight_decay) - (new - w), m, v


@mutant("adam_step", "v 没有开方", "除以 √v̂，不是 v̂", ADAM, caught_by="first")
def without_root(w, g, m, v, t, lr, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.0):
    m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
    return w * (1 - lr * weight_decay) - lr * m / (1 - beta1**t) / (v / (1 - beta2**t) + eps), m, v


@mutant("adam_step", "只返回了 w", "m、v 下一步还要用：返回 (w, m, v)", ADAM, caught_by="first")
def only_w(w, g, m, v, t, lr, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.0):
    return adam(w, g, m, v, t, lr, beta1, beta2, eps, weight_decay)[0]


@mutant("adam_step", "v 里的梯度没有平方", "v 是梯度平方的滑动平均", ADAM, caught_by="first")
def without_square(w, g, m, v, t, lr, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.0):
    m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * np.abs(g)
    return w * (1 - lr * weight_decay) - lr * m / (1 - beta1**t) / (np.sqrt(v / (1 - beta2**t)) + eps), m, v


@mutant("adam_step", "写成了普通的梯度下降", "除以 √v̂，每个参数才有自己的步长", ADAM, caught_by="first")
def plain_descent(w, g, m, v, t, lr, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.0):
    _, m, v = adam(w, g, m, v, t, lr, beta1, beta2)
    return w * (1 - lr * weight_decay) - lr * g, m, v


@mutant("adam_step", "先走再更新 m、v", "先用这一步的梯度更新 m、v，再走", ADAM, caught_by="first")
def steps_first(w, g, m, v, t, lr, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.0):
    step = m / (1 - beta1**t) / (np.sqrt(v / (1 - beta2**t)) + eps)
    return w * (1 - lr * weight_decay) - lr * step, beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g


@mutant("adam_step", "返回了修正后的 m、v", "修正只用在这一步；存下来的是没修正的", ADAM, caught_by="first")
def stores_corrected(w, g, m, v, t, lr, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.0):
    w, m, v = adam(w, g, m, v, t, lr, beta1, beta2, eps, weight_decay)
    return w, m / (1 - beta1**t), v / (1 - beta2**t)


@mutant("adam_step", "t 从 0 数起", "t = 1 是第一步：1 − β⁰ 是 0，除了就是 nan", ADAM, caught_by="first")
def t_from_zero(w, g, m, v, t, lr, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.0):
    return adam(w, g, m, v, t + 1, lr, beta1, beta2, eps, weight_decay)


@mutant("adam_step", "总当作第一步来修正", "修正随 t 变小：1 − βᵗ，不是 1 − β", ADAM, caught_by="later")
def always_first(w, g, m, v, t, lr, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.0):
    return adam(w, g, m, v, 1, lr, beta1, beta2, eps, weight_decay)


@mutant("adam_step", "新旧的权数对调了", "旧的占 β，新的占 1 − β", ADAM, caught_by="first")
def swapped_betas(w, g, m, v, t, lr, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.0):
    m, v = (1 - beta1) * m + beta1 * g, (1 - beta2) * v + beta2 * g * g
    return w * (1 - lr * weight_decay) - lr * m / (1 - beta1**t) / (np.sqrt(v / (1 - beta2**t)) + eps), m, v


@mutant("adam_step", "写死了 β 与 ε", "用传进来的值", ADAM, caught_by="settings")
def hard_coded(w, g, m, v, t, lr, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.0):
    return adam(w, g, m, v, t, lr, weight_decay=weight_decay)


@mutant("adam_step", "ε 加在了根号里面", "ε 加在开方之后：√v̂ + ε", ADAM, caught_by="settings")
def eps_inside(w, g, m, v, t, lr, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.0):
    m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
    return w * (1 - lr * weight_decay) - lr * m / (1 - beta1**t) / np.sqrt(v / (1 - beta2**t) + eps), m, v


@mutant("adam_step", "忽略了权重衰减", "w 还要减去 lr·λ·w", ADAM, caught_by="decay")
def no_decay(w, g, m, v, t, lr, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.0):
    return adam(w, g, m, v, t, lr, beta1, beta2, eps)


@mutant("adam_step", "走完之后才衰减", "衰减的是原来的 w：w(1 − lr·λ) 减去这一步；先走再衰减，这一步也缩小了", ADAM, caught_by="decay")
def decays_afterwards(w, g, m, v, t, lr, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.0):
    w, m, v = adam(w, g, m, v, t, lr, beta1, beta2, eps)
    return w * (1 - lr * weight_decay), m, v


@mutant("adam_step", "把权重衰减混进了梯度", "那是带 L2 的 Adam：衰减会被 √v 除掉；AdamW 直接作用在 w 上", ADAM, caught_by="decay")
def coupled(w, g, m, v, t, lr, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.0):
    return adam(w, g + weight_decay * w, m, v, t, lr, beta1, beta2, eps)


@mutant("adam_step", "衰减没有乘学习率", "减去的是 lr·λ·w", ADAM, caught_by="decay")
def decay_without_lr(w, g, m, v, t, lr, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.0):
    new, m, v = adam(w, g, m, v, t, lr, beta1, beta2, eps)
    return new - weight_decay * w, m, v


@mutant("adam_step", "没有加 ε", "梯度一直是 0 时是 0/0：分母加 ε", ADAM, caught_by="settings")
def without_eps(w, g, m, v, t, lr, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.0):
    return adam(w, g, m, v, t, lr, beta1, beta2, 0.0, weight_decay)


@mutant("adam_step", "就地更新了 m、v", "返回新的数组，不改动传进来的", ADAM, caught_by="untouched")
def updates_in_place(w, g, m, v, t, lr, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.0):
    result = adam(w, g, m, v, t, lr, beta1, beta2, eps, weight_decay)
    m[...], v[...] = result[1], result[2]
    return result


@right("adam_step", "照公式")
def good_adam(w, g, m, v, t, lr, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.0):
    return adam(w, g, m, v, t, lr, beta1, beta2, eps, weight_decay)


@right("adam_step", "把修正并进学习率")
def corrected_rate(w, g, m, v, t, lr, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.0):
    m = m + (1 - beta1) * (g - m)
    v = v + (1 - beta2) * (np.square(g) - v)
    root = math.sqrt(1 - beta2**t)
    rate = lr * root / (1 - beta1**t)
    return w - lr * weight_decay * w - rate * m / (np.sqrt(v) + eps * root), m, v


@right("adam_step", "逐个数")
def number_by_number(w, g, m, v, t, lr, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.0):
    new_w, new_m, new_v = (np.empty_like(w, dtype=float) for _ in range(3))
    for i in np.ndindex(w.shape):
        new_m[i] = beta1 * m[i] + (1 - beta1) * g[i]
        new_v[i] = beta2 * v[i] + (1 - beta2) * g[i] ** 2
        step = new_m[i] / (1 - beta1**t) / (math.sqrt(new_v[i] / (1 - beta2**t)) + eps)
        new_w[i] = w[i] - lr * (step + weight_decay * w[i])
    return new_w, new_m, new_v


# ---- numeric_gradient：错误写法 ----------------------------------------------------------------------------

def moved(x, place, by):
    other = np.array(x, dtype=np.float64)
    other[place] += by
    return other


def gradient(f, x, h, formula):
    g = np.zeros(np.shape(x))
    for place in np.ndindex(np.shape(x)):
        g[place] = formula(place)
    return g


@mutant(NUM, "忘了除以 h", "变化量要除以挪动的距离 2h", NUMERIC, caught_by="values")
def undivided_difference(f, x, h=1e-5):
    return gradient(f, x, h, lambda i: f(moved(x, i, h)) - f(moved(x, i, -h)))


@mutant(NUM, "除以了 h 而不是 2h", "两边各挪 h，一共 2h", NUMERIC, caught_by="values")
def over_h(f, x, h=1e-5):
    return gradient(f, x, h, lambda i: (f(moved(x, i, h)) - f(moved(x, i, -h))) / h)


@mutant(NUM, "写成了除以 2 再乘 h", "除号与乘号从左到右算：/ 2 * h 是乘 h，要写 / (2 * h)", NUMERIC, caught_by="values")
def half_times_h(f, x, h=1e-5):
    return gradient(f, x, h, lambda i: (f(moved(x, i, h)) - f(moved(x, i, -h))) / 2 * h)


@mutant(NUM, "符号反了", "是 f(x+h) − f(x−h)", NUMERIC, caught_by="values")
def flipped(f, x, h=1e-5):
    return gradient(f, x, h, lambda i: (f(moved(x, i, -h)) - f(moved(x, i, h))) / (2 * h))


@mutant(NUM, "所有分量一起挪", "每次只动一个分量，才知道是谁引起的变化", NUMERIC, caught_by="values")
def all_at_once(f, x, h=1e-5):
    x = np.array(x, dtype=np.float64)
    return np.full(x.shape, (f(x + h) - f(x - h)) / (2 * h))


@mutant(NUM, "x + h 把所有分量一起挪，只得到一个数", "逐个分量挪：np.ndindex(x.shape) 走遍下标，每次只动一个", NUMERIC, caught_by="values")
def one_number(f, x, h=1e-5):
    x = np.array(x, dtype=np.float64)
    return (f(x + h) - f(x - h)) / (2 * h)


@mutant(NUM, "只算了第一个分量", "走遍每个分量", NUMERIC, caught_by="values")
def first_only(f, x, h=1e-5):
    g = np.zeros(np.shape(x))
    place = (0,) * np.ndim(x)
    g[place] = (f(moved(x, place, h)) - f(moved(x, place, -h))) / (2 * h)
    return g


@mutant(NUM, "返回了一维的结果", "与 x 同形", NUMERIC, caught_by="shape")
def flattened(f, x, h=1e-5):
    return good_numeric(f, x, h).ravel()


@mutant(NUM, "整行一起挪", "二维时也是一个分量一个分量地挪：np.ndindex(x.shape)", NUMERIC, caught_by="shape")
def whole_rows(f, x, h=1e-5):
    g = np.zeros(np.shape(x))
    for i in range(len(x)):
        g[i] = (f(moved(x, i, h)) - f(moved(x, i, -h))) / (2 * h)
    return g


@mutant(NUM, "用了单边差分", "(f(x+h) − f(x))/h 的误差是 h 的量级；两边都挪，误差是 h² 的量级", NUMERIC, caught_by="values")
def one_sided(f, x, h=1e-5):
    x0 = np.array(x, dtype=np.float64)
    return gradient(f, x, h, lambda i: (f(moved(x, i, h)) - f(x0)) / h)


@mutant(NUM, "忽略了传进来的 h", "用传进来的 h；它要与函数的弯曲程度相称", NUMERIC, caught_by="central")
def own_step(f, x, h=1e-5):
    used = 0.1 if h > 1e-5 else h
    return gradient(f, x, h, lambda i: (f(moved(x, i, used)) - f(moved(x, i, -used))) / (2 * used))


@mutant(NUM, "在整数数组上挪", "整数加 1e-5 会被截掉：先换成 float64", NUMERIC, caught_by="integers")
def on_integers(f, x, h=1e-5):
    def shifted(place, by):
        other = x.copy()
        other[place] = other[place] + by
        return other
    return gradient(f, x, h, lambda i: (f(shifted(i, h)) - f(shifted(i, -h))) / (2 * h))


@mutant(NUM, "在传进来的 x 上挪动", "还原之后也可能差最后一位：在副本上挪", NUMERIC, caught_by="untouched")
def on_the_argument(f, x, h=1e-5):
    g = good_numeric(f, x, h)
    if x.dtype.kind == "f":
        x += h
    return g


@right(NUM, "逐个下标，中心差分")
def good_numeric(f, x, h=1e-5):
    return gradient(f, x, h, lambda i: (f(moved(x, i, h)) - f(moved(x, i, -h))) / (2 * h))


@right(NUM, "用单位向量")
def with_unit_vectors(f, x, h=1e-5):
    x = np.array(x, dtype=np.float64)
    units = np.eye(x.size).reshape(x.size, *x.shape)
    return np.array([(f(x + h * e) - f(x - h * e)) / (2 * h) for e in units]).reshape(x.shape)


@right(NUM, "四点公式")
def four_points(f, x, h=1e-5):
    def one(i):
        near = f(moved(x, i, h)) - f(moved(x, i, -h))
        far = f(moved(x, i, 2 * h)) - f(moved(x, i, -2 * h))
        return (8 * near - far) / (12 * h)
    return gradient(f, x, h, one)
