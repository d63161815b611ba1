"""Draw `book/assets/journey.svg`: the stations of one token. The ids and shapes in it come from `lib`, not from the keyboard.

    python -m book.make_journey
"""

from html import escape
from pathlib import Path

import numpy as np

from lib.model import GPT, Config
from lib.tokenizer import ByteBPE

OUT = Path(__file__).parent / "assets" / "journey.svg"
TEXT = "猫坐在"
CONFIG = Config(vocab_size=300, context_length=32, d_model=16, n_layers=2, n_heads=4)
BOX, GAP, TOP, HEIGHT = 128, 30, 70, 74


def stations():
    """(title, what arrives there, chapter) for each station, computed by running a small model once."""
    tokenizer = ByteBPE.train("猫坐在垫子上。猫坐在床上。" * 4, 300)
    ids = tokenizer.encode(TEXT)
    model = GPT(CONFIG, rng=np.random.default_rng(0))
    logits = model(np.array(ids))
    n, d, heads = len(ids), CONFIG.d_model, CONFIG.n_heads
    return [
        ("文本", f"「{TEXT}」", ""),
        ("分词", f"编号 {ids}", "第 1 章"),
        ("嵌入 + 位置", f"[{n}, {d}]", "第 2、3 章"),
        ("注意力", f"{heads} 头，每头 [{n}, {n}]", "第 4–6 章"),
        ("前馈网络", f"[{n}, {d}]，中间宽 {4 * d}", "第 7 章"),
        ("logits", f"{list(logits.shape)}", "第 9 章"),
        ("采样", "取出下一个词元", "第 10 章"),
    ]


def box(x, title, detail, chapter):
    middle = x + BOX / 2
    return (f'<rect class="box" x="{x}" y="{TOP}" width="{BOX}" height="{HEIGHT}" rx="10"/>'
            f'<text class="title" x="{middle}" y="{TOP + 31}">{escape(title)}</text>'
            f'<text class="detail" x="{middle}" y="{TOP + 54}">{escape(detail)}</text>'
            f'<text class="detail" x="{middle}" y="{TOP + HEIGHT + 20}">{escape(chapter)}</text>')


def draw():
    rows = stations()
    step = BOX + GAP
    width = len(rows) * step - GAP + 40
    xs = [20 + i * step for i in range(len(rows))]
    centre = TOP + HEIGHT / 2
    parts = [box(x, *row) for x, row in zip(xs, rows)]
    parts += [f'<path class="arrow" d="M{x + BOX + 3} {centre}h{GAP - 9}" marker-end="url(#tip)"/>' for x in xs[:-1]]
    # Attention and feed-forward repeat once a layer; the new token goes back to the start.
    left, right = xs[3] - 10, xs[4] + BOX + 10
    parts.append(f'<rect class="layer" x="{left}" y="{TOP - 26}" width="{right - left}" height="{HEIGHT + 56}" rx="14"/>'
                 f'<text class="detail" x="{(left + right) / 2}" y="{TOP - 9}">重复 {CONFIG.n_layers} 层（残差与归一化：第 8 章）</text>')
    bottom = TOP + HEIGHT + 64
    parts.append(f'<path class="arrow" d="M{xs[-1] + BOX / 2} {TOP + HEIGHT + 30}V{bottom}H{xs[1] + BOX / 2}V{TOP + HEIGHT + 32}" '
                 f'marker-end="url(#tip)"/><text class="detail" x="{width / 2}" y="{bottom + 20}">'
                 "新词元接到末尾，再走一遍（键值缓存让旧位置不必重算：第 11 章）</text>")
    label = "一个词元的旅程：" + "，".join(f"{title} {detail}" for title, detail, _ in rows) + "；新词元接到末尾再走一遍"
    return f'''<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {bottom + 34}" role="img" aria-label="{escape(label)}">
<style>
text {{ font-family: system-ui, "PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC", "Noto Sans SC", sans-serif; text-anchor: middle; fill: #1f2937 }}
.title {{ font-size: 17px; font-weight: 600 }} .detail {{ font-size: 11.5px }}
.box {{ fill: #e8f1fb; stroke: #2166ac; stroke-width: 1.5 }} .layer {{ fill: none; stroke: #b35806; stroke-dasharray: 5 4 }}
.arrow {{ fill: none; stroke: #6b7280; stroke-width: 2 }} .tip {{ fill: #6b7280 }}
@media (prefers-color-scheme: dark) {{ text {{ fill: #e5e7eb }} .box {{ fill: #16324f; stroke: #67a9cf }} .layer {{ stroke: #f1a340 }} }}
</style>
<defs><marker id="tip" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path class="tip" d="M0 0L8 4L0 8z"/></marker></defs>
{chr(10).join(parts)}
</svg>
'''


if __name__ == "__main__":
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(draw(), encoding="utf-8")
    print(OUT)
