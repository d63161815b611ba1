"""自回归生成：每次选出一个词元，接到末尾，再问下一个；键值缓存让旧词元不必重算。

超出 context_length 怎么办：装不下时丢掉最旧的半个窗口，剩下的从位置 0 重新编号（见 window_start）。
这条规则只取决于总长度，所以有没有缓存、提示怎样分段，生成的词元都一样。
"""
import numpy as np

from lib._checks import as_count, as_ids  # 入口检查：个数、0…n-1 的编号；不合格就报错
from lib.sampling import sample

__all__ = ["KVCache", "LayerCache", "window_start", "generate", "stream"]


class KVCache:
    """每层一个 LayerCache，预先按 context_length 分配好；model(ids, cache=cache) 会往里追加。

    能缓存，是因为因果掩码使旧词元的 K、V 不随新词元改变。一个缓存只服务一批固定的序列，换提示前先 reset。
    """

    def __init__(self, config, batch=1, dtype=np.float32):
        shape = (as_count(batch, "batch"), config.kv_heads, config.context_length, config.d_head)
        self.layers = [LayerCache(shape, dtype) for _ in range(config.n_layers)]

    @property
    def length(self):
        """已经存下的词元个数，也是下一个词元的位置。"""
        return self.layers[0].length

    def __len__(self):
        return self.length

    @property
    def nbytes(self):
        """为 K 和 V 分配的字节数，等于 accounting.kv_cache_bytes(config, context_length, batch, 每个数的字节数)。"""
        return sum(layer.k.nbytes + layer.v.nbytes for layer in self.layers)

    def truncate(self, length):
        """只留前 length 个词元：退回几步重来，或与别的提示共用一个开头。"""
        if not 0 <= length <= self.length:
            raise ValueError(f"length 应在 0…{self.length}（已有的词元个数）之内，收到 {length}")
        for layer in self.layers:
            layer.length = length

    def reset(self):
        """清空，从位置 0 重新开始；内存留着再用。"""
        self.truncate(0)


class LayerCache:
    """一层的键值缓存：k、v 是 [batch, n_kv_heads, capacity, d_head]，前 length 个有效。"""

    def __init__(self, shape, dtype=np.float32):
        # 内存里词元那一轴连续：逐个生成时一个查询要读遍全部 k 和 v，这样读最快
        in_memory = (*shape[:2], shape[3], shape[2])
        # swapaxes 只换看法不动内存：用起来仍是 [batch, n_kv_heads, capacity, d_head]
        self.k, self.v = (np.empty(in_memory, dtype).swapaxes(-1, -2) for _ in range(2))
        self.length = 0

    def append(self, k, v):
        """存下新词元的 k、v，交回从头到现在的全部（是缓存的视图，不复制）。

        没有批的 k [n_kv_heads, n, d_head] 当作 batch=1，交回的也没有批那一轴。

        形状：k [batch, n_kv_heads, n, d_head], v [batch, n_kv_heads, n, d_head]
            -> k [batch, n_kv_heads, n, d_head], v [batch, n_kv_heads, n, d_head]
        错误：形状或精度与建缓存时不符、装不下时报错。
        """
        batch, heads, capacity, width = self.k.shape
        expected = (batch, heads, *k.shape[-2:-1], width)  # 倒数第二轴是词元数，多少都行
        single = batch == 1 and k.ndim == 3
        if k.shape != v.shape or k.shape != (expected[1:] if single else expected):
            raise ValueError(f"这个缓存装 [batch={batch}, n_kv_heads={heads}, n, d_head={width}] 的 k 和 v，"
                             f"收到 k {k.shape}、v {v.shape}；几个序列一起算时请用 KVCache(config, batch=序列数)")
        if k.dtype != self.k.dtype:
            raise TypeError(f"缓存是 {self.k.dtype}，k 是 {k.dtype}；请用 KVCache(config, dtype=model.dtype)")
        stop = self.length + k.shape[-2]
        if stop > capacity:
            raise ValueError(f"缓存只能装 {capacity} 个词元，已有 {self.length} 个，再加 {k.shape[-2]} 个装不下；请先 reset")
        # 写进预留的位置：若每步 concatenate，会把整个缓存复制一遍
        self.k[:, :, self.length : stop], self.v[:, :, self.length : stop] = k, v
        self.length = stop
        everything = np.s_[0, :, :stop] if single else np.s_[:, :, :stop]
        return self.k[everything], self.v[everything]


def window_start(n, context_length):
    """前 n 个词元里，模型从第几个看起：装得下从 0；装不下就每次让出半个窗口，而不是每步挪一格。

    每步挪一格会让所有词元的位置都变，缓存次次作废；半个窗口让一次，重算的代价摊到半个窗口的步数上。
    """
    if n <= context_length:
        return 0
    hop = max(1, context_length // 2)
    return -(-(n - context_length) // hop) * hop  # 向上取整到 hop 的倍数


def generate(model, ids, max_new_tokens, *, rng=None, temperature=1.0, top_k=None, top_p=None, stop_ids=(),
             use_cache=True):
    """接着 ids 生成至多 max_new_tokens 个词元，返回提示和新词元（整数列表）；遇到 stop_ids 里的词元就停（含它）。

    采样的顺序是 temperature（温度，除 logits）→ top_k（只留得分最高的几个）→ top_p（只留概率加起来够 p 的前几个）；
    后两项 None 是不筛。temperature=0 是贪心，可以不给 rng；否则 rng 是 numpy.random.default_rng(种子)。
    use_cache=False 每步都从头重算，词元相同，只是慢。ids 不会被改动。

    错误：ids 为空或不是一维、编号不在词表内、max_new_tokens 为负时报错。
    """
    new = stream(model, ids, max_new_tokens, rng=rng, temperature=temperature, top_k=top_k, top_p=top_p,
                 stop_ids=stop_ids, use_cache=use_cache)
    return [int(i) for i in ids] + list(new)


def stream(model, ids, max_new_tokens, *, rng=None, temperature=1.0, top_k=None, top_p=None, stop_ids=(),
           use_cache=True):
    """同 generate，但逐个交出新词元：每算出一个就能显示一个。参数和错误也相同。"""
    context = model.config.context_length
    ids = as_ids(ids, "ids", model.config.vocab_size)
    if ids.ndim != 1 or ids.size == 0:
        raise ValueError(f"ids 应是一维、至少一个词元的提示，收到形状 {ids.shape}；多个提示请分别生成")
    max_new_tokens = as_count(max_new_tokens, "max_new_tokens", 0)
    cache = KVCache(model.config, dtype=model.dtype) if use_cache else None
    # 逐步生成放在另一个函数里：那里有 yield，要到取第一个词元才执行；上面的检查则在调用时就做
    return _steps(model, ids.tolist(), max_new_tokens, cache, context, set(stop_ids),
                  lambda logits: sample(logits, rng, temperature, top_k, top_p))


def _steps(model, ids, max_new_tokens, cache, context, stop_ids, choose):
    """一步一个词元；choose 从最后一行 logits 里选出编号，start 是窗口从第几个词元开始。"""
    start = 0
    for _ in range(max_new_tokens):
        previous, start = start, window_start(len(ids), context)
        if cache is None:
            new = ids[start:]
        else:
            if start != previous:
                cache.reset()  # 窗口挪了，位置全变了，旧的 K、V 不能再用
            new = ids[start + cache.length :]  # 第一步是整个提示，以后每步只有一个
        logits = model(np.array(new), cache=cache, last_only=True)[-1]
        ids.append(int(choose(logits)))
        yield ids[-1]
        if ids[-1] in stop_ids:
            return
