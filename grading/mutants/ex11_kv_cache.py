"""ex11-kv-cache 的错误写法与其他正确写法。"""

import math

import numpy as np

from grading.mutants import mutant, right

SAME, MEMORY, GROUPS = "11.3", "11.5", "11.6"


def join(old, new):
    return new if old is None else np.concatenate([old, new], axis=-2)


class Right:
    """A right cache whose pieces the mutants replace."""

    def __init__(self, n_layers):
        self.store = [None] * n_layers

    def append(self, layer, k, v):
        old = self.store[layer]
        self.store[layer] = (k, v) if old is None else (join(old[0], k), join(old[1], v))
        return self.store[layer]

    def get(self, layer):
        return self.store[layer]

    def __len__(self):
        return 0 if self.store[0] is None else self.store[0][0].shape[-2]

    def reset(self):
        self.store = [None] * len(self.store)


# ---- KVCache：错误写法 --------------------------------------------------------------------------------------

@mutant("KVCache", "k 与 v 取反了", "get 返回 (k, v)：先键后值", SAME, caught_by="store")
class SwappedPair(Right):
    def get(self, layer):
        return self.store[layer][::-1]


@mutant("KVCache", "get 返回一段段的列表", "各段要沿词元那一轴接成一个数组", SAME, caught_by="store")
class Pieces(Right):
    def __init__(self, n_layers):
        super().__init__(n_layers)
        self.pieces = [([], []) for _ in range(n_layers)]

    def append(self, layer, k, v):
        self.pieces[layer][0].append(k)
        self.pieces[layer][1].append(v)
        return super().append(layer, k, v)

    def get(self, layer):
        return self.pieces[layer]


@mutant("KVCache", "几个缓存共用一份状态", "写在类里的列表、字典，可变的默认参数（store=[]），都只有一份，所有对象共用；在 __init__ 里新建，放到 self 上",
        SAME, caught_by="store")
class SharedState(Right):
    kept = {}  # of the class: outlives every object

    def __init__(self, n_layers):
        pass

    def append(self, layer, k, v):
        old_k, old_v = self.kept.get(layer, (None, None))
        self.kept[layer] = join(old_k, k), join(old_v, v)
        return self.kept[layer]

    def get(self, layer):
        return self.kept[layer]

    def __len__(self):
        return self.kept[0][0].shape[-2] if 0 in self.kept else 0

    def reset(self):
        self.kept.clear()


@mutant("KVCache", "新建一个缓存，就清掉了别的", "KVCache.store = … 写的是类，不是这个对象：写 self.store = …", SAME, caught_by="separate")
class ClearsOthers(Right):
    def __init__(self, n_layers):
        type(self).store = [None] * n_layers

    def reset(self):
        type(self).store = [None] * len(self.store)


@mutant("KVCache", "新的盖掉了旧的", "要接在旧的之后，旧词元以后每一步都要看", SAME, caught_by="grow")
class Overwrites(Right):
    def append(self, layer, k, v):
        self.store[layer] = (k, v)
        return k, v


@mutant("KVCache", "append 只交回新的", "新词元要看全部：交回从头到现在的", SAME, caught_by="grow")
class ReturnsNew(Right):
    def append(self, layer, k, v):
        super().append(layer, k, v)
        return k, v


@mutant("KVCache", "append 什么也没交回", "交回从头到现在的 (k, v)", SAME, caught_by="grow")
class ReturnsNothing(Right):
    def append(self, layer, k, v):
        super().append(layer, k, v)


@mutant("KVCache", "沿头的轴接起来", "词元是倒数第二轴：axis=-2", SAME, caught_by="grow")
class WrongAxis(Right):
    def append(self, layer, k, v):
        old = self.store[layer]
        self.store[layer] = (k, v) if old is None else tuple(np.concatenate(p, axis=0) for p in zip(old, (k, v)))
        return self.store[layer]


@mutant("KVCache", "新的接在了旧的前面", "次序就是位置：新的接在后面", SAME, caught_by="grow")
class Prepends(Right):
    def append(self, layer, k, v):
        old = self.store[layer]
        self.store[layer] = (k, v) if old is None else (join(k, old[0]), join(v, old[1]))
        return self.store[layer]


@mutant("KVCache", "只存了 k", "v 也要接上：注意力取的是它", SAME, caught_by="grow")
class KeysOnly(Right):
    def append(self, layer, k, v):
        old = self.store[layer]
        self.store[layer] = (k, v) if old is None else (join(old[0], k), v)
        return self.store[layer]


@mutant("KVCache", "所有层共用一份", "每层一份：[[]] * n 是同一个列表的 n 个名字", SAME, caught_by="layers")
class SharedLayers(Right):
    def append(self, layer, k, v):
        result = super().append(0, k, v)
        self.store = [result] * len(self.store)
        return result


@mutant("KVCache", "len 数的是 append 的次数", "一次可以存几个词元：数 k 的倒数第二轴", SAME, caught_by="length")
class CountsCalls(Right):
    def __init__(self, n_layers):
        super().__init__(n_layers)
        self.calls = 0

    def append(self, layer, k, v):
        self.calls += layer == 0
        return super().append(layer, k, v)

    def __len__(self):
        return self.calls

    def reset(self):
        super().reset()
        self.calls = 0


@mutant("KVCache", "len 把各层加在一起", "各层存的是同样的词元：只数一层", SAME, caught_by="length")
class SumsLayers(Right):
    def __len__(self):
        return sum(pair[0].shape[-2] for pair in self.store if pair is not None)


@mutant("KVCache", "len 数的是头", "k 的三轴是头、词元、头宽：词元是倒数第二轴", SAME, caught_by="length")
class CountsHeads(Right):
    def __len__(self):
        return 0 if self.store[0] is None else len(self.store[0][0])


@mutant("KVCache", "len 是层数", "len 是已存的词元个数", SAME, caught_by="length")
class CountsLayers(Right):
    def __len__(self):
        return len(self.store)


@mutant("KVCache", "刚建好时 len 出错", "还没有存过时是 0", SAME, caught_by="length")
class EmptyFails(Right):
    def __len__(self):
        return self.store[0][0].shape[-2]


@mutant("KVCache", "reset 只清了第 0 层", "每一层都要清", SAME, caught_by="reset", seen_in="rasbt/LLMs-from-scratch/pull/925")
class ResetsFirst(Right):
    def reset(self):
        self.store[0] = None


@mutant("KVCache", "reset 没有清空", "换提示之前要把存下的都丢掉，len 回到 0", SAME, caught_by="reset", seen_in="rasbt/LLMs-from-scratch/pull/925")
class ResetsNothing(Right):
    def reset(self):
        pass


@mutant("KVCache", "reset 之后 len 没有归零", "自己记着的长度也是状态：reset 时一起归零", SAME, caught_by="reset")
class KeepsLength(Right):
    def __init__(self, n_layers):
        super().__init__(n_layers)
        self.length = 0

    def append(self, layer, k, v):
        self.length += k.shape[-2] if layer == 0 else 0
        return super().append(layer, k, v)

    def __len__(self):
        return self.length


# ---- KVCache：其他正确写法 -----------------------------------------------------------------------------------

right("KVCache", "每层一对数组，接上去")(Right)


@right("KVCache", "每层存各段，取的时候再接")
class Lazy:
    def __init__(self, n_layers):
        self.k, self.v = ({layer: [] for layer in range(n_layers)} for _ in range(2))

    def append(self, layer, k, v):
        self.k[layer].append(k)
        self.v[layer].append(v)
        return self.get(layer)

    def get(self, layer):
        return np.concatenate(self.k[layer], axis=-2), np.concatenate(self.v[layer], axis=-2)

    def __len__(self):
        return sum(k.shape[-2] for k in self.k[0])

    def reset(self):
        self.__init__(len(self.k))


@right("KVCache", "预先分配，记住用到第几个")
class Allocated:
    def __init__(self, n_layers):
        self.n_layers = n_layers
        self.reset()

    def append(self, layer, k, v):
        if layer not in self.room:
            self.room[layer] = [np.zeros((*k.shape[:-2], 64, k.shape[-1])) for _ in range(2)]
        start, stop = self.used[layer], self.used[layer] + k.shape[-2]
        self.room[layer][0][..., start:stop, :], self.room[layer][1][..., start:stop, :] = k, v
        self.used[layer] = stop
        return self.get(layer)

    def get(self, layer):
        return tuple(a[..., :self.used[layer], :] for a in self.room[layer])

    def __len__(self):
        return self.used[0]

    def reset(self):
        self.room, self.used = {}, [0] * self.n_layers


# ---- decode_step：错误写法 ----------------------------------------------------------------------------------

def rotary(x, positions, base=10000.0):
    half = x.shape[-1] // 2
    angles = np.asarray(positions)[:, None] * base ** (-np.arange(half) / half)
    a, b = x[..., :half], x[..., half:]
    return np.concatenate([a * np.cos(angles) - b * np.sin(angles), a * np.sin(angles) + b * np.cos(angles)], axis=-1)


def split(x, h):
    return x.reshape(len(x), h, -1).swapaxes(0, 1)


def merge(x):
    return x.swapaxes(0, 1).reshape(x.shape[1], -1)


def attend(q, k, v, mask, width=None):
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(width or q.shape[-1])
    scores = scores if mask is None else np.where(mask, scores, -np.inf)
    with np.errstate(invalid="ignore"):
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        return powers / powers.sum(-1, keepdims=True) @ v


def step(x, past, params, n_heads, *, position=lambda n_past, n: n_past + np.arange(n), turn_k=True, turn_v=False,
         mask=lambda n, total: np.tri(n, total, total - n, dtype=bool), keep=lambda old, new: join(old, new),
         see=lambda old, new: join(old, new), output=True, scale=None):
    """A right step whose pieces the mutants replace."""
    q, k, v = (split(x @ params[name], n_heads) for name in ("W_Q", "W_K", "W_V"))
    old_k, old_v = past if past is not None else (None, None)
    n_past, n = 0 if old_k is None else old_k.shape[-2], len(x)
    places = position(n_past, n)
    q, k = rotary(q, places), rotary(k, places) if turn_k else k
    v = rotary(v, places) if turn_v else v
    all_k, all_v = see(old_k, k), see(old_v, v)
    heads = attend(q, all_k, all_v, mask(n, all_k.shape[-2]), scale(params) if scale else None)
    result = merge(heads) @ params["W_O"] if output else merge(heads)
    return result, (keep(old_k, k), keep(old_v, v))


@mutant("decode_step", "没有因果掩码", "一段里的几个新词元之间，前面的也不能看后面的", SAME, caught_by="prefill")
def no_mask(x, past, params, n_heads):
    return step(x, past, params, n_heads, mask=lambda n, total: None)


@mutant("decode_step", "没有旋转 k", "q 和 k 都要按自己的位置旋转，得分才只取决于相对距离", SAME, caught_by="prefill")
def unrotated_keys(x, past, params, n_heads):
    return step(x, past, params, n_heads, turn_k=False)


@mutant("decode_step", "连 v 也旋转了", "位置只影响谁看谁，不影响取回什么：只旋转 q 和 k", SAME, caught_by="prefill")
def rotated_values(x, past, params, n_heads):
    return step(x, past, params, n_heads, turn_v=True)


@mutant("decode_step", "没有乘 W_O", "接回之后还要乘 W_O", SAME, caught_by="prefill")
def without_output(x, past, params, n_heads):
    return step(x, past, params, n_heads, output=False)


@mutant("decode_step", "按 d_model 缩放", "应除以 √d_head", SAME, caught_by="prefill")
def scaled_by_width(x, past, params, n_heads):
    return step(x, past, params, n_heads, scale=lambda p: p["W_Q"].shape[1])


@mutant("decode_step", "q 的位置比 k 多 1", "同一个词元的 q 与 k 用同一个位置，得分才只取决于相对距离", SAME, caught_by="prefill")
def queries_ahead(x, past, params, n_heads):
    q, k, v = (split(x @ params[name], n_heads) for name in ("W_Q", "W_K", "W_V"))
    old_k, old_v = past if past is not None else (None, None)
    places = (0 if old_k is None else old_k.shape[-2]) + np.arange(len(x))
    k, q = join(old_k, rotary(k, places)), rotary(q, places + 1)
    v = join(old_v, v)
    heads = attend(q, k, v, np.tri(len(x), k.shape[-2], k.shape[-2] - len(x), dtype=bool))
    return merge(heads) @ params["W_O"], (k, v)


@mutant("decode_step", "新词元的位置从 0 数起", "它在这次输入里排第 0，在序列里排第 n_past：加上缓存里已有的个数", SAME, caught_by="one-by-one",
        seen_in="ml-explore/mlx-lm/pull/93")
def positions_restart(x, past, params, n_heads):
    return step(x, past, params, n_heads, position=lambda n_past, n: np.arange(n))


@mutant("decode_step", "拿头数当成了缓存里的个数", "past 里的 k 是 [h, n_past, d_head]：len 数的是头，词元在倒数第二轴，past[0].shape[-2]", SAME,
        caught_by="one-by-one")
def counts_heads(x, past, params, n_heads):
    return step(x, past, params, n_heads, position=lambda n_past, n: (n_heads if n_past else 0) + np.arange(n))


@mutant("decode_step", "旧的 k 又旋转了一次", "缓存里的 k 已经按自己的位置转过：只转新的，再接上", SAME, caught_by="one-by-one")
def turns_again(x, past, params, n_heads):
    q, k, v = (split(x @ params[name], n_heads) for name in ("W_Q", "W_K", "W_V"))
    old_k, old_v = past if past is not None else (None, None)
    k, v = join(old_k, k), join(old_v, v)
    n, total = len(x), k.shape[-2]
    k, q = rotary(k, np.arange(total)), rotary(q, np.arange(total - n, total))
    return merge(attend(q, k, v, np.tri(n, total, total - n, dtype=bool))) @ params["W_O"], (k, v)


@mutant("decode_step", "只返回了输出", "下一步要用新的 past：返回 (输出, (k, v))", SAME, caught_by="prefill")
def only_output(x, past, params, n_heads):
    return step(x, past, params, n_heads)[0]


@mutant("decode_step", "偏移加了两次", "位置是 n_past + 0、1、2…，偏移只加一次", SAME, caught_by="one-by-one", seen_in="skyzh/tiny-llm/pull/46")
def offset_twice(x, past, params, n_heads):
    return step(x, past, params, n_heads, position=lambda n_past, n: 2 * n_past + np.arange(n))


@mutant("decode_step", "一段里的词元都用同一个位置", "每个新词元有自己的位置：n_past + np.arange(n)", SAME, caught_by="prefill")
def one_position(x, past, params, n_heads):
    return step(x, past, params, n_heads, position=lambda n_past, n: np.full(n, n_past))


@mutant("decode_step", "没有看缓存里的", "新词元要看全部：把旧的 k、v 接在前面", SAME, caught_by="one-by-one", seen_in="lucidrains/x-transformers/issues/219")
def ignores_past(x, past, params, n_heads):
    return step(x, past, params, n_heads, see=lambda old, new: new)


@mutant("decode_step", "只交回了新的 k、v", "交回的 past 要包括旧的：下一步还要看它们", SAME, caught_by="one-by-one")
def forgets(x, past, params, n_heads):
    return step(x, past, params, n_heads, keep=lambda old, new: new)


@mutant("decode_step", "没有把新的存进去", "交回的 past 要包括这一次的新词元", SAME, caught_by="one-by-one")
def never_stores(x, past, params, n_heads):
    return step(x, past, params, n_heads, keep=lambda old, new: new if old is None else old)


@mutant("decode_step", "新的接在了旧的前面", "次序就是位置：新的接在后面", SAME, caught_by="chunks")
def prepends(x, past, params, n_heads):
    swap = lambda old, new: new if old is None else join(new, old)
    return step(x, past, params, n_heads, see=swap, keep=swap)


@mutant("decode_step", "掩码左上角对齐", "最后一个查询对齐最后一个键：第 i 个新词元能看到 n_past + i", SAME, caught_by="one-by-one")
def mask_from_the_corner(x, past, params, n_heads):
    return step(x, past, params, n_heads, mask=lambda n, total: np.tri(n, total, dtype=bool))


@mutant("decode_step", "有缓存时就不加掩码", "一次送几个新词元时，它们之间仍要因果掩码", SAME, caught_by="chunks")
def unmasked_chunks(x, past, params, n_heads):
    mask = (lambda n, total: np.tri(n, total, total - n, dtype=bool)) if past is None else (lambda n, total: None)
    return step(x, past, params, n_heads, mask=mask)


@mutant("decode_step", "就地改了 past", "past 是调用者的，还可能接别的续写：用 np.concatenate 建新数组", SAME, caught_by="branches")
def writes_into_past(x, past, params, n_heads):
    result = step(x, past, params, n_heads)
    if past is not None:
        past[0][...] = rotary(past[0], np.ones(past[0].shape[-2]))
    return result


# ---- decode_step：其他正确写法 --------------------------------------------------------------------------------

@right("decode_step", "切头、旋转、接上、注意力")
def plain(x, past, params, n_heads):
    return step(x, past, params, n_heads)


@right("decode_step", "逐头、逐词元循环")
def loops(x, past, params, n_heads):
    w = params["W_Q"].shape[1] // n_heads
    n_past = 0 if past is None else past[0].shape[-2]
    new_k, new_v = (np.zeros((n_heads, len(x), w)) for _ in range(2))
    output = np.zeros((len(x), params["W_O"].shape[1]))
    for t in range(n_heads):
        own = slice(t * w, (t + 1) * w)
        for i, token in enumerate(x):
            new_k[t, i] = rotary((token @ params["W_K"][:, own])[None], [n_past + i])[0]
            new_v[t, i] = token @ params["W_V"][:, own]
            q = rotary((token @ params["W_Q"][:, own])[None], [n_past + i])[0]
            k = new_k[t, :i + 1] if past is None else np.vstack([past[0][t], new_k[t, :i + 1]])
            v = new_v[t, :i + 1] if past is None else np.vstack([past[1][t], new_v[t, :i + 1]])
            scores = k @ q / math.sqrt(w)
            powers = np.exp(scores - scores.max())
            output[i] += powers @ v / powers.sum() @ params["W_O"][own]
    return output, (join(past and past[0], new_k), join(past and past[1], new_v))


@right("decode_step", "缓存没有旋转的 k，用的时候再转")
def rotated_when_used(x, past, params, n_heads):
    q, k, v = (split(x @ params[name], n_heads) for name in ("W_Q", "W_K", "W_V"))
    k, v = join(past and past[0], k), join(past and past[1], v)
    total, n = k.shape[-2], len(x)
    heads = attend(rotary(q, np.arange(total - n, total)), rotary(k, np.arange(total)), v,
                   np.arange(total)[None, :] <= np.arange(total - n, total)[:, None])
    return merge(heads) @ params["W_O"], (k, v)


# ---- repeat_kv：错误写法 ------------------------------------------------------------------------------------

@mutant("repeat_kv", "用了 np.tile", "tile 给出 0 1 0 1，查询头就配错了键值头；用 np.repeat", GROUPS, caught_by="values")
def tiled(x, groups):
    return np.concatenate([x] * groups, axis=-3)


@mutant("repeat_kv", "重复了词元", "重复的是头（倒数第三轴），不是词元", GROUPS, caught_by="values")
def repeats_tokens(x, groups):
    return np.repeat(x, groups, axis=-2)


@mutant("repeat_kv", "重复了头宽", "重复的是头（倒数第三轴），不是头宽", GROUPS, caught_by="values")
def repeats_width(x, groups):
    return np.repeat(x, groups, axis=-1)


@mutant("repeat_kv", "多出一个轴", "结果仍是 [h, n, d_head]：把新的轴并进头的轴", GROUPS, caught_by="values")
def extra_axis(x, groups):
    return np.repeat(x[..., :, None, :, :], groups, axis=-3)


@mutant("repeat_kv", "没有给 axis", "np.repeat 不给 axis 会把数组摊平", GROUPS, caught_by="values")
def flattened(x, groups):
    return np.repeat(x, groups)


@mutant("repeat_kv", "没有重复", "h 个查询头要 h 份：每个键值头 groups 份", GROUPS, caught_by="values")
def unchanged(x, groups):
    return x


@mutant("repeat_kv", "把 groups 当作查询头数", "groups 是每个键值头供几个查询头用", GROUPS, caught_by="values")
def groups_as_heads(x, groups):
    return np.repeat(x, max(1, groups // x.shape[-3]), axis=-3)


@mutant("repeat_kv", "乘上了份数", "每一份都与原来的相同，不要缩放", GROUPS, caught_by="values")
def scaled(x, groups):
    return np.repeat(x, groups, axis=-3) * groups


@mutant("repeat_kv", "沿第 0 轴重复", "有批的轴时第 0 轴是句子：从后面数，axis=-3", GROUPS, caught_by="batch")
def first_axis(x, groups):
    return np.repeat(x, groups, axis=0)


@mutant("repeat_kv", "总是算成 float64", "结果的 dtype 取自 x", GROUPS, caught_by="dtype")
def double(x, groups):
    return np.repeat(x.astype(np.float64), groups, axis=-3)


# ---- repeat_kv：其他正确写法 ----------------------------------------------------------------------------------

@right("repeat_kv", "np.repeat")
def with_repeat(x, groups):
    return np.repeat(x, groups, axis=-3)


@right("repeat_kv", "广播一个新轴，再并进头的轴")
def with_broadcast(x, groups):
    *lead, h, n, w = x.shape
    return np.broadcast_to(x[..., None, :, :], (*lead, h, groups, n, w)).reshape(*lead, h * groups, n, w)


@right("repeat_kv", "用下标 0 0 1 1 取")
def with_index(x, groups):
    return x[..., np.arange(x.shape[-3] * groups) // groups, :, :]


# ---- kv_cache_bytes：错误写法 --------------------------------------------------------------------------------

def product(numbers, n_tokens, batch, size, copies=2):
    if n_tokens < 0:
        raise ValueError("负的词元数")
    layers, heads, width = numbers
    return copies * layers * batch * n_tokens * heads * width * size


@mutant("kv_cache_bytes", "忘了 K 与 V 是两份", "最前面要乘 2：键一份，值一份", MEMORY, caught_by="textbook")
def one_copy(numbers, n_tokens, batch=1, bytes_per_value=2):
    return product(numbers, n_tokens, batch, bytes_per_value, 1)


@mutant("kv_cache_bytes", "忘了层数", "每一层都有自己的缓存", MEMORY, caught_by="textbook")
def one_layer(numbers, n_tokens, batch=1, bytes_per_value=2):
    return product((1, *numbers[1:]), n_tokens, batch, bytes_per_value)


@mutant("kv_cache_bytes", "忘了键值头数", "每个键值头存一份", MEMORY, caught_by="textbook")
def one_head(numbers, n_tokens, batch=1, bytes_per_value=2):
    return product((numbers[0], 1, numbers[2]), n_tokens, batch, bytes_per_value)


@mutant("kv_cache_bytes", "算成了权重表", "缓存的是 K、V，随 n 线性增长；n × n 的权重表不存", MEMORY, caught_by="textbook")
def score_table(numbers, n_tokens, batch=1, bytes_per_value=2):
    return product((numbers[0], numbers[1], 1), n_tokens, batch, bytes_per_value, 1) * n_tokens


@mutant("kv_cache_bytes", "换算成了 MB", "要的是字节数", MEMORY, caught_by="textbook")
def megabytes(numbers, n_tokens, batch=1, bytes_per_value=2):
    return product(numbers, n_tokens, batch, bytes_per_value) / 1e6


@mutant("kv_cache_bytes", "算成了比特", "bytes_per_value 已经是字节，不要再乘 8", MEMORY, caught_by="textbook")
def bits(numbers, n_tokens, batch=1, bytes_per_value=2):
    return 8 * product(numbers, n_tokens, batch, bytes_per_value)


@mutant("kv_cache_bytes", "又除以了 8", "bytes_per_value 已经是字节，不是比特：不用再除", MEMORY, caught_by="textbook")
def divided_by_eight(numbers, n_tokens, batch=1, bytes_per_value=2):
    return product(numbers, n_tokens, batch, bytes_per_value) / 8


@mutant("kv_cache_bytes", "忘了批", "几个人同时用，就是几份", MEMORY, caught_by="factors")
def no_batch(numbers, n_tokens, batch=1, bytes_per_value=2):
    return product(numbers, n_tokens, 1, bytes_per_value)


@mutant("kv_cache_bytes", "批大于 1 时只翻一倍", "乘以人数，不是翻倍", MEMORY, caught_by="factors")
def doubled_batch(numbers, n_tokens, batch=1, bytes_per_value=2):
    return product(numbers, n_tokens, min(batch, 2), bytes_per_value)


@mutant("kv_cache_bytes", "每个数总是 2 字节", "用参数 bytes_per_value：FP32 是 4，8 位量化是 1", MEMORY, caught_by="factors")
def always_half(numbers, n_tokens, batch=1, bytes_per_value=2):
    return product(numbers, n_tokens, batch, 2)


@mutant("kv_cache_bytes", "返回小数", "字节数是整数：只乘不除", MEMORY, caught_by="textbook")
def as_float(numbers, n_tokens, batch=1, bytes_per_value=2):
    return float(product(numbers, n_tokens, batch, bytes_per_value))


@mutant("kv_cache_bytes", "负的词元数也照算", "负数是调用错了：报 ValueError", MEMORY, caught_by="negative")
def negative_allowed(numbers, n_tokens, batch=1, bytes_per_value=2):
    return product(numbers, abs(n_tokens), batch, bytes_per_value) * (1 if n_tokens >= 0 else -1)


# ---- kv_cache_bytes：其他正确写法 ------------------------------------------------------------------------------

@right("kv_cache_bytes", "一个乘积")
def multiplied(numbers, n_tokens, batch=1, bytes_per_value=2):
    if n_tokens < 0:
        raise ValueError(f"n_tokens 应不小于 0，收到 {n_tokens}")
    return 2 * math.prod(numbers) * n_tokens * batch * bytes_per_value


@right("kv_cache_bytes", "数一个真的数组")
def counted(numbers, n_tokens, batch=1, bytes_per_value=2):
    if n_tokens < 0:
        raise ValueError("负的词元数")
    layers, heads, width = numbers
    return sum(np.broadcast_to(np.int8(0), (batch, heads, n_tokens, width)).size * bytes_per_value for _ in range(2 * layers))


@right("kv_cache_bytes", "逐层相加")
def layer_by_layer(numbers, n_tokens, batch=1, bytes_per_value=2):
    layers, heads, width = numbers
    if n_tokens < 0:
        raise ValueError("负的词元数")
    total = 0
    for _ in range(layers):
        for _ in ("K", "V"):
            total += batch * n_tokens * heads * width * bytes_per_value
    return total
