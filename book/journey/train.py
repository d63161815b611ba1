"""Train the page's six tiny models with `lib` on Tang poems and write `weights.js`; a few CPU minutes.

    python -m book.journey.train

Every number is drawn from fixed seeds: the same NumPy on the same machine gives the same file.
"""

import math
import time
from pathlib import Path

import numpy as np

from book.journey import model as journey
from lib.model import GPT
from lib.tokenizer import ByteBPE
from lib.training import AdamW, evaluate, train, warmup_cosine

POEMS = Path(__file__).resolve().parents[2] / "chapters" / "stored" / "tang-poems.txt"
STEPS, BATCH, PEAK = 1100, 16, 5e-3


def material():
    """(tokenizer, training ids, held-out ids, held-out poems): every twentieth poem is kept from the training."""
    poems = POEMS.read_text(encoding="utf-8").splitlines()
    held_out, seen = poems[::20], [poem for number, poem in enumerate(poems) if number % 20]
    tokenizer = ByteBPE.train("\n".join(seen), journey.CONFIG.vocab_size)
    ids, unseen = (np.array(tokenizer.encode("\n".join(part))) for part in (seen, held_out))
    return tokenizer, ids, unseen, held_out


def train_one(config, ids):
    """One set of weights; the same seed for each, so that they differ by their settings alone."""
    model = GPT(config, rng=np.random.default_rng(7))
    optimizer = AdamW(betas=(0.9, 0.99), weight_decay=0.05)
    train(model, ids, steps=STEPS, batch_size=BATCH, rng=np.random.default_rng(11), optimizer=optimizer,
          schedule=warmup_cosine(STEPS, PEAK, warmup=60, final=PEAK / 20), progress=False)  # fmt: skip
    return model


def main():
    start = time.process_time()
    tokenizer, ids, unseen, held_out = material()
    models = {}
    for name, config in journey.configurations().items():
        models[name] = train_one(config, ids)
        print(f"{name}: {time.process_time() - start:.0f} CPU s", flush=True)
    facts = {
        "poems": len(POEMS.read_text(encoding="utf-8").splitlines()),
        "held_out_poems": len(held_out),
        "training_tokens": len(ids),
        "held_out_tokens": len(unseen),
        "steps": STEPS,
        "batch": BATCH,
        "parameters": {name: model.num_parameters for name, model in models.items()},
        "examples": examples(tokenizer, held_out),
    }
    journey.write(tokenizer, models, facts)
    # The loss that the page states is that of the numbers it ships, after rounding to 8 bits.
    _, shipped = journey.load()
    facts["held_out_loss"] = {name: round(evaluate(model, unseen), 4) for name, model in shipped.items()}
    journey.write(tokenizer, models, facts)
    for name, loss in facts["held_out_loss"].items():
        print(f"{name}: held-out loss {loss:.3f} (before rounding {evaluate(models[name], unseen):.3f}), uniform {math.log(1024):.3f}")
    print(f"{journey.WEIGHTS.stat().st_size:,} bytes, {time.process_time() - start:.0f} CPU s")


def examples(tokenizer, held_out, count=3, limit=14):
    """First lines of held-out poems that fit the model's window with room to write on."""
    lines = [poem.split("。")[0] + "。" for poem in held_out]
    return [line for line in lines if len(line) <= limit and len(tokenizer.encode(line)) <= limit][:count]


if __name__ == "__main__":
    main()
