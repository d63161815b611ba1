"""The tiny model behind the page 「一个 token 的旅程」: its settings, and its weights as they are shipped.

The page computes with exactly the numbers in `weights.js`; `load` reads the same numbers into `lib`, so that what the
page shows can be compared with what `lib` computes.
"""

import base64
import json
from dataclasses import replace
from pathlib import Path

import numpy as np

from lib.model import GPT, Config, parameter_shapes
from lib.tokenizer import ByteBPE

HERE = Path(__file__).parent
WEIGHTS = HERE / "weights.js"
PREFIX = "globalThis.JOURNEY_DATA = "
CONFIG = Config(vocab_size=1024, context_length=40, d_model=32, n_layers=2, n_heads=4)
# Each combination is trained on its own: turning a switch takes other weights, not the same ones under another rule.
NORMS, POSITIONS = ("pre", "post"), ("learned", "rotary", "none")


def configurations():
    """{name: Config} of every trained set of weights."""
    return {f"{norm}-{position}": replace(CONFIG, norm_position=norm, position=position) for norm in NORMS for position in POSITIONS}


# ---------------------------------------------------------------- 8-bit weights


def quantize(array):
    """A matrix as int8 and one float32 scale a row; vectors (gains, biases) stay float32."""
    if array.ndim == 1:
        return {"shape": list(array.shape), "f32": _text(array.astype("<f4"))}
    scale = (np.abs(array).max(axis=1, keepdims=True) / 127).astype("<f4")
    scale[scale == 0] = 1
    return {"shape": list(array.shape), "scale": _text(scale), "i8": _text(np.rint(array / scale).astype(np.int8))}


def dequantize(entry):
    """Back to float64: int8 × scale, in float64 as the page's script does it."""
    shape = tuple(entry["shape"])
    if "f32" in entry:
        return np.frombuffer(base64.b64decode(entry["f32"]), "<f4").astype(np.float64).reshape(shape)
    scale = np.frombuffer(base64.b64decode(entry["scale"]), "<f4").astype(np.float64)
    return np.frombuffer(base64.b64decode(entry["i8"]), np.int8).astype(np.float64).reshape(shape) * scale[:, None]


def transform(tree, change):
    """The same nested dict with every leaf changed; a leaf is whatever is neither a list of blocks nor a dict of names."""
    if isinstance(tree, list):
        return [transform(value, change) for value in tree]
    if isinstance(tree, dict) and "shape" not in tree:
        return {name: transform(value, change) for name, value in tree.items()}
    return change(tree)


def _text(array):
    return base64.b64encode(array.tobytes()).decode("ascii")


# ---------------------------------------------------------------- the file


def write(tokenizer, models, facts):
    """`weights.js`: a classic script, because a page opened from a folder may not fetch."""
    ids = tokenizer.vocab
    data = {
        "config": {
            "vocab_size": CONFIG.vocab_size, "context_length": CONFIG.context_length, "d_model": CONFIG.d_model,
            "n_layers": CONFIG.n_layers, "n_heads": CONFIG.n_heads, "d_head": CONFIG.d_head, "d_ff": CONFIG.ffn_width,
            "norm_eps": CONFIG.norm_eps, "rope_base": CONFIG.rope_base,
        },
        "merges": [[ids[left], ids[right]] for left, right in tokenizer.merges],
        "facts": facts,
        "models": {name: transform(model.params, quantize) for name, model in models.items()},
    }  # fmt: skip
    WEIGHTS.write_text(PREFIX + json.dumps(data, ensure_ascii=False, separators=(",", ":")) + ";\n", encoding="utf-8")


def read():
    """The data of `weights.js` as they lie there."""
    return json.loads(WEIGHTS.read_text(encoding="utf-8").removeprefix(PREFIX).rstrip(";\n"))


def load(data=None):
    """(tokenizer, {name: GPT in float64}) from `weights.js`."""
    data = read() if data is None else data
    tokens = [bytes([b]) for b in range(256)]
    for left, right in data["merges"]:
        tokens.append(tokens[left] + tokens[right])
    merges = [(tokens[left], tokens[right]) for left, right in data["merges"]]
    tokenizer = ByteBPE({token: index for index, token in enumerate(tokens)}, merges=merges)
    models = {name: GPT(config, transform(data["models"][name], dequantize)) for name, config in configurations().items()}
    return tokenizer, models


__all__ = ["CONFIG", "WEIGHTS", "configurations", "dequantize", "load", "parameter_shapes", "quantize", "read", "transform", "write"]
