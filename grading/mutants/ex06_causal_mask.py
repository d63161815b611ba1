"""ex06-causal-mask 的错误写法与其他正确写法。"""

import numpy as np

from grading.mutants import mutant, right

MASK, TARGETS, LEAK, LOSS = "6.1", "6.2", "6.3", "6.2"


def sizes(n_q, n_k):
    n_k = n_q if n_k is None else n_k
    if n_k < n_q:
        raise ValueError("n_k 不能小于 n_q")
    return n_q, n_k


# ---- causal_mask：错误写法 ---------------------------------------------------------------------------------

@mutant("causal_mask", "连对角线一起遮", "遮住的是严格上三角；每个位置要看得见自己，否则第 0 行什么也看不到", MASK, caught_by="square")
def without_diagonal(n_q, n_k=None):
    n_q, n_k = sizes(n_q, n_k)
    return np.tri(n_q, n_k, n_k - n_q - 1, dtype=bool)


@mutant("causal_mask", "True 与 False 反了", "True 表示可以看；你的 True 表示要遮", MASK, caught_by="square", seen_in="harvardnlp/annotated-transformer/issues/27")
def inverted(n_q, n_k=None):
    n_q, n_k = sizes(n_q, n_k)
    return ~np.tri(n_q, n_k, n_k - n_q, dtype=bool)


@mutant("causal_mask", "只能看未来", "上下三角弄反了：第 i 行看得见第 0 到 i 列", MASK, caught_by="square")
def upper(n_q, n_k=None):
    n_q, n_k = sizes(n_q, n_k)
    return np.triu(np.ones((n_q, n_k), bool), n_k - n_q)


@mutant("causal_mask", "多看了一格", "第 i 行最多看到第 i 列，你的看到了第 i+1 列，也就是它要预测的那个", MASK, caught_by="square")
def one_too_far(n_q, n_k=None):
    n_q, n_k = sizes(n_q, n_k)
    return np.tri(n_q, n_k, n_k - n_q + 1, dtype=bool)


@mutant("causal_mask", "只看得见自己", "要看得见自己和左边全部，不只是对角线", MASK, caught_by="square")
def only_self(n_q, n_k=None):
    n_q, n_k = sizes(n_q, n_k)
    return np.eye(n_q, n_k, n_k - n_q, dtype=bool)


@mutant("causal_mask", "没有遮", "全是 True 就等于没有掩码", MASK, caught_by="square")
def nothing_hidden(n_q, n_k=None):
    return np.ones(sizes(n_q, n_k), bool)


@mutant("causal_mask", "返回了加法掩码", "这里要布尔掩码；0 与 −∞ 的写法把可以看的变成了 0，正好反过来", MASK, caught_by="square")
def additive(n_q, n_k=None):
    n_q, n_k = sizes(n_q, n_k)
    return np.where(np.tri(n_q, n_k, n_k - n_q, dtype=bool), 0.0, -np.inf)


@mutant("causal_mask", "长方形时从左上角对齐", "有缓存时新词元排在最后：第 i 个查询的位置是 i + (n_k − n_q)", MASK, caught_by="cache", seen_in="ml-explore/mlx-lm/pull/93")
def aligned_left(n_q, n_k=None):
    return np.tri(*sizes(n_q, n_k), dtype=bool)


@mutant("causal_mask", "忽略了 n_k", "n_k 给出时，掩码有 n_k 列", MASK, caught_by="cache")
def always_square(n_q, n_k=None):
    sizes(n_q, n_k)
    return np.tri(n_q, dtype=bool)


@mutant("causal_mask", "偏移多加了一遍", "偏移是 n_k − n_q，不是 n_k", MASK, caught_by="cache", seen_in="skyzh/tiny-llm/pull/46")
def offset_by_length(n_q, n_k=None):
    n_q, n_k = sizes(n_q, n_k)
    return np.tri(n_q, n_k, 0 if n_k == n_q else n_k, dtype=bool)


@mutant("causal_mask", "旧词元也按三角遮", "旧词元排在所有新词元之前，人人可见", MASK, caught_by="cache")
def old_hidden(n_q, n_k=None):
    n_q, n_k = sizes(n_q, n_k)
    return np.hstack([np.zeros((n_q, n_k - n_q), bool), np.tri(n_q, dtype=bool)])


@mutant("causal_mask", "返回 0 与 1 的浮点数", "要布尔数组：1.0 与 True 在 np.where 里一样，乘进得分里就不一样了", MASK, caught_by="boolean")
def floats(n_q, n_k=None):
    n_q, n_k = sizes(n_q, n_k)
    return np.tri(n_q, n_k, n_k - n_q)


@mutant("causal_mask", "n_k 太小时不报错", "键至少要包括查询自己；悄悄返回的掩码会有整行看不见", MASK, caught_by="refused")
def never_refuses(n_q, n_k=None):
    n_k = n_q if n_k is None else n_k
    return np.tri(n_q, n_k, n_k - n_q, dtype=bool)


@right("causal_mask", "比较下标")
def by_comparing(n_q, n_k=None):
    n_q, n_k = sizes(n_q, n_k)
    return np.arange(n_k) <= np.arange(n_q)[:, None] + n_k - n_q


@right("causal_mask", "两层循环")
def by_loops(n_q, n_k=None):
    n_q, n_k = sizes(n_q, n_k)
    mask = np.zeros((n_q, n_k), dtype=bool)
    for i in range(n_q):
        for j in range(i + n_k - n_q + 1):
            mask[i, j] = True
    return mask


@right("causal_mask", "先造整个方阵再取最后几行")
def last_rows(n_q, n_k=None):
    n_q, n_k = sizes(n_q, n_k)
    return np.tril(np.ones((n_k, n_k), dtype=bool))[n_k - n_q:]


# ---- targets_from：错误写法 --------------------------------------------------------------------------------

def long_enough(ids):
    if ids.shape[-1] < 2:
        raise ValueError("至少要两个词元")
    return ids


@mutant("targets_from", "没有错位", "目标就是输入时，模型只要学会抄写；目标要右移一位", TARGETS, caught_by="shift")
def copied(ids):
    return long_enough(ids)[..., :-1], ids[..., :-1]


@mutant("targets_from", "错反了方向", "第 i 个输入预测第 i+1 个，不是第 i−1 个", TARGETS, caught_by="shift")
def backwards(ids):
    return long_enough(ids)[..., 1:], ids[..., :-1]


@mutant("targets_from", "错了两位", "只错一位：预测的是紧跟着的那一个", TARGETS, caught_by="shift")
def two_ahead(ids):
    return long_enough(ids)[..., :-2], ids[..., 2:]


@mutant("targets_from", "用 roll 绕回了开头", "最后一个词元没有下一个；roll 会让它去预测第一个", TARGETS, caught_by="shift")
def rolled(ids):
    return long_enough(ids), np.roll(ids, -1, axis=-1)


@mutant("targets_from", "用 0 补足长度", "0 是词表里一个真的词元；没有目标的位置应当去掉", TARGETS, caught_by="shift")
def padded(ids):
    return long_enough(ids), np.concatenate([ids[..., 1:], np.zeros_like(ids[..., :1])], axis=-1)


@mutant("targets_from", "只返回目标", "要返回两样：输入与目标", TARGETS, caught_by="shift")
def only_targets(ids):
    return long_enough(ids)[..., 1:]


@mutant("targets_from", "沿批的那一轴错位", "成批时词元在最后一轴：写 ids[..., :-1]", TARGETS, caught_by="batch")
def along_batch(ids):
    long_enough(ids)
    return ids[:-1], ids[1:]


@mutant("targets_from", "把一批拼成了一句", "各句互不相干：拼起来会让上一句的末尾去预测下一句的开头", TARGETS, caught_by="batch")
def flattened(ids):
    flat = long_enough(ids).ravel()
    return flat[:-1], flat[1:]


@mutant("targets_from", "就地改了 ids", "切片就够了；就地移动会改掉调用者的数组", TARGETS, caught_by="untouched")
def in_place(ids):
    inputs = long_enough(ids)[..., :-1].copy()
    ids[..., :-1] = ids[..., 1:].copy()
    return inputs, ids[..., :-1].copy()


@mutant("targets_from", "只有一个词元时返回空数组", "没有可以预测的东西，应报 ValueError；空数组会让后面的平均变成 NaN", TARGETS, caught_by="short")
def empty(ids):
    return ids[..., :-1], ids[..., 1:]


@right("targets_from", "先搬到前面再切")
def moved(ids):
    front = np.moveaxis(long_enough(ids), -1, 0)
    return np.moveaxis(front[:-1], 0, -1), np.moveaxis(front[1:], 0, -1)


@right("targets_from", "按下标取")
def taken(ids):
    n = long_enough(ids).shape[-1]
    return np.take(ids, np.arange(n - 1), axis=-1), np.take(ids, np.arange(1, n), axis=-1)


@right("targets_from", "逐个位置")
def one_by_one(ids):
    n = long_enough(ids).shape[-1]
    return (np.stack([ids[..., i] for i in range(n - 1)], axis=-1), np.stack([ids[..., i + 1] for i in range(n - 1)], axis=-1))


# ---- leaks：错误写法 ---------------------------------------------------------------------------------------

def changed(X, j):
    other = X.copy()
    other[j] = other[j] + 1.0
    return other


@mutant("leaks", "比较了全部的行", "第 j 行自己和它右边变了是应该的；只比较 j 之前", LEAK, caught_by="causal")
def all_rows(f, X, j):
    return not np.array_equal(f(X), f(changed(X, j)))


@mutant("leaks", "把第 j 行也算进去", "第 j 行当然会变：比较 [:j]，不含 j", LEAK, caught_by="causal")
def including_j(f, X, j):
    return not np.array_equal(f(X)[: j + 1], f(changed(X, j))[: j + 1])


@mutant("leaks", "True 与 False 反了", "有泄漏返回 True，没有返回 False", LEAK, caught_by="causal")
def negated(f, X, j):
    return np.array_equal(f(X)[:j], f(changed(X, j))[:j])


@mutant("leaks", "比较了右边的行", "右边本来就该受影响；要看的是 j 之前的行", LEAK, caught_by="causal")
def rows_after(f, X, j):
    return not np.array_equal(f(X)[j + 1:], f(changed(X, j))[j + 1:]) or j == len(X) - 1 and not np.array_equal(f(X)[:j], f(changed(X, j))[:j])


@mutant("leaks", "永远说没有", "要真的算两次再比较", LEAK, caught_by="leaky")
def never(f, X, j):
    return False


@mutant("leaks", "拿输出和输入比", "比较的是改动前后的两次输出", LEAK, caught_by="causal")
def output_against_input(f, X, j):
    return not np.array_equal(f(X)[:j], X[:j])


@mutant("leaks", "只看了前一行", "未来可以直接影响最前面的行：比较 j 之前的全部", LEAK, caught_by="leaky")
def only_previous(f, X, j):
    return not np.array_equal(f(X)[j - 1:j], f(changed(X, j))[j - 1:j])


@mutant("leaks", "只看了第 0 行", "有的泄漏只到相邻的一行：比较 j 之前的全部", LEAK, caught_by="neighbour")
def only_first(f, X, j):
    return not np.array_equal(f(X)[:1], f(changed(X, j))[:1])


@mutant("leaks", "只改了第一个分量", "偷看可能只通过别的分量：整行都要改", LEAK, caught_by="component")
def one_component(f, X, j):
    other = X.copy()
    other[j, 0] += 1.0
    return not np.array_equal(f(X)[:j], f(other)[:j])


@mutant("leaks", "用 allclose 比较", "容差会放过微弱的泄漏；没有泄漏时应当逐位相同", LEAK, caught_by="faint")
def with_tolerance(f, X, j):
    return not np.allclose(f(X)[:j], f(changed(X, j))[:j])


@mutant("leaks", "把第 j 行乘 2（或换成 0）", "一行 0 乘 2 还是 0，等于没改；加一个数", LEAK, caught_by="zero-row")
def doubled(f, X, j):
    other = X.copy()
    other[j] *= 2
    return not np.array_equal(f(X)[:j], f(other)[:j])


@mutant("leaks", "就地改了 X", "先复制再改：X[j] += … 改掉的是调用者的数组", LEAK, caught_by="untouched")
def in_place_change(f, X, j):
    before = f(X)[:j]
    X[j] += 1.0
    return not np.array_equal(before, f(X)[:j])


@right("leaks", "逐行比较")
def row_by_row(f, X, j):
    before, after = f(X), f(changed(X, j))
    return any((before[i] != after[i]).any() for i in range(j))


@right("leaks", "换成随机的一行")
def random_row(f, X, j):
    other = X.copy()
    other[j] = np.random.default_rng(7).standard_normal(X.shape[1]) * 10
    return bool((f(X)[:j] != f(other)[:j]).any())


@right("leaks", "逐个分量改，有一个变了就算")
def each_component(f, X, j):
    before = f(X)[:j]
    for c in range(X.shape[1]):
        other = X.copy()
        other[j, c] -= 3.0
        if (f(other)[:j] != before).any():
            return True
    return False


# ---- sequence_loss：错误写法 -------------------------------------------------------------------------------

def log_probs(logits):
    shifted = logits - logits.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def pick(table, ids):
    return np.take_along_axis(table, ids[..., None], axis=-1)[..., 0]


def need_two(ids):
    if ids.shape[-1] < 2:
        raise ValueError("至少要两个词元")


@mutant("sequence_loss", "目标没有错位", "第 i 行预测第 i+1 个词元；不错位时损失会低得可疑", LOSS, caught_by="shift")
def not_shifted(logits, ids):
    need_two(ids)
    return -pick(log_probs(logits), ids).mean()


@mutant("sequence_loss", "错反了方向", "第 i 行的目标是 ids[i+1]，不是 ids[i−1]", LOSS, caught_by="shift")
def wrong_way(logits, ids):
    need_two(ids)
    return -pick(log_probs(logits)[..., 1:, :], ids[..., :-1]).mean()


@mutant("sequence_loss", "把最后一行也算上，目标绕回开头", "最后一行没有目标：去掉它，不要用 roll", LOSS, caught_by="shift")
def wrapped(logits, ids):
    need_two(ids)
    return -pick(log_probs(logits), np.roll(ids, -1, axis=-1)).mean()


@mutant("sequence_loss", "除以 n 而不是 n − 1", "只有 n − 1 个位置有目标，按它们取平均", LOSS, caught_by="shift")
def divided_by_n(logits, ids):
    need_two(ids)
    return -pick(log_probs(logits)[..., :-1, :], ids[..., 1:]).sum() / ids.size


@mutant("sequence_loss", "求和而没有平均", "取平均：句子长短不同，和不能比较", LOSS, caught_by="shift")
def summed(logits, ids):
    need_two(ids)
    return -pick(log_probs(logits)[..., :-1, :], ids[..., 1:]).sum()


@mutant("sequence_loss", "忘了负号", "概率的对数是负的；损失是它的相反数", LOSS, caught_by="shift")
def negative(logits, ids):
    need_two(ids)
    return pick(log_probs(logits)[..., :-1, :], ids[..., 1:]).mean()


@mutant("sequence_loss", "没有取对数", "每个位置是 −ln p，不是 −p 或 1 − p", LOSS, caught_by="shift")
def without_log(logits, ids):
    need_two(ids)
    return 1 - np.exp(pick(log_probs(logits)[..., :-1, :], ids[..., 1:])).mean()


@mutant("sequence_loss", "先平均概率再取对数", "先对每个位置取对数，再平均；次序不能换", LOSS, caught_by="shift")
def log_of_mean(logits, ids):
    need_two(ids)
    return -np.log(np.exp(pick(log_probs(logits)[..., :-1, :], ids[..., 1:])).mean())


@mutant("sequence_loss", "直接取得分，没有过 softmax", "得分不是概率：先归一，再取对数", LOSS, caught_by="shift")
def raw_scores(logits, ids):
    need_two(ids)
    return -pick(logits[..., :-1, :], ids[..., 1:]).mean()


@mutant("sequence_loss", "沿词元的那一轴归一", "softmax 沿最后一轴（词表）做，每个位置各归各的", LOSS, caught_by="shift")
def wrong_axis(logits, ids):
    need_two(ids)
    shifted = logits - logits.max(-2, keepdims=True)
    table = shifted - np.log(np.exp(shifted).sum(-2, keepdims=True))
    return -pick(table[..., :-1, :], ids[..., 1:]).mean()


@mutant("sequence_loss", "用了以 2 为底的对数", "交叉熵用自然对数；以 2 为底得到的是比特数", LOSS, caught_by="shift")
def in_bits(logits, ids):
    need_two(ids)
    return -pick(log_probs(logits)[..., :-1, :], ids[..., 1:]).mean() / np.log(2)


@mutant("sequence_loss", "只算了第一句", "一批里的句子都要算：下标用 ... 写", LOSS, caught_by="batch")
def first_sentence(logits, ids):
    need_two(ids)
    if ids.ndim > 1:
        logits, ids = logits[0], ids[0]
    return -pick(log_probs(logits)[..., :-1, :], ids[..., 1:]).mean()


@mutant("sequence_loss", "每句各给一个数", "对一批里的所有位置一起取平均，结果是一个数", LOSS, caught_by="batch")
def per_sentence(logits, ids):
    need_two(ids)
    return -pick(log_probs(logits)[..., :-1, :], ids[..., 1:]).mean(-1)


@mutant("sequence_loss", "给概率加了 1e-10", "加进去的数让很小的概率不再变小，损失有了上限；用对数的写法就不需要它", LOSS, caught_by="large")
def with_epsilon(logits, ids):
    need_two(ids)
    e = np.exp(logits - logits.max(-1, keepdims=True))
    p = e / e.sum(-1, keepdims=True)
    return -np.log(np.maximum(pick(p[..., :-1, :], ids[..., 1:]), 1e-10)).mean()


@mutant("sequence_loss", "先算概率再取对数", "概率小到 0 时对数是 −∞：减去最大值之后直接算对数", LOSS, caught_by="large")
def through_probabilities(logits, ids):
    need_two(ids)
    e = np.exp(logits - logits.max(-1, keepdims=True))
    p = e / e.sum(-1, keepdims=True)
    return -np.log(pick(p[..., :-1, :], ids[..., 1:])).mean()


@mutant("sequence_loss", "没有减去最大值", "e 的 1000 次方溢出：每行先减去最大值，结果不变", LOSS, caught_by="large")
def overflowing(logits, ids):
    need_two(ids)
    table = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    return -pick(table[..., :-1, :], ids[..., 1:]).mean()


@mutant("sequence_loss", "就地减去了最大值", "logits -= … 改掉了调用者的数组；写成 logits = logits - …", LOSS, caught_by="untouched")
def subtracts_in_place(logits, ids):
    need_two(ids)
    logits -= logits.max(-1, keepdims=True)
    return -pick(log_probs(logits)[..., :-1, :], ids[..., 1:]).mean()


@mutant("sequence_loss", "只有一个词元时返回 NaN 或 0", "没有一个位置有目标，应报 ValueError", LOSS, caught_by="short")
def silent_when_short(logits, ids):
    losses = -pick(log_probs(logits)[..., :-1, :], ids[..., 1:])
    return losses.mean() if losses.size else 0.0


@right("sequence_loss", "逐句逐个位置")
def position_by_position(logits, ids):
    need_two(ids)
    losses = []
    for row in np.ndindex(ids.shape[:-1]):
        for i in range(ids.shape[-1] - 1):
            z = logits[row][i]
            peak = z.max()
            losses.append(peak + np.log(np.exp(z - peak).sum()) - z[ids[row][i + 1]])
    return np.mean(losses)


@right("sequence_loss", "独热矩阵相乘")
def with_one_hot(logits, ids):
    need_two(ids)
    wanted = np.eye(logits.shape[-1])[ids[..., 1:]]
    return -(log_probs(logits)[..., :-1, :] * wanted).sum(-1).mean()


@right("sequence_loss", "logaddexp 归约")
def with_logaddexp(logits, ids):
    need_two(ids)
    z = logits[..., :-1, :]
    return (np.logaddexp.reduce(z, axis=-1) - pick(z, ids[..., 1:])).mean()
