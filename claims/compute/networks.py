"""Small random networks for the experiments: one sub-layer, a stack of them, and how a change travels through."""

import math

import numpy as np

from lib.attention import multi_head_attention
from lib.block import post_ln, pre_ln, residual
from lib.feedforward import feed_forward
from lib.normalization import layer_norm


def normalize(x):
    return layer_norm(x, eps=0)


def attention_layer(rng, d, n_heads=4, scale=None, mask=None):
    """One attention sub-layer with random weights; Xavier's deviation unless `scale` is given."""
    deviation = math.sqrt(1 / d) if scale is None else scale
    params = {f"W_{name}": rng.normal(scale=deviation, size=(d, d)) for name in "QKVO"}
    return lambda x: multi_head_attention(x, params, n_heads, mask=mask)[0]


def ffn_layer(rng, d, scale=None, out_scale=None, activation="relu"):
    """One feed-forward sub-layer (4d wide) with random weights; Xavier's deviation unless the scales are given."""
    xavier = math.sqrt(2 / (5 * d))
    W_1 = rng.normal(scale=xavier if scale is None else scale, size=(d, 4 * d))
    W_2 = rng.normal(scale=xavier if out_scale is None else out_scale, size=(4 * d, d))
    return lambda x: feed_forward(x, {"W_1": W_1, "W_2": W_2}, activation)


def sub_layers(rng, d, layers):
    return [make(rng, d) for _ in range(layers) for make in (attention_layer, ffn_layer)]


WRAPPINGS = {
    "Pre-LN": lambda x, f: pre_ln(x, f, normalize),
    "Post-LN": lambda x, f: post_ln(x, f, normalize),
    "只有残差": residual,
    "只有归一化": lambda x, f: f(normalize(x)),
    "都没有": lambda x, f: f(x),
}


def run(x, layers, wrapping):
    """The input and the state after every sub-layer."""
    states = [x]
    for f in layers:
        states.append(WRAPPINGS[wrapping](states[-1], f))
    return states


def rms(x):
    return float(np.sqrt(np.mean(np.square(x))))


def derivative(f, x, direction, step=1e-6):
    """The change of f along a direction, by a central difference."""
    return (f(x + step * direction) - f(x - step * direction)) / (2 * step)


def jacobian_of(f, x, step=1e-6):
    """Rows of ∂f_j/∂x_i at one vector, by central differences."""
    return np.stack([derivative(f, x, e, step) for e in np.eye(len(x))])
