"""ex05-multi-head 的隐藏检查。参考一个头一个头地算，每个数各归各位。"""

import math

import numpy as np

from grading.checks import check, small

SPLIT, OUTPUT, EXAMPLE = "5.2", "5.3", "5.5"
MULTI, SOLVE = "multi_head_attention", "solve_projection"


# ---- 参考 ------------------------------------------------------------------------------------------------

def split(x, h):
    """Number by number: the t-th head of a token holds its t-th run of d_head numbers."""
    n, d = x.shape[-2:]
    result = np.zeros((*x.shape[:-2], h, n, d // h), x.dtype)
    for *lead, i, j in np.ndindex(x.shape):
        result[*lead, j // (d // h), i, j % (d // h)] = x[*lead, i, j]
    return result


def merge(x):
    h, n, d_head = x.shape[-3:]
    result = np.zeros((*x.shape[:-3], n, h * d_head), x.dtype)
    for *lead, t, i, j in np.ndindex(x.shape):
        result[*lead, i, t * d_head + j] = x[*lead, t, i, j]
    return result


def softmax_row(row):
    peak = max(row)
    powers = [math.exp(value - peak) for value in row]
    return [power / math.fsum(powers) for power in powers]


def attend(q, k, v, mask):
    scores = q @ k.T / math.sqrt(q.shape[1])
    scores = scores if mask is None else np.where(mask, scores, -np.inf)
    weights = np.array([softmax_row(row) for row in scores.tolist()])
    return weights @ v, weights


def multi_head(x, params, h, mask=None):
    """One sentence, one head at a time, each with its own columns of the projections and its own rows of W_O."""
    d_head, output, tables = params["W_Q"].shape[1] // h, 0, []
    for t in range(h):
        own = slice(t * d_head, (t + 1) * d_head)
        q, k, v = (x @ params[name][:, own] for name in ("W_Q", "W_K", "W_V"))
        head, weights = attend(q, k, v, mask)
        output = output + head @ params["W_O"][own]
        tables.append(weights)
    return output, np.array(tables)


def parameters(rng, d, width):
    return {name: small(rng, d, width) for name in ("W_Q", "W_K", "W_V")} | {"W_O": small(rng, width, d)}


# ---- split_heads 与 merge_heads ---------------------------------------------------------------------------

@check("split_heads", "arange", section=SPLIT, claim="每个词元的宽度切成 h 段，第 t 段归第 t 个头；词元不混",
       hint="先 reshape 成 [n, h, d_head]，再交换前两轴")
def split_arange(student, rng):
    for n, d, h in ((3, 4, 2), (2, 6, 3)):
        x = np.arange(n * d, dtype=np.float64).reshape(n, d)
        student(x, h).equals(split(x, h))


@check("split_heads", "values", section=SPLIT, claim="对任意的数与任意的 h 都成立：包括 h = 1 和 h = d",
       hint="d_head = d // h；h 是头的个数，不是每头的宽度")
def split_values(student, rng):
    for h in (1, 2, 6):
        x = small(rng, 3, 6)
        student(x, h).equals(split(x, h))


@check("split_heads", "batch", section=SPLIT, claim="前面有批的轴时，每个句子各切各的", hint="只动最后两轴：swapaxes(-2, -3)")
def split_batch(student, rng):
    x = small(rng, 2, 3, 4)
    student(x, 2).equals(split(x, 2))


@check("split_heads", "indivisible", section=SPLIT, claim="宽度不能被 h 整除时报 ValueError",
       hint="reshape 自己会拒绝；切片则会悄悄丢掉余下的几列，要先查 d % h")
def split_indivisible(student, rng):
    student(small(rng, 3, 5), 2).raises(ValueError)


@check("split_heads", "dtype", section=SPLIT, claim="float32 进，float32 出", hint="结果数组的 dtype 取自 x")
def split_dtype(student, rng):
    student(small(rng, 3, 4).astype(np.float32), 2).has_dtype(np.float32).keeps_arguments()


@check("merge_heads", "arange", section=SPLIT, claim="它是 split_heads 的逆：各头的输出按头的次序接回一行",
       hint="先把头的轴换回词元之后，再 reshape")
def merge_arange(student, rng):
    for shape in ((2, 3, 2), (3, 2, 1)):
        x = np.arange(math.prod(shape), dtype=np.float64).reshape(shape)
        student(x).equals(merge(x))


@check("merge_heads", "inverse", section=SPLIT, claim="切开再接回，原样不变", hint="次序正好与 split_heads 相反")
def merge_inverse(student, rng):
    x = small(rng, 3, 6)
    for h in (1, 2, 3):
        student(split(x, h)).equals(x)


@check("merge_heads", "batch", section=SPLIT, claim="前面有批的轴时，每个句子各接各的", hint="只动最后三轴")
def merge_batch(student, rng):
    x = small(rng, 2, 3, 4)
    student(split(x, 2)).equals(x)


@check("merge_heads", "dtype", section=SPLIT, claim="float32 进，float32 出", hint="结果数组的 dtype 取自 x")
def merge_dtype(student, rng):
    student(small(rng, 2, 3, 2).astype(np.float32)).has_dtype(np.float32).keeps_arguments()


# ---- multi_head_attention --------------------------------------------------------------------------------

@check(MULTI, "one-head", section=SPLIT, claim="h = 1 时就是第 4 章的一个头，再乘 W_O",
       hint="投影、注意力、乘 W_O 三步都要有；返回 (输出, 权重)")
def multi_one_head(student, rng):
    x, params = small(rng, 3, 5), parameters(rng, 5, 4)
    student(x, params, 1).equals(multi_head(x, params, 1))


@check(MULTI, "heads", section=SPLIT, claim="h 个头各用自己的列投影、各算各的注意力，接起来乘 W_O",
       hint="投影用完整的 x；split_heads 之后一次算完所有头；merge_heads 之后乘 W_O")
def multi_heads(student, rng):
    for h, d_head in ((2, 3), (3, 2)):
        x, params = small(rng, 4, 6), parameters(rng, 6, h * d_head)
        student(x, params, h).equals(multi_head(x, params, h))


@check(MULTI, "width", section=SPLIT, claim="h × d_head 可以不等于 d：头宽取自投影矩阵，不取自 x",
       hint="d_head = W_Q.shape[1] // h；切开的是投影的结果，不是 x")
def multi_width(student, rng):
    x, params = small(rng, 3, 5), parameters(rng, 5, 8)
    student(x, params, 2).equals(multi_head(x, params, 2))


@check(MULTI, "permutation", section=OUTPUT, claim="头的编号没有意义：各头的列与 W_O 的行块一起换次序，输出不变",
       hint="第 t 个头的输出要乘 W_O 的第 t 个行块")
def multi_permutation(student, rng):
    x, params = small(rng, 3, 5), parameters(rng, 5, 6)
    order = np.r_[4:6, 0:2, 2:4]
    swapped = {name: W[:, order] for name, W in params.items() if name != "W_O"} | {"W_O": params["W_O"][order]}
    output, weights = multi_head(x, params, 3)
    student(x, swapped, 3).equals((output, weights[[2, 0, 1]]))


@check(MULTI, "mask", section=SPLIT, claim="同一张掩码管每一个头；被遮住的键一点也漏不进来",
       hint="把 mask 原样交给 scaled_dot_product_attention，它会对头的轴广播")
def multi_mask(student, rng):
    x, params, mask = small(rng, 4, 6), parameters(rng, 6, 6), np.tri(4, dtype=bool)
    student(x, params, 2, mask=mask).equals(multi_head(x, params, 2, mask))


@check(MULTI, "batch", section=SPLIT, claim="前面有批的轴时，每个句子与单独算相同", hint="split_heads、merge_heads 和 @ 都只动最后几轴")
def multi_batch(student, rng):
    x, params = small(rng, 2, 3, 4), parameters(rng, 4, 4)
    outputs, weights = zip(*(multi_head(sentence, params, 2) for sentence in x))
    student(x, params, 2).equals((np.array(outputs), np.array(weights)))


@check(MULTI, "untouched", section=SPLIT, claim="x 和参数都不被改动", hint="不要在 params 里的数组上就地运算")
def multi_untouched(student, rng):
    student(small(rng, 3, 4), parameters(rng, 4, 4), 2).keeps_arguments()


# ---- solve_projection ------------------------------------------------------------------------------------

def table(rng, n):
    """A table of weights with two decimals, every row exactly 1 and no zero."""
    P = np.round(rng.dirichlet(np.full(n, 4.0), n) * 0.8 + 0.2 / n, 2)
    P[:, 0] += 1 - P.sum(1)
    return np.round(P, 2)


def gives(X, P):
    """Whether a pair of projections gives these weights."""

    def test(pair):
        W_Q, W_K = pair
        _, weights = attend(X @ W_Q, X @ W_K, X, None)
        return np.abs(weights - P).max() < 1e-6 and np.shape(W_Q) == np.shape(W_K)

    return test


WRONG = "由 W_Q、W_K 算出的 softmax(X W_Q (X W_K)ᵀ / √d_head) 不是 P"


@check(SOLVE, "textbook", section=EXAMPLE, claim="教材那两张表：先投影全部 6 维，两张都恰好做得到",
       hint="要 X W_Q (X W_K)ᵀ = √d_head · log P；两边各乘一次 X 的伪逆")
def solve_textbook(student, rng):
    X = np.array([[1.0, 0, 1, 0, 0.5, 0.5], [0, 2, 0, 2, 1, 0], [1, 1, 1, 1, 0, 1]])
    for P in ([[0.30, 0.40, 0.30], [0.25, 0.50, 0.25], [0.30, 0.30, 0.40]],
              [[0.10, 0.10, 0.80], [0.40, 0.20, 0.40], [0.45, 0.10, 0.45]]):
        student(X, np.array(P)).satisfies(gives(X, np.array(P)), WRONG)


@check(SOLVE, "any", section=EXAMPLE, claim="X 的行线性无关时，任何一张权重表都做得到", hint="n 个词元、d 维，n ≤ d；P 是 [n, n]，不必对称")
def solve_any(student, rng):
    for n, d in ((2, 3), (3, 5), (4, 4)):
        X, P = small(rng, n, d, around=2 * np.eye(n, d)), table(rng, n)
        student(X, P).satisfies(gives(X, P), WRONG)


@check(SOLVE, "shapes", section=EXAMPLE, claim="W_Q 与 W_K 都是 [d, d_head]，d_head 由你定", hint="最简单的是 d_head = n")
def solve_shapes(student, rng):
    X, P = small(rng, 3, 5, around=2 * np.eye(3, 5)), table(rng, 3)

    def fit(pair):
        W_Q, W_K = pair
        return W_Q.ndim == 2 and W_Q.shape == W_K.shape and W_Q.shape[0] == 5

    student(X, P).satisfies(fit, "应返回两个形状同为 [5, d_head] 的数组").keeps_arguments()


@check(SOLVE, "dependent", section=EXAMPLE, claim="X 的行有线性关系时报 ValueError：得分表也得守这个关系，不是想要什么就有什么",
       hint="np.linalg.matrix_rank(X) 应等于行数")
def solve_dependent(student, rng):
    X, P = small(rng, 3, 5, around=2 * np.eye(3, 5)), table(rng, 3)
    _ = student(X, P).value  # an error in every case is no refusal
    X[2] = np.round(X[0] + X[1] / 2, 2)
    student(X, P).raises(ValueError)


@check(SOLVE, "no-table", section=EXAMPLE, claim="P 不是权重表（有 0 或负数，或某行之和不是 1）时报 ValueError",
       hint="softmax 的输出都大于 0，每行和为 1：(P > 0).all() 与 np.allclose(P.sum(axis=1), 1)")
def solve_no_table(student, rng):
    X = small(rng, 2, 3, around=2 * np.eye(2, 3))
    _ = student(X, np.array([[0.75, 0.25], [0.5, 0.5]])).value
    student(X, np.array([[1.0, 0.0], [0.5, 0.5]])).raises(ValueError)
    student(X, np.array([[0.5, 0.4], [0.5, 0.5]])).raises(ValueError)
