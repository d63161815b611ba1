"""Two trainings that chapter 03 reports: does order get through, and what happens past the training length.

    python chapters/position_experiments.py order           judge whether A stands before B          (about 3 minutes)
    python chapters/position_experiments.py extrapolation   train on 32 positions, test on 96       (about 5 minutes)

Results go to chapters/stored/position-*.json; the chapter shows them and says that they are stored.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from lib.attention import causal_mask
from lib.block import transformer_block
from lib.embedding import embed
from lib.functional import cross_entropy, linear
from lib.gradients import (
    cross_entropy_backward,
    embed_backward,
    linear_backward,
    loss_and_gradients,
    transformer_block_backward,
)
from lib.model import GPT, Config
from lib.position import sinusoidal_encoding
from lib.training import AdamW

STORED = Path(__file__).resolve().parent / "stored"

# ---------------------------------------------------------------- does A stand before B?

LETTERS, A, B, LENGTH = 6, 6, 7, 12
ORDER = Config(vocab_size=8, context_length=LENGTH, d_model=32, n_layers=2, n_heads=4, position="none")
SETTINGS = {
    "无掩码，无位置": (False, False), "无掩码，有位置": (False, True),
    "因果掩码，无位置": (True, False), "因果掩码，有位置": (True, True),
}


def order_batch(rng, size=64):
    """Random letters with one A and one B among them; label 1 where A stands first. Neither stands last: the answer is
    read off the last position, and seeing an A or a B there would give it away without any sense of order."""
    ids = rng.integers(0, LETTERS, (size, LENGTH))
    places = np.argsort(rng.random((size, LENGTH - 1)), axis=1)[:, :2]
    rows = np.arange(size)
    ids[rows, places[:, 0]], ids[rows, places[:, 1]] = A, B
    return ids, (places[:, 0] < places[:, 1]).astype(int)


def classify(params, ids, mask, positions):
    """Logits [size, 2] from the last position, and the input of every layer for the way back."""
    inputs = [embed(params["wte"], ids) + positions]
    for block in params["blocks"]:
        inputs.append(transformer_block(inputs[-1], block, ORDER, mask))
    return linear(inputs[-1][:, -1], params["head"]), inputs


def classification_gradients(params, ids, labels, mask, positions):
    logits, inputs = classify(params, ids, mask, positions)
    last, grads = inputs[-1], {"blocks": []}
    dlast, grads["head"], _ = linear_backward(cross_entropy_backward(logits, labels), last[:, -1], params["head"])
    dx = np.zeros_like(last)
    dx[:, -1] = dlast
    for x, block in zip(inputs[-2::-1], params["blocks"][::-1]):
        dx, block_grads = transformer_block_backward(dx, x, block, ORDER, mask)
        grads["blocks"].insert(0, block_grads)
    grads["wte"] = embed_backward(dx, ids, ORDER.vocab_size)
    return cross_entropy(logits, labels), grads


def order_run(causal, with_positions, seed, steps=400):
    """Accuracy on fresh strings, measured every 50 steps."""
    rng = np.random.default_rng(seed)
    params = GPT(ORDER, rng=rng, dtype=np.float32).params
    params = {"wte": rng.standard_normal((8, 32), dtype=np.float32), "blocks": params["blocks"],
              "head": rng.standard_normal((32, 2), dtype=np.float32) / 6}
    mask = causal_mask(LENGTH) if causal else None
    positions = (sinusoidal_encoding(LENGTH, 32) if with_positions else np.zeros((LENGTH, 32))).astype(np.float32)
    optimizer, accuracy = AdamW(lr=3e-3), []
    for step in range(steps + 1):
        if step % 50 == 0:
            ids, labels = order_batch(np.random.default_rng(1000 + seed), 2000)
            accuracy.append(float((classify(params, ids, mask, positions)[0].argmax(1) == labels).mean()))
        ids, labels = order_batch(rng)
        optimizer.step(params, classification_gradients(params, ids, labels, mask, positions)[1])
    return [round(a, 3) for a in accuracy]


def order():
    runs = {name: [order_run(*setting, seed) for seed in range(3)] for name, setting in SETTINGS.items()}
    write("position-order.json", {"steps": list(range(0, 401, 50)), "runs": runs})


# ---------------------------------------------------------------- past the training length

TRAINED, TESTED = 32, 96
KINDS = {"正弦": "sinusoidal", "RoPE": "rotary", "无位置": "none"}


def sonnets():
    """Character ids of the sonnets, cut into training text and held-out text."""
    text = (STORED / "sonnets.txt").read_text(encoding="utf-8")
    alphabet = sorted(set(text))
    ids = np.array([alphabet.index(c) for c in text])
    return np.split(ids, [len(ids) * 9 // 10]), len(alphabet)


def windows(ids, length, starts):
    return np.stack([ids[s : s + length] for s in starts]), np.stack([ids[s + 1 : s + 1 + length] for s in starts])


def extrapolation_run(kind, seed, steps=800):
    """Mean loss at every position 0…TESTED-1 of a model that was trained on windows of TRAINED characters."""
    (train, held_out), size = sonnets()
    config = Config(size, TRAINED, 64, 2, 4, position=kind, scale_embeddings=kind == "sinusoidal")
    model, optimizer = GPT(config, rng=np.random.default_rng(seed)), AdamW(lr=2e-3, weight_decay=0.0)
    rng = np.random.default_rng(seed)
    for step in range(steps):
        optimizer.lr = 2e-3 * min(1.0, 2 * (1 - step / steps))      # flat, then linearly to zero
        ids, targets = windows(train, TRAINED, rng.integers(0, len(train) - TRAINED - 1, 32))
        optimizer.step(model.params, loss_and_gradients(model, ids, targets)[1])
    longer = GPT(replace(config, context_length=TESTED), model.params)
    ids, targets = windows(held_out, TESTED, range(0, len(held_out) - TESTED - 1, 16))
    return cross_entropy(longer(ids), targets, reduction="none").mean(axis=0)


def extrapolation():
    losses = {name: np.mean([extrapolation_run(kind, seed) for seed in range(2)], axis=0) for name, kind in KINDS.items()}
    (train, held_out), _ = sonnets()
    frequency = np.bincount(train, minlength=held_out.max() + 1) / len(train)
    write("position-extrapolation.json", {
        "trained": TRAINED, "tested": TESTED, "unigram": round(float(-np.log(frequency[held_out]).mean()), 3),
        "losses": {name: [round(float(v), 3) for v in row] for name, row in losses.items()}})


def write(name, value):
    (STORED / name).write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    commands = {"order": order, "extrapolation": extrapolation}
    if len(sys.argv) < 2 or any(name not in commands for name in sys.argv[1:]):
        sys.exit(__doc__)
    for name in sys.argv[1:]:
        commands[name]()
