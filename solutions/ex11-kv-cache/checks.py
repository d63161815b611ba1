"""ex11-kv-cache 的隐藏检查。缓存的定义就是“结果相同”：参考从不用缓存，每次都从头算整句。"""

import math

import numpy as np

from grading.checks import check, small

SAME, MEMORY, GROUPS = "11.3", "11.5", "11.6"
PARAMS = ("W_Q", "W_K", "W_V", "W_O")


# ---- 参考 ------------------------------------------------------------------------------------------------

def rotate(x, position, base=10000.0):
    """One head of one token, pair by pair: component i with component i + d/2."""
    half, result = len(x) // 2, x.copy()
    for i in range(half):
        angle = position * base ** (-i / half)
        a, b = x[i], x[i + half]
        result[i], result[i + half] = a * math.cos(angle) - b * math.sin(angle), a * math.sin(angle) + b * math.cos(angle)
    return result


def whole(x, params, h):
    """Causal attention with rotary positions over the whole sequence at once, head by head, token by token."""
    w, output = params["W_Q"].shape[1] // h, np.zeros((len(x), params["W_O"].shape[1]))
    for t in range(h):
        own = slice(t * w, (t + 1) * w)
        q, k = ([rotate(row, i) for i, row in enumerate(x @ params[name][:, own])] for name in ("W_Q", "W_K"))
        v = x @ params["W_V"][:, own]
        for i in range(len(x)):
            scores = [float(q[i] @ k[j]) / math.sqrt(w) for j in range(i + 1)]
            powers = [math.exp(s - max(scores)) for s in scores]
            head = sum(power * v[j] for j, power in enumerate(powers)) / math.fsum(powers)
            output[i] += head @ params["W_O"][own]
    return output


def setting(rng, n, d=4, width=8):
    """Tokens and parameters; h = 2 heads of 4."""
    x = small(rng, n, d)
    return x, {name: small(rng, d, width) for name in PARAMS[:3]} | {"W_O": small(rng, width, d)}, 2


def kv(rng, n, heads=2, width=4):
    """As wide as those of the visible tests: a class that keeps what they stored can take them up, and is found out by the result."""
    return small(rng, heads, n, width), small(rng, heads, n, width)


# ---- KVCache ---------------------------------------------------------------------------------------------

@check("KVCache", "store", section=SAME, claim="存进去的 k、v 原样取得出来；新建的缓存里只有它自己存的",
       hint="get(layer) 返回 (k, v)：先键后值")
def cache_store(student, rng):
    first, second = kv(rng, 3), kv(rng, 2)
    student.plays([1], ("append", 0, *first), ("get", 0), ("new",), ("append", 0, *second), ("get", 0)).equals(
        {"a.get(0)": first, "b.get(0)": second}, of=lambda r: {"a.get(0)": r[1], "b.get(0)": r[4]})


@check("KVCache", "grow", section=SAME, claim="新的接在旧的之后，沿词元那一轴（倒数第二轴）；append 交回从头到现在的全部",
       hint="np.concatenate([旧, 新], axis=-2)")
def cache_grow(student, rng):
    parts = [kv(rng, n) for n in (3, 1, 2)]
    everything = [np.concatenate(p, axis=-2) for p in zip(*parts)]
    so_far = [tuple(np.concatenate(p, axis=-2) for p in zip(*parts[:i])) for i in (1, 2, 3)]
    steps = [("append", 0, k, v) for k, v in parts]
    student.plays([1], *steps, ("get", 0)).equals([*so_far, tuple(everything)])


@check("KVCache", "layers", section=SAME, claim="各层互不相干", hint="每层一份：[None] * n 可以，[[]] * n 则是同一个列表的 n 个名字")
def cache_layers(student, rng):
    (k0, v0), (k1, v1) = kv(rng, 2), kv(rng, 2)
    student.plays([2], ("append", 0, k0, v0), ("append", 1, k1, v1), ("get", 0), ("get", 1)).equals(
        [(k0, v0), (k1, v1), (k0, v0), (k1, v1)])


@check("KVCache", "length", section=SAME, claim="len 是已存的词元个数，也就是下一个词元的位置；刚建好是 0",
       hint="数词元，不数 append 的次数，也不把各层加起来：看第 0 层 k 的倒数第二轴")
def cache_length(student, rng):
    steps = [("len",)]
    for n in (3, 1):
        for layer in (0, 1):
            steps.append(("append", layer, *kv(rng, n)))
        steps.append(("len",))
    student.plays([2], *steps).equals({"刚建好": 0, "两层各存 3 个之后": 3, "再各存 1 个之后": 4},
                                      of=lambda r: {"刚建好": r[0], "两层各存 3 个之后": r[3], "再各存 1 个之后": r[6]})


@check("KVCache", "reset", section=SAME, claim="reset 之后与新建的一样：每一层都空了", hint="换提示之前要清空，位置从 0 重新数")
def cache_reset(student, rng):
    old, (k, v) = kv(rng, 3), kv(rng, 2)
    steps = [("append", 0, *old), ("append", 1, *old), ("reset",), ("len",), ("append", 0, k, v), ("append", 1, k, v), ("len",)]
    student.plays([2], *steps).equals(
        {"reset 之后的 len(a)": 0, "再存入第 0 层": (k, v), "再存入第 1 层": (k, v), "最后的 len(a)": 2},
        of=lambda r: {"reset 之后的 len(a)": r[3], "再存入第 0 层": r[4], "再存入第 1 层": r[5], "最后的 len(a)": r[6]})


@check("KVCache", "separate", section=SAME, claim="两个缓存互不相干：几个序列不会串在一起",
       hint="状态要放在 self 上，在 __init__ 里新建；放在类上，或用可变的默认参数，所有对象就共用一份")
def cache_separate(student, rng):
    first, second = kv(rng, 3), kv(rng, 1)
    steps = [("append", 0, *first), ("new",), ("len",), ("append", 0, *second), ("first",), ("get", 0), ("len",)]
    student.plays([1], *steps).equals({"len(b)": 0, "b 存入之后": second, "a.get(0)": first, "len(a)": 3},
                                      of=lambda r: {"len(b)": r[2], "b 存入之后": r[3], "a.get(0)": r[5], "len(a)": r[6]})


# ---- decode_step -----------------------------------------------------------------------------------------

def check_split(student, rng, sizes):
    """Feed the tokens in pieces of these sizes, each with the past that the last call gave back."""
    x, params, h = setting(rng, sum(sizes))
    expected, start, past = whole(x, params, h), 0, None
    for size in sizes:
        outcome = student(x[start:start + size], past, params, h)
        outcome.equals(expected[start:start + size], of=lambda result: result[0])
        past, start = outcome.value[1], start + size


@check("decode_step", "prefill", section=SAME, claim="一次送完（past=None）：就是第 6 章的因果注意力，位置从 0 数起",
       hint="投影 → 切头 → 旋转 q 和 k → 加因果掩码的注意力 → 接回 → 乘 W_O")
def decode_prefill(student, rng):
    for n in (1, 4):
        check_split(student, rng, (n,))


@check("decode_step", "one-by-one", section=SAME, claim="一个一个送，与一次送完相同：新词元的位置是缓存里已有的个数",
       hint="start = 0 if past is None else past[0].shape[-2]；q 和 k 都按 start + np.arange(n) 旋转")
def decode_one_by_one(student, rng):
    check_split(student, rng, (1, 1, 1, 1))
    check_split(student, rng, (3, 1, 1))


@check("decode_step", "chunks", section=SAME, claim="任意切分都相同：一段里的几个新词元之间也有因果掩码",
       hint="causal_mask(新的个数, 全部的个数)：最后一个查询对齐最后一个键")
def decode_chunks(student, rng):
    for sizes in ((2, 3), (3, 2, 1), (1, 4)):
        check_split(student, rng, sizes)


@check("decode_step", "branches", section=SAME, claim="past 不被改动：同一段开头可以接两种不同的续写",
       hint="np.concatenate 会建新数组；不要在 past 上就地写")
def decode_branches(student, rng):
    x, params, h = setting(rng, 4)
    _, past = student(x[:2], None, params, h).value
    alone, _ = student(x[3:4], past, params, h).value
    student(x[2:3], past, params, h).keeps_arguments()
    student(x[3:4], past, params, h).equals(np.array(alone), of=lambda result: result[0])


# ---- repeat_kv -------------------------------------------------------------------------------------------

@check("repeat_kv", "values", section=GROUPS, claim="每个键值头连着重复：0 0 1 1，不是 0 1 0 1", hint="np.repeat，不是 np.tile")
def repeat_values(student, rng):
    for heads, groups in ((2, 2), (3, 2), (2, 3)):
        x = np.arange(heads * 2.0).reshape(heads, 2, 1)
        student(x, groups).equals(np.array([x[t] for t in range(heads) for _ in range(groups)]))


@check("repeat_kv", "ends", section=GROUPS, claim="groups = 1 原样不变（MHA）；只有一个键值头时人人用它（MQA）", hint="不需要特别处理")
def repeat_ends(student, rng):
    x = small(rng, 2, 3, 2)
    student(x, 1).equals(x)
    student(x[:1], 4).equals(np.stack([x[0]] * 4))


@check("repeat_kv", "batch", section=GROUPS, claim="重复的是倒数第三轴（头），前面有批的轴时也一样", hint="axis=-3，从后面数")
def repeat_batch(student, rng):
    x = small(rng, 2, 2, 3, 1)
    student(x, 2).equals(np.stack([np.stack([s[t] for t in range(2) for _ in range(2)]) for s in x]))


@check("repeat_kv", "dtype", section=GROUPS, claim="float32 进，float32 出；输入不被改动", hint="结果的 dtype 取自 x")
def repeat_dtype(student, rng):
    student(small(rng, 2, 3, 2).astype(np.float32), 2).has_dtype(np.float32).keeps_arguments()


# ---- kv_cache_bytes --------------------------------------------------------------------------------------

def numbers(rng):
    """Layers, heads, width, tokens, batch, bytes: all different primes, so that no two factors can be confused."""
    return [int(n) for n in rng.permutation([3, 5, 7, 11, 13, 17])]


@check("kv_cache_bytes", "textbook", section=MEMORY, claim="48 层、8 个键值头、头宽 128、1 万个词元、每个数 2 字节：1.966 GB",
       hint="2 × 层数 × 批 × 词元数 × 键值头数 × 头宽 × 每个数的字节数")
def bytes_textbook(student, rng):
    student((48, 8, 128), 10_000).equals(1_966_080_000)
    student((1, 8, 128), 10_000).equals(40_960_000)


@check("kv_cache_bytes", "factors", section=MEMORY, claim="每个因子各乘一次；K 与 V 各一份", hint="最前面的 2 是 K 和 V 两份，与每个数的字节数无关")
def bytes_factors(student, rng):
    layers, heads, width, n, batch, size = numbers(rng)
    student((layers, heads, width), n, batch, size).equals(2 * layers * heads * width * n * batch * size)
    student((layers, heads, width), n, batch=batch).equals(2 * layers * heads * width * n * batch * 2)


@check("kv_cache_bytes", "integer", section=MEMORY, claim="结果是整数个字节；0 个词元就是 0", hint="只有乘法，不要除，也不要换算成 MB")
def bytes_integer(student, rng):
    layers, heads, width, n, *_ = numbers(rng)
    student((layers, heads, width), 0).equals(0)
    student((layers, heads, width), n).satisfies(lambda r: type(r) is int, "应返回 int")


@check("kv_cache_bytes", "negative", section=MEMORY, claim="负的词元数报 ValueError", hint="n_tokens < 0 时 raise ValueError")
def bytes_negative(student, rng):
    student((2, 2, 4), -1).raises(ValueError)
