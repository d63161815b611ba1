"""Make the golden gradients: PyTorch's autograd through `tests/lib/torch_gpt.py`, in float64.

    python -m tests.lib.golden.make_gradients      (in an environment with the `peers` extra)

writes gradients.npz beside this file. Weights are random with a fixed seed.
"""
import json
from pathlib import Path

import numpy as np

from lib.model import GPT, Config
from lib.training import leaves

GOLDEN = Path(__file__).parent / "gradients.npz"
_BASE = dict(vocab_size=7, context_length=6, d_model=8, n_layers=2, n_heads=2, d_ff=10)
CASES = {
    "transformer-2017": dict(norm_position="post", position="sinusoidal", activation="relu", scale_embeddings=True),
    "gpt2": {},
    "llama": dict(norm="rms", position="rotary", activation="swiglu", bias=False, tie_embeddings=False, n_kv_heads=1, window=3),
}


def case(name):
    """The model, ids and targets of a case; one target is ignored."""
    rng = np.random.default_rng(11)
    model = GPT(Config(**_BASE | CASES[name]), dtype=np.float64)
    for _, array in leaves(model.params):
        array += rng.normal(size=array.shape) * 0.3
    ids, targets = rng.integers(0, 7, (2, 6)), rng.integers(0, 7, (2, 6))
    targets[1, 2] = -100
    return model, ids, targets


def derive(name):
    from tests.lib import torch_gpt
    model, ids, targets = case(name)
    params = torch_gpt.tensors(model.params)
    loss = torch_gpt.loss(ids, targets, params, model.config)
    loss.backward()
    found = {f"{name}.{path}": array for path, array in leaves(torch_gpt.gradients(params))}
    return found | {f"{name}.loss": np.array(loss.item())}


def main():
    import torch
    arrays = {}
    for name in CASES:
        arrays |= derive(name)
    made = {"made by": "python -m tests.lib.golden.make_gradients", "numpy": np.__version__, "torch": torch.__version__}
    np.savez_compressed(GOLDEN, provenance=json.dumps(made), **arrays)


if __name__ == "__main__":
    main()
