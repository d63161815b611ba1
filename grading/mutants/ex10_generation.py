"""ex10-generation 的错误写法与其他正确写法。"""

import numpy as np

from grading.mutants import mutant, right

TEMPERATURE, TOP_K, TOP_P, LOOP = "10.3", "10.4", "10.5", "10.1"


def softmax(z):
    e = np.exp(z - z.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def check_T(T):
    if T < 0:
        raise ValueError("T 不能为负")


def only_best(logits):
    best = np.arange(logits.shape[-1]) == logits.argmax(-1)[..., None]
    return np.where(best, logits, -np.inf)


# ---- apply_temperature：错误写法 ---------------------------------------------------------------------------

@mutant("apply_temperature", "乘以 T", "是除以 T：T 小于 1 时差距要变大", TEMPERATURE, caught_by="values")
def multiplied(logits, T):
    check_T(T)
    return only_best(logits) if T == 0 else logits * np.asarray(T, logits.dtype)


@mutant("apply_temperature", "返回了概率", "这里要的是得分：softmax 留到最后做，中间还要筛选", TEMPERATURE, caught_by="values")
def probabilities(logits, T):
    check_T(T)
    return only_best(logits) if T == 0 else softmax(logits / np.asarray(T, logits.dtype))


@mutant("apply_temperature", "除概率而不是除得分", "温度除的是 softmax 之前的得分；概率除以一个数再归一，什么也没变", TEMPERATURE, caught_by="values")
def divides_probabilities(logits, T):
    check_T(T)
    return only_best(logits) if T == 0 else softmax(logits) / np.asarray(T, logits.dtype)


@mutant("apply_temperature", "除以 1 + T", "就除以 T；T = 1 时分布不变", TEMPERATURE, caught_by="values")
def one_plus(logits, T):
    check_T(T)
    return only_best(logits) if T == 0 else logits / np.asarray(1 + T, logits.dtype)


@mutant("apply_temperature", "忽略了 T", "得分要除以 T", TEMPERATURE, caught_by="values", seen_in="inclusionAI/LLaDA2.X/issues/6")
def ignored(logits, T):
    check_T(T)
    return only_best(logits) if T == 0 else logits.copy()


@mutant("apply_temperature", "T = 0 时照样相除", "除以零得到 inf 或 nan；T = 0 约定为贪心", TEMPERATURE, caught_by="zero",
        seen_in=("google-deepmind/gemma/issues/562", "ggml-org/llama.cpp/issues/684"))
def divides_by_zero(logits, T):
    check_T(T)
    return logits / np.asarray(T, logits.dtype)


@mutant("apply_temperature", "T = 0 时除以一个很小的数", "得分只是变得很大，谁也没有筛掉：T = 0 要用 argmax，其余写成 −∞", TEMPERATURE, caught_by="zero")
def divides_by_little(logits, T):
    check_T(T)
    return logits / np.asarray(max(T, 1e-8), logits.dtype)


@mutant("apply_temperature", "T = 0 时返回了编号", "返回的仍是一行得分：最大的原样留下，其余写成 −∞", TEMPERATURE, caught_by="zero")
def gives_the_index(logits, T):
    check_T(T)
    return logits.argmax(-1) if T == 0 else logits / np.asarray(T, logits.dtype)


@mutant("apply_temperature", "T = 0 时当作没有设置", "T = 0 是贪心，不是“不改变”", TEMPERATURE, caught_by="zero")
def zero_means_unset(logits, T):
    check_T(T)
    return logits / np.asarray(T or 1.0, logits.dtype)


@mutant("apply_temperature", "并列的最大者都留下", "贪心只取一个：并列时留编号小的", TEMPERATURE, caught_by="zero")
def keeps_all_ties(logits, T):
    check_T(T)
    if T == 0:
        return np.where(logits == logits.max(-1, keepdims=True), logits, -np.inf)
    return logits / np.asarray(T, logits.dtype)


@mutant("apply_temperature", "T = 0 时对整个数组取最大", "每一行各有自己的最大者：沿最后一轴", TEMPERATURE, caught_by="zero")
def global_best(logits, T):
    check_T(T)
    if T == 0:
        best = np.zeros(logits.shape, bool)
        best.flat[logits.argmax()] = True
        return np.where(best, logits, -np.inf)
    return logits / np.asarray(T, logits.dtype)


@mutant("apply_temperature", "提升成了 float64", "float32 进 float32 出：不要 astype(float)", TEMPERATURE, caught_by="dtype")
def promoted(logits, T):
    check_T(T)
    logits = logits.astype(np.float64)
    return only_best(logits) if T == 0 else logits / T


@mutant("apply_temperature", "就地除", "logits /= T 改掉了调用者的数组；写成 logits / T", TEMPERATURE, caught_by="untouched")
def in_place(logits, T):
    check_T(T)
    if T == 0:
        return only_best(logits)
    logits /= T
    return logits


@mutant("apply_temperature", "负的 T 不报错", "负温度把最小的变成最大的，悄悄给出相反的结果", TEMPERATURE, caught_by="refused")
def negative_allowed(logits, T):
    return only_best(logits) if T == 0 else logits / np.asarray(T, logits.dtype)


@right("apply_temperature", "先减最大值再除，再加回去")
def shifted(logits, T):
    check_T(T)
    if T == 0:
        return only_best(logits)
    T = np.asarray(T, logits.dtype)
    peak = logits.max(-1, keepdims=True)
    return (logits - peak) / T + peak / T


@right("apply_temperature", "乘以倒数")
def by_reciprocal(logits, T):
    check_T(T)
    return only_best(logits) if T == 0 else logits * np.asarray(1 / T, logits.dtype)


@right("apply_temperature", "T = 0 时先全填 −∞，再放回最大的")
def fills_first(logits, T):
    check_T(T)
    if T == 0:
        out = np.full_like(logits, -np.inf)
        best = logits.argmax(-1)[..., None]
        np.put_along_axis(out, best, np.take_along_axis(logits, best, -1), -1)
        return out
    return np.true_divide(logits, np.asarray(T, logits.dtype))


# ---- top_k_filter：错误写法 --------------------------------------------------------------------------------

def check_k(k):
    if k < 1:
        raise ValueError("k 应不小于 1")


def first_k(logits, k):
    order = np.argsort(-logits, axis=-1, kind="stable")[..., :k]
    mask = np.zeros(logits.shape, bool)
    np.put_along_axis(mask, order, True, -1)
    return mask


@mutant("top_k_filter", "留下了最小的 k 个", "从大到小排：np.argsort(-logits)", TOP_K, caught_by="values")
def smallest(logits, k):
    check_k(k)
    return logits.copy() if k >= logits.shape[-1] else np.where(first_k(-logits, k), logits, -np.inf)


@mutant("top_k_filter", "砍掉的写成 0", "0 是一个普通的得分，可能比留下的还大；要写 −∞", TOP_K, caught_by="values")
def zeros(logits, k):
    check_k(k)
    return logits.copy() if k >= logits.shape[-1] else np.where(first_k(logits, k), logits, 0.0)


@mutant("top_k_filter", "只返回了留下的 k 个", "长度与次序都不能变：第 i 个得分属于第 i 个词元", TOP_K, caught_by="values")
def shortened(logits, k):
    check_k(k)
    return logits.copy() if k >= logits.shape[-1] else np.take_along_axis(logits, np.argsort(-logits, axis=-1, kind="stable")[..., :k], -1)


@mutant("top_k_filter", "按大小排了序返回", "位置就是编号，不能排序", TOP_K, caught_by="values")
def sorted_out(logits, k):
    check_k(k)
    ordered = -np.sort(-logits, axis=-1)
    return logits.copy() if k >= logits.shape[-1] else np.where(np.arange(logits.shape[-1]) < k, ordered, -np.inf)


@mutant("top_k_filter", "多留了一个", "恰好留 k 个：第 k 名是 sorted[-k]，不是 sorted[-k-1]", TOP_K, caught_by="values")
def one_more(logits, k):
    check_k(k)
    return logits.copy() if k >= logits.shape[-1] else np.where(first_k(logits, k + 1), logits, -np.inf)


@mutant("top_k_filter", "少留了一个", "第 k 名自己也留下：用 >=，不是 >", TOP_K, caught_by="values")
def one_less(logits, k):
    check_k(k)
    return logits.copy() if k >= logits.shape[-1] else np.where(first_k(logits, k - 1), logits, -np.inf)


@mutant("top_k_filter", "返回了概率", "这里要的是得分；改成 −∞ 之后 softmax 会自动归一", TOP_K, caught_by="values")
def returns_probabilities(logits, k):
    check_k(k)
    return logits.copy() if k >= logits.shape[-1] else softmax(np.where(first_k(logits, k), logits, -np.inf))


@mutant("top_k_filter", "对整个数组取前 k 个", "每一行各留自己的前 k 个：沿最后一轴", TOP_K, caught_by="rows")
def across_rows(logits, k):
    check_k(k)
    if k >= logits.shape[-1]:
        return logits.copy()
    return np.where(first_k(logits.ravel(), k).reshape(logits.shape), logits, -np.inf)


@mutant("top_k_filter", "用第一行的门槛砍所有行", "每一行有自己的第 k 名", TOP_K, caught_by="rows")
def first_threshold(logits, k):
    check_k(k)
    if k >= logits.shape[-1]:
        return logits.copy()
    kept = first_k(logits.reshape(-1, logits.shape[-1])[0], k)
    return np.where(np.broadcast_to(kept, logits.shape), logits, -np.inf)


@mutant("top_k_filter", "并列时全留下", "“不小于第 k 名的都留”在并列时多于 k 个；恰好留 k 个，编号小的优先", TOP_K, caught_by="ties")
def keeps_ties(logits, k):
    check_k(k)
    if k >= logits.shape[-1]:
        return logits.copy()
    return np.where(logits >= np.sort(logits, axis=-1)[..., -k, None], logits, -np.inf)


@mutant("top_k_filter", "并列时留编号大的", "np.argsort(logits)[-k:] 在并列时取到后面的；用 argsort(-logits, kind=\"stable\")[:k]", TOP_K, caught_by="ties")
def later_ties(logits, k):
    check_k(k)
    if k >= logits.shape[-1]:
        return logits.copy()
    mask = np.zeros(logits.shape, bool)
    np.put_along_axis(mask, np.argsort(logits, axis=-1, kind="stable")[..., -k:], True, -1)
    return np.where(mask, logits, -np.inf)


@mutant("top_k_filter", "k 大于词表时出错", "k 不小于词表就是全留：先比较，再取第 k 名", TOP_K, caught_by="large-k")
def fails_when_large(logits, k):
    check_k(k)
    kth = np.sort(logits, axis=-1)[..., -k]
    return np.where(first_k(logits, k), logits, np.where(kth[..., None] > np.inf, logits, -np.inf))


@mutant("top_k_filter", "就地写了 −∞", "logits[…] = -np.inf 改掉了调用者的数组；先复制，或用 np.where", TOP_K, caught_by="untouched")
def writes_in_place(logits, k):
    check_k(k)
    if k < logits.shape[-1]:
        logits[~first_k(logits, k)] = -np.inf
    return logits


@mutant("top_k_filter", "k = 0 时不报错", "一个不留，softmax 就成了 0/0；应报 ValueError", TOP_K, caught_by="refused")
def zero_allowed(logits, k):
    return logits.copy() if k >= logits.shape[-1] else np.where(first_k(logits, k), logits, -np.inf)


@right("top_k_filter", "两次 argsort 得名次")
def by_rank(logits, k):
    check_k(k)
    rank = np.argsort(np.argsort(-logits, axis=-1, kind="stable"), axis=-1, kind="stable")
    return np.where(rank < k, logits, -np.inf)


@right("top_k_filter", "逐行循环")
def row_by_row(logits, k):
    check_k(k)
    out = np.full(logits.shape, -np.inf)
    for row in np.ndindex(logits.shape[:-1]):
        for i in sorted(range(logits.shape[-1]), key=lambda i: (-logits[row][i], i))[:k]:
            out[row][i] = logits[row][i]
    return out


@right("top_k_filter", "一个个挑最大的")
def pick_one_by_one(logits, k):
    check_k(k)
    left, out = logits.copy(), np.full(logits.shape, -np.inf)
    for _ in range(min(k, logits.shape[-1])):
        best = left.argmax(-1)[..., None]
        np.put_along_axis(out, best, np.take_along_axis(logits, best, -1), -1)
        np.put_along_axis(left, best, -np.inf, -1)
    return out


# ---- top_p_filter：错误写法 --------------------------------------------------------------------------------

def check_p(p):
    if not 0 < p <= 1:
        raise ValueError("p 应在 (0, 1] 内")


def nucleus(logits, p, inclusive=True, order=None, probs=None):
    """Mask of the nucleus; the knobs are where people go wrong."""
    order = np.argsort(-logits, axis=-1, kind="stable") if order is None else order
    probs = softmax(logits) if probs is None else probs
    ranked = np.take_along_axis(probs, order, -1)
    total = ranked.cumsum(-1)
    kept = (total - ranked < p) if inclusive else (total <= p)
    mask = np.zeros(logits.shape, bool)
    np.put_along_axis(mask, order, kept, -1)
    return mask


def filtered(logits, p, mask):
    return logits.copy() if p == 1 else np.where(mask, logits, -np.inf)


@mutant("top_p_filter", "砍掉了跨过 p 的那一个", "总和要达到 p，所以跨过 p 的那一个要留；否则最大的概率超过 p 时一个不剩", TOP_P, caught_by="values")
def drops_crossing(logits, p):
    check_p(p)
    return filtered(logits, p, nucleus(logits, p, inclusive=False))


@mutant("top_p_filter", "留下概率大于 p 的", "比的是累计的概率，不是单个的概率", TOP_P, caught_by="values")
def single_threshold(logits, p):
    check_p(p)
    return filtered(logits, p, softmax(logits) > p)


@mutant("top_p_filter", "从小到大累加", "要从大到小：np.argsort(-logits)", TOP_P, caught_by="values")
def ascending(logits, p):
    check_p(p)
    return filtered(logits, p, nucleus(logits, p, order=np.argsort(logits, axis=-1, kind="stable")))


@mutant("top_p_filter", "没有排序就累加", "先从大到小排序，再累加", TOP_P, caught_by="values")
def unsorted(logits, p):
    check_p(p)
    probs = softmax(logits)
    return filtered(logits, p, probs.cumsum(-1) - probs < p)


@mutant("top_p_filter", "累加了得分而不是概率", "先 softmax 成概率，再累加", TOP_P, caught_by="values")
def cumulates_scores(logits, p):
    check_p(p)
    return filtered(logits, p, nucleus(logits, p, probs=logits / np.abs(logits).sum(-1, keepdims=True)))


@mutant("top_p_filter", "返回了概率", "这里要的是得分：留下的不动，砍掉的写成 −∞", TOP_P, caught_by="values", seen_in="ml-explore/mlx-lm/pull/388")
def gives_probabilities(logits, p):
    check_p(p)
    return logits.copy() if p == 1 else softmax(np.where(nucleus(logits, p), logits, -np.inf))


@mutant("top_p_filter", "留下累计到 1 − p 的尾巴", "要留的是头，不是尾", TOP_P, caught_by="values")
def keeps_the_tail(logits, p):
    check_p(p)
    return filtered(logits, p, ~nucleus(logits, p))


@mutant("top_p_filter", "按大小排了序返回", "位置就是编号：排序之后要放回原处", TOP_P, caught_by="values")
def returns_sorted(logits, p):
    check_p(p)
    order = np.argsort(-logits, axis=-1, kind="stable")
    return logits.copy() if p == 1 else np.take_along_axis(np.where(nucleus(logits, p), logits, -np.inf), order, -1)


@mutant("top_p_filter", "把名次的掩码当成了编号的掩码", "累加得到的“留”是按名次排的，要用排序的位置放回原来的编号", TOP_P, caught_by="values")
def mask_not_restored(logits, p):
    check_p(p)
    ranked = -np.sort(-softmax(logits), axis=-1)
    return filtered(logits, p, ranked.cumsum(-1) - ranked < p)


@mutant("top_p_filter", "正好达到 p 时还多留一个", "前面的和已经等于 p，就达到了：留下的是前面的和小于 p 的，不是小于等于", TOP_P, caught_by="reached")
def one_beyond(logits, p):
    check_p(p)
    order = np.argsort(-logits, axis=-1, kind="stable")
    ranked = np.take_along_axis(softmax(logits), order, -1)
    mask = np.zeros(logits.shape, bool)
    np.put_along_axis(mask, order, ranked.cumsum(-1) - ranked <= p, -1)
    return filtered(logits, p, mask)


@mutant("top_p_filter", "对整个数组累加", "每一行各自累加：axis=-1", TOP_P, caught_by="rows")
def whole_array(logits, p):
    check_p(p)
    flat = logits.ravel()
    return filtered(logits, p, nucleus(flat, p).reshape(logits.shape))


@mutant("top_p_filter", "所有行留一样多个", "候选数随上下文伸缩，每行各不相同", TOP_P, caught_by="rows")
def same_count(logits, p):
    check_p(p)
    first = logits.reshape(-1, logits.shape[-1])[0]
    count = int(nucleus(first, p).sum())
    return filtered(logits, p, first_k(logits, count))


@mutant("top_p_filter", "p = 1 时误删了尾巴", "累加的和因舍入提前到了 1；p = 1 时直接返回全部", TOP_P, caught_by="everything")
def loses_the_tail(logits, p):
    check_p(p)
    return np.where(nucleus(logits, p), logits, -np.inf)


@mutant("top_p_filter", "p = 1 也拒绝", "p = 1 是合理的：全部留下", TOP_P, caught_by="everything")
def refuses_one(logits, p):
    check_p(p)
    if p == 1:
        raise ValueError("p")
    return np.where(nucleus(logits, p), logits, -np.inf)


@mutant("top_p_filter", "softmax 没有减最大值", "e 的 1000 次方溢出；先减去最大值", TOP_P, caught_by="large")
def overflows(logits, p):
    check_p(p)
    e = np.exp(logits)
    return filtered(logits, p, nucleus(logits, p, probs=e / e.sum(-1, keepdims=True)))


@mutant("top_p_filter", "就地写了 −∞", "先复制，或用 np.where", TOP_P, caught_by="untouched")
def overwrites(logits, p):
    check_p(p)
    if p < 1:
        logits[~nucleus(logits, p)] = -np.inf
    return logits


@mutant("top_p_filter", "p 不合理时不报错", "p = 0 没有可选的，p 大于 1 没有意义；应报 ValueError", TOP_P, caught_by="refused")
def accepts_anything(logits, p):
    return logits.copy() if p >= 1 else np.where(nucleus(logits, p), logits, -np.inf)


@right("top_p_filter", "逐行循环")
def loop_rows(logits, p):
    check_p(p)
    if p == 1:
        return logits.copy()
    out = np.full(logits.shape, -np.inf)
    for row in np.ndindex(logits.shape[:-1]):
        probs, total = softmax(logits[row]), 0.0
        for i in np.argsort(-logits[row], kind="stable"):
            if total >= p:
                break
            out[row][i] = logits[row][i]
            total += probs[i]
    return out


@right("top_p_filter", "右移一格的掩码")
def shifted_mask(logits, p):
    check_p(p)
    if p == 1:
        return logits.copy()
    order = np.argsort(-logits, axis=-1, kind="stable")
    reached = np.take_along_axis(softmax(logits), order, -1).cumsum(-1) >= p
    drop = np.concatenate([np.zeros_like(reached[..., :1]), reached[..., :-1]], axis=-1)
    out = logits.copy()
    mask = np.empty_like(drop)
    np.put_along_axis(mask, order, drop, -1)
    out[mask] = -np.inf
    return out


@right("top_p_filter", "每个词元数一数排在它前面的概率")
def sum_before(logits, p):
    check_p(p)
    if p == 1:
        return logits.copy()
    probs, index = softmax(logits), np.arange(logits.shape[-1])
    mine, other = logits[..., :, None], logits[..., None, :]
    ahead = (other > mine) | ((other == mine) & (index[None, :] < index[:, None]))
    return np.where((ahead * probs[..., None, :]).sum(-1) < p, logits, -np.inf)


# ---- generate：错误写法 ------------------------------------------------------------------------------------

def best(scores):
    return int(np.argmax(scores))


@mutant("generate", "没有把新词元接回去", "新词元要接到末尾，再一起送进模型", LOOP, caught_by="loop")
def never_fed_back(model, ids, max_new_tokens, context_length, stop_id=None):
    out = list(ids)
    for _ in range(max_new_tokens):
        out.append(best(model(list(ids)[-context_length:])))
        if out[-1] == stop_id:
            break
    return out


@mutant("generate", "只返回了新词元", "返回提示加新词元", LOOP, caught_by="loop")
def only_new(model, ids, max_new_tokens, context_length, stop_id=None):
    return right_way(model, ids, max_new_tokens, context_length, stop_id)[len(ids):]


@mutant("generate", "每步取得分最小的", "取最大的：argmax", LOOP, caught_by="loop")
def worst(model, ids, max_new_tokens, context_length, stop_id=None):
    out = list(ids)
    for _ in range(max_new_tokens):
        out.append(int(np.argmin(model(out[-context_length:]))))
        if out[-1] == stop_id:
            break
    return out


@mutant("generate", "新词元接到了开头", "接到末尾", LOOP, caught_by="loop")
def prepended(model, ids, max_new_tokens, context_length, stop_id=None):
    out = list(ids)
    for _ in range(max_new_tokens):
        out.insert(0, best(model(out[-context_length:])))
        if out[0] == stop_id:
            break
    return out


@mutant("generate", "只送最后一个词元进模型", "没有缓存时要送整个序列：模型要看到全部上文", LOOP, caught_by="loop")
def last_only(model, ids, max_new_tokens, context_length, stop_id=None):
    out = list(ids)
    for _ in range(max_new_tokens):
        out.append(best(model(out[-1:])))
        if out[-1] == stop_id:
            break
    return out


@mutant("generate", "少生成了一个", "循环 max_new_tokens 次", LOOP, caught_by="loop")
def one_short(model, ids, max_new_tokens, context_length, stop_id=None):
    return right_way(model, ids, max(0, max_new_tokens - 1), context_length, stop_id)


@mutant("generate", "把 max_new_tokens 当成了总长", "它是新词元的个数，不含提示", LOOP, caught_by="loop")
def total_length(model, ids, max_new_tokens, context_length, stop_id=None):
    return right_way(model, ids, max(0, max_new_tokens - len(ids)), context_length, stop_id)


@mutant("generate", "遇到 stop_id 不停", "接上之后检查：是 stop_id 就停", LOOP, caught_by="stop")
def never_stops(model, ids, max_new_tokens, context_length, stop_id=None):
    return right_way(model, ids, max_new_tokens, context_length, None)


@mutant("generate", "停下时丢掉了 stop_id", "结果含 stop_id：先接上，再停", LOOP, caught_by="stop")
def drops_stop(model, ids, max_new_tokens, context_length, stop_id=None):
    out = right_way(model, ids, max_new_tokens, context_length, stop_id)
    return out[:-1] if len(out) > len(ids) and out[-1] == stop_id else out


@mutant("generate", "提示里有 stop_id 就不生成了", "只看新生成的词元", LOOP, caught_by="stop")
def stops_on_prompt(model, ids, max_new_tokens, context_length, stop_id=None):
    return list(ids) if stop_id in list(ids) else right_way(model, ids, max_new_tokens, context_length, stop_id)


@mutant("generate", "没有截取上下文", "送进模型的至多 context_length 个：ids[-context_length:]", LOOP, caught_by="crop")
def never_cropped(model, ids, max_new_tokens, context_length, stop_id=None):
    return right_way(model, ids, max_new_tokens, 10**6, stop_id)


@mutant("generate", "截取了最前面的", "要最后 context_length 个，不是最前面的", LOOP, caught_by="crop")
def crops_the_front(model, ids, max_new_tokens, context_length, stop_id=None):
    out = list(ids)
    for _ in range(max_new_tokens):
        out.append(best(model(out[:context_length])))
        if out[-1] == stop_id:
            break
    return out


@mutant("generate", "返回的序列也被截短了", "截的只是送进模型的那一份；返回的是全部", LOOP, caught_by="crop")
def result_cropped(model, ids, max_new_tokens, context_length, stop_id=None):
    return right_way(model, ids, max_new_tokens, context_length, stop_id)[-context_length:] if max_new_tokens else list(ids)


@mutant("generate", "至少生成一个", "max_new_tokens 是 0 时原样返回提示", LOOP, caught_by="nothing")
def at_least_one(model, ids, max_new_tokens, context_length, stop_id=None):
    return right_way(model, ids, max(1, max_new_tokens), context_length, stop_id)


@mutant("generate", "往传进来的 ids 里接", "ids.append 改掉了调用者的列表；先 list(ids)", LOOP, caught_by="untouched")
def appends_to_argument(model, ids, max_new_tokens, context_length, stop_id=None):
    for _ in range(max_new_tokens):
        ids.append(best(model(ids[-context_length:])))
        if ids[-1] == stop_id:
            break
    return ids


@right("generate", "循环")
def right_way(model, ids, max_new_tokens, context_length, stop_id=None):
    out = list(ids)
    for _ in range(max_new_tokens):
        out.append(best(model(out[-context_length:])))
        if out[-1] == stop_id:
            break
    return out


@right("generate", "递归")
def recursive(model, ids, max_new_tokens, context_length, stop_id=None):
    if max_new_tokens == 0:
        return list(ids)
    new = best(model(list(ids)[-context_length:]))
    longer = [*ids, new]
    return longer if new == stop_id else recursive(model, longer, max_new_tokens - 1, context_length, stop_id)


@right("generate", "先分配好数组，返回 NumPy 数组")
def preallocated(model, ids, max_new_tokens, context_length, stop_id=None):
    out = np.zeros(len(ids) + max_new_tokens, dtype=np.int64)
    out[: len(ids)] = ids
    n = len(ids)
    while n < len(out):
        out[n] = best(model(out[max(0, n - context_length):n].tolist()))
        n += 1
        if stop_id is not None and out[n - 1] == stop_id:
            break
    return out[:n]
