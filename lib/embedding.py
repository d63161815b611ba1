"""嵌入：编号变成向量（查表），以及向量之间怎样算相似。

V 是词表大小，也就是表的行数；d 是一个向量有几个数。
零向量没有方向：余弦相似度和单位化遇到它会报错，而不是悄悄给出 0 或 nan。
"""
import numpy as np

from lib._checks import as_count, as_float, as_ids  # 入口检查：正整数、实数数组、0…n-1 的编号；不合格就报错

__all__ = ["embed", "one_hot", "normalize", "cosine_similarity", "euclidean_distance", "nearest", "analogy"]


def embed(table, ids):
    """查表：第 i 个词元的向量是表的第 ids[i] 行，等于 one_hot(ids, V) @ table，但不做那次乘法。

    形状：table [V, d], ids 整数 [...] -> [..., d]
    错误：编号不在 0…V-1 之内时 IndexError（负数也是，它不会从末尾数起）；编号不是整数时 TypeError。
    """
    table = _check_table(table)
    return table[as_ids(ids, "ids", table.shape[0])]


def one_hot(ids, n):
    """独热向量：第 ids[i] 个位置（从 0 数起）是 1，其余是 0。

    形状：ids 整数 [...], n 整数 -> [..., n]
    错误：编号不在 0…n-1 之内时 IndexError；编号不是整数时 TypeError；n 不是正整数时报错。
    """
    return np.eye(as_count(n, "n"))[as_ids(ids, "ids", n)]  # 单位矩阵的第 i 行就是编号 i 的独热向量


def normalize(x):
    """单位化：除以自己的长度（L2 范数），只留下方向。

    形状：x [..., d] -> [..., d]
    错误：有零向量时 ValueError。
    """
    x = as_float(x, "x")
    if x.ndim == 0 or x.shape[-1] == 0:
        raise ValueError(f"x 应是 [..., d] 的向量，收到形状 {x.shape}")
    largest = np.abs(x).max(-1, keepdims=True)
    if (largest == 0).any():
        raise ValueError("有零向量：它没有方向，余弦相似度和单位化对它没有定义；请先去掉它")
    x = x / largest  # 先除以最大的分量，平方时才不会溢出，也不会变成 0
    return x / np.sqrt((x * x).sum(-1, keepdims=True))


def cosine_similarity(a, b):
    """夹角的余弦 a·b / (|a| |b|)：只看方向，不看长短；1 同向，0 垂直，-1 反向。

    形状：a [..., d], b [..., d] -> [...]
    错误：有零向量、最后一轴长度不同、前面的轴不能互相广播时 ValueError。
    """
    a, b = normalize(a), normalize(b)
    _check_pair(a, b)
    return np.clip((a * b).sum(-1), -1, 1)  # 舍入会让平行向量得到 1.0000000002


def euclidean_distance(a, b):
    """直线距离 |a - b|。单位化之后它与余弦给出同样的排名：|a - b|² = 2 - 2cos。

    形状：a [..., d], b [..., d] -> [...]
    错误：最后一轴长度不同、前面的轴不能互相广播时 ValueError。
    """
    a, b = as_float(a, "a"), as_float(b, "b")
    _check_pair(a, b)
    return np.sqrt(((a - b) ** 2).sum(-1))


def nearest(table, query, k, metric="cosine", exclude=()):
    """表里离 query 最近的 k 行的编号，由近到远；一样近时编号小的在前。

    metric="cosine" 时表里的零向量排在最后；exclude 是不许出现的编号（例如 query 自己）。

    形状：table [V, d], query [d], k 整数 -> 整数 [k]（k <= V）
    错误：去掉 exclude 后不足 k 行、query 是零向量、metric 不认识时 ValueError。
    """
    table, query = _check_table(table), as_float(query, "query")
    if query.shape != table.shape[1:]:
        raise ValueError(f"query 应是一个 {table.shape[1:]} 的向量，收到形状 {query.shape}")
    excluded = np.unique(as_ids(list(exclude), "exclude", len(table)))
    if as_count(k, "k") > len(table) - len(excluded):
        raise ValueError(f"k={k} 太大：表有 {len(table)} 行，去掉 exclude 后只剩 {len(table) - len(excluded)} 行")
    if metric == "cosine":
        lengths = np.sqrt((table * table).sum(-1))
        # 与每一行的余弦；零向量的长度先当作 1，免得除以 0
        score = table @ normalize(query) / np.where(lengths == 0, 1, lengths)
        score[lengths == 0] = -2  # 比最小的余弦 -1 还小
    elif metric == "euclidean":
        score = -euclidean_distance(table, query)  # 越近得分越高
    else:
        raise ValueError(f'metric 应是 "cosine" 或 "euclidean"，收到 {metric!r}')
    score[excluded] = -np.inf
    return np.argsort(-score, kind="stable")[:k]


def analogy(table, a, b, c, k=1):
    """a 之于 b，如同谁之于 c：离 table[a] - table[b] + table[c] 最近的 k 行，三个输入不算在内。

    形状：table [V, d], a 编号, b 编号, c 编号, k 整数 -> 整数 [k]（k <= V - 3）
    错误：编号不在表内时 IndexError；其余同 nearest。
    来源：《Linguistic Regularities in Continuous Space Word Representations》。
    """
    table = _check_table(table)
    a, b, c = as_ids([a, b, c], "a、b、c", len(table))
    return nearest(table, table[a] - table[b] + table[c], k, exclude=(a, b, c))  # 不排除的话，最近的往往就是输入自己


def _check_table(table):
    table = as_float(table, "table")
    if table.ndim != 2 or 0 in table.shape:
        raise ValueError(f"table 应是 [V, d] 的表，收到形状 {table.shape}")
    return table


def _check_pair(a, b):
    if a.ndim == 0 or b.ndim == 0 or a.shape[-1] != b.shape[-1]:
        raise ValueError(f"a 和 b 的最后一轴应一样长：收到 a {a.shape}、b {b.shape}")
    try:
        np.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        raise ValueError(f"a 和 b 前面的轴应能互相广播：收到 a {a.shape}、b {b.shape}") from None
