"""ex02-embedding 的隐藏检查。参考值由这里逐个数算出，不用 lib，也不用学生那种整块数组的写法。"""

import math

import numpy as np

from grading.checks import check, small

LOOKUP, COSINE, DISTANCE, UNIT, NEIGHBOURS = "2.1", "2.5", "2.6", "2.8", "2.8"


# ---- 参考：一次一对向量，一次一个数 ------------------------------------------------------------------------

def cosine(a, b):
    """One pair of vectors, safe for numbers of any size."""
    a, b = ([float(v) / max(map(abs, map(float, x))) for v in x] for x in (a, b))
    return math.fsum(x * y for x, y in zip(a, b)) / math.sqrt(math.fsum(x * x for x in a) * math.fsum(y * y for y in b))


def distance(a, b):
    return math.sqrt(math.fsum((float(x) - float(y)) ** 2 for x, y in zip(a, b)))


def pairwise(f, a, b):
    """f for every pair along the last axis, the leading axes broadcast."""
    lead = np.broadcast_shapes(a.shape[:-1], b.shape[:-1])
    a, b = np.broadcast_to(a, (*lead, a.shape[-1])), np.broadcast_to(b, (*lead, b.shape[-1]))
    return np.array([f(a[i], b[i]) for i in np.ndindex(lead)]).reshape(lead)


def ranking(table, query, metric, exclude=()):
    """Row numbers, nearest first, the smaller number first where two are equally near."""
    score = {"cosine": lambda row: -round(cosine(row, query), 12) if any(row) else math.inf,
             "euclidean": lambda row: round(distance(row, query), 12)}[metric]
    return np.array(sorted((i for i in range(len(table)) if i not in exclude), key=lambda i: (score(table[i]), i)))


def plain(*shape, rng):
    """Short numbers, none of them zero, so that no row is the zero vector."""
    x = small(rng, *shape)
    return np.where(x == 0, 0.5, x)


# ---- embed -----------------------------------------------------------------------------------------------

@check("embed", "rows", section=LOOKUP, claim="第 i 个结果是表的第 ids[i] 行，次序与重复都照 ids",
       hint="NumPy 的整数数组下标就是按编号取行：table[ids]")
def embed_rows(student, rng):
    table = plain(5, 3, rng=rng)
    for ids in ([3, 0, 3], [4, 1, 1, 2]):
        student(table, np.array(ids)).equals(np.array([table[i].tolist() for i in ids]))


@check("embed", "shape", section=LOOKUP, claim="ids 是什么形状，结果就是那个形状后面添一轴 d：单个编号也行",
       hint="不要把 ids 摊平或写死成一维；table[ids] 对任何形状的 ids 都成立")
def embed_shape(student, rng):
    table, ids = plain(6, 4, rng=rng), rng.integers(0, 6, (2, 3))
    student(table, ids).equals(np.array([[table[i].tolist() for i in row] for row in ids]))
    student(table, np.array(4)).equals(table[4])
    student(table, np.zeros((0,), dtype=np.int64)).equals(np.zeros((0, 4)))


@check("embed", "one-hot", section=LOOKUP, claim="与独热矩阵乘这张表的结果相同",
       hint="取出来的就是表里的数：不缩放、不归一、不相加")
def embed_one_hot(student, rng):
    table, ids = 10 * plain(4, 2, rng=rng), np.array([2, 2, 0])
    hot = [[float(i == j) for j in range(4)] for i in ids]
    product = [[math.fsum(h * v for h, v in zip(row, column)) for column in table.T] for row in hot]
    student(table, ids).equals(np.array(product))


@check("embed", "dtype", section=LOOKUP, claim="表是 float32，结果也是 float32",
       hint="np.eye 与 np.zeros 默认是 float64：用表自己的 dtype")
def embed_dtype(student, rng):
    table, ids = plain(3, 2, rng=rng).astype(np.float32), np.array([1, 1])
    student(table, ids).has_dtype(np.float32).equals(table[[1, 1]])


@check("embed", "untouched", section=LOOKUP, claim="表和编号都不被改动", hint="不要在 table 或 ids 上就地运算")
def embed_untouched(student, rng):
    student(plain(4, 3, rng=rng), np.array([0, 3])).keeps_arguments()


@check("embed", "outside", section=LOOKUP, claim="编号不在 0…V−1 之内就报 IndexError，负数也是",
       hint="NumPy 的负下标会从末尾数起，悄悄取到别的行；先检查 ids 的最小值与最大值")
def embed_outside(student, rng):
    table = plain(4, 3, rng=rng)
    for ids in ([0, 4], [1, -1]):
        student(table, np.array(ids)).raises(IndexError)


# ---- cosine_similarity -----------------------------------------------------------------------------------

COSINE_NAME = "cosine_similarity"


@check(COSINE_NAME, "values", section=COSINE, claim="余弦 = 点积 ÷ 两个长度的积",
       hint="长度是平方和的平方根；三步：点积、两个长度、相除")
def cosine_values(student, rng):
    for d in (2, 3):
        a, b = plain(d, rng=rng), plain(d, rng=rng)
        student(a, b).equals(cosine(a, b))
    student(np.array([3.0, 4.0]), np.array([-30.0, -40.0])).equals(-1.0)


@check(COSINE_NAME, "rows", section=COSINE, claim="只沿最后一轴算，前面的轴各算各的，并且能互相广播",
       hint="求和写 axis=-1：[n, d] 与 [d] 得到 [n]，[n, d] 与 [n, d] 也得到 [n]，而不是 n×n 的表")
def cosine_rows(student, rng):
    for left, right in (((3, 4), (4,)), ((3, 4), (3, 4)), ((2, 1, 4), (3, 4))):
        a, b = plain(*left, rng=rng), plain(*right, rng=rng)
        student(a, b).equals(pairwise(cosine, a, b))


@check(COSINE_NAME, "length", section=COSINE, claim="把向量拉长缩短（乘一个正数），余弦不变；乘负数只变号",
       hint="分母里不要加小数：向量短的时候，加进去的数比长度还大")
def cosine_length(student, rng):
    a, b = plain(3, rng=rng), plain(3, rng=rng)
    for factor in (1000.0, 1e-6, -2.0):
        student(factor * a, b).equals(math.copysign(cosine(a, b), factor * cosine(a, b)))


@check(COSINE_NAME, "untouched", section=COSINE, claim="a 与 b 都不被改动", hint="a /= … 会就地改掉调用者的数组；写成 a = a / …")
def cosine_untouched(student, rng):
    student(plain(2, 3, rng=rng), plain(3, rng=rng)).keeps_arguments()


@check(COSINE_NAME, "dtype", section=COSINE, claim="float32 进，float32 出；整数当作 float64",
       hint='float32 的数组不要换成 float64；dtype.kind 不是 "f" 的才先 .astype(np.float64)')
def cosine_dtype(student, rng):
    a, b = plain(2, 3, rng=rng), plain(3, rng=rng)
    student(a.astype(np.float32), b.astype(np.float32)).has_dtype(np.float32).equals(pairwise(cosine, a, b), atol=1e-6)
    a, b = rng.integers(1, 6, (2, 3)), rng.integers(1, 6, 3)
    student(a, b).has_dtype(np.float64).equals(pairwise(cosine, a, b))


@check(COSINE_NAME, "zero", section=COSINE, claim="有零向量时报 ValueError：它没有方向，余弦没有定义",
       hint="相除之前检查长度是否为 0；nan 与悄悄给出的 0 都会一路混进后面的排名")
def cosine_zero(student, rng):
    a = plain(3, 2, rng=rng)
    a[1] = 0
    student(a, plain(2, rng=rng)).raises(ValueError)
    student(plain(2, rng=rng), np.zeros(2)).raises(ValueError)


@check(COSINE_NAME, "extreme", section=COSINE, claim="数大到 1e200、小到 1e-200 也算得对：平方不溢出，也不变成 0",
       hint="先除以自己最大的分量（取绝对值），再算平方和：方向没变，平方就安全了")
def cosine_extreme(student, rng):
    a, b = plain(3, rng=rng), plain(3, rng=rng)
    for power in ("e200", "e-200"):
        student(np.array([float(f"{x}{power}") for x in a]), b).equals(cosine(a, b))


# ---- euclidean_distance ----------------------------------------------------------------------------------

DISTANCE_NAME = "euclidean_distance"


@check(DISTANCE_NAME, "values", section=DISTANCE, claim="距离 = 各分量之差的平方和，再开平方",
       hint="四步：相减、平方、求和、开平方")
def distance_values(student, rng):
    for d in (2, 5):
        a, b = plain(d, rng=rng), plain(d, rng=rng)
        student(a, b).equals(distance(a, b))
    student(np.array([1.0, 1.0]), np.array([4.0, 5.0])).equals(5.0)


@check(DISTANCE_NAME, "rows", section=DISTANCE, claim="只沿最后一轴算，前面的轴各算各的，并且能互相广播",
       hint="求和写 axis=-1：[n, d] 与 [d] 得到 [n]")
def distance_rows(student, rng):
    for left, right in (((3, 4), (4,)), ((3, 4), (3, 4)), ((2, 1, 4), (3, 4))):
        a, b = plain(*left, rng=rng), plain(*right, rng=rng)
        student(a, b).equals(pairwise(distance, a, b))


@check(DISTANCE_NAME, "moved", section=DISTANCE, claim="两点一起平移，距离不变，移到很远也不变",
       hint="展开成 |a|² + |b|² − 2a·b 会让两个大数相减，有效数字全丢；先相减再平方")
def distance_moved(student, rng):
    a, b = plain(3, rng=rng), plain(3, rng=rng)
    for far in (7.0, 1e8):
        shifted = np.round(a * 8) / 8 + far, np.round(b * 8) / 8 + far  # eighths: exact in binary, even far away
        student(*shifted).equals(distance(*shifted))


@check(DISTANCE_NAME, "untouched", section=DISTANCE, claim="a 与 b 都不被改动", hint="a -= b 会就地改掉调用者的数组；写成 a - b")
def distance_untouched(student, rng):
    student(plain(2, 3, rng=rng), plain(3, rng=rng)).keeps_arguments()


@check(DISTANCE_NAME, "dtype", section=DISTANCE, claim="float32 进，float32 出",
       hint="不要转换成 float64，也不要让 float64 的数组参与运算")
def distance_dtype(student, rng):
    a, b = plain(2, 3, rng=rng), plain(3, rng=rng)
    student(a.astype(np.float32), b.astype(np.float32)).has_dtype(np.float32).equals(pairwise(distance, a, b), atol=1e-5)


@check(DISTANCE_NAME, "integers", section=DISTANCE, claim="整数当作 float64：小的减大的也对，不会绕成一个大数",
       hint="uint8 的 3 − 5 是 254：先换成浮点数再相减")
def distance_integers(student, rng):
    a, b = rng.integers(0, 100, 3).astype(np.uint8), rng.integers(100, 200, 3).astype(np.uint8)
    student(a, b).has_dtype(np.float64).equals(distance(a, b))


@check(DISTANCE_NAME, "mismatch", section=DISTANCE, claim="最后一轴长度不同（包括一边是 1）时报 ValueError",
       hint="[3] 减 [1] 会被 NumPy 广播成功：先比较 a.shape[-1] 与 b.shape[-1]")
def distance_mismatch(student, rng):
    student(plain(3, rng=rng), plain(2, rng=rng)).raises(ValueError)
    student(plain(3, rng=rng), plain(1, rng=rng)).raises(ValueError)


# ---- nearest ---------------------------------------------------------------------------------------------

def spread(rng, n, d):
    """A table whose rows differ clearly in direction and in length, and a query."""
    while True:
        table, query = np.round(plain(n, d, rng=rng) * rng.choice([0.5, 1.0, 3.0], (n, 1)), 2), plain(d, rng=rng)
        cosines, distances = [cosine(row, query) for row in table], [distance(row, query) for row in table]
        gaps = [min(np.diff(np.sort(values))) for values in (cosines, distances)]
        dots = sorted(range(n), key=lambda i: -float(table[i] @ query))
        by_cosine, by_distance = ranking(table, query, "cosine"), ranking(table, query, "euclidean")
        if min(gaps) > 0.02 and list(by_cosine[:2]) != list(by_distance[:2]) and dots[:2] != list(by_cosine[:2]) and min(cosines) < -0.1:
            return table, query


def numbers(result):
    """A list of row numbers is as good as an array."""
    return np.array(result) if isinstance(result, (list, tuple)) else result


@check("nearest", "cosine", section=UNIT, claim="默认按余弦：最像的 k 行的编号，由近到远",
       hint="给每一行打分，按分数从大到小排，取前 k 个编号（不是分数，也不是向量）")
def nearest_cosine(student, rng):
    table, query = spread(rng, 6, 3)
    for k in (2, 4):
        student(table, query, k).equals(ranking(table, query, "cosine")[:k], of=numbers)


@check("nearest", "euclidean", section=UNIT, claim='metric="euclidean" 时按距离：距离越小越靠前',
       hint="余弦要从大到小，距离要从小到大：把其中一个变号，就能用同一次排序")
def nearest_euclidean(student, rng):
    table, query = spread(rng, 6, 3)
    for k in (2, 5):
        student(table, query, k, metric="euclidean").equals(ranking(table, query, "euclidean")[:k], of=numbers)


@check("nearest", "exclude", section=NEIGHBOURS, claim="exclude 里的编号不出现，仍给足 k 个",
       hint="排序之前就把它们的分数设成 −inf；取了前 k 个再删，就不够 k 个了")
def nearest_exclude(student, rng):
    table, query = spread(rng, 6, 3)
    for metric in ("cosine", "euclidean"):
        order = ranking(table, query, metric)
        student(table, query, 3, metric=metric, exclude=(int(order[0]), int(order[2]))).equals(order[[1, 3, 4]], of=numbers)
        student(table, query, 5, metric=metric, exclude=(int(order[1]),)).equals(order[[0, 2, 3, 4, 5]], of=numbers)


@check("nearest", "itself", section=NEIGHBOURS, claim="没有要求排除时，与 query 相同的那一行也算，并且排第一",
       hint="排除谁由 exclude 说了算，不要自作主张丢掉第一名")
def nearest_itself(student, rng):
    table, _ = spread(rng, 5, 3)
    row = int(rng.integers(5))
    for metric in ("cosine", "euclidean"):
        student(table, table[row], 2, metric=metric).equals(ranking(table, table[row], metric)[:2], of=numbers)


@check("nearest", "ties", section=NEIGHBOURS, claim="一样近时编号小的在前",
       hint='np.argsort(−分数, kind="stable") 保持原来的先后；先升序排再倒过来，并列的次序也会倒过来')
def nearest_ties(student, rng):
    first, second = np.array([0.0, 2.0]), np.array([-4.0, 0.0])  # along the axes: no rounding anywhere
    table = np.array([second, first, second, first, first])
    for metric in ("cosine", "euclidean"):
        student(table, first, 5, metric=metric).equals(np.array([1, 3, 4, 0, 2]), of=numbers)
        student(table, second, 3, metric=metric).equals(np.array([0, 2, 1]), of=numbers)


@check("nearest", "untouched", section=NEIGHBOURS, claim="表和 query 都不被改动", hint="归一化要写成新数组：table = table / …，不要 table /= …")
def nearest_untouched(student, rng):
    table, query = spread(rng, 5, 3)
    student(table, query, 2).keeps_arguments()


@check("nearest", "zero-row", section=COSINE, claim="表里有零向量时它没有方向，按余弦排在最后，不让别的行变成 nan",
       hint="除以长度之前把 0 换成 1，再把零向量的分数设得比 −1 还小")
def nearest_zero_row(student, rng):
    table, query = spread(rng, 5, 3)
    table[1] = 0
    student(table, query, 5).equals(ranking(table, query, "cosine"), of=numbers)


@check("nearest", "refused", section=NEIGHBOURS, claim="k 比剩下的行数还多、metric 不认识时，报 ValueError",
       hint="切片 [:k] 不会报错，只会悄悄少给几个：先检查 k")
def nearest_refused(student, rng):
    table, query = spread(rng, 5, 3)
    student(table, query, 5, exclude=(2,)).raises(ValueError)
    student(table, query, 2, metric="manhattan").raises(ValueError)
