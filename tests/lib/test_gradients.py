"""Hand-written backward passes: against finite differences here, against PyTorch's autograd where it is installed.

`torch_gpt.py` is the same model in PyTorch's own operators. `golden/gradients.npz` holds its gradients for a few settings.
"""
import functools
import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lib import attention, functional, gradients, normalization, position
from lib.block import transformer_block
from lib.embedding import embed
from lib.gradients import loss_and_gradients
from lib.model import GPT, Config
from lib.training import leaves
from tests.lib.golden.make_gradients import CASES, GOLDEN, case

rng = np.random.default_rng(7)
normal = rng.standard_normal
SMALL = Config(7, 6, 8, 2, 2, d_ff=10)
SETTINGS = {
    "gpt2": {}, "2017": dict(norm_position="post", position="sinusoidal", activation="relu", scale_embeddings=True),
    "llama": dict(norm="rms", position="rotary", activation="swiglu", bias=False, tie_embeddings=False, n_kv_heads=1),
    "gated with bias": dict(activation="swiglu", norm="rms", norm_position="post"),
    "window": dict(window=2, position="none", activation="silu"),
    "exact, wide heads": dict(activation="gelu_exact", head_dim=6, n_kv_heads=1, position="rotary"),
}


def slope(f, x, direction, h=1e-3):
    """Derivative of f along a direction, sixth order."""
    at = lambda s: f(x + s * h * direction)
    return (45 * (at(1) - at(-1)) - 9 * (at(2) - at(-2)) + (at(3) - at(-3))) / (60 * h)


def check(f, backward, *inputs, tolerance=1e-9):
    """backward(dy) gives one gradient an input; each agrees with finite differences along a random direction."""
    dy = normal(np.shape(f(*inputs)))
    found = backward(dy)
    found = found if isinstance(found, tuple) else (found,)
    assert len(found) == len(inputs)
    for i, (gradient, x) in enumerate(zip(found, inputs)):
        assert gradient.shape == x.shape and gradient.dtype == x.dtype
        direction = normal(x.shape)
        along = functools.partial(lambda i, value: (dy * f(*inputs[:i], value, *inputs[i + 1 :])).sum(), i)
        np.testing.assert_allclose((gradient * direction).sum(), slope(along, x, direction), rtol=tolerance, atol=tolerance)


x = normal((3, 4, 8))
FUNCTIONS = {
    "softmax": (functional.softmax, lambda dy: gradients.softmax_backward(dy, functional.softmax(x)), x),
    "sigmoid": (functional.sigmoid, lambda dy: gradients.sigmoid_backward(dy, x), x),
    "silu": (functional.silu, lambda dy: gradients.silu_backward(dy, x), x),
    "gelu": (functional.gelu, lambda dy: gradients.gelu_backward(dy, x), x),
    "gelu tanh": (lambda x: functional.gelu(x, "tanh"), lambda dy: gradients.gelu_backward(dy, x, "tanh"), x),
    "rotary": (lambda x: position.rotary(x, np.arange(4)), lambda dy: gradients.rotary_backward(dy, np.arange(4)), x),
    "rotary, interleaved": (lambda x: position.rotary(x, np.arange(4), 100.0, "interleaved"),
                            lambda dy: gradients.rotary_backward(dy, np.arange(4), 100.0, "interleaved"), x),
    "repeat_kv": (lambda x: attention.repeat_kv(x, 3), lambda dy: gradients.repeat_kv_backward(dy, 3), x),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_one_array(name):
    check(*FUNCTIONS[name])


def test_relu_away_from_its_kink():
    np.testing.assert_array_equal(gradients.relu_backward(np.full(3, 2.0), np.array([-1.0, 0.0, 3.0])), [0, 0, 2])


def test_gelu_at_zero():
    for form in ("none", "tanh"):
        np.testing.assert_allclose(gradients.gelu_backward(np.ones(1), np.zeros(1), form), 0.5)


def test_linear_and_norms():
    W, b, gain = normal((8, 5)), normal(5), normal(8)
    check(functional.linear, lambda dy: gradients.linear_backward(dy, x, W), x, W, b)
    check(normalization.layer_norm, lambda dy: gradients.layer_norm_backward(dy, x, gain), x, gain, normal(8))
    check(normalization.rms_norm, lambda dy: gradients.rms_norm_backward(dy, x, gain), x, gain)
    check(lambda x: normalization.layer_norm(x), lambda dy: gradients.layer_norm_backward(dy, x)[0], x)


def test_embedding_sums_over_repeated_ids():
    table, ids = normal((6, 3)), np.array([[1, 1, 4], [0, 1, 4]])
    check(lambda table: embed(table, ids), lambda dy: gradients.embed_backward(dy, ids, 6), table)
    dy, slow = normal((2, 3, 3)), np.zeros((6, 3))
    np.add.at(slow, ids, dy)
    np.testing.assert_allclose(gradients.embed_backward(dy, ids, 6), slow, rtol=1e-14)
    assert (gradients.embed_backward(dy, ids, 6)[[2, 3, 5]] == 0).all()


def test_cross_entropy():
    logits, targets = normal((2, 3, 5)), np.array([[0, 4, -100], [2, -100, 1]])
    check(lambda z: functional.cross_entropy(z, targets), lambda dy: dy * gradients.cross_entropy_backward(logits, targets), logits)
    found = gradients.cross_entropy_backward(logits, targets)
    assert (found[0, 2] == 0).all() and (found[1, 1] == 0).all() and abs(found.sum()) < 1e-15


@pytest.mark.parametrize("scale", [None, 1, 0.3])
def test_attention_with_a_mask(scale):
    q, k, v, mask = normal((2, 4, 6)), normal((2, 5, 6)), normal((2, 5, 3)), attention.causal_mask(4, 5)
    run = lambda q, k, v: attention.scaled_dot_product_attention(q, k, v, mask, scale)
    check(lambda q, k, v: run(q, k, v)[0],
          lambda dy: gradients.scaled_dot_product_attention_backward(dy, q, k, v, run(q, k, v)[1], scale), q, k, v)


# What training uses equals the plain functions


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32 - 1), st.sampled_from([np.float32, np.float64]))
def test_attention_in_place_equals_the_plain_one(seed, dtype):
    draw = lambda *shape: np.random.default_rng(seed).standard_normal(shape).astype(dtype)
    q, k, v, dy = draw(2, 3, 5, 4), draw(2, 3, 5, 4), draw(2, 3, 5, 6), draw(2, 3, 5, 6)
    allowed = attention.sliding_window_mask(5, 3)
    mask = np.where(allowed, 0, -np.inf).astype(dtype)
    before = [a.copy() for a in (q, k, v, dy, mask)]
    output, exps, sums = gradients.attention_forward(q, k, v, mask)
    plain, weights = attention.scaled_dot_product_attention(q, k, v, allowed)
    close = dict(rtol=1e-5, atol=1e-5) if dtype == np.float32 else dict(rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(output, plain, **close)
    np.testing.assert_allclose(exps / sums, weights, **close)
    fast = gradients.attention_backward(dy, q, k, v, output, exps, sums)
    for found, expected in zip(fast, gradients.scaled_dot_product_attention_backward(dy, q, k, v, weights), strict=True):
        assert found.dtype == dtype
        np.testing.assert_allclose(found, expected, **close)
    assert all((a == b).all() for a, b in zip((q, k, v, dy, mask), before))


@pytest.mark.parametrize("dtype, tolerance", [(np.float32, 2e-6), (np.float64, 1e-14)])
def test_gelu_with_its_slope_equals_the_plain_ones(dtype, tolerance):
    x = np.linspace(-40, 40, 8002, dtype=dtype).reshape(2, -1)
    for given_ in (x, x.T):  # a transposed view too
        y, dx = gradients.gelu_and_slope(given_, block=1000)
        assert y.dtype == dx.dtype == dtype
        np.testing.assert_allclose(y, functional.gelu(given_, "tanh"), atol=tolerance * 40)
        np.testing.assert_allclose(dx, gradients.gelu_backward(np.ones_like(given_), given_, "tanh"), atol=tolerance * 40)


@pytest.mark.parametrize("name", SETTINGS)
def test_the_walk_that_keeps_arrays_equals_the_forward(name):
    config = replace(SMALL, **SETTINGS[name])
    params = GPT(config, dtype=np.float64).params["blocks"][0]
    mask = attention.sliding_window_mask(6, config.window)
    x = normal((2, 6, 8))
    before = x.copy()
    y, _ = gradients._block_forward(x, params, config, mask)
    np.testing.assert_allclose(y, transformer_block(x, params, config, mask), rtol=1e-12, atol=1e-13)
    assert (x == before).all()


# Composed: a block, the whole model


def perturb(model):
    """Parameters far from their initial values, where every term of a gradient matters."""
    for _, array in leaves(model.params):
        array += normal(array.shape) * 0.3
    return model


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("leading", [(), (2,), (2, 3)])
def test_block(name, leading):
    config = replace(SMALL, **SETTINGS[name])
    params = perturb(GPT(config, dtype=np.float64)).params["blocks"][0]
    x, mask = normal((*leading, 4, 8)), attention.sliding_window_mask(4, config.window)
    dy = normal(x.shape)
    dx, grads = gradients.transformer_block_backward(dy, x, params, config, mask)
    direction = normal(x.shape)
    tolerance = dict(rtol=1e-5, atol=1e-6) if config.activation == "relu" else dict(rtol=1e-8, atol=1e-8)
    f = lambda x: (dy * transformer_block(x, params, config, mask)).sum()
    h = 1e-6 if config.activation == "relu" else 1e-4  # a small step doesn't cross relu's kink
    np.testing.assert_allclose((dx * direction).sum(), slope(f, x, direction, h), **tolerance)
    assert dict(leaves(grads)).keys() == dict(leaves(params)).keys()


def test_masks_of_both_kinds_and_none():
    params = GPT(SMALL, dtype=np.float64).params["blocks"][0]
    x, dy = normal((4, 8)), normal((4, 8))
    boolean = attention.causal_mask(4)
    a = gradients.transformer_block_backward(dy, x, params, SMALL, boolean)[0]
    b = gradients.transformer_block_backward(dy, x, params, SMALL, np.where(boolean, 0, -np.inf))[0]
    c = gradients.transformer_block_backward(dy, x, params, SMALL)[0]
    np.testing.assert_array_equal(a, b)
    assert np.abs(a - c).max() > 1e-6


@pytest.mark.parametrize("name", SETTINGS)
def test_model_against_finite_differences(name):
    config = replace(SMALL, **SETTINGS[name])
    model = perturb(GPT(config, dtype=np.float64))
    ids, targets = rng.integers(0, 7, (2, 5)), rng.integers(0, 7, (2, 5))
    targets[0, 1] = -100
    loss, grads = loss_and_gradients(model, ids, targets)
    np.testing.assert_allclose(loss, functional.cross_entropy(model(ids), targets), rtol=1e-12)
    params, found = dict(leaves(model.params)), dict(leaves(grads))
    assert params.keys() == found.keys()
    for path, p in params.items():
        assert found[path].shape == p.shape and found[path].dtype == p.dtype
        original, direction = p.copy(), normal(p.shape)

        def f(value):
            p[...] = value
            return functional.cross_entropy(model(ids), targets)

        step = 1e-6 if config.activation == "relu" else 1e-4
        expected = slope(f, original, direction, step)
        p[...] = original
        np.testing.assert_allclose((found[path] * direction).sum(), expected, rtol=2e-5, atol=2e-6, err_msg=path)


@pytest.mark.parametrize("group", [1, 5, 12, 1000])
def test_groups_of_sentences_add_up(group):
    model = perturb(GPT(replace(SMALL, **SETTINGS["llama"]), dtype=np.float64))
    ids, targets = rng.integers(0, 7, (2, 3, 5)), rng.integers(0, 7, (2, 3, 5))
    targets[0, 1] = -100  # a whole sentence without a target
    targets[1, 2, 2:] = -100
    loss, grads = loss_and_gradients(model, ids, targets, group)
    whole, expected = loss_and_gradients(model, ids, targets, 10**9)
    np.testing.assert_allclose(loss, whole, rtol=1e-13)
    np.testing.assert_allclose(loss, functional.cross_entropy(model(ids), targets), rtol=1e-12)
    for (path, a), (_, b) in zip(leaves(grads), leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-13, err_msg=path)


def test_float32_stays_float32_and_nothing_changes():
    model = GPT(SMALL)
    before = [array.copy() for _, array in leaves(model.params)]
    loss, grads = loss_and_gradients(model, [1, 2, 3], [2, 3, 4])
    assert loss.dtype == np.float32 and {g.dtype for _, g in leaves(grads)} == {np.dtype(np.float32)}
    assert all((a == b).all() for a, (_, b) in zip(before, leaves(model.params)))


def test_tokens_that_do_not_occur_get_no_gradient_when_untied():
    model = GPT(replace(SMALL, tie_embeddings=False))
    grads = loss_and_gradients(model, [1, 2], [2, 3])[1]
    assert (grads["wte"][[0, 3, 4, 5, 6]] == 0).all() and (grads["wte"][[1, 2]] != 0).any() and (grads["wpe"][2:] == 0).all()


# PyTorch


@pytest.mark.parametrize("name", CASES)
def test_gradients_stored_from_pytorch(name):
    with np.load(GOLDEN) as golden:
        model, ids, targets = case(name)
        loss, grads = loss_and_gradients(model, ids, targets)
        np.testing.assert_allclose(loss, golden[f"{name}.loss"], rtol=1e-12)
        for path, gradient in leaves(grads):
            np.testing.assert_allclose(gradient, golden[f"{name}.{path}"], rtol=0, atol=1e-9, err_msg=path)


@pytest.mark.peers
@pytest.mark.parametrize("name", CASES)
def test_stored_gradients_are_what_pytorch_gives_now(name):
    from tests.lib.golden.make_gradients import derive
    with np.load(GOLDEN) as golden:
        for path, value in derive(name).items():
            np.testing.assert_allclose(value, golden[path], rtol=0, atol=1e-12, err_msg=path)


@pytest.mark.peers
def test_every_setting_against_autograd():
    from tests.lib import torch_gpt
    choices = itertools.product(
        ("layer", "rms"), ("pre", "post"), ("learned", "sinusoidal", "rotary", "none"),
        ("relu", "gelu", "gelu_exact", "silu", "swiglu"), (True, False), (True, False), (None, 1), (None, 2), (False, True), (None, 6))
    names = ("norm", "norm_position", "position", "activation", "bias", "tie_embeddings", "n_kv_heads", "window", "scale_embeddings", "head_dim")
    checked = 0
    for choice in choices:
        if rng.random() > 0.1:
            continue
        config = replace(SMALL, **dict(zip(names, choice)))
        model = perturb(GPT(config, dtype=np.float64))
        ids, targets = rng.integers(0, 7, (2, 5)), rng.integers(0, 7, (2, 5))
        loss, grads = loss_and_gradients(model, ids, targets)
        params = torch_gpt.tensors(model.params)
        expected = torch_gpt.loss(ids, targets, params, config)
        expected.backward()
        np.testing.assert_allclose(loss, expected.item(), rtol=1e-12)
        for found, value in zip(torch_gpt.flat(grads), torch_gpt.flat(torch_gpt.gradients(params)), strict=True):
            np.testing.assert_allclose(found, value, rtol=0, atol=1e-9, err_msg=str(config))
        checked += 1
    assert checked > 300
