"""python -m book.pdf: the whole book as one PDF, printed by Chromium from the same notebooks as the site."""

from io import BytesIO
from pathlib import Path

import pikepdf

from book import build, chromium

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "_build" / "dist" / "token-journey.pdf"
# On paper nothing can be unfolded or scrolled.
STYLE = """
/* A shadow would be printed as a picture as large as its box. (The selector outweighs the theme's own "!important".) */
html[data-theme] :is(*, [class]) { box-shadow: none !important; }
:is(.bd-sidebar-primary, .bd-sidebar-secondary, .bd-header-article, .prev-next-footer) { display: none !important; }
:is(.bd-footer-content, #jb-print-docs-body, #pst-skip-link, #pst-back-to-top) { display: none !important; }
.bd-article > section > h1 { display: block !important; }
.toctree-wrapper > section { break-before: page; }
/* A heading whose letters touch the top of a page is painted, unseen, with the page before as well, and then stands
   twice in the outline's title. */
:is(h1, h2, h3, h4, h5, h6) { padding-top: 4px !important; }
/* The whole ledger is an appendix; a chapter's part of it need not be printed twice. */
.tag_hide-output > details { display: none !important; }
pre, .highlight pre { white-space: pre-wrap !important; overflow-wrap: anywhere; font-size: 8.5pt; max-height: none !important; overflow: visible !important; }
.pst-scrollable-table-container, .cell_output, .math-scroll, .output { overflow: visible !important; max-height: none !important; }
table { font-size: 8.5pt; }
.bd-main .bd-content .bd-article-container { max-width: none !important; padding: 0; }
"""
PREPARE = Path(__file__).with_name("print.js").read_text(encoding="utf-8")
# A system's font draws 文 and the radical ⽂ by one glyph, and the printed text then says the radical: neither search nor
# copying would find the word. The figures' font knows no radicals.
FONT = f"""
@font-face {{ font-family: "Book Chinese"; src: url("{(ROOT / "lib" / "fonts" / "NotoSansSC-Regular-subset.otf").as_uri()}"); unicode-range: U+2E80-9FFF, U+F900-FAFF, U+FF00-FFEF; }}
.katex {{ font-family: KaTeX_Main, "Book Chinese"; }}
"""
# A drawing in a file of its own knows no fonts of the page; in a shadow tree it does, and keeps its styles to itself.
INLINE = """drawings => { for (const image of document.querySelectorAll("img")) {
  const drawing = drawings[image.getAttribute("src")];
  if (!drawing) continue;
  const box = Object.assign(document.createElement("div"), { className: image.className });
  box.attachShadow({ mode: "open" }).innerHTML = drawing + '<style>text { font-family: "Book Chinese" !important }</style>';
  image.replaceWith(box); } }"""
FOOTER = "<div style='font-size:8px;width:100%;text-align:center'><span class=pageNumber></span></div>"


def write(browser, page_file, target):
    page = browser.new_page(color_scheme="light", locale="zh-CN")
    page.set_default_timeout(600_000)  # one page as long as the whole book
    page.goto(page_file.as_uri(), wait_until="load")
    sources = page.evaluate("[...document.querySelectorAll('img')].map(i => i.getAttribute('src')).filter(s => s.endsWith('.svg'))")
    drawings = {source: (page_file.parent / source).read_text(encoding="utf-8") for source in sources}
    page.evaluate(INLINE, {source: drawing for source, drawing in drawings.items() if "<text" in drawing})
    page.add_style_tag(content=STYLE + FONT)
    page.evaluate(PREPARE)
    page.evaluate("document.fonts.ready.then(() => true)")
    margin = {"left": "18mm", "right": "18mm", "top": "18mm", "bottom": "20mm"}
    printed = page.pdf(
        format="A4", margin=margin, print_background=True, outline=True, tagged=True,
        display_header_footer=True, header_template="<span></span>", footer_template=FOOTER,
    )  # fmt: skip
    page.close()
    # Chromium writes the tags for screen readers, some hundred thousand objects, uncompressed: half of the file.
    with pikepdf.open(BytesIO(printed)) as document:
        document.save(target, object_stream_mode=pikepdf.ObjectStreamMode.generate, recompress_flate=True)


def main():
    with chromium.starter() as start:  # first, as it says at once what is missing
        site = build.run(ROOT, ROOT / "_build", builder="singlehtml", report=lambda text: None)
        TARGET.parent.mkdir(parents=True, exist_ok=True)
        write(start(), site / "index.html", TARGET)
    print(f"{TARGET}  {TARGET.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
