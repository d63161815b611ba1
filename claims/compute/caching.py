"""The key-value cache: what may be cached and why, how many computations it saves, how much memory it takes."""

import math
from types import SimpleNamespace

import numpy as np

from claims.compute.masks import small_model
from claims.judge import UNSET, Evidence
from claims.registry import computation
from lib.accounting import kv_cache_bytes
from lib.attention import multi_head_attention
from lib.generation import KVCache

PROMPT, ANSWER = "中国的首都是", "北京"


def computed_positions(prompt, new, cached):
    """Positions whose K and V are computed while `new` tokens are generated."""
    return prompt + (new - 1) if cached else sum(prompt + i for i in range(new))


@computation
def first_step_positions(prompt):
    """A generation starts from its prompt: the first step computes all of it."""
    return computed_positions(prompt, 1, cached=False)


@computation
def positions_computed(prompt, new, cached, other_prompt=None):
    other = UNSET if other_prompt is None else computed_positions(other_prompt, new, cached)
    return Evidence(computed_positions(prompt, new, cached), other=other)


@computation
def repeated_share(new):
    """The share of all positions that was computed before; 99% is the share in the last step alone."""
    total = computed_positions(1, new, cached=False)
    return Evidence((total - new) / total, other=(new - 1) / new, show={"last": (new - 1) / new})


@computation
def positions_each_step(prompt, steps):
    return [prompt + i for i in range(steps)]


@computation
def characters():
    return len(PROMPT)


@computation
def order_of_words(words):
    """The order of these words in the sentence that the loop produces."""
    sentence = PROMPT + ANSWER + "。"
    return "→".join(sorted(words, key=sentence.index))


@computation
def keys_depend_on_themselves_only():
    """Change one token: do the keys of the others change, layer by layer, before it and after it?"""
    model = small_model()
    ids, changed = np.arange(8), np.arange(8)
    changed[3] = 17

    def keys(tokens):
        cache = KVCache(model.config, dtype=np.float64)
        model(tokens, cache=cache)
        return [layer.k[0, :, :8] for layer in cache.layers]

    moved = [np.abs(a - b).max((0, 2)) for a, b in zip(keys(ids), keys(changed))]
    first, later, earlier = float(moved[0][4:].max()), float(moved[1][4:].max()), float(moved[1][:3].max())
    return Evidence(bool(later == 0), show={"first": first, "later": later, "earlier": earlier})


@computation
def cache_bytes(layers, kv_heads, d_head, tokens, batch=1):
    return kv_cache_bytes((layers, kv_heads, d_head), tokens, batch)


@computation
def batch_factor(batches):
    """How the cache grows with the number of sequences."""
    one = kv_cache_bytes((48, 8, 128), 1000)
    factors = [kv_cache_bytes((48, 8, 128), 1000, batch) // one for batch in batches]
    return Evidence("batch_size" if factors == batches else factors, says=factors[-1], narrow=factors[batches.index(2)])


@computation
def cache_against_weights(parameters, layers, kv_heads, d_head, tokens):
    """Weights in GB (two bytes each), cache in GB, and the tokens at which one request's cache is as large."""
    weights = parameters * 2 / 1e9
    cache = kv_cache_bytes((layers, kv_heads, d_head), tokens) / 1e9
    even = parameters * 2 / kv_cache_bytes((layers, kv_heads, d_head), 1)
    many = kv_cache_bytes((layers, kv_heads, d_head), tokens, batch=16) / 1e9
    claim = "KV > weights"
    return Evidence([weights, cache, even], says=claim if cache > weights else "weights > KV", narrow=claim if many > weights else UNSET,
                    show={"weights": weights, "cache": cache, "even": even, "many": many})


@computation
def grouped_saving(heads, kv_heads, range_claimed):
    """The cache of one key-value head a query head over that of grouped heads."""
    factor = kv_cache_bytes((1, heads, 128), 100) / kv_cache_bytes((1, kv_heads, 128), 100)
    low, high = range_claimed
    return Evidence(low <= factor <= high, show={"factor": factor})


@computation
def shared_head_saving(heads):
    ratio = kv_cache_bytes((1, 1, 128), 100) / kv_cache_bytes((1, heads, 128), 100)
    return "1/h" if ratio == 1 / heads else str(ratio)


@computation
def window_bounds_cache(window):
    """With a window the cache stops growing."""
    config = SimpleNamespace(n_layers=2, kv_heads=4, d_head=16, window=window)
    sizes = [kv_cache_bytes(config, n) for n in (window, 10 * window, 1000 * window)]
    return len(set(sizes)) == 1


@computation
def compressed_growth(ratios):
    """Entries kept of n and of 2n tokens at a fixed compression: the growth stays linear."""
    factors = [math.ceil(2 * n / r) / math.ceil(n / r) for r in ratios for n in (10**6, 10**8)]
    linear = all(abs(factor - 2) < 1e-3 for factor in factors)
    return Evidence("n/4, n/128 → Θ(n)" if linear else "o(n)", says="Θ(n)" if linear else "o(n)")


@computation
def what_grouped_heads_shrink(n, d, heads, kv_heads):
    """Score matrices and cache of a layer with fewer key-value heads."""
    rng = np.random.default_rng(0)
    x, width = rng.normal(size=(n, d)), d // heads
    full = {f"W_{name}": rng.normal(size=(d, d)) for name in "QKVO"}
    few = full | {name: full[name][:, :kv_heads * width] for name in ("W_K", "W_V")}
    matrices = [multi_head_attention(x, params, heads, k)[1].shape[0] for params, k in ((full, heads), (few, kv_heads))]
    cache = kv_cache_bytes((1, kv_heads, width), n) < kv_cache_bytes((1, heads, width), n)
    claim = "GQA/MQA 缩小 n×n 矩阵"
    return Evidence("GQA/MQA 缩小 KV Cache" if matrices[0] == matrices[1] and cache else claim, narrow=claim if cache else UNSET,
                    show={"matrices": matrices[1]})
