"""ex06-causal-mask 的隐藏检查。参考值由这里逐个数算出，不用 lib，也不用学生那种整块数组的写法。"""

import math

import numpy as np

from grading.checks import Callback, check, small

MASK, TARGETS, LEAK, LOSS = "6.1", "6.2", "6.3", "6.2"


# ---- 参考 ------------------------------------------------------------------------------------------------

def visible(n_q, n_k):
    """Query i sits at place i + (n_k - n_q) of the sequence and sees every key up to there."""
    return np.array([[j <= i + n_k - n_q for j in range(n_k)] for i in range(n_q)])


def sentence_loss(logits, ids):
    """Mean over the positions that have a next token, one at a time."""
    losses = []
    for row, wanted in zip(logits[:-1], ids[1:]):
        peak = max(row)
        losses.append(math.log(math.fsum(math.exp(z - peak) for z in row)) - (row[wanted] - peak))
    return math.fsum(losses) / len(losses)


def batch_loss(logits, ids):
    lead = ids.shape[:-1]
    return math.fsum(sentence_loss(logits[i].tolist(), ids[i].tolist()) for i in np.ndindex(lead)) / math.prod(lead)


def tokens(rng, *shape, V=5):
    """Ids in which no token stands next to itself, so that a shift shows."""
    steps = rng.integers(1, V, shape)
    return np.cumsum(steps, axis=-1) % V


# ---- causal_mask -----------------------------------------------------------------------------------------

@check("causal_mask", "square", section=MASK, claim="n×n 的掩码：第 i 行看得见第 0 到 i 列，含自己",
       hint="遮住的是严格上三角：j > i；对角线要留着")
def mask_square(student, rng):
    for n in (4, 3):
        student(n).satisfies(lambda m: np.array_equal(np.asarray(m).astype(bool), visible(n, n)) and np.shape(m) == (n, n),
                             f"n_q = {n} 时应是 {visible(n, n).astype(int).tolist()}（1 表示看得见）")


@check("causal_mask", "cache", section=MASK, claim="n_k > n_q 时，最后一个查询对齐最后一个键：前面多出来的是人人可见的旧词元",
       hint="第 i 个查询在整句里排第 i + (n_k − n_q)，看得见到那里为止的键")
def mask_cache(student, rng):
    for n_q, n_k in ((2, 5), (1, 4), (3, 4)):
        student(n_q, n_k).satisfies(lambda m: np.array_equal(np.asarray(m).astype(bool), visible(n_q, n_k)),
                                    f"causal_mask({n_q}, {n_k}) 应是 {visible(n_q, n_k).astype(int).tolist()}（1 表示看得见）")


@check("causal_mask", "boolean", section=MASK, claim="返回布尔数组，True 表示可以看",
       hint="比较运算 j <= i 直接给出布尔数组；np.tri 默认是 float64，要写 dtype=bool")
def mask_boolean(student, rng):
    student(3).has_dtype(bool).equals(visible(3, 3))


@check("causal_mask", "refused", section=MASK, claim="n_k 小于 n_q 时报 ValueError：键至少要包括查询自己",
       hint="先比较两个数，不够就 raise ValueError")
def mask_refused(student, rng):
    student(3, 2).raises(ValueError)


# ---- targets_from ----------------------------------------------------------------------------------------

@check("targets_from", "shift", section=TARGETS, claim="输入是去掉最后一个，目标是去掉第一个：第 i 个输入预测第 i+1 个",
       hint="ids[:-1] 与 ids[1:]")
def targets_shift(student, rng):
    ids = tokens(rng, 5)
    student(ids).equals((ids[:-1], ids[1:]))


@check("targets_from", "batch", section=TARGETS, claim="只沿最后一轴错位：一批句子各错各的",
       hint="写 ids[..., :-1] 与 ids[..., 1:]，前面的轴不动")
def targets_batch(student, rng):
    ids = tokens(rng, 2, 4)
    student(ids).equals((ids[:, :-1], ids[:, 1:]))


@check("targets_from", "untouched", section=TARGETS, claim="传进来的 ids 不变", hint="切片就够了，不要就地改")
def targets_untouched(student, rng):
    student(tokens(rng, 4)).keeps_arguments()


@check("targets_from", "short", section=TARGETS, claim="不足两个词元时报 ValueError：没有“下一个”可以预测",
       hint="先看 ids.shape[-1]")
def targets_short(student, rng):
    student(np.array([3])).raises(ValueError)


# ---- leaks -----------------------------------------------------------------------------------------------

SUMS = Callback("lambda X: np.cumsum(X, axis=0)")
AVERAGE = Callback("lambda X: X.mean(axis=0) + 0 * X")
REVERSED = Callback("lambda X: X[::-1] * 1.0")
DELAYED = Callback("lambda X: np.vstack([0 * X[:1], X[:-1]])")  # its row j doesn't even depend on row j of X
SELF = Callback("lambda X: np.tanh(X)")
FAINT = Callback("lambda X: X + 1e-9 * X[-1]")
NEXT = Callback("lambda X: X + np.vstack([X[1:], 0 * X[:1]])")
SECOND = Callback("lambda X: np.cumsum(X, axis=0) + X[-1:, 1:2]")
FIRST_ONLY = Callback("lambda X: X + np.eye(len(X))[:, :1] * X[-1]")


@check("leaks", "causal", section=LEAK, claim="只看自己与左边的函数没有泄漏：返回 False",
       hint="第 j 行自己和它右边变了是应该的，只比较 j 之前的行")
def leaks_causal(student, rng):
    X = small(rng, 5, 3)
    for f in (DELAYED, SUMS, SELF):
        student(f, X, 2).equals(False)


@check("leaks", "leaky", section=LEAK, claim="第 j 行变了，前面任何一行跟着变，就是泄漏：返回 True",
       hint="改动 X[j]，再算一次，比较两次输出的 [:j]")
def leaks_leaky(student, rng):
    X = small(rng, 5, 3)
    for f in (AVERAGE, REVERSED):
        student(f, X, 4).equals(True)


@check("leaks", "neighbour", section=LEAK, claim="只偷看右边一个位置、只让某一行知道，也是泄漏",
       hint="要比较 j 之前的全部行，而不只是第 0 行或第 j−1 行")
def leaks_neighbour(student, rng):
    X = small(rng, 6, 3)
    student(NEXT, X, 3).equals(True)
    student(FIRST_ONLY, X, 5).equals(True)


@check("leaks", "component", section=LEAK, claim="只通过某一个分量偷看，也是泄漏：改动要动到第 j 行的每个分量",
       hint="改的时候整行都要变，例如 X[j] + 1，而不是只改 X[j, 0]")
def leaks_component(student, rng):
    student(SECOND, small(rng, 4, 3), 3).equals(True)


@check("leaks", "faint", section=LEAK, claim="再小的影响也是泄漏：逐位比较，不留容差",
       hint="用 np.array_equal，不要用 np.allclose")
def leaks_faint(student, rng):
    student(FAINT, small(rng, 4, 2), 3).equals(True)


@check("leaks", "zero-row", section=LEAK, claim="第 j 行原来是 0 也测得出来：改动必须真的改变了它",
       hint="乘 2 或换成 0 对一行 0 没有作用；加一个数")
def leaks_zero_row(student, rng):
    X = small(rng, 4, 2)
    X[3] = 0
    student(AVERAGE, X, 3).equals(True)


@check("leaks", "untouched", section=LEAK, claim="传进来的 X 不变", hint="先 X.copy() 再改")
def leaks_untouched(student, rng):
    student(SUMS, small(rng, 4, 2), 1).keeps_arguments()


# ---- sequence_loss ---------------------------------------------------------------------------------------

@check("sequence_loss", "shift", section=LOSS, claim="第 i 行得分预测第 i+1 个词元；最后一行没有目标，不计入",
       hint="logits[:-1] 配 ids[1:]，再对这 n−1 个位置取平均")
def loss_shift(student, rng):
    for n in (4, 6):
        logits, ids = small(rng, n, 5, scale=2.0), tokens(rng, n)
        student(logits, ids).equals(sentence_loss(logits.tolist(), ids.tolist()))


@check("sequence_loss", "uniform", section=LOSS, claim="什么都不知道（得分全同）时，损失是 ln V",
       hint="每个位置是 −ln p，p 是 softmax 给正确词元的概率；自然对数，取平均")
def loss_uniform(student, rng):
    ids = tokens(rng, 5, V=7)
    student(np.zeros((5, 7)), ids).equals(math.log(7))


@check("sequence_loss", "batch", section=LOSS, claim="前面可以有批：对所有句子、所有有目标的位置一起取平均",
       hint="用 ... 写下标：logits[..., :-1, :] 与 ids[..., 1:]；取概率用 np.take_along_axis")
def loss_batch(student, rng):
    logits, ids = small(rng, 2, 4, 5, scale=2.0), tokens(rng, 2, 4)
    student(logits, ids).equals(batch_loss(logits, ids))


@check("sequence_loss", "large", section=LOSS, claim="得分大到 1000 也不溢出；一行得分同加一个数，损失不变",
       hint="每行先减去最大值（4.2）；直接算 z − max − ln Σe^(z−max)，不要先算概率再取对数")
def loss_large(student, rng):
    logits, ids = small(rng, 4, 5, scale=2.0), tokens(rng, 4)
    student(logits + 1000.0, ids).equals(sentence_loss(logits.tolist(), ids.tolist()), rtol=1e-6, atol=1e-9)
    logits[1] -= 2000.0 * (np.arange(5) == ids[2])
    student(logits, ids).equals(sentence_loss(logits.tolist(), ids.tolist()), rtol=1e-6)


@check("sequence_loss", "untouched", section=LOSS, claim="logits 与 ids 都不变", hint="logits -= … 会改掉调用者的数组")
def loss_untouched(student, rng):
    student(small(rng, 3, 4), tokens(rng, 3, V=4)).keeps_arguments()


@check("sequence_loss", "short", section=LOSS, claim="不足两个词元时报 ValueError", hint="没有一个位置有目标，平均没有意义")
def loss_short(student, rng):
    student(np.zeros((1, 3)), np.array([1])).raises(ValueError)
