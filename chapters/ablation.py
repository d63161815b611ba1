"""Chapter 12's laboratory: one small model of Tang poems, trained whole and with one part removed at a time.

    python chapters/ablation.py ablation     seven variants, two seeds each, then `starts` -> chapters/stored/ablation.json
    python chapters/ablation.py starts       positions again, every piece cut where a poem begins -> "starts" in the same file
    python chapters/ablation.py poet         one longer run                     -> chapters/stored/poet.npz, poet.json

The variants that `lib.model.Config` has no setting for (no residual, no norm, no feed-forward, no scaling) are put
together here from the same forward and backward functions of `lib`; `Variant()` without switches is the lib's own model.
"""

import json
import math
import sys
from pathlib import Path

import numpy as np

from lib.attention import multi_head_attention
from lib.feedforward import feed_forward
from lib.functional import cross_entropy, linear
from lib.gradients import (
    cross_entropy_backward,
    embed_backward,
    feed_forward_backward,
    layer_norm_backward,
    linear_backward,
    multi_head_attention_backward,
)
from lib.model import GPT, Config
from lib.normalization import layer_norm
from lib.training import AdamW, evaluate, gradient_norm, leaves, random_batch, train, warmup_cosine

STORED = Path(__file__).resolve().parent / "stored"
SMALL = dict(context_length=36, d_model=64, n_layers=3, n_heads=4)
POET = dict(context_length=48, d_model=96, n_layers=4, n_heads=4)


def load_poems():
    """(training ids, validation ids, characters): the poems one after another, a newline between two; the last tenth is held out."""
    text = (STORED / "tang-poems.txt").read_text(encoding="utf-8")
    characters = sorted(set(text))
    index = {c: i for i, c in enumerate(characters)}
    lines = text.splitlines()
    cut = len(lines) * 9 // 10
    join = lambda part: np.array([index[c] for c in "\n".join(part) + "\n"])
    return join(lines[:cut]), join(lines[cut:]), characters


class Variant:
    """The model of lib with parts that can be taken out: `residual`, `norm`, `ffn`, `scale`."""

    def __init__(self, config, rng, residual=True, norm=True, ffn=True, scale=True):
        self.config, self.residual, self.norm, self.ffn, self.scale = config, residual, norm, ffn, scale
        self.params = GPT(config, rng=rng).params

    def _attention(self, p):
        # softmax(q·k) without 1/√d_head is the scaled one with a W_Q that is √d_head times as large.
        return p if self.scale else p | {"W_Q": p["W_Q"] * math.sqrt(self.config.d_head), "b_Q": p["b_Q"] * math.sqrt(self.config.d_head)}

    def _sublayers(self):
        return [("norm_1", "attention")] + ([("norm_2", "ffn")] if self.ffn else [])

    def forward(self, ids):
        """Logits, and for every sublayer what its backward needs: (block, norm's name, part, its input, the normed input)."""
        c, params, saved = self.config, self.params, []
        x = params["wte"][ids]
        if c.position == "learned":
            x = x + params["wpe"][: ids.shape[-1]]
        for block in params["blocks"]:
            for norm, part in self._sublayers():
                inner = layer_norm(x, **block[norm]) if self.norm else x
                if part == "attention":
                    y = multi_head_attention(inner, self._attention(block[part]), c.n_heads, is_causal=True, need_weights=False)[0]
                else:
                    y = feed_forward(inner, block[part], c.activation)
                saved.append((block, norm, part, x, inner))
                x = x + y if self.residual else y
        final = layer_norm(x, **params["norm_f"]) if self.norm else x
        return linear(final, params["wte"].T), x, final, saved

    def __call__(self, ids):
        return self.forward(ids)[0]

    def loss_and_gradients(self, ids, targets):
        c, params = self.config, self.params
        logits, x, final, saved = self.forward(ids)
        mask = np.tri(ids.shape[-1], dtype=bool)
        grads = {"blocks": [zeros(block) for block in params["blocks"]], "norm_f": zeros(params["norm_f"])}
        dx, dhead, _ = linear_backward(cross_entropy_backward(logits, targets), final, params["wte"].T)
        if self.norm:
            dx = self._norm_backward(dx, x, params["norm_f"], grads["norm_f"])
        by_block = {id(block): g for block, g in zip(params["blocks"], grads["blocks"])}
        for block, norm, part, x, inner in reversed(saved):
            into = by_block[id(block)]
            if part == "attention":
                dinner, g = multi_head_attention_backward(dx, inner, self._attention(block[part]), c.n_heads, mask=mask)
                if not self.scale:
                    g = g | {name: g[name] * math.sqrt(c.d_head) for name in ("W_Q", "b_Q")}
            else:
                dinner, g = feed_forward_backward(dx, inner, block[part], c.activation)
            into[part] = g
            if self.norm:
                dinner = self._norm_backward(dinner, x, block[norm], into[norm])
            dx = dx + dinner if self.residual else dinner
        if c.position == "learned":
            grads["wpe"] = np.zeros_like(params["wpe"])
            grads["wpe"][: dx.shape[-2]] = dx.sum(0)
        grads["wte"] = embed_backward(dx, ids, c.vocab_size) + dhead.T
        return cross_entropy(logits, targets), grads

    @staticmethod
    def _norm_backward(dy, x, params, grads):
        dx, grads["gain"], grads["bias"] = layer_norm_backward(dy, x, params["gain"])
        return dx


def zeros(tree):
    if isinstance(tree, dict):
        return {name: zeros(value) for name, value in tree.items()}
    return np.zeros_like(tree)


VARIANTS = {
    "完整": {}, "去掉位置": {"position": "none"}, "只有一个头": {"n_heads": 1}, "不缩放": {"scale": False}, "去掉前馈": {"ffn": False},
    "去掉残差": {"residual": False}, "去掉归一化": {"norm": False},
}


def build(name, vocab_size, seed):
    switches = VARIANTS[name]
    settings = {key: value for key, value in switches.items() if key in ("position", "n_heads")}
    parts = {key: value for key, value in switches.items() if key not in settings}
    return Variant(Config(vocab_size=vocab_size, **SMALL | settings), np.random.default_rng(seed), **parts)


def pieces_from_starts(data, newline, length):
    """Every piece of length + 1 characters that begins where a poem begins."""
    starts = np.append(0, np.flatnonzero(data == newline) + 1)
    starts = starts[starts + length + 1 <= len(data)]
    return data[starts[:, None] + np.arange(length + 1)]


def run(model, data, validation, steps, batch_size, rng, lr=4e-3, every=50, newline=None):
    """[(step, validation loss)] of one run; a loss that isn't finite ends it. With `newline`, pieces begin where a poem begins."""
    optimizer, schedule, curve, length = AdamW(weight_decay=0.0), warmup_cosine(steps, lr, warmup=30), [], model.config.context_length
    if newline is not None:
        pieces, held_out = (pieces_from_starts(part, newline, length) for part in (data, validation))
    for step in range(steps):
        optimizer.lr = schedule(step)
        if newline is None:
            ids, targets = random_batch(data, batch_size, length, rng)
        else:
            chosen = pieces[rng.integers(0, len(pieces), batch_size)]
            ids, targets = chosen[:, :-1], chosen[:, 1:]
        loss, grads = model.loss_and_gradients(ids, targets)
        norm = gradient_norm(grads)
        if not (np.isfinite(loss) and np.isfinite(norm)):
            break
        if norm > 1:
            for _, g in leaves(grads):
                g *= 1 / norm
        optimizer.step(model.params, grads)
        if (step + 1) % every == 0:
            value = evaluate(model, validation[:4000]) if newline is None else cross_entropy(model(held_out[:110, :-1]), held_out[:110, 1:])
            curve.append((step + 1, round(float(value), 3)))
    return curve


def ablation(steps=800, seeds=2):
    data, validation, characters = load_poems()
    counts = np.bincount(data, minlength=len(characters)) + 1.0
    unigram = float(-np.log(counts / counts.sum())[validation].mean())
    found = {"steps": steps, "unigram": round(unigram, 3), "uniform": round(math.log(len(characters)), 3), "curves": {}}
    for name in VARIANTS:
        found["curves"][name] = [run(build(name, len(characters), seed), data, validation, steps, 16, np.random.default_rng(seed)) for seed in range(seeds)]
        print(name, [curve[-1] for curve in found["curves"][name]], flush=True)
        (STORED / "ablation.json").write_text(json.dumps(found, ensure_ascii=False) + "\n", encoding="utf-8")
    starts(seeds)


def starts(seeds=2):
    data, validation, characters = load_poems()
    path = STORED / "ablation.json"
    found = json.loads(path.read_text(encoding="utf-8"))
    found["starts"] = {}
    for name in ("完整", "去掉位置"):
        found["starts"][name] = [run(build(name, len(characters), seed), data, validation, found["steps"], 16, np.random.default_rng(seed),
                                     newline=characters.index("\n")) for seed in range(seeds)]
        print(name, [curve[-1] for curve in found["starts"][name]], flush=True)
    path.write_text(json.dumps(found, ensure_ascii=False) + "\n", encoding="utf-8")


def poet(steps=3000):
    data, validation, characters = load_poems()
    model = GPT(Config(vocab_size=len(characters), **POET), rng=np.random.default_rng(0))
    checkpoint = STORED.parent.parent / "data" / "poet-checkpoint.npz"
    checkpoint.parent.mkdir(exist_ok=True)
    history = train(model, data, steps=steps, batch_size=16, rng=np.random.default_rng(1), optimizer=AdamW(weight_decay=0.05),
                    schedule=warmup_cosine(steps, 2e-3, warmup=100, final=2e-4), validation=validation[:6000], evaluate_every=250, checkpoint=checkpoint)
    np.savez_compressed(STORED / "poet.npz", **{name: array.astype(np.float16) for name, array in leaves(model.params)})
    loss = [round(float(np.mean(history["loss"][i : i + 25])), 3) for i in range(0, steps, 25)]
    found = {"config": POET, "steps": steps, "loss_every_25": loss, "validation": history["validation"]}
    (STORED / "poet.json").write_text(json.dumps(found) + "\n", encoding="utf-8")


def load_poet():
    """The stored poet and its characters."""
    _, _, characters = load_poems()
    model = GPT(Config(vocab_size=len(characters), **POET))
    with np.load(STORED / "poet.npz") as stored:
        for name, array in leaves(model.params):
            array[...] = stored[name]
    return model, characters


COMMANDS = {"ablation": ablation, "starts": starts, "poet": poet}

if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in COMMANDS:
        sys.exit(__doc__)
    COMMANDS[sys.argv[1]]()
