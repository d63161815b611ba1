"""ex04-attention 的隐藏检查。参考值由这里逐个数算出，不用 lib，也不用学生那种整块数组的写法。"""

import math

import numpy as np

from grading.checks import check, small

SOFTMAX, LINEAR, MATRIX, MASK, SCALE, JACOBIAN = "4.2", "4.4", "4.5", "4.5", "4.6", "4.6"


# ---- 参考：一次一行，一次一个数 ----------------------------------------------------------------------------

def softmax_row(row):
    peak = max(row)
    if peak == -math.inf:
        return [0.0 for _ in row]
    powers = [math.exp(value - peak) for value in row]
    return [power / math.fsum(powers) for power in powers]


def softmax_along(x, axis):
    return np.apply_along_axis(lambda row: np.array(softmax_row(row.tolist())), axis, np.asarray(x, dtype=np.float64))


def attend(q, k, v, mask=None, scale=None):
    """One head, [n_q, d] × [n_k, d] × [n_k, d_v]; a mask says which keys are left out or what is added."""
    scale = 1 / math.sqrt(q.shape[1]) if scale is None else scale
    weights = []
    for i, query in enumerate(q.tolist()):
        row = [scale * math.fsum(a * b for a, b in zip(query, key)) for key in k.tolist()]
        if mask is not None and mask.dtype == bool:
            row = [score if seen else -math.inf for score, seen in zip(row, mask[i])]
        elif mask is not None:
            row = [score + extra for score, extra in zip(row, mask[i].tolist())]
        weights.append(softmax_row(row))
    output = [[math.fsum(w * value for w, value in zip(row, column)) for column in v.T.tolist()] for row in weights]
    return np.array(output), np.array(weights)


def attend_all(q, k, v, mask=None, scale=None):
    """Every leading index on its own."""
    pairs = [attend(q[i], k[i], v[i], mask, scale) for i in np.ndindex(q.shape[:-2])]
    shape = q.shape[:-2]
    return tuple(np.array(parts).reshape(*shape, *parts[0].shape) for parts in zip(*pairs))


# ---- softmax ---------------------------------------------------------------------------------------------

@check("softmax", "values", section=SOFTMAX, claim="一行得分变成一行权重：eˣ 除以这一行所有 eˣ 的和",
       hint="先对每个数取 eˣ，再除以它们的和")
def softmax_values(student, rng):
    for n in (3, 5):
        x = small(rng, n)
        student(x).equals(softmax_along(x, 0))


@check("softmax", "axis", section=SOFTMAX, claim="只沿 axis 那一轴归一，其余轴互不相干；默认是最后一轴",
       hint="求最大值与求和时都给 axis，并用 keepdims=True 保留这一轴")
def softmax_axis(student, rng):
    x = small(rng, 2, 3, 4)
    student(x).equals(softmax_along(x, -1))
    for axis in (0, 1, -2, 2):
        student(x, axis=axis).equals(softmax_along(x, axis))


@check("softmax", "shift", section=SOFTMAX, claim="各数加同一个数，结果不变；得分再大、相差再多也不溢出",
       hint="先减去最大值：结果不变，指数最大是 e⁰ = 1")
def softmax_shift(student, rng):
    x = small(rng, 4)
    student(x + 1000).equals(softmax_along(x, -1))
    spread = x + np.array([0.0, 1500.0, 0.0, -1500.0])
    student(spread).equals(softmax_along(spread, -1))


@check("softmax", "far-rows", section=SOFTMAX, claim="一行的结果与别的行有多大无关",
       hint="每行减去自己的最大值，不是整个数组的最大值")
def softmax_far_rows(student, rng):
    x = small(rng, 3, 4) + np.array([[0.0], [2000.0], [-3000.0]])
    student(x).equals(softmax_along(x, -1))


@check("softmax", "dtype", section=SOFTMAX, claim="float32 进，float32 出；float64 进，float64 出",
       hint="不要用 dtype=float 的数组或 np.float64 标量参与运算")
def softmax_dtype(student, rng):
    x = small(rng, 3)
    student(x.astype(np.float32)).has_dtype(np.float32)
    student(x).has_dtype(np.float64)


@check("softmax", "untouched", section=SOFTMAX, claim="传进来的数组不被改动",
       hint="x -= … 会就地改掉调用者的数组；写成 x = x - …")
def softmax_untouched(student, rng):
    student(small(rng, 2, 3)).keeps_arguments()


@check("softmax", "masked", section=MASK, claim="得分为 -inf 的位置权重恰好是 0，其余位置照常归一",
       hint="e^(-inf) = 0 已经给出想要的结果，只要减去的最大值是有限数")
def softmax_masked(student, rng):
    x = small(rng, 4)
    x[1] = -np.inf
    student(x).equals(softmax_along(x, -1))
    x[3] = -np.inf
    student(x).equals(softmax_along(x, -1))


@check("softmax", "nothing", section=MASK, claim="全是 -inf（什么都不能看）时，结果全是 0 而不是 nan",
       hint="这时最大值是 -inf，(-inf) - (-inf) 是 nan：把这样的最大值换成 0，并避免 0 / 0")
def softmax_nothing(student, rng):
    n = int(rng.integers(2, 5))
    student(np.full(n, -np.inf)).equals(np.zeros(n))


@check("softmax", "integers", section=SOFTMAX, claim="整数得分也得到小数权重",
       hint="结果数组不要用 np.zeros_like(x) 建：x 是整数时它只能存整数")
def softmax_integers(student, rng):
    x = rng.integers(-3, 4, 4)
    student(x).equals(softmax_along(x, -1))


# ---- scaled_dot_product_attention ------------------------------------------------------------------------

ATTENTION = "scaled_dot_product_attention"


def qkv(rng, *leading):
    """All sizes differ: n_q = 2, n_k = 3, d_head = 4, d_v = 5."""
    return small(rng, *leading, 2, 4), small(rng, *leading, 3, 4), small(rng, *leading, 3, 5)


@check(ATTENTION, "values", section=MATRIX, claim="输出 = softmax(q kᵀ / √d_head) v，同时返回权重",
       hint="依次：得分 q @ kᵀ → 缩放 → 沿键的那一轴 softmax → 乘 v；返回 (输出, 权重)")
def attention_values(student, rng):
    q, k, v = qkv(rng)
    student(q, k, v).equals(attend(q, k, v))


@check(ATTENTION, "scale", section=SCALE, claim="默认的缩放是 1/√d_head；scale 给了数就用它乘得分",
       hint="d_head 是 q 的最后一轴；scale=1 表示不缩放")
def attention_scale(student, rng):
    q, k, v = small(rng, 2, 9), small(rng, 3, 9), small(rng, 3, 5)
    student(q, k, v).equals(attend(q, k, v))
    for scale in (1.0, 0.3):
        student(q, k, v, scale=scale).equals(attend(q, k, v, scale=scale))


@check(ATTENTION, "heads", section=SCALE, claim="前面有批和头的轴时，每个头各算各的，缩放只看自己的 d_head",
       hint="只交换 k 的最后两轴：k.swapaxes(-1, -2)；.T 会把所有轴都倒过来")
def attention_heads(student, rng):
    q, k, v = qkv(rng, 3)
    student(q, k, v).equals(attend_all(q, k, v))
    q, k, v = qkv(rng, 2, 3)
    student(q, k, v).equals(attend_all(q, k, v))


# 以下各条自己给出 scale：默认缩放写错只在上面扣分，不在这里重复扣。

SCALED = 0.5


@check(ATTENTION, "permutation", section=MATRIX, claim="键和值一起换次序：输出不变，权重的列跟着换",
       hint="注意力按内容找键，不看键排第几；结果里不应出现与位置有关的东西")
def attention_permutation(student, rng):
    q, k, v = qkv(rng)
    output, weights = attend(q, k, v, scale=SCALED)
    order = np.array([2, 0, 1])
    student(q, k[order], v[order], scale=SCALED).equals((output, weights[:, order]))


@check(ATTENTION, "limits", section=SCALE, claim="scale=0 时输出是各个值的平均；scale 很大时只取得分最高的那个值",
       hint="scale=0 也是一个数：判断“没给”要用 scale is None，不能用 if not scale 或 scale or …")
def attention_limits(student, rng):
    q, k, v = qkv(rng)
    for scale in (0.0, 1e6):
        student(q, k, v, scale=scale).equals(attend(q, k, v, scale=scale))


@check(ATTENTION, "boolean", section=MASK, claim="布尔掩码：True 可以看，False 的键权重恰好为 0",
       hint="在 softmax 之前把 False 处的得分换成 -inf")
def attention_boolean(student, rng):
    q, k, v = qkv(rng)
    mask = np.array([[True, False, True], [False, True, True]])
    student(q, k, v, mask=mask, scale=SCALED).equals(attend(q, k, v, mask, SCALED))
    q, k, v = qkv(rng, 2)
    student(q, k, v, mask=mask, scale=SCALED).equals(attend_all(q, k, v, mask, SCALED))


@check(ATTENTION, "additive", section=MASK, claim="浮点数掩码：加到缩放后的得分上，0 表示可以看，-inf 表示不可以",
       hint="用 mask.dtype 区分：布尔掩码用 np.where 换成 -inf，浮点数掩码直接相加")
def attention_additive(student, rng):
    q, k, v = qkv(rng)
    mask = np.array([[0.0, -np.inf, 0.0], [-0.5, 0.0, 1.5]])
    student(q, k, v, mask=mask, scale=SCALED).equals(attend(q, k, v, mask, SCALED))


@check(ATTENTION, "strong", section=MASK, claim="被遮住的键得分再高、值再大，也一点都漏不进输出",
       hint="填一个“很小的数”总有更大的得分能盖过它；填 -inf，而且在 softmax 之前填")
def attention_strong(student, rng):
    q, k, v = qkv(rng)
    q, mask = np.where(q[:1] == 0, 0.5, q[:1]), np.array([[True, False, True]])
    v[1] = 1e9
    k[1] = 1e6 * q[0]  # 被遮住的键与查询极为匹配
    student(q, k, v, mask=mask, scale=SCALED).equals(attend(q, k, v, mask, SCALED))
    k[[0, 1, 2]] = [-1e6 * q[0], q[0], -2e6 * q[0]]  # 看得见的键得分都在 -1e5 以下
    student(q, k, v, mask=mask, scale=SCALED).equals(attend(q, k, v, mask, SCALED))


@check(ATTENTION, "nothing", section=MASK, claim="一个查询什么都不能看时，它的权重和输出都是 0，不是 nan",
       hint="这一行的得分全是 -inf：softmax 按约定给全 0，再乘 v 就是 0")
def attention_nothing(student, rng):
    q, k, v = qkv(rng)
    mask = np.array([[False, False, False], [True, True, True]])
    student(q, k, v, mask=mask, scale=SCALED).equals(attend(q, k, v, mask, SCALED))


@check(ATTENTION, "dtype", section=SCALE, claim="float32 进，float32 出：输出和权重都是",
       hint="np.sqrt(整数) 是 float64 标量，会把整个结果提升成 float64；用 math.sqrt")
def attention_dtype(student, rng):
    student(*(x.astype(np.float32) for x in qkv(rng))).has_dtype(np.float32)


@check(ATTENTION, "untouched", section=MASK, claim="q、k、v 和掩码都不被改动",
       hint="q /= … 和 scores 上的就地运算会改到调用者的数组；写成 q = q / …")
def attention_untouched(student, rng):
    q, k, v = qkv(rng)
    student(q, k, v, mask=np.array([[True, False, True], [True, True, True]])).keeps_arguments()


@check(ATTENTION, "mismatch", section=MATRIX, claim="q 与 k 的 d_head 不同，或 k 与 v 的个数不同时，报 ValueError",
       hint="矩阵乘法会自己拒绝不配的形状；用 einsum、循环或广播时要自己检查")
def attention_mismatch(student, rng):
    student(small(rng, 2, 4), small(rng, 3, 5), small(rng, 3, 5)).raises(ValueError)
    student(small(rng, 2, 4), small(rng, 3, 4), small(rng, 2, 5)).raises(ValueError)


# ---- softmax_jacobian ------------------------------------------------------------------------------------

def jacobian(p):
    """J[i, j] = p_i (δ_ij − p_j), index by index."""
    result = np.zeros((*p.shape, p.shape[-1]))
    for *lead, i in np.ndindex(p.shape):
        for j in range(p.shape[-1]):
            result[*lead, i, j] = p[*lead, i] * ((i == j) - p[*lead, j])
    return result


def distribution(rng, *shape):
    """Weights with two decimals; their sum is exactly 1."""
    p = np.round(rng.dirichlet(np.full(shape[-1], 3.0), shape[:-1]), 2)
    p[..., 0] += 1 - p.sum(-1)
    return np.round(p, 2)


@check("softmax_jacobian", "values", section=JACOBIAN, claim="第 i 行第 j 列是 ∂pᵢ/∂xⱼ = pᵢ(δᵢⱼ − pⱼ)",
       hint="对角线上是 pᵢ(1 − pᵢ)，对角线外是 −pᵢpⱼ；合起来就是 diag(p) − p pᵀ")
def jacobian_values(student, rng):
    for n in (2, 4):
        p = distribution(rng, n)
        student(p).equals(jacobian(p))


@check("softmax_jacobian", "derivative", section=JACOBIAN, claim="它就是 softmax 的导数：与有限差分一致",
       hint="参数 p 已经是 softmax 的输出，不要再做一次 softmax")
def jacobian_derivative(student, rng):
    x, step = small(rng, 5), 1e-5
    columns = [(softmax_along(x + step * e, 0) - softmax_along(x - step * e, 0)) / (2 * step) for e in np.eye(5)]
    student(softmax_along(x, 0)).equals(np.array(columns).T, atol=1e-8)


@check("softmax_jacobian", "saturated", section=JACOBIAN, claim="权重集中到一个位置时导数全是 0：梯度消失",
       hint="p 是 one-hot 时 diag(p) 与 p pᵀ 恰好相等")
def jacobian_saturated(student, rng):
    p = np.zeros(4)
    p[rng.integers(4)] = 1.0
    student(p).equals(np.zeros((4, 4)))


@check("softmax_jacobian", "batch", section=JACOBIAN, claim="前面有几个轴都行：[..., n] 进，[..., n, n] 出，每行各算各的",
       hint="p[..., :, None] 与 p[..., None, :] 相乘得到每一行自己的外积；np.eye(n) 会自动广播")
def jacobian_batch(student, rng):
    for shape in ((3, 4), (2, 3, 2)):
        p = distribution(rng, *shape)
        alone = [student(row).value for row in p.reshape(-1, shape[-1])]
        student(p).equals(np.reshape(alone, (*shape, shape[-1])))


@check("softmax_jacobian", "dtype", section=JACOBIAN, claim="float32 进，float32 出",
       hint="np.eye(n) 默认是 float64：给它 dtype=p.dtype")
def jacobian_dtype(student, rng):
    p = distribution(rng, 3)
    student(p.astype(np.float32)).has_dtype(np.float32)


@check("softmax_jacobian", "untouched", section=JACOBIAN, claim="传进来的 p 不被改动", hint="不要在 p 上就地运算")
def jacobian_untouched(student, rng):
    student(distribution(rng, 3)).keeps_arguments()


# ---- consistent_with_linear_map --------------------------------------------------------------------------

CONSISTENT = "consistent_with_linear_map"
EMBEDDINGS = np.array([[1.0, 0.0, 1.0, 0.0], [0.0, 2.0, 0.0, 2.0], [1.0, 1.0, 1.0, 1.0]])  # 第三行 = 第一行 + 第二行 / 2


def image(X, rng, width):
    """X W for some W, in short numbers: both factors have at most two decimals, so nothing is lost by rounding."""
    return np.round(X @ small(rng, X.shape[1], width), 4) + 0.0


@check(CONSISTENT, "textbook", section=LINEAR, claim="你 = 我 + 爱/2 时，K、V 必须守同样的关系",
       hint="求最好的 W（最小二乘），再看 X W 与 Y 还差多少")
def consistent_textbook(student, rng):
    first, second = small(rng, 2, 3)
    right = np.round([first, second, first + second / 2], 2)
    wrong = right.copy()
    wrong[2, 1 + rng.integers(2)] += 1  # 第一列仍然对
    wrong = np.round(wrong, 2)
    student(EMBEDDINGS, right).equals(True)
    student(EMBEDDINGS, wrong).equals(False)


@check(CONSISTENT, "tall", section=LINEAR, claim="行比列多（n > d）时：由某个 W 算出来的 Y 为 True，随意的 Y 为 False",
       hint="方程比未知数多，一般无解；不要因为 X 不是方阵就下结论")
def consistent_tall(student, rng):
    X = small(rng, 6, 2, digits=2)
    for width in (3, 1):
        student(X, image(X, rng, width)).equals(True)
    student(X, small(rng, 6, 3)).equals(False)
    Y = image(X, rng, 3)
    Y[4, 2] += 1  # 只有最后一列不一致
    student(X, Y).equals(False)


@check(CONSISTENT, "wide", section=LINEAR, claim="各行线性无关（n ≤ d）时任何 Y 都做得到；行有关系时不一定",
       hint="n ≤ d 并不保证无关：两行相同的 X 配两行不同的 Y 就无解")
def consistent_wide(student, rng):
    X = small(rng, 3, 5)
    student(X, small(rng, 3, 2)).equals(True)
    X[2] = X[0]
    Y = small(rng, 3, 2)
    Y[2] = np.round(Y[0] + np.array([0.0, 0.5]), 1)
    student(X, Y).equals(False)


@check(CONSISTENT, "no-bias", section=LINEAR, claim="线性映射没有偏置：全 0 的一行只能映到全 0",
       hint="X W + b 多出来的 b 不在允许之列；不要给 X 添一列 1")
def consistent_no_bias(student, rng):
    X = small(rng, 5, 2, digits=2)
    Y = image(X, rng, 3)
    student(X, np.round(Y + np.array([0.5, 0.0, -1.0]), 4)).equals(False)
    X[3] = Y[3] = 0.0
    student(X, Y).equals(True)
    student(np.zeros((1, 2)), small(rng, 1, 3) + 5.0).equals(False)


@check(CONSISTENT, "tolerance", section=LINEAR, claim="每个元素都差不超过 tol 才算一致：一个元素超出就不是",
       hint="用 abs(X @ W - Y).max() 与参数 tol 比，而不是平均值、平方和或 np.allclose 的默认容差")
def consistent_tolerance(student, rng):
    X = np.repeat(small(rng, 10, 3), 2, axis=0)  # 每行出现两次：改动其中一次就没有 W 能同时满足
    Y = image(X, rng, 40)
    Y[4, 7] += 1e-5
    student(X, Y).equals(False)
    student(X, Y, tol=1e-3).equals(True)
    student(X, Y, tol=1e-6).equals(False)


@check(CONSISTENT, "plain-bool", section=LINEAR, claim="返回 True 或 False，不是残差也不是数组",
       hint="最后一步是一次比较：return bool(误差 <= tol)")
def consistent_plain_bool(student, rng):
    X = small(rng, 4, 2)
    student(X, image(X, rng, 3)).equals(True).keeps_arguments()


@check(CONSISTENT, "mismatch", section=LINEAR, claim="X 与 Y 的行数不同时报 ValueError",
       hint="先比较 X.shape[0] 与 Y.shape[0]；np.linalg.LinAlgError 也是 ValueError")
def consistent_mismatch(student, rng):
    student(small(rng, 4, 2), small(rng, 3, 2)).raises(ValueError)
