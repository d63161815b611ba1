"""The baseline: GPT-2's forward pass the shortest way in NumPy, head by head, nothing tuned, float32 kept.

A model of this kind (one function a component, a nested dict of weights) is how most NumPy versions of GPT-2 are
written; the only care taken here is that no float64 scalar creeps in.
"""
import math

import numpy as np


def gelu(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def softmax(x):
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def layer_norm(x, gain, bias):
    mean, variance = np.mean(x, axis=-1, keepdims=True), np.var(x, axis=-1, keepdims=True)
    return gain * (x - mean) / np.sqrt(variance + 1e-5) + bias


def attention(x, p, n_head):
    qkv = x @ p["qkv"] + p["b_qkv"]
    mask = (1 - np.tri(len(x), dtype=x.dtype)) * -1e10
    heads = []
    for q, k, v in zip(*(np.split(part, n_head, axis=-1) for part in np.split(qkv, 3, axis=-1))):
        heads.append(softmax(q @ k.T / math.sqrt(q.shape[-1]) + mask) @ v)
    return np.hstack(heads) @ p["W_O"] + p["b_O"]


def forward(ids, p, n_head):
    """ids [n] -> logits [n, V]."""
    x = p["wte"][ids] + p["wpe"][: len(ids)]
    for b in p["blocks"]:
        x = x + attention(layer_norm(x, *b["norm_1"]), b["attention"], n_head)
        h = layer_norm(x, *b["norm_2"])
        x = x + gelu(h @ b["W_1"] + b["b_1"]) @ b["W_2"] + b["b_2"]
    return layer_norm(x, *p["norm_f"]) @ p["wte"].T


def weights(model):
    """The same weights as a `lib.model.GPT`, laid out for the functions above."""
    p = model.params
    pair = lambda norm: (norm["gain"], norm["bias"])
    blocks = []
    for b in p["blocks"]:
        a, ffn = b["attention"], b["ffn"]
        blocks.append({"norm_1": pair(b["norm_1"]), "norm_2": pair(b["norm_2"]), "W_1": ffn["W_1"], "b_1": ffn["b_1"],
                       "W_2": ffn["W_2"], "b_2": ffn["b_2"],
                       "attention": {"qkv": np.hstack([a["W_Q"], a["W_K"], a["W_V"]]), "b_qkv": np.hstack([a["b_Q"], a["b_K"], a["b_V"]]),
                                     "W_O": a["W_O"], "b_O": a["b_O"]}})
    return {"wte": p["wte"], "wpe": p["wpe"], "blocks": blocks, "norm_f": pair(p["norm_f"])}
