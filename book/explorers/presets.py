"""Write `presets.js`: what the cache explorer knows of each model, taken from `lib`.

    python -m book.explorers.presets
"""

import json
from pathlib import Path

from lib.accounting import count_parameters
from lib.model import PRESETS

FILE = Path(__file__).with_name("presets.js")
# Published under these names; the rest of PRESETS are sizes in between.
SHOWN = {"gpt2": "GPT-2 small", "gpt2-xl": "GPT-2 XL", "gpt3": "GPT-3", "llama-7b": "LLaMA-7B", "llama2-70b": "Llama 2 70B",
         "llama3-8b": "Llama 3 8B", "mistral-7b": "Mistral 7B", "smollm2-135m": "SmolLM2-135M"}  # fmt: skip


def presets():
    return [{"name": shown, "layers": c.n_layers, "heads": c.n_heads, "kvHeads": c.kv_heads, "dHead": c.d_head,
             "window": c.window, "context": c.context_length, "parameters": count_parameters(c)}
            for name, shown in SHOWN.items() for c in [PRESETS[name]]]  # fmt: skip


def text():
    return f"globalThis.EXPLORER_PRESETS = {json.dumps(presets(), ensure_ascii=False)};\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
