"""`lib` against plain Python loops (oracle.py) that share no code with it."""
import itertools

import numpy as np
import pytest

from lib import attention, embedding, feedforward, functional, normalization, position, sampling
from lib.block import transformer_block
from lib.generation import KVCache
from lib.model import GPT, Config
from tests.lib import oracle

CLOSE = dict(rtol=1e-10, atol=1e-12)


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def listed(tree):
    if isinstance(tree, dict):
        return {k: listed(v) for k, v in tree.items()}
    return [listed(v) for v in tree] if isinstance(tree, list) else tree.tolist()


@pytest.mark.parametrize("name", ["relu", "sigmoid", "silu", "gelu"])
def test_elementwise(rng, name):
    x = np.concatenate([rng.normal(size=50) * 3, [0, -0.0, 30, -30, 700, -700, 1e-300]])
    expected = [getattr(oracle, name)(v) for v in x.tolist()]
    np.testing.assert_allclose(getattr(functional, name)(x), expected, rtol=1e-12, atol=1e-300)


def test_gelu_tanh(rng):
    x = rng.normal(size=50) * 3
    np.testing.assert_allclose(functional.gelu(x, "tanh"), [oracle.gelu_tanh(v) for v in x.tolist()], **CLOSE)


def test_softmax_family(rng):
    x = rng.normal(size=(6, 9)) * 5
    x[2, 3:] = -np.inf
    np.testing.assert_allclose(functional.softmax(x), [oracle.softmax(r) for r in x.tolist()], **CLOSE)
    np.testing.assert_allclose(functional.log_softmax(x), [oracle.log_softmax(r) for r in x.tolist()], **CLOSE)
    targets = [0, 3, 2, 8, 1, 4]
    expected = oracle.cross_entropy(x.tolist(), targets)
    np.testing.assert_allclose(functional.cross_entropy(x, targets), expected, **CLOSE)


@pytest.mark.parametrize("n_q, n_k", [(1, 1), (1, 6), (4, 4), (3, 7)])
@pytest.mark.parametrize("window", [None, 1, 2, 5, 100])
def test_masks_and_attention(rng, n_q, n_k, window):
    q, k, v = rng.normal(size=(n_q, 3)), rng.normal(size=(n_k, 3)), rng.normal(size=(n_k, 5))
    mask = attention.sliding_window_mask(n_q, window, n_k)
    may = [[oracle.may_look(i, j, n_q, n_k, window) for j in range(n_k)] for i in range(n_q)]
    assert mask.tolist() == may
    if window is None:
        assert attention.causal_mask(n_q, n_k).tolist() == may
    expected, weights = oracle.attention(q.tolist(), k.tolist(), v.tolist(), lambda i, j: may[i][j])
    for form in (mask, np.where(mask, 0, -np.inf)):
        got = attention.scaled_dot_product_attention(q, k, v, form)
        np.testing.assert_allclose(got[0], expected, **CLOSE)
        np.testing.assert_allclose(got[1], weights, **CLOSE)
    np.testing.assert_allclose(attention.causal_attention(q, k, v, window=window), expected, **CLOSE)


def test_attention_with_soft_mask_and_own_scale(rng):
    q, k, v, bias = (rng.normal(size=s) for s in ((4, 3), (6, 3), (6, 2), (4, 6)))
    expected = oracle.attention(q.tolist(), k.tolist(), v.tolist(), lambda i, j: float(bias[i, j]), scale=1)
    got = attention.scaled_dot_product_attention(q, k, v, bias, scale=1)
    np.testing.assert_allclose(got[0], expected[0], **CLOSE)


@pytest.mark.parametrize("h, h_kv", [(1, 1), (4, 4), (4, 2), (4, 1), (6, 3)])
@pytest.mark.parametrize("rotate", [False, True])
def test_multi_head_attention(rng, h, h_kv, rotate):
    n, d, d_head = 5, 7, 4  # d is not h * d_head: a head is no slice of x
    p = {"W_Q": rng.normal(size=(d, h * d_head)), "W_K": rng.normal(size=(d, h_kv * d_head)),
         "W_V": rng.normal(size=(d, h_kv * d_head)), "W_O": rng.normal(size=(h * d_head, d)),
         "b_Q": rng.normal(size=h * d_head), "b_O": rng.normal(size=d)}
    x = rng.normal(size=(n, d))
    expected, weights = oracle.multi_head_attention(
        x.tolist(), listed(p), h, h_kv, lambda i, j: oracle.may_look(i, j, n, n), rotate)
    turn = (lambda heads, start: position.rotary(heads, np.arange(start, start + n))) if rotate else None
    for kwargs in (dict(mask=attention.causal_mask(n)), dict(is_causal=True), dict(is_causal=True, need_weights=False)):
        output, w = attention.multi_head_attention(x, p, h, h_kv, rotate=turn, **kwargs)
        np.testing.assert_allclose(output, expected, **CLOSE)
        if w is not None:
            np.testing.assert_allclose(w, weights, **CLOSE)


def test_split_heads_takes_the_columns_of_each_token(rng):
    x = rng.normal(size=(2, 5, 12))
    heads = attention.split_heads(x, 3)
    for batch, head, token, column in itertools.product(range(2), range(3), range(5), range(4)):
        assert heads[batch, head, token, column] == x[batch, token, head * 4 + column]
    repeated = attention.repeat_kv(heads, 2)
    for head in range(6):
        assert np.array_equal(repeated[:, head], heads[:, head // 2])


def test_normalization(rng):
    x, gain, bias = rng.normal(size=(6, 5)) * 3 + 1, rng.normal(size=5), rng.normal(size=5)
    rows, g, b = x.tolist(), gain.tolist(), bias.tolist()
    np.testing.assert_allclose(normalization.layer_norm(x, gain, bias), [oracle.layer_norm(r, g, b) for r in rows], **CLOSE)
    np.testing.assert_allclose(normalization.rms_norm(x, gain), [oracle.rms_norm(r, g) for r in rows], **CLOSE)
    np.testing.assert_allclose(normalization.batch_norm(x, gain, bias), oracle.batch_norm(rows, g, b), **CLOSE)


def test_batch_norm_with_running_statistics(rng):
    x, mean, variance = rng.normal(size=(3, 2)), np.array([1.0, -2.0]), np.array([4.0, 0.25])
    expected = [[(v - m) / (s + 1e-5) ** 0.5 for v, m, s in zip(row, mean, variance)] for row in x.tolist()]
    np.testing.assert_allclose(normalization.batch_norm(x, running=(mean, variance)), expected, **CLOSE)


@pytest.mark.parametrize("base", [10000.0, 500.0])
def test_positions(rng, base):
    table = position.sinusoidal_encoding(20, 8, base)
    np.testing.assert_allclose(table, [oracle.sinusoid(t, 8, base) for t in range(20)], **CLOSE)
    x, positions = rng.normal(size=(4, 6)), [0, 3, 17, 1000]
    for layout in ("half", "interleaved"):
        expected = oracle.rotary(x.tolist(), positions, base, layout == "interleaved")
        np.testing.assert_allclose(position.rotary(x, positions, base, layout), expected, **CLOSE)


@pytest.mark.parametrize("activation", ["relu", "gelu", "gelu_exact", "silu", "swiglu"])
def test_feed_forward(rng, activation):
    names = ("gate", "up", "down") if activation == "swiglu" else ("1", "2")
    p = {f"W_{n}": rng.normal(size=(7, 4) if n in ("2", "down") else (4, 7)) for n in names}
    p |= {f"b_{n}": rng.normal(size=p[f"W_{n}"].shape[1]) for n in names}
    x = rng.normal(size=(3, 4))
    if activation == "swiglu":
        got = feedforward.swiglu_feed_forward(x, p)
    else:
        got = feedforward.feed_forward(x, p, activation)
    np.testing.assert_allclose(got, oracle.feed_forward(x.tolist(), listed(p), activation), **CLOSE)


RECIPES = {
    "2017": dict(norm_position="post", position="sinusoidal", activation="relu", scale_embeddings=True),
    "gpt2": dict(),
    "llama": dict(norm="rms", position="rotary", activation="swiglu", bias=False, tie_embeddings=False, n_kv_heads=2),
    "mistral": dict(norm="rms", position="rotary", activation="swiglu", bias=False, window=3, n_kv_heads=1, head_dim=6),
    "odd": dict(norm="rms", norm_position="post", position="none", activation="gelu_exact", window=2, d_ff=5),
    "no-bias": dict(bias=False, activation="silu"),
}


@pytest.fixture(params=RECIPES)
def model(request, rng):
    config = Config(11, 9, 8, 2, 4, **RECIPES[request.param])
    model = GPT(config, rng=rng, dtype=np.float64)
    fill(model.params, rng)
    return model


def fill(tree, rng):
    """Weights large enough that every part matters, biases and gains included."""
    for v in tree.values() if isinstance(tree, dict) else tree:
        if isinstance(v, (dict, list)):
            fill(v, rng)
        else:
            v[...] = rng.normal(size=v.shape) * 0.5


def test_model_logits(model, rng):
    ids = rng.integers(0, 11, 9)
    expected = np.array(oracle.gpt(ids.tolist(), listed(model.params), model.config))
    np.testing.assert_allclose(model(ids), expected, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(model(ids, last_only=True), expected[-1:], rtol=1e-9, atol=1e-11)
    cache = KVCache(model.config, dtype=np.float64)
    cached = np.concatenate([model(part, cache=cache) for part in (ids[:4], ids[4:5], ids[5:])])
    np.testing.assert_allclose(cached, expected, rtol=1e-9, atol=1e-11)


def test_record_keeps_what_the_forward_pass_computed(model, rng):
    ids, record = rng.integers(0, 11, 6), {}
    logits = model(ids, record=record)
    np.testing.assert_allclose(logits, model(ids), rtol=1e-12)
    assert record["logits"] is logits and len(record["blocks"]) == 2
    mask = attention.sliding_window_mask(6, model.config.window)
    x = record["embedding"]
    for block, params in zip(record["blocks"], model.params["blocks"]):
        weights = block["weights"]
        assert weights.shape == (4, 6, 6) and (weights[:, ~mask] == 0).all()
        np.testing.assert_allclose(weights.sum(-1), 1)
        x = transformer_block(x, params, model.config, mask)
        np.testing.assert_allclose(block["output"], x, rtol=1e-9, atol=1e-11)


def test_filters(rng):
    logits = rng.integers(-3, 4, (30, 8)).astype(float)  # integers: many ties
    for k in (1, 3, 8, 20):
        assert sampling.top_k_filter(logits, k).tolist() == [oracle.top_k(r, k) for r in logits.tolist()]
    for p in (1e-9, 0.3, 0.5000001, 0.9, 1):
        got = sampling.top_p_filter(logits, p).tolist()
        assert got == [oracle.top_p(r, p) if p < 1 else r for r in logits.tolist()]


def test_similarity(rng):
    a, b = rng.normal(size=(9, 4)), rng.normal(size=(9, 4))
    expected = [oracle.cosine(u, v) for u, v in zip(a.tolist(), b.tolist())]
    np.testing.assert_allclose(embedding.cosine_similarity(a, b), expected, **CLOSE)
    query = b[0]
    ranked = sorted(range(9), key=lambda i: -oracle.cosine(a[i].tolist(), query.tolist()))
    assert embedding.nearest(a, query, 9).tolist() == ranked
    target = a[1] - a[2] + a[3]
    ranked = sorted({0, 4, 5, 6, 7, 8}, key=lambda i: -oracle.cosine(a[i].tolist(), target.tolist()))
    assert embedding.analogy(a, 1, 2, 3, 6).tolist() == ranked
