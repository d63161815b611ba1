"""What a real pretrained model shows, measured in pure NumPy and stored small for readers who don't have the weights.

    make real-model                     SmolLM2-135M-Instruct (Apache-2.0) -> data/smollm2/
    python chapters/real_model.py       measure it and write chapters/stored/real-model.json

Chapter 05 shows which heads specialise, chapter 10 what it answers; how context moves one word's vector (chapter 02) is
measured by `material.py contextual`.
"""

import json
import sys
from pathlib import Path

import numpy as np

from lib.generation import generate
from lib.model import GPT
from lib.tokenizer import ByteBPE

ROOT = Path(__file__).resolve().parent.parent
WEIGHTS = ROOT / "data" / "smollm2" / "SmolLM2-135M-Instruct.Q4_1.gguf"
STORED = ROOT / "chapters" / "stored" / "real-model.json"

TEXT = ("The old clock in the hall struck nine. Anna closed the book, put it back on the shelf and walked to the window. "
        "Outside, the snow had stopped, and a single lamp lit the empty street. She thought about the letter again.")
CHAT = "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n"
PROMPTS = ["The capital of France is", "The opposite of hot is"]
QUESTIONS = ["What is the capital of China?", "How many r's are in strawberry?"]


def load():
    """The model and its tokenizer, or None when the weights aren't there."""
    if not WEIGHTS.exists():
        return None
    return GPT.from_gguf(WEIGHTS), ByteBPE.from_gguf(WEIGHTS)


def attention_tables(model, ids):
    """All attention weights of one pass: [L, h, n, n]."""
    record = {}
    model(np.array(ids), record=record)
    return np.stack([block["weights"] for block in record["blocks"]])


def head_kinds(model, tokenizer, rng):
    """For every head [L, h]: mean weight on the token before, on the token after the last occurrence (induction), on token 0."""
    text = attention_tables(model, tokenizer.encode(TEXT))
    positions = np.arange(2, text.shape[-1])
    previous = text[:, :, positions, positions - 1].mean(axis=-1)
    sink = text[:, :, 2:, 0].mean(axis=-1)
    # A random sequence said twice: only a head that looks up what followed last time can know what comes next.
    half = rng.integers(1000, 40_000, 24)
    repeated = attention_tables(model, np.concatenate([half, half]))
    second = np.arange(len(half) + 1, 2 * len(half))
    induction = repeated[:, :, second, second - len(half) + 1].mean(axis=-1)
    return {"前一词头": previous, "归纳头": induction}, sink


def top(scores, count=3):
    order = np.argsort(scores, axis=None)[::-1][:count]
    return [{"layer": int(i), "head": int(j), "score": round(float(scores[i, j]), 2)} for i, j in zip(*np.unravel_index(order, scores.shape))]


def answers(model, tokenizer):
    stop = tokenizer.encode("<|im_end|>", allowed_special="all")
    found = {}
    for prompt, chat in [(p, False) for p in PROMPTS] + [(q, True) for q in QUESTIONS]:
        ids = tokenizer.encode(CHAT.format(prompt) if chat else prompt, allowed_special="all")
        out = generate(model, ids, 40 if chat else 8, stop_ids=stop, temperature=0.0)
        found[prompt] = tokenizer.decode([i for i in out[len(ids):] if i not in stop], errors="replace").strip()
    return found


def main():
    loaded = load()
    if loaded is None:
        sys.exit("没有权重：先运行 make real-model（下载约 93 MB）")
    model, tokenizer = loaded
    kinds, sink = head_kinds(model, tokenizer, np.random.default_rng(0))
    stored = {
        "model": "SmolLM2-135M-Instruct（Q4_1 量化，30 层，每层 9 头）", "heads": int(sink.size),
        "top": {kind: top(scores) for kind, scores in kinds.items()}, "sinks": int((sink > 0.5).sum()),
        "answers": answers(model, tokenizer),
    }
    STORED.write_text(json.dumps(stored, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    print(STORED)


if __name__ == "__main__":
    main()
