"""The causal mask: who sees whom, what is predicted where, and what training does at once."""

import math

import numpy as np

from claims.compute.example import SCORES
from claims.judge import Evidence
from claims.registry import computation
from lib.attention import causal_mask, scaled_dot_product_attention
from lib.functional import softmax
from lib.generation import KVCache
from lib.model import GPT, Config

WORDS = "put money in the bank".split()


def small_model(**settings):
    config = Config(vocab_size=20, context_length=16, d_model=16, n_layers=2, n_heads=2, **settings)
    model = GPT(config, rng=np.random.default_rng(0), dtype=np.float64)
    for block in model.params["blocks"]:  # ten times the usual start, so that the layers say something before training
        for weights in (*block["attention"].values(), *block["ffn"].values()):
            weights *= 10
    model.params["wte"] *= 10
    return model


@computation
def masked_weight(n):
    """The largest weight that a masked attention leaves to a later position."""
    rng = np.random.default_rng(0)
    q, k, v = rng.normal(size=(3, n, 8))
    _, p = scaled_dot_product_attention(q, k, v, mask=causal_mask(n))
    return float(np.triu(p, 1).max())


@computation
def exp_of_minus_infinity():
    return math.exp(-math.inf)


@computation
def count_words():
    return len(WORDS)


def visible_words(word):
    """What a word may see: the row of the causal mask."""
    row = causal_mask(len(WORDS))[WORDS.index(word)]
    return [w for w, sees in zip(WORDS, row) if sees]


@computation
def count_visible(word):
    return len(visible_words(word))


@computation
def words_for_predicting(word):
    """What is seen where a word is predicted: one position to its left."""
    return visible_words(WORDS[WORDS.index(word) - 1])


@computation
def prediction_table():
    """Current word, words it sees, word it must predict (none after the last)."""
    return [[word, visible_words(word), following] for word, following in zip(WORDS, [*WORDS[1:], None])]


@computation
def mask_pattern():
    """Which cells the mask forbids: those above the diagonal, the diagonal itself stays open."""
    forbidden = ~causal_mask(5)
    strictly = np.array_equal(forbidden, np.triu(np.ones((5, 5), bool), 1))
    inside = not np.tril(forbidden, -1).any()
    return Evidence("strictly upper triangular" if strictly else "其他", says="upper triangular" if strictly and inside else "其他")


@computation
def masked_scores():
    """The printed score matrix with the mask applied."""
    return [[score if sees else "-inf" for score, sees in zip(row, allowed)] for row, allowed in zip(SCORES.tolist(), causal_mask(3))]


@computation
def training_needs_no_cache():
    """One pass over the whole sentence against word by word with a cache: the same logits, no cache needed for training."""
    model, ids = small_model(), np.arange(8)
    cache = KVCache(model.config, dtype=np.float64)
    steps = np.concatenate([model(ids[i:i + 1], cache=cache) for i in range(8)])
    return bool(np.allclose(model(ids), steps, rtol=0, atol=1e-10))


@computation
def generation_is_serial():
    """Does the distribution of the next word depend on which word was drawn before? Then it can't be computed ahead."""
    model = small_model()
    following = [softmax(model(np.array([1, 2, drawn]))[-1]) for drawn in range(20)]
    return bool(min(np.abs(a - b).max() for i, a in enumerate(following) for b in following[:i]) > 1e-9)
