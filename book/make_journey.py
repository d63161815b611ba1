"""Draw the stations of one token, for wide pages and for phones. The ids and shapes in it come from `lib`, not from the keyboard.

    python -m book.make_journey
"""

import re
from html import escape
from pathlib import Path

import numpy as np

from lib.model import GPT, Config
from lib.tokenizer import ByteBPE

ASSETS = Path(__file__).parent / "assets"
TEXT = "猫坐在"
CONFIG = Config(vocab_size=300, context_length=32, d_model=16, n_layers=2, n_heads=4)
BOX, GAP, TOP, HEIGHT = 124, 20, 46, 98
TALL_BOX, TALL_HEIGHT, TALL_GAP, TALL_LEFT = 216, 62, 26, 44
LAYERS = f"重复 {CONFIG.n_layers} 层（残差与归一化：第 8 章）"
AGAIN = "新词元接到末尾，再走一遍（键值缓存让旧位置不必重算：第 11 章）"


def stations():
    """(title, what arrives there in one or two lines, chapter) for each station, computed by running a small model once."""
    tokenizer = ByteBPE.train("猫坐在垫子上。猫坐在床上。" * 4, 300)
    ids = tokenizer.encode(TEXT)
    model = GPT(CONFIG, rng=np.random.default_rng(0))
    logits = model(np.array(ids))
    n, d, heads = len(ids), CONFIG.d_model, CONFIG.n_heads
    return [
        ("文本", f"「{TEXT}」", ""),
        ("分词", f"编号\n{ids}", "第 1 章"),
        ("嵌入 + 位置", f"[{n}, {d}]", "第 2、3 章"),
        ("注意力", f"{heads} 头，\n每头 [{n}, {n}]", "第 4–6 章"),
        ("前馈网络", f"[{n}, {d}]，\n中间宽 {4 * d}", "第 7 章"),
        ("logits", f"{list(logits.shape)}", "第 9 章"),
        ("采样", "取出下一个词元", "第 10 章"),
    ]


def box(x, y, width, height, title, detail):
    middle, lines = x + width / 2, detail.split("\n")
    first = y + height / 2 + 3 - 10 * len(lines)
    return (f'<rect class="box" x="{x}" y="{y}" width="{width}" height="{height}" rx="10"/>'
            f'<text class="title" x="{middle}" y="{first}">{escape(title)}</text>'
            + "".join(f'<text x="{middle}" y="{first + 4 + 21 * i}">{escape(line)}</text>' for i, line in enumerate(lines, 1)))


def one_line(detail):
    return detail.replace("，\n", "，").replace("\n", " ")


def wide(rows):
    """Left to right."""
    step = BOX + GAP
    width = len(rows) * step - GAP + 40
    xs = [20 + i * step for i in range(len(rows))]
    centre = TOP + HEIGHT / 2
    parts = [box(x, TOP, BOX, HEIGHT, title, detail) for x, (title, detail, _) in zip(xs, rows)]
    parts += [f'<text x="{x + BOX / 2}" y="{TOP + HEIGHT + 22}">{chapter}</text>' for x, (_, _, chapter) in zip(xs, rows)]
    parts += [f'<path class="arrow" d="M{x + BOX + 2} {centre}h{GAP - 7}" marker-end="url(#tip)"/>' for x in xs[:-1]]
    # Attention and feed-forward repeat once a layer; the new token goes back to the start.
    left, right = xs[3] - 9, xs[4] + BOX + 9
    parts.append(f'<rect class="layer" x="{left}" y="{TOP - 30}" width="{right - left}" height="{HEIGHT + 64}" rx="14"/>'
                 f'<text x="{(left + right) / 2}" y="{TOP - 10}">{LAYERS}</text>')
    bottom = TOP + HEIGHT + 68
    parts.append(f'<path class="arrow" d="M{xs[-1] + BOX / 2} {TOP + HEIGHT + 34}V{bottom}H{xs[1] + BOX / 2}V{TOP + HEIGHT + 36}" '
                 f'marker-end="url(#tip)"/><text x="{width / 2}" y="{bottom + 24}">{AGAIN}</text>')
    return picture(rows, width, bottom + 38, parts)


def tall(rows):
    """Top to bottom, for a phone: as wide as its page, so that the letters keep their size."""
    step = TALL_HEIGHT + TALL_GAP
    ys = [12 + i * step for i in range(len(rows))]
    for i in range(3, len(ys)):
        ys[i] += 26  # room for the words over the layers
    middle, right = TALL_LEFT + TALL_BOX / 2, TALL_LEFT + TALL_BOX
    parts = [box(TALL_LEFT, y, TALL_BOX, TALL_HEIGHT, title, one_line(detail)) for y, (title, detail, _) in zip(ys, rows)]
    parts += [f'<text class="side" x="{right + 14}" y="{y + TALL_HEIGHT / 2 + 5}">{chapter}</text>' for y, (_, _, chapter) in zip(ys, rows)]
    parts += [f'<path class="arrow" d="M{middle} {y + TALL_HEIGHT + 2}V{below - 5}" marker-end="url(#tip)"/>' for y, below in zip(ys, ys[1:])]
    top, bottom = ys[3] - 34, ys[4] + TALL_HEIGHT + 10
    parts.append(f'<rect class="layer" x="{TALL_LEFT - 10}" y="{top}" width="{TALL_BOX + 98}" height="{bottom - top}" rx="14"/>'
                 f'<text class="side" x="{middle + 10}" y="{top + 20}">{LAYERS.replace("残差与归一化：", "")}</text>')
    parts.append(f'<path class="arrow" d="M{TALL_LEFT - 2} {ys[-1] + TALL_HEIGHT / 2}H14V{ys[1] + TALL_HEIGHT / 2}H{TALL_LEFT - 5}" marker-end="url(#tip)"/>')
    again = re.split("(?=（)", AGAIN)
    bottom = ys[-1] + TALL_HEIGHT + 28
    parts += [f'<text class="side" x="14" y="{bottom + 22 * i}">{line}</text>' for i, line in enumerate(again)]
    return picture(rows, 360, bottom + 34, parts)


def picture(rows, width, height, parts):
    """Dark ink on white like every figure of the book; dark pages invert it with the others."""
    label = "一个词元的旅程：" + "，".join(f"{title} {one_line(detail)}" for title, detail, _ in rows) + "；新词元接到末尾再走一遍"
    return f'''<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-label="{escape(label)}">
<style>
text {{ font: 15px system-ui, "PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC", "Noto Sans SC", sans-serif; text-anchor: middle; fill: #1f2937 }}
.title {{ font-size: 18px; font-weight: 600 }} .side {{ text-anchor: start }}
.box {{ fill: #e8f1fb; stroke: #2166ac; stroke-width: 1.5 }} .layer {{ fill: none; stroke: #b35806; stroke-dasharray: 5 4 }}
.arrow {{ fill: none; stroke: #6b7280; stroke-width: 2 }} .tip {{ fill: #6b7280 }}
</style>
<defs><marker id="tip" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path class="tip" d="M0 0L8 4L0 8z"/></marker></defs>
<rect width="{width}" height="{height}" fill="#fff"/>
{chr(10).join(parts)}
</svg>
'''


if __name__ == "__main__":
    ASSETS.mkdir(exist_ok=True)
    rows = stations()
    for name, draw in (("journey.svg", wide), ("journey-tall.svg", tall)):
        (ASSETS / name).write_text(draw(rows), encoding="utf-8")
        print(ASSETS / name)
