"""Positions: the printed sinusoids, what they allow, and what attention knows of order without them."""

import math

import numpy as np

from claims.judge import UNSET, Evidence
from claims.registry import computation
from lib.attention import causal_mask, scaled_dot_product_attention
from lib.model import GPT, Config
from lib.position import rotary, shift_matrix, sinusoidal_encoding


@computation
def sinusoid(position, d, pair=None):
    """One row of the encoding, or one of its (sin, cos) pairs."""
    row = sinusoidal_encoding(position + 1, d)[position]
    return row if pair is None else row[2 * pair:2 * pair + 2]


def _frequencies(d):
    """Radians per position of every pair, read off the encoding of position 1."""
    row = sinusoidal_encoding(2, d)[1]
    return np.arctan2(row[0::2], row[1::2])


@computation
def divisors(d):
    """What the position is divided by in each pair."""
    return np.round(1 / _frequencies(d), 9)


@computation
def wavelengths(d, pair=None):
    """Positions until a pair repeats; the document prints the divisors instead."""
    waves = 2 * math.pi / _frequencies(d)
    return Evidence(waves if pair is None else waves[pair], other=divisors(d) if pair is None else divisors(d)[pair])


@computation
def frequencies_fall(d):
    """Is the last pair the slowest?"""
    return bool((np.diff(_frequencies(d)) < 0).all())


@computation
def slow_pairs_mark_regions(d, near, far):
    """Neighbours differ mostly in the fast pairs, distant positions also in the slow ones."""
    pe = sinusoidal_encoding(far + 1, d).reshape(far + 1, d // 2, 2)
    step = lambda offset: np.linalg.norm(pe[offset] - pe[0], axis=-1)
    fast_tells_neighbours = step(near)[0] > 100 * step(near)[-1]
    slow_tells_regions = step(far)[-1] > 100 * step(near)[-1]
    return bool(fast_tells_neighbours and slow_tells_regions)


@computation
def shift_is_linear(offset, d, positions):
    """One matrix takes every position to the one `offset` later."""
    pe = sinusoidal_encoding(positions + offset, d)
    error = np.abs(pe[:positions] @ shift_matrix(offset, d) - pe[offset:]).max()
    return Evidence(bool(error < 1e-11), show={"error": float(error)})


@computation
def difference(a, b):
    return abs(a - b)


@computation
def position_tells_apart(word, positions):
    """The same word vector plus the encodings of two positions: are the sums different?"""
    pe, x = sinusoidal_encoding(max(positions) + 1, len(word)), np.array(word, float)
    first, second = (x + pe[p] for p in positions)
    return bool(np.abs(first - second).max() > 1e-6)


@computation
def added_to_embedding():
    """What a model's first layer gets: the word's row plus the position's row; the 2017 recipe scales the word's row first."""
    ids, inputs = np.array([3, 1, 3]), {}
    for scaled in (False, True):
        config = Config(vocab_size=5, context_length=8, d_model=4, n_layers=1, n_heads=1, position="sinusoidal", scale_embeddings=scaled)
        model, record = GPT(config, rng=np.random.default_rng(0), dtype=np.float64), {}
        model(ids, record=record)
        word, position = model.params["wte"][ids], sinusoidal_encoding(3, 4)
        inputs[scaled] = np.allclose(record["embedding"], word * (2 if scaled else 1) + position)
    return Evidence("E·√d + PE" if inputs[True] else "其他", says="E+PE" if inputs[False] else "其他")


@computation
def same_bag(a, b):
    """Two sentences with the same characters in another order, and attention that can't tell them apart without positions."""
    rng = np.random.default_rng(0)
    vector = {char: rng.normal(size=6) for char in sorted(set(a))}
    rows = [np.stack([vector[char] for char in text]) for text in (a, b)]
    bags = [np.sort(scaled_dot_product_attention(x, x, x)[0], axis=0) for x in rows]
    return bool(sorted(a) == sorted(b) and np.allclose(*bags))


@computation
def order_is_invisible():
    """Permuting the words permutes the outputs, without a mask; with the causal mask it doesn't."""
    rng = np.random.default_rng(0)
    x, order = rng.normal(size=(7, 5)), rng.permutation(7)
    attend = lambda rows, mask=None: scaled_dot_product_attention(rows, rows, rows, mask)[0]
    free = np.abs(attend(x[order]) - attend(x)[order]).max()
    masked = np.abs(attend(x[order], causal_mask(7)) - attend(x, causal_mask(7))[order]).max()
    return Evidence("permutation equivariant" if free < 1e-12 else "not equivariant", show={"free": float(free), "masked": float(masked)})


@computation
def mask_alone_hides_distance(n):
    """With a causal mask and no positions: can a layer tell how many words stand to the left, exactly?

    A first word that is marked gets weight 1/(i+1) at position i under even attention, so i can be read off. Without any
    mark, with equal words, every position gets the same output."""
    marked = np.zeros((n, 2))
    marked[0, 0], marked[:, 1] = 1, 1
    output, _ = scaled_dot_product_attention(np.zeros((n, 2)), marked, marked, causal_mask(n))
    readable = np.allclose(1 / output[:, 0] - 1, np.arange(n))
    equal = np.ones((n, 2))
    blind = np.ptp(scaled_dot_product_attention(equal, equal, equal, causal_mask(n))[0]) < 1e-12
    claim = "因果掩码不足以表达相对距离"
    return Evidence("无位置编码的因果 Transformer 可学到绝对/相对位置" if readable else claim, narrow=claim if blind else UNSET,
                    show={"last": 1 / output[-1, 0] - 1})


@computation
def rotation_is_relative():
    """Scores of rotated queries and keys at pairs of positions with one distance, and at another distance."""
    rng = np.random.default_rng(0)
    q, k = rng.normal(size=(2, 1, 8))
    score = lambda m, n: float((rotary(q, np.array([m])) @ rotary(k, np.array([n])).T)[0, 0])
    same = [score(0, 3), score(17, 20), score(1000, 1003)]
    return bool(np.ptp(same) < 1e-9 and abs(score(0, 4) - same[0]) > 1e-3)


@computation
def angle_grows_with_distance(d):
    """The angle between a query and a key turned from one direction, over growing distance, before the first full turn."""
    e = np.zeros((1, d))
    e[0, 0] = 1  # the fastest pair of the interleaved layout
    turned = [rotary(e, np.array([p]), layout="interleaved")[0] for p in range(4)]
    angles = [math.atan2(row[1], row[0]) for row in turned]
    return bool(np.allclose(np.diff(angles), 1.0))
