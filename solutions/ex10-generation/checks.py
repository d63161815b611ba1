"""ex10-generation 的隐藏检查。参考值由这里逐个数算出，不用 lib，也不用学生那种整块数组的写法。"""

import math

import numpy as np

from grading.checks import Callback, check, small

TEMPERATURE, TOP_K, TOP_P, LOOP = "10.3", "10.4", "10.5", "10.1"


# ---- 参考 ------------------------------------------------------------------------------------------------

def probabilities(row):
    peak = max(row)
    powers = [math.exp(z - peak) for z in row]
    total = math.fsum(powers)
    return [p / total for p in powers]


def best_first(row):
    """Ids from the highest score down; of two equal scores the smaller id first."""
    return sorted(range(len(row)), key=lambda i: (-row[i], i))


def keep(row, ids):
    return [z if i in ids else -math.inf for i, z in enumerate(row)]


def top_k(row, k):
    return keep(row, set(best_first(row)[:k]))


def top_p(row, p):
    chosen, total, probs = set(), 0.0, probabilities(row)
    for i in best_first(row):
        if total >= p:
            break
        chosen.add(i)
        total += probs[i]
    return keep(row, chosen)


def each_row(function, logits, *rest):
    rows = logits.reshape(-1, logits.shape[-1]).tolist()
    return np.array([function(row, *rest) for row in rows]).reshape(logits.shape)


def distinct(rng, *shape):
    """Scores of which no two in a row are equal."""
    x = small(rng, *shape, scale=2.0)
    return np.round(x + 0.01 * np.arange(shape[-1]), 2)


# ---- apply_temperature -----------------------------------------------------------------------------------

@check("apply_temperature", "values", section=TEMPERATURE, claim="得分除以 T：T 小于 1 拉大差距，大于 1 抹平差距",
       hint="softmax 之前除，返回的仍是得分，不是概率")
def temperature_values(student, rng):
    z = distinct(rng, 4)
    for T in (0.5, 2.0, 1.0):
        student(z, T).equals(np.array([v / T for v in z.tolist()]))


@check("apply_temperature", "rows", section=TEMPERATURE, claim="前面可以有任意几个轴，每行一样地除",
       hint="logits / T 对任何形状都成立")
def temperature_rows(student, rng):
    z = distinct(rng, 2, 3, 4)
    student(z, 0.8).equals(z / 0.8)


@check("apply_temperature", "zero", section=TEMPERATURE, claim="T = 0 是贪心：只留最大的那个，其余 −∞；并列时留编号小的",
       hint="T = 0 时不能相除；用 argmax 找到位置，其余写成 -np.inf（argmax 在并列时给出编号最小的）")
def temperature_zero(student, rng):
    z = distinct(rng, 5)
    student(z, 0).satisfies(lambda r: np.array_equal(np.isfinite(r), np.isfinite(top_k(z.tolist(), 1))), "T = 0 时应只剩最大的那一个是有限的，其余为 −∞")
    tie = np.array([1.0, 3.0, 2.0, 3.0])
    student(tie, 0).satisfies(lambda r: np.isfinite(r).tolist() == [False, True, False, False], "两个 3.0 并列时应只留编号小的（第 1 个）")
    rows = distinct(rng, 2, 4)
    student(rows, 0).satisfies(lambda r: np.array_equal(np.isfinite(r), np.isfinite(each_row(top_k, rows, 1))), "每一行各留自己的最大者")


@check("apply_temperature", "dtype", section=TEMPERATURE, claim="float32 进，float32 出", hint="不要转成 float64")
def temperature_dtype(student, rng):
    student(distinct(rng, 3).astype(np.float32), 0.5).has_dtype(np.float32)


@check("apply_temperature", "untouched", section=TEMPERATURE, claim="传进来的 logits 不变", hint="logits /= T 会改掉调用者的数组")
def temperature_untouched(student, rng):
    student(distinct(rng, 3), 2.0).keeps_arguments()


@check("apply_temperature", "refused", section=TEMPERATURE, claim="T 小于 0 时报 ValueError：负温度会把排名倒过来", hint="先检查 T")
def temperature_refused(student, rng):
    student(distinct(rng, 3), -1.0).raises(ValueError)


# ---- top_k_filter ----------------------------------------------------------------------------------------

@check("top_k_filter", "values", section=TOP_K, claim="得分最高的 k 个原样留下，其余 −∞，位置不变",
       hint="返回的还是得分：留下的不动，砍掉的写成 -np.inf，softmax 之后自动归一")
def top_k_values(student, rng):
    z = distinct(rng, 6)
    for k in (2, 4, 1):
        student(z, k).equals(np.array(top_k(z.tolist(), k)))


@check("top_k_filter", "rows", section=TOP_K, claim="每一行各留自己的前 k 个", hint="沿最后一轴排序，前面的轴各管各的")
def top_k_rows(student, rng):
    z = distinct(rng, 2, 5)
    student(z, 2).equals(each_row(top_k, z, 2))


@check("top_k_filter", "ties", section=TOP_K, claim="第 k 名并列时恰好留 k 个，编号小的优先",
       hint="“不小于第 k 名的都留”在并列时会多留；用稳定排序取前 k 个位置")
def top_k_ties(student, rng):
    z = np.array([1.0, 2.0, 2.0, 0.0, 2.0])
    student(z, 2).equals(np.array(top_k(z.tolist(), 2)))


@check("top_k_filter", "large-k", section=TOP_K, claim="k 不小于词表时原样返回", hint="先比较 k 与 logits.shape[-1]")
def top_k_large(student, rng):
    z = distinct(rng, 4)
    for k in (4, 50):
        student(z, k).equals(z)


@check("top_k_filter", "untouched", section=TOP_K, claim="传进来的 logits 不变", hint="在副本上写 -np.inf，或用 np.where")
def top_k_untouched(student, rng):
    student(distinct(rng, 4), 2).keeps_arguments()


@check("top_k_filter", "refused", section=TOP_K, claim="k 小于 1 时报 ValueError：一个不留就没有可选的了", hint="先检查 k")
def top_k_refused(student, rng):
    student(distinct(rng, 3), 0).raises(ValueError)


# ---- top_p_filter ----------------------------------------------------------------------------------------

@check("top_p_filter", "values", section=TOP_P, claim="从大到小累加概率，留到总和达到 p 为止，跨过 p 的那一个也留；其余 −∞",
       hint="某个词元留不留，看排在它前面的概率之和是否已经达到 p")
def top_p_values(student, rng):
    z = distinct(rng, 6)
    for p in (0.5, 0.8, 0.95):
        student(z, p).equals(np.array(top_p(z.tolist(), p)))


@check("top_p_filter", "at-least-one", section=TOP_P, claim="最大的概率自己就超过 p 时，仍留下它",
       hint="第一名前面的和是 0，总小于 p，所以它总留下")
def top_p_one(student, rng):
    z = np.array([0.0, 5.0, 1.0])
    student(z, 0.5).equals(np.array([-np.inf, 5.0, -np.inf]))
    student(z, 1e-6).equals(np.array([-np.inf, 5.0, -np.inf]))


@check("top_p_filter", "reached", section=TOP_P, claim="累加的和正好等于 p 时已经达到，不再多留",
       hint="留下“排在它前面的和小于 p”的；用小于，不用小于等于")
def top_p_reached(student, rng):
    for V, p in ((2, 0.5), (4, 0.5), (4, 0.75)):  # 1/2 and 1/4 are exact, and so are their sums
        student(np.zeros(V), p).equals(int(V * p), of=lambda result: int(np.isfinite(result).sum()))


@check("top_p_filter", "order", section=TOP_P, claim="结果按原来的编号排列，不是按大小",
       hint="排序之后要放回原处：np.put_along_axis，或用排序的逆（argsort 两次）")
def top_p_order(student, rng):
    z = np.array([0.1, 2.0, -1.0, 1.5, 0.3])
    student(z, 0.7).equals(np.array(top_p(z.tolist(), 0.7)))


@check("top_p_filter", "rows", section=TOP_P, claim="每一行各自累加，留下的个数可以不同", hint="沿最后一轴排序与累加")
def top_p_rows(student, rng):
    z = np.round(np.stack([4.0 * distinct(rng, 5), 0.2 * distinct(rng, 5)]), 3)
    student(z, 0.8).equals(each_row(top_p, z, 0.8))


@check("top_p_filter", "everything", section=TOP_P, claim="p = 1 保留全部：舍入不许误删尾巴",
       hint="累加的和可能因舍入提前到 1，再往后的就被误删；p = 1 时直接返回副本")
def top_p_everything(student, rng):
    z = np.array([0.0, 40.0, 1.0, -30.0])
    student(z, 1.0).equals(z)


@check("top_p_filter", "large", section=TOP_P, claim="得分大到 1000 也算得对", hint="softmax 先减去最大值")
def top_p_large(student, rng):
    z = distinct(rng, 5)
    student(z + 1000.0, 0.7).equals(np.array(top_p(z.tolist(), 0.7)) + 1000.0)


@check("top_p_filter", "untouched", section=TOP_P, claim="传进来的 logits 不变", hint="在副本上写 -np.inf")
def top_p_untouched(student, rng):
    student(distinct(rng, 4), 0.6).keeps_arguments()


@check("top_p_filter", "refused", section=TOP_P, claim="p 不在 (0, 1] 内时报 ValueError", hint="先检查 p；0 与 1.5 都没有意义")
def top_p_refused(student, rng):
    for p in (0.0, 1.5):
        student(distinct(rng, 3), p).raises(ValueError)


# ---- generate --------------------------------------------------------------------------------------------

COUNTER = Callback("lambda ids: -np.abs(np.arange(V) - (ids[-1] + 1) % V).astype(float)", V=6)  # the next number, round and round
LENGTH = Callback("lambda ids: -np.abs(np.arange(V) - len(ids) % V).astype(float)", V=9)  # tells how long its input was
SUM = Callback("lambda ids: -np.abs(np.arange(V) - sum(ids) % V).astype(float)", V=7)  # depends on everything it sees


def run(model, ids, count, context, stop=None):
    ids = list(ids)
    for _ in range(count):
        scores = model(ids[-context:]).tolist()
        ids.append(best_first(scores)[0])
        if ids[-1] == stop:
            break
    return ids


def as_list(result):
    """An array of ids is as good as a list of them, and an id may be any kind of integer."""
    return [int(i) for i in np.asarray(result).ravel()] if isinstance(result, (list, tuple, np.ndarray)) else result


def gives(outcome, expected):
    outcome.equals(expected, of=as_list)


@check("generate", "loop", section=LOOP, claim="每一步取得分最大的词元，接到末尾，再送进去；返回提示加新词元",
       hint="for 循环：得分 = model(ids)，选 argmax，append")
def generate_loop(student, rng):
    for start in ([1], [4, 2]):
        gives(student(COUNTER, start, 3, 8), run(COUNTER, start, 3, 8))
    gives(student(SUM, [1, 2], 4, 8), run(SUM, [1, 2], 4, 8))


@check("generate", "stop", section=LOOP, claim="遇到 stop_id 就停，含它；没遇到就写够 max_new_tokens 个",
       hint="append 之后检查是不是 stop_id，是就 break")
def generate_stop(student, rng):
    gives(student(COUNTER, [1], 5, 8, 3), run(COUNTER, [1], 5, 8, 3))
    gives(student(COUNTER, [3], 2, 8, 3), run(COUNTER, [3], 2, 8, 3))


@check("generate", "crop", section=LOOP, claim="序列长过 context_length 时，只送最后 context_length 个进模型；返回的仍是全部",
       hint="model(ids[-context_length:])；不要把 ids 本身截短")
def generate_crop(student, rng):
    gives(student(LENGTH, [0, 0, 0], 4, 4), run(LENGTH, [0, 0, 0], 4, 4))
    gives(student(SUM, [5, 3, 6, 2], 3, 2), run(SUM, [5, 3, 6, 2], 3, 2))


@check("generate", "nothing", section=LOOP, claim="max_new_tokens 是 0 时原样返回提示", hint="循环一次也不执行")
def generate_nothing(student, rng):
    gives(student(COUNTER, [2, 5], 0, 8), [2, 5])


@check("generate", "untouched", section=LOOP, claim="传进来的 ids 不变", hint="先 list(ids) 复制一份再 append")
def generate_untouched(student, rng):
    student(COUNTER, [1, 2], 3, 8).keeps_arguments()
