"""ex02-embedding 的错误写法与其他正确写法。"""

import math

import numpy as np

from grading.mutants import mutant, right

LOOKUP, COSINE, DISTANCE, UNIT = "2.1", "2.5", "2.6", "2.8"
COS, DIST = "cosine_similarity", "euclidean_distance"


def floats(x):
    x = np.asarray(x)
    return x if x.dtype.kind == "f" else x.astype(np.float64)


def lookup(table, ids):
    """The right one, for the mutants of it."""
    ids = np.asarray(ids)
    if ids.size and (ids.min() < 0 or ids.max() >= len(table)):
        raise IndexError("编号超出范围")
    return table[ids]


def unit(x):
    x = floats(x)
    peak = np.abs(x).max(-1, keepdims=True)
    if (peak == 0).any():
        raise ValueError("零向量没有方向")
    x = x / peak
    return x / np.sqrt((x * x).sum(-1, keepdims=True))


def apart(a, b):
    a, b = floats(a), floats(b)
    if a.shape[-1] != b.shape[-1]:
        raise ValueError("最后一轴长度不同")
    return a - b


def refuse(table, k, metric, exclude):
    if k > len(table) - len(set(exclude)):
        raise ValueError("k 太大")
    if metric not in ("cosine", "euclidean"):
        raise ValueError("不认识的 metric")


def scores(table, query, metric):
    """Larger is nearer."""
    if metric == "euclidean":
        return -np.sqrt(((table - query) ** 2).sum(-1))
    lengths = np.sqrt((table * table).sum(-1))
    score = table @ unit(query) / np.where(lengths == 0, 1, lengths)
    return np.where(lengths == 0, -2, score)


def ranked(score, exclude):
    score = score.copy()
    score[list(exclude)] = -np.inf
    return np.argsort(-score, kind="stable")


# ---- embed：错误写法 -------------------------------------------------------------------------------------

@mutant("embed", "取了列", "嵌入表一行一个词元：table[ids] 取行，table[:, ids] 取的是列", LOOKUP, caught_by="rows")
def columns(table, ids):
    return table[:, np.minimum(ids, table.shape[1] - 1)]


@mutant("embed", "编号从 1 数起", "编号从 0 数起，第 0 行是 0 号词元", LOOKUP, caught_by="rows")
def one_based(table, ids):
    return table[np.asarray(ids) - 1]


@mutant("embed", "去掉了重复的编号", "同一个词元出现两次，就有两个位置、两行", LOOKUP, caught_by="rows")
def unique(table, ids):
    return table[np.unique(ids)]


@mutant("embed", "把编号排了序", "结果的次序跟着 ids，那是句子的次序", LOOKUP, caught_by="rows")
def sorted_ids(table, ids):
    return table[np.sort(ids)]


@mutant("embed", "把各行加在一起", "每个位置各有一个向量；加起来就丢了次序", LOOKUP, caught_by="rows")
def summed(table, ids):
    return table[np.asarray(ids)].sum(-2)


@mutant("embed", "返回独热向量", "独热向量还要乘嵌入表", LOOKUP, caught_by="rows")
def only_one_hot(table, ids):
    return np.eye(len(table))[ids]


@mutant("embed", "归一化了取出的行", "查表只取数，不改数；长度也是信息", LOOKUP, caught_by="rows")
def normalized(table, ids):
    rows = table[np.asarray(ids)]
    return rows / np.sqrt((rows * rows).sum(-1, keepdims=True))


@mutant("embed", "乘了 √d", "乘 √d 是 2017 年原论文在加位置编码之前做的另一步，查表本身不缩放", LOOKUP, caught_by="rows")
def scaled(table, ids):
    return table[np.asarray(ids)] * math.sqrt(table.shape[1])


@mutant("embed", "把编号摊平了", "ids 有两轴时结果应有三轴：不要 ravel", LOOKUP, caught_by="shape")
def flattened(table, ids):
    return lookup(table, np.ravel(ids))


@mutant("embed", "单个编号也给出一行的矩阵", "ids 是一个数时结果是一个 [d] 的向量：不要 atleast_1d", LOOKUP, caught_by="shape")
def always_matrix(table, ids):
    return lookup(table, np.atleast_1d(ids))


@mutant("embed", "独热矩阵是 float64", "np.eye 默认 float64，float32 的表会被提升；用 np.eye(V, dtype=table.dtype) 或直接取行", LOOKUP,
        caught_by="dtype")
def double_one_hot(table, ids):
    lookup(table, ids)
    return np.eye(len(table))[ids] @ table


@mutant("embed", "在传进来的 ids 上就地改", "ids[…] = … 改掉了调用者的数组；要改先复制", LOOKUP, caught_by="untouched")
def changes_ids(table, ids):
    rows = lookup(table, ids)
    np.asarray(ids)[...] = 0
    return rows


@mutant("embed", "负编号从末尾数起", "NumPy 的 table[-1] 是最后一行；词表里没有 −1 号词元，应报 IndexError", LOOKUP, caught_by="outside")
def negative_from_end(table, ids):
    return table[np.asarray(ids)]


@mutant("embed", "把越界的编号截到最近的一行", "悄悄换成别的词元比报错更难发现；应报 IndexError", LOOKUP, caught_by="outside")
def clipped(table, ids):
    return table[np.clip(ids, 0, len(table) - 1)]


@mutant("embed", "越界的编号绕回去（取模）", "悄悄换成别的词元比报错更难发现；应报 IndexError", LOOKUP, caught_by="outside")
def wrapped(table, ids):
    return table[np.asarray(ids) % len(table)]


# ---- embed：其他正确写法 ---------------------------------------------------------------------------------

@right("embed", "np.take，mode=\"raise\" 之前检查负数")
def take(table, ids):
    if np.size(ids) and np.min(ids) < 0:
        raise IndexError("编号不能是负数")
    return np.take(table, ids, axis=0)


@right("embed", "独热矩阵乘表")
def one_hot_product(table, ids):
    ids = np.asarray(ids)
    if ids.size and not (0 <= ids.min() and ids.max() < len(table)):
        raise IndexError("编号超出范围")
    hot = (ids[..., None] == np.arange(len(table))).astype(table.dtype)
    return hot @ table


@right("embed", "一个编号一个编号地抄")
def loop(table, ids):
    ids = np.asarray(ids)
    result = np.empty((*ids.shape, table.shape[1]), table.dtype)
    for place in np.ndindex(ids.shape):
        if not 0 <= ids[place] < len(table):
            raise IndexError(f"没有 {ids[place]} 号")
        result[place] = table[int(ids[place])]
    return result


# ---- cosine_similarity：错误写法 --------------------------------------------------------------------------

@mutant(COS, "只算了点积", "点积还要除以两个长度的积，否则长的向量总显得更像", COSINE, caught_by="values")
def dot_only(a, b):
    return (a * b).sum(-1)


@mutant(COS, "长度没有开平方", "长度是平方和的平方根：分母应为 |a|·|b|，不是 |a|²·|b|²", COSINE, caught_by="values")
def no_root(a, b):
    return (a * b).sum(-1) / ((a * a).sum(-1) * (b * b).sum(-1))


@mutant(COS, "只除以一个长度", "两个长度都要除：a 的和 b 的", COSINE, caught_by="values")
def one_length(a, b):
    return (a * b).sum(-1) / np.sqrt((a * a).sum(-1))


@mutant(COS, "除以两个长度之和", "分母是两个长度的积，不是和", COSINE, caught_by="values")
def sum_of_lengths(a, b):
    return (a * b).sum(-1) / (np.sqrt((a * a).sum(-1)) + np.sqrt((b * b).sum(-1)))


@mutant(COS, "长度用了绝对值之和", "这里的长度是 L2 范数：平方和的平方根，不是绝对值之和", COSINE, caught_by="values")
def taxicab(a, b):
    return (a * b).sum(-1) / (np.abs(a).sum(-1) * np.abs(b).sum(-1))


@mutant(COS, "返回 1 − 余弦", "那是余弦距离；这里要的是相似度，同向是 1", COSINE, caught_by="values")
def cosine_distance(a, b):
    return 1 - (unit(a) * unit(b)).sum(-1)


@mutant(COS, "返回夹角", "要的是夹角的余弦，不要再取 arccos", COSINE, caught_by="values")
def angle(a, b):
    return np.arccos(np.clip((unit(a) * unit(b)).sum(-1), -1, 1))


@mutant(COS, "取了绝对值", "反向的两个向量余弦是 −1，不是 1：方向相反不等于相像", COSINE, caught_by="values")
def absolute(a, b):
    return np.abs((unit(a) * unit(b)).sum(-1))


@mutant(COS, "先减去了平均值", "减平均值得到的是相关系数；余弦从原点量起", COSINE, caught_by="values")
def correlation(a, b):
    return (unit(a - a.mean(-1, keepdims=True)) * unit(b - b.mean(-1, keepdims=True))).sum(-1)


@mutant(COS, "对整个数组求和", "求和要给 axis=-1：前面的轴各算各的", COSINE, caught_by="rows")
def whole_array(a, b):
    return (unit(a) * unit(b)).sum()


@mutant(COS, "长度按整个数组算", "np.linalg.norm(a) 不给 axis 时把所有行当成一个长向量", COSINE, caught_by="rows")
def global_length(a, b):
    return (a * b).sum(-1) / (np.linalg.norm(a) * np.linalg.norm(b))


@mutant(COS, "沿第 0 轴求和", "向量排在最后一轴：axis=-1", COSINE, caught_by="rows")
def first_axis(a, b):
    return (a * b).sum(0) / (np.sqrt((a * a).sum(0)) * np.sqrt((b * b).sum(0)))


@mutant(COS, "用矩阵乘法配成一张表", "a @ b.T 把每一行与每一行都配上；这里只要同一位置的两行：(a * b).sum(-1)", COSINE, caught_by="rows")
def all_pairs(a, b):
    return unit(a) @ unit(b).T


@mutant(COS, "分母加了 1e-8", "向量很短时，加进去的数比长度还大，余弦就不再与长短无关", COSINE, caught_by="values")
def epsilon(a, b):
    return (a * b).sum(-1) / (np.sqrt((a * a).sum(-1)) * np.sqrt((b * b).sum(-1)) + 1e-8)


@mutant(COS, "两个长度各加了 1e-8", "向量很短时，加进去的数比长度还大，余弦就不再与长短无关", COSINE, caught_by="values")
def epsilon_each(a, b):
    def unit(x):
        return x / (np.linalg.norm(x, axis=-1, keepdims=True) + 1e-8)

    return (unit(a) * unit(b)).sum(-1)


@mutant(COS, "长度的下限取 1e-3", "短向量也要除以自己真正的长度；零向量另外检查", COSINE, caught_by="length")
def length_floor(a, b):
    return (a * b).sum(-1) / (np.maximum(np.sqrt((a * a).sum(-1)), 1e-3) * np.sqrt((b * b).sum(-1)))


@mutant(COS, "就地归一化", "a /= … 改掉了调用者的数组；写成 a = a / …", COSINE, caught_by="untouched")
def in_place(a, b):
    a, b = floats(a), floats(b)
    unit(a), unit(b)
    a /= np.sqrt((a * a).sum(-1, keepdims=True))
    b /= np.sqrt((b * b).sum(-1, keepdims=True))
    return (a * b).sum(-1)


@mutant(COS, "总是算成 float64", "float32 进应 float32 出；不要转换成 float64", COSINE, caught_by="dtype")
def always_double(a, b):
    return (unit(np.asarray(a, np.float64)) * unit(np.asarray(b, np.float64))).sum(-1)


@mutant(COS, "零向量得到 nan", "0 / 0 是 nan，会一路传下去；应报 ValueError", COSINE, caught_by="zero")
def nan_for_zero(a, b):
    a, b = floats(a), floats(b)
    return (a * b).sum(-1) / (np.sqrt((a * a).sum(-1)) * np.sqrt((b * b).sum(-1)))


@mutant(COS, "零向量得到 0", "0 表示“垂直”，零向量却没有方向；应报 ValueError，让调用者决定", COSINE, caught_by="zero")
def zero_for_zero(a, b):
    a, b = floats(a), floats(b)
    lengths = np.sqrt((a * a).sum(-1)) * np.sqrt((b * b).sum(-1))
    return np.where(lengths == 0, lengths.dtype.type(0), (a * b).sum(-1) / np.where(lengths == 0, lengths.dtype.type(1), lengths))


@mutant(COS, "平方溢出或变成 0", "1e200 的平方是 inf，1e-200 的平方是 0；先除以最大的分量", COSINE, caught_by="extreme")
def overflowing(a, b):
    a, b = floats(a), floats(b)
    if not (a.any(-1).all() and b.any(-1).all()):
        raise ValueError("零向量没有方向")
    return (a * b).sum(-1) / (np.sqrt((a * a).sum(-1)) * np.sqrt((b * b).sum(-1)))


# ---- cosine_similarity：其他正确写法 ----------------------------------------------------------------------

@right(COS, "逐对循环，用 math.hypot 求长度")
def pair_by_pair(a, b):
    a, b = np.asarray(a), np.asarray(b)
    kind = np.result_type(a, b) if np.result_type(a, b).kind == "f" else np.float64
    lead = np.broadcast_shapes(a.shape[:-1], b.shape[:-1])
    a, b = np.broadcast_to(a, (*lead, a.shape[-1])), np.broadcast_to(b, (*lead, b.shape[-1]))
    result = np.empty(lead, kind)
    for place in np.ndindex(lead):
        x, y = a[place].tolist(), b[place].tolist()
        if not any(x) or not any(y):
            raise ValueError("零向量没有方向")
        first, second = math.hypot(*x), math.hypot(*y)
        result[place] = sum(p / first * (q / second) for p, q in zip(x, y))
    return result


@right(COS, "einsum，先按最大分量缩放")
def by_einsum(a, b):
    def shrink(x):
        x = floats(x)
        peak = np.max(np.abs(x), axis=-1, keepdims=True)
        if not peak.all():
            raise ValueError("零向量没有方向")
        return x / peak

    a, b = np.broadcast_arrays(shrink(a), shrink(b))
    dots = np.einsum("...d,...d->...", a, b)
    return dots / np.sqrt(np.einsum("...d,...d->...", a, a) * np.einsum("...d,...d->...", b, b))


@right(COS, "由距离反推：1 − |â − b̂|² / 2")
def through_distance(a, b):
    gap = unit(a) - unit(b)
    return 1 - (gap * gap).sum(-1) / 2


# ---- euclidean_distance：错误写法 -------------------------------------------------------------------------

@mutant(DIST, "没有开平方", "平方和还要开平方才是距离", DISTANCE, caught_by="values")
def squared(a, b):
    return (apart(a, b) ** 2).sum(-1)


@mutant(DIST, "用了绝对值之和", "那是曼哈顿距离；欧氏距离是平方和的平方根", DISTANCE, caught_by="values")
def manhattan(a, b):
    return np.abs(apart(a, b)).sum(-1)


@mutant(DIST, "只取了最大的分量差", "每个分量的差都要算进去：平方、求和、开平方", DISTANCE, caught_by="values")
def chebyshev(a, b):
    return np.abs(apart(a, b)).max(-1)


@mutant(DIST, "求了平均而不是求和", "平方差要加起来，不要除以 d", DISTANCE, caught_by="values")
def mean_square(a, b):
    return np.sqrt((apart(a, b) ** 2).mean(-1))


@mutant(DIST, "两个长度相减", "|a| − |b| 只比长短，不看方向；先让向量相减，再求长度", DISTANCE, caught_by="values")
def difference_of_lengths(a, b):
    return np.abs(np.sqrt((a * a).sum(-1)) - np.sqrt((b * b).sum(-1)))


@mutant(DIST, "先归一化再算距离", "归一化丢掉了长度；欧氏距离看的是原来的两个点", DISTANCE, caught_by="values")
def on_the_sphere(a, b):
    return np.sqrt(((unit(a) - unit(b)) ** 2).sum(-1))


@mutant(DIST, "对整个数组求和", "求和要给 axis=-1：前面的轴各算各的", DISTANCE, caught_by="rows")
def all_at_once(a, b):
    return np.sqrt((apart(a, b) ** 2).sum())


@mutant(DIST, "沿第 0 轴求和", "向量排在最后一轴：axis=-1", DISTANCE, caught_by="rows")
def down_the_rows(a, b):
    return np.sqrt((apart(a, b) ** 2).sum(0))


@mutant(DIST, "配成了一张表", "a[:, None] − b[None] 把每一行与每一行都配上；这里只要能广播到一起的两行", DISTANCE, caught_by="rows")
def table_of_pairs(a, b):
    a, b = np.atleast_2d(floats(a)), np.atleast_2d(floats(b))
    result = np.sqrt(((a[..., :, None, :] - b[..., None, :, :]) ** 2).sum(-1))
    return result[0, 0] if result.shape == (1, 1) else result


@mutant(DIST, "展开成 |a|² + |b|² − 2a·b", "离原点远时是两个很大的数相减，有效数字全丢；先相减再平方", DISTANCE, caught_by="moved")
def expanded(a, b):
    a, b = floats(a), floats(b)
    apart(a, b)
    square = (a * a).sum(-1) + (b * b).sum(-1) - 2 * (a * b).sum(-1)
    return np.sqrt(np.maximum(square, square.dtype.type(0)))


@mutant(DIST, "就地相减", "a -= b 改掉了调用者的数组；写成 a - b", DISTANCE, caught_by="untouched")
def subtracts_in_place(a, b):
    apart(a, b)
    if np.asarray(a).dtype.kind == "f" and np.broadcast_shapes(a.shape, b.shape) == a.shape:
        a -= b
        return np.sqrt((a * a).sum(-1))
    return np.sqrt((apart(a, b) ** 2).sum(-1))


@mutant(DIST, "总是算成 float64", "float32 进应 float32 出；不要转换成 float64", DISTANCE, caught_by="dtype")
def doubles(a, b):
    return np.sqrt((apart(np.asarray(a, np.float64), np.asarray(b, np.float64)) ** 2).sum(-1))


@mutant(DIST, "用整数相减", "uint8 的 3 − 5 是 254，平方还会再溢出；先换成浮点数", DISTANCE, caught_by="integers")
def integer_wraparound(a, b):
    a, b = np.asarray(a), np.asarray(b)
    if a.shape[-1] != b.shape[-1]:
        raise ValueError("最后一轴长度不同")
    gap = a - b
    return np.sqrt((gap * gap).sum(-1))


@mutant(DIST, "长度不同时照样广播", "[3] 与 [1] 会被 NumPy 对齐成功，得到没有意义的距离；先比较最后一轴", DISTANCE, caught_by="mismatch")
def broadcast_last_axis(a, b):
    return np.sqrt(((floats(a) - floats(b)) ** 2).sum(-1))


# ---- euclidean_distance：其他正确写法 ---------------------------------------------------------------------

@right(DIST, "np.linalg.norm，给 axis")
def by_norm(a, b):
    return np.linalg.norm(apart(a, b), axis=-1)


@right(DIST, "逐对循环，math.dist")
def by_math(a, b):
    a, b = np.asarray(a), np.asarray(b)
    kind = np.result_type(a, b) if np.result_type(a, b).kind == "f" else np.float64
    lead = np.broadcast_shapes(a.shape[:-1], b.shape[:-1])
    x, y = np.broadcast_to(a, (*lead, a.shape[-1])), np.broadcast_to(b, (*lead, b.shape[-1]))
    return np.array([math.dist(x[i].tolist(), y[i].tolist()) for i in np.ndindex(lead)], kind).reshape(lead)


@right(DIST, "累加一维一维的平方差")
def by_hypot(a, b):
    a, b = floats(a), floats(b)
    if a.shape[-1] != b.shape[-1]:
        raise ValueError("最后一轴长度不同")
    total = np.abs(a[..., 0] - b[..., 0])
    for i in range(1, a.shape[-1]):
        total = np.hypot(total, a[..., i] - b[..., i])
    return total


# ---- nearest：错误写法 -----------------------------------------------------------------------------------

@mutant("nearest", "由远到近", "最近的排在最前：分数从大到小，argsort 默认从小到大", UNIT, caught_by="cosine")
def farthest_first(table, query, k, metric="cosine", exclude=()):
    refuse(table, k, metric, exclude)
    score = scores(table, query, metric)
    score[list(exclude)] = np.inf
    return np.argsort(score, kind="stable")[:k]


@mutant("nearest", "返回了分数", "要的是编号：argsort 给编号，sort 给分数", UNIT, caught_by="cosine")
def returns_scores(table, query, k, metric="cosine", exclude=()):
    refuse(table, k, metric, exclude)
    score = scores(table, query, metric)
    return score[ranked(score, exclude)[:k]]


@mutant("nearest", "返回了向量", "要的是编号，不是那几行向量", UNIT, caught_by="cosine")
def returns_rows(table, query, k, metric="cosine", exclude=()):
    refuse(table, k, metric, exclude)
    return table[ranked(scores(table, query, metric), exclude)[:k]]


@mutant("nearest", "用点积代替余弦", "点积偏爱长的行；还要除以每一行的长度", UNIT, caught_by="cosine")
def dot_product(table, query, k, metric="cosine", exclude=()):
    refuse(table, k, metric, exclude)
    return ranked(table @ query if metric == "cosine" else scores(table, query, metric), exclude)[:k]


@mutant("nearest", "默认按距离", 'metric 的默认值是 "cosine"', UNIT, caught_by="cosine")
def distance_by_default(table, query, k, metric="euclidean", exclude=()):
    refuse(table, k, metric, exclude)
    return ranked(scores(table, query, metric), exclude)[:k]


@mutant("nearest", "按余弦的绝对值", "反向的行（余弦 −1）是最不像的，不是最像的", UNIT, caught_by="cosine")
def absolute_cosine(table, query, k, metric="cosine", exclude=()):
    refuse(table, k, metric, exclude)
    score = scores(table, query, metric)
    return ranked(np.abs(score) if metric == "cosine" else score, exclude)[:k]


@mutant("nearest", "前 k 个没有排好次序", "argpartition 只保证前 k 个是最近的，不保证由近到远；取出之后再排一次", UNIT, caught_by="cosine")
def unordered(table, query, k, metric="cosine", exclude=()):
    refuse(table, k, metric, exclude)
    return np.sort(ranked(scores(table, query, metric), exclude)[:k])


@mutant("nearest", "多给了一个", "切片 [:k] 正好 k 个", UNIT, caught_by="cosine")
def one_too_many(table, query, k, metric="cosine", exclude=()):
    refuse(table, k, metric, exclude)
    return ranked(scores(table, query, metric), exclude)[: k + 1]


@mutant("nearest", "忽略了 metric", 'metric="euclidean" 时要按距离排', UNIT, caught_by="euclidean")
def ignores_metric(table, query, k, metric="cosine", exclude=()):
    refuse(table, k, metric, exclude)
    return ranked(scores(table, query, "cosine"), exclude)[:k]


@mutant("nearest", "距离也从大到小排", "余弦越大越近，距离越小越近：方向相反", UNIT, caught_by="euclidean")
def largest_distance(table, query, k, metric="cosine", exclude=()):
    refuse(table, k, metric, exclude)
    score = scores(table, query, metric)
    return ranked(-score if metric == "euclidean" else score, exclude)[:k]


@mutant("nearest", "忽略了 exclude", "exclude 里的编号不许出现", UNIT, caught_by="exclude")
def ignores_exclude(table, query, k, metric="cosine", exclude=()):
    refuse(table, k, metric, exclude)
    return ranked(scores(table, query, metric), ())[:k]


@mutant("nearest", "先取前 k 个再删", "删过之后就不够 k 个了；排序之前把要排除的分数设成 −inf", UNIT, caught_by="exclude")
def filters_afterwards(table, query, k, metric="cosine", exclude=()):
    refuse(table, k, metric, exclude)
    return np.array([i for i in ranked(scores(table, query, metric), ())[:k] if i not in exclude])


@mutant("nearest", "把要排除的分数设成 0", "余弦可以是负数，0 并不是最小；设成 −inf", UNIT, caught_by="exclude")
def zero_for_excluded(table, query, k, metric="cosine", exclude=()):
    refuse(table, k, metric, exclude)
    score = scores(table, query, metric)
    score[list(exclude)] = 0
    return ranked(score, ())[:k]


@mutant("nearest", "删掉行之后编号错位", "先从表里删行再排，得到的是删过之后的编号；要的是原表的编号", UNIT, caught_by="exclude")
def shifted_numbers(table, query, k, metric="cosine", exclude=()):
    refuse(table, k, metric, exclude)
    return ranked(scores(np.delete(table, list(exclude), axis=0), query, metric), ())[:k]


@mutant("nearest", "总是丢掉第一名", "只有 exclude 里的才排除；query 不一定在表里", UNIT, caught_by="cosine")
def drops_first(table, query, k, metric="cosine", exclude=()):
    refuse(table, k, metric, exclude)
    return ranked(scores(table, query, metric), exclude)[1 : k + 1]


@mutant("nearest", "丢掉与 query 相同的行", "相同的行也是近邻；要不要排除由 exclude 说了算", UNIT, caught_by="itself")
def drops_equal(table, query, k, metric="cosine", exclude=()):
    refuse(table, k, metric, exclude)
    order = ranked(scores(table, query, metric), exclude)
    return np.array([i for i in order if not np.array_equal(table[i], query)])[:k]


@mutant("nearest", "升序排再倒过来", "倒过来之后并列的次序也倒了，编号大的跑到前面；对负的分数做 argsort，kind 取 stable", UNIT, caught_by="ties")
def reversed_ties(table, query, k, metric="cosine", exclude=()):
    refuse(table, k, metric, exclude)
    score = scores(table, query, metric)
    score[list(exclude)] = -np.inf
    return np.argsort(score, kind="stable")[::-1][:k]


@mutant("nearest", "就地归一化了表", "table /= … 改掉了调用者的表；写成 table = table / …", UNIT, caught_by="untouched")
def normalizes_in_place(table, query, k, metric="cosine", exclude=()):
    refuse(table, k, metric, exclude)
    order = ranked(scores(table, query, metric), exclude)[:k]
    lengths = np.sqrt((table * table).sum(-1, keepdims=True))
    table /= np.where(lengths == 0, 1, lengths)
    return order


@mutant("nearest", "零向量的分数是 nan", "0 / 0 是 nan，argsort 把它排到哪里全凭运气；先把长度 0 换成 1，再让它排最后", COSINE, caught_by="zero-row")
def nan_score(table, query, k, metric="cosine", exclude=()):
    refuse(table, k, metric, exclude)
    score = scores(table, query, metric)
    if metric == "cosine":
        score = np.where((table == 0).all(-1), -np.inf, -score)
        score[list(exclude)] = np.inf
        return np.argsort(score, kind="stable")[:k]
    return ranked(score, exclude)[:k]


@mutant("nearest", "零向量的余弦当作 0", "0 表示“垂直”，会排在反方向的行前面；零向量没有方向，排最后", COSINE, caught_by="zero-row")
def zero_is_orthogonal(table, query, k, metric="cosine", exclude=()):
    refuse(table, k, metric, exclude)
    score = scores(table, query, metric)
    return ranked(np.where((table == 0).all(-1) & (metric == "cosine"), 0.0, score), exclude)[:k]


@mutant("nearest", "k 太大时悄悄少给几个", "切片不会报错；先检查 k 与剩下的行数，不够就报 ValueError", UNIT, caught_by="refused")
def silently_fewer(table, query, k, metric="cosine", exclude=()):
    if metric not in ("cosine", "euclidean"):
        raise ValueError("不认识的 metric")
    return ranked(scores(table, query, metric), exclude)[: min(k, len(table) - len(set(exclude)))]


@mutant("nearest", "不认识的 metric 当作距离", "拼错的名字应当报 ValueError，而不是悄悄换一种算法", UNIT, caught_by="refused")
def unknown_metric(table, query, k, metric="cosine", exclude=()):
    refuse(table, k, "cosine", exclude)
    return ranked(scores(table, query, metric if metric == "cosine" else "euclidean"), exclude)[:k]


# ---- nearest：其他正确写法 --------------------------------------------------------------------------------

@right("nearest", "Python 的 sorted，按（分数，编号）排")
def by_sorted(table, query, k, metric="cosine", exclude=()):
    refuse(table, k, metric, exclude)

    def far(i):
        if metric == "euclidean":
            return math.dist(table[i].tolist(), query.tolist())
        length = math.hypot(*table[i].tolist())
        return -float(np.dot(table[i], query)) / length if length else math.inf

    return np.array(sorted((i for i in range(len(table)) if i not in exclude), key=lambda i: (far(i), i))[:k])


@right("nearest", "lexsort：先分数后编号")
def by_lexsort(table, query, k, metric="cosine", exclude=()):
    refuse(table, k, metric, exclude)
    score = scores(table, query, metric)
    order = np.lexsort((np.arange(len(table)), -score))
    return order[~np.isin(order, list(exclude))][:k]


@right("nearest", "每次挑一个最近的，挑 k 次，返回列表")
def one_at_a_time(table, query, k, metric="cosine", exclude=()):
    refuse(table, k, metric, exclude)
    score, chosen = scores(table, query, metric), []
    score[list(exclude)] = -np.inf
    for _ in range(k):
        best = int(np.argmax(score))
        chosen.append(best)
        score[best] = -np.inf
    return chosen
