"""Cut the figures' font: Noto Sans SC down to what a Chinese figure can contain.

    pip install pylopdf-fonts-zh-cn==0.1.1 --target DIR --no-deps
    python -m book.make_font DIR/pylopdf_fonts_zh_cn/NotoSansSC-Regular.otf

The result stands in the repository, so that a figure looks the same on every machine, on Binder, on Colab and in the
page, and nobody has to install a font. What Noto Sans SC lacks (₀, ⟨, ℝ …) matplotlib takes from its own DejaVu Sans.
"""

import sys
from pathlib import Path

from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTFont

TARGET = Path(__file__).resolve().parent.parent / "lib" / "fonts" / "NotoSansSC-Regular-subset.otf"
# Latin, Greek, punctuation, arrows, mathematics, boxes and shapes, CJK punctuation, full-width forms.
BLOCKS = (
    (0x0020, 0x017F), (0x02C0, 0x02DF), (0x0370, 0x03FF), (0x2000, 0x206F), (0x2070, 0x209F), (0x2100, 0x214F),
    (0x2150, 0x218F), (0x2190, 0x21FF), (0x2200, 0x22FF), (0x2300, 0x23FF), (0x2460, 0x24FF), (0x2500, 0x25FF),
    (0x2600, 0x26FF), (0x2700, 0x27BF), (0x3000, 0x303F), (0xFF00, 0xFFEF),
)  # fmt: skip


def gb2312():
    """The 6,763 Chinese characters and 682 signs of GB 2312."""
    for high in range(0xA1, 0xF8):
        for low in range(0xA1, 0xFF):
            try:
                yield ord(bytes([high, low]).decode("gb2312"))
            except UnicodeDecodeError:
                continue


def main(source):
    font = TTFont(source, recalcTimestamp=False)
    options = Options(layout_features=[], name_IDs=["*"], notdef_outline=True, hinting=False, desubroutinize=False)
    options.drop_tables += ["GSUB", "GPOS", "GDEF", "BASE", "VORG", "vhea", "vmtx", "DSIG"]
    subsetter = Subsetter(options)
    subsetter.populate(unicodes={c for low, high in BLOCKS for c in range(low, high + 1)} | set(gb2312()))
    subsetter.subset(font)
    font.save(TARGET)
    print(f"{TARGET.name}: {len(font.getBestCmap())} characters, {TARGET.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
