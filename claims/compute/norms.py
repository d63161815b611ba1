"""Residuals and normalisation: the worked example, LN against BN against RMSNorm, and which side the norm stands on."""

import math
from types import SimpleNamespace

import numpy as np

from claims.compute.networks import attention_layer, derivative, ffn_layer, jacobian_of, normalize, rms, run, sub_layers
from claims.judge import UNSET, Evidence
from claims.registry import computation
from lib.attention import multi_head_attention
from lib.block import post_ln, pre_ln, residual, transformer_block
from lib.feedforward import feed_forward
from lib.functional import gelu
from lib.normalization import batch_norm, layer_norm, rms_norm

# The three samples of L834-836; the first is also the example of L818.
SAMPLES = np.array([[0.2, 8.5, -3.1, 1.4], [1.1, 2.3, 4.2, -0.5], [3.0, 1.2, 0.8, 2.1]])


@computation
def normalization_step(step):
    """One step of the worked LayerNorm example."""
    x = SAMPLES[0]
    steps = {
        "mean": lambda: round(float(x.mean()), 12),
        "squares": lambda: (x - x.mean()) ** 2,
        "variance": lambda: float(x.var()),
        "deviation": lambda: float(x.std()),
        "normalized": lambda: layer_norm(x, eps=0),
        "mean and deviation of the result": lambda: [round(float(v), 12) for v in (layer_norm(x, eps=0).mean(), layer_norm(x, eps=0).std())],
    }
    return steps[step]()


@computation
def feature_column(feature):
    """The values that BatchNorm puts together: one feature over all samples; and what it makes of them."""
    return Evidence(SAMPLES[:, feature], show={"mean": SAMPLES[:, feature].mean(), "deviation": SAMPLES[:, feature].std(),
                                               "normalized": batch_norm(SAMPLES, eps=0)[:, feature]})


@computation
def gradient_product(factor, layers):
    """A gradient multiplied by the same factor in every layer."""
    return factor**layers


@computation
def residual_jacobian():
    """∂(x + F(x))/∂x against I + ∂F/∂x for a random feed-forward F."""
    rng = np.random.default_rng(0)
    f, x = ffn_layer(rng, 6, activation="gelu"), rng.normal(size=6)
    whole, branch = jacobian_of(lambda v: residual(v, f), x), jacobian_of(f, x)
    return "I + J_F" if np.allclose(whole, np.eye(6) + branch, atol=1e-7) else "不是 I + J_F"


@computation
def residual_needs_same_shape():
    """The residual sum takes a sub-layer of the same width and refuses any other."""
    x = np.ones((3, 8))
    same = residual(x, lambda v: v @ np.ones((8, 8))).shape == x.shape
    for width in (1, 4, 16):
        try:
            residual(x, lambda v, width=width: v @ np.ones((8, width)))
        except ValueError:
            continue
        return False
    return bool(same)


@computation
def residual_floor(layers):
    """The derivative of x + F(x) for F = −x and F = −0.9x, once and through many layers."""
    once = float(derivative(lambda v: residual(v, lambda u: -u), np.array([1.0]), np.array([1.0]))[0])

    def deep(v):
        for _ in range(layers):
            v = residual(v, lambda u: -0.9 * u)
        return v

    through = float(deep(np.array([1.0]))[0])  # linear in v, so the value at 1 is the slope
    floor = once >= 1 and through >= 1
    return Evidence("dy/dx = 1 + F'(x)，可为 0 或负" if not floor else "|dy/dx| >= 1", says="|dy/dx| >= 1" if floor else "没有下限",
                    show={"once": round(once, 9), "deep": through})


@computation
def sublayer_is_small_at_start(d, layers):
    """Var(F)/Var(x) of a feed-forward sub-layer under Xavier, and under GPT-2's 0.02 with outputs divided by √(2L)."""
    rng = np.random.default_rng(0)
    x = normalize(rng.normal(size=(32, d)))
    xavier = ffn_layer(rng, d, activation=gelu)(x).var() / x.var()
    gpt2 = ffn_layer(rng, d, 0.02, 0.02 / math.sqrt(2 * layers), activation=gelu)(x).var() / x.var()
    claim = "F≈0 at init"
    return Evidence("Var(F)~Var(x) unless scaled init", says=claim if xavier < 0.01 else "与 x 同量级", narrow=claim if gpt2 < 0.01 else UNSET,
                    show={"xavier": xavier, "gpt2": gpt2})


@computation
def layer_norm_formula():
    """`layer_norm` against (x − μ)/σ·γ + β written out, with the population deviation."""
    rng = np.random.default_rng(0)
    x, gain, bias = rng.normal(size=(5, 8)), rng.normal(size=8), rng.normal(size=8)
    written = (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True) * gain + bias
    return "(x-μ)/σ·γ+β" if np.allclose(layer_norm(x, gain, bias, eps=0), written) else "另一个式子"


@computation
def layer_norm_is_local():
    """Does a position keep its LayerNorm when everything else in the batch and the sequence changes? And its BatchNorm?"""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3, 5, 8))
    y = rng.normal(size=(3, 5, 8), scale=7)
    y[1, 2] = x[1, 2]
    stays = np.array_equal(layer_norm(x)[1, 2], layer_norm(y)[1, 2])
    moves = not np.allclose(batch_norm(x)[1, 2], batch_norm(y)[1, 2])
    return bool(stays and moves)


@computation
def rms_norm_formula():
    """RMSNorm on the document's vector: does it divide by the root mean square, or by the deviation?"""
    x = SAMPLES[0]
    root_mean_square, deviation = rms(x), float(x.std())
    y = rms_norm(x, eps=0)
    words = "x/RMS(x)·γ" if np.allclose(y, x / root_mean_square) else "x/std(x)" if np.allclose(y, x / deviation) else "另一个式子"
    return Evidence(words, show={"normalized": y})


@computation
def rms_against_deviation():
    """The two divisors on the document's vector."""
    x = SAMPLES[0]
    return Evidence([rms(x), float(x.std())], says=rms_norm_formula().computed, show={"normalized": rms_norm(x, eps=0)})


@computation
def batch_norm_switches():
    """Training statistics depend on the rest of the batch; with stored ones a sample's result doesn't."""
    running = SAMPLES.mean(0), SAMPLES.var(0)
    training = np.allclose(batch_norm(SAMPLES)[0], batch_norm(SAMPLES[:2])[0])
    inference = np.allclose(batch_norm(SAMPLES, running=running)[0], batch_norm(SAMPLES[:2], running=running)[0])
    return bool(inference and not training)


@computation
def batch_norm_needs_positions():
    """Must BatchNorm keep statistics for every position? It works with one a feature; padding is what disturbs it."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4, 6, 8))
    together = np.allclose(batch_norm(x).reshape(-1, 8).mean(0), 0) and batch_norm(x).shape == x.shape
    padded = np.concatenate([x, np.zeros((4, 3, 8))], axis=1)
    disturbed = not np.allclose(batch_norm(padded)[:, :6], batch_norm(x))
    return Evidence(not together, narrow=bool(disturbed))


@computation
def residual_stream(layers, d=32):
    """The size of the stream after a stack: does the norm pull every layer's end back, in Pre-LN as in Post-LN?"""
    rng = np.random.default_rng(0)
    stack, x = sub_layers(rng, d, layers), normalize(rng.normal(size=(8, d)))
    ends = {name: rms(run(x, stack, name)[-1]) for name in ("Pre-LN", "Post-LN")}
    words = {(True, True): "end of layer", (True, False): "Post-LN only"}[abs(ends["Post-LN"] - 1) < 1e-6, abs(ends["Pre-LN"] - 1) < 0.1]
    return Evidence(words, show={"pre": ends["Pre-LN"], "post": ends["Post-LN"]})


@computation
def residual_and_norm_both(layers, d=32):
    """A deep random stack with both, and with one of them missing: how large it gets, how far its words still differ."""
    size, differ = {}, {}
    for name in ("Pre-LN", "只有残差", "只有归一化"):
        rng = np.random.default_rng(0)
        stack, x = sub_layers(rng, d, layers), rng.normal(size=(8, d))
        end = run(x, stack, name)[-1]
        size[name] = rms(end)
        differ[name] = rms(end - end.mean(0)) / size[name]
    explodes, collapses = size["只有残差"] > 1000 * size["Pre-LN"], differ["只有归一化"] < 1e-9 * differ["Pre-LN"]
    return Evidence(bool(explodes and collapses), show={"size": size["只有残差"], "both": size["Pre-LN"],
                                                        "differ": differ["只有归一化"], "kept": differ["Pre-LN"]})


def _attention():
    rng = np.random.default_rng(0)
    return attention_layer(rng, 8), rng.normal(size=(5, 8))


def _expressions(f, x):
    """The three ways of writing one attention sub-layer that the document's box shows."""
    return {"LN(x+Attn(x))": normalize(x + f(x)), "x+Attn(LN(x))": x + f(normalize(x)), "LN(x+Attn(LN(x)))": normalize(x + f(normalize(x)))}


def _name_of(y, expressions):
    [name] = [name for name, value in expressions.items() if np.allclose(y, value)] or ["无"]
    return name


@computation
def norm_placement():
    """Which expression is Post-LN and which Pre-LN, by running both."""
    f, x = _attention()
    written = _expressions(f, x)
    return {"Post-LN": _name_of(post_ln(x, f, normalize), written), "Pre-LN": _name_of(pre_ln(x, f, normalize), written)}


@computation
def doubly_normalized():
    """Is LN(x + Attn(LN(x))) a way of writing Post-LN, or Pre-LN?"""
    f, x = _attention()
    y = _expressions(f, x)["LN(x+Attn(LN(x)))"]
    same = {name: np.allclose(y, wrap(x, f, normalize)) for name, wrap in (("Post-LN", post_ln), ("Pre-LN", pre_ln))}
    return "既非 Post-LN 也非 Pre-LN" if not any(same.values()) else "是 " + "、".join(name for name, is_same in same.items() if is_same)


@computation
def gradient_through_norm():
    """What a gradient meets in LayerNorm: its derivative (the Jacobian), or its reciprocal?"""
    rng = np.random.default_rng(0)
    x, v = rng.normal(size=(2, 6))
    measured = derivative(normalize, x, v)
    sigma, y = x.std(), normalize(x)
    by_derivative = (v - v.mean() - y * (v * y).mean()) / sigma
    by_reciprocal = v / y
    if np.allclose(measured, by_derivative, atol=1e-6):
        return Evidence("导数（雅可比）", says="导数")
    return Evidence("倒数" if np.allclose(measured, by_reciprocal, atol=1e-6) else "都不是")


@computation
def order_of_sublayers():
    """Attention, add, norm, then feed-forward, add, norm: which setting of `transformer_block` is that?"""
    rng = np.random.default_rng(0)
    d = 8
    attention = {f"W_{name}": rng.normal(size=(d, d)) for name in "QKVO"}
    ffn = {"W_1": rng.normal(size=(d, 4 * d)), "W_2": rng.normal(size=(4 * d, d))}
    plain = {"gain": np.ones(d), "bias": np.zeros(d)}
    params = {"norm_1": plain, "norm_2": plain, "attention": attention, "ffn": ffn}
    x = rng.normal(size=(5, d))
    h = layer_norm(x + multi_head_attention(x, attention, 2)[0])
    y = layer_norm(h + feed_forward(h, ffn, "relu"))
    for name, position in (("Post-LN", "post"), ("Pre-LN", "pre")):
        config = SimpleNamespace(n_heads=2, n_kv_heads=2, norm="layer", norm_eps=1e-5, norm_position=position, position="none",
                                 rope_base=10000.0, activation="relu", window=None)
        if np.allclose(transformer_block(x, params, config), y):
            return name
    return "都不是"
