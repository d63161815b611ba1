"""What a page loads: only files of the site, and only what it uses."""

import re
import shutil
from pathlib import Path

from book import node

# Scripts of Sphinx and of extensions that no page needs here: the search is our own, formulas are set already,
# highlighting of found words is done by the browser (`#:~:text=`).
UNUSED_SCRIPTS = ("searchtools", "language_data", "sphinx_highlight", "mathjax", "translations", "searchindex")


def select(app, pagename, templatename, context, doctree):
    """Drop unused scripts from a page."""

    def wanted(script):
        return not any(name in str(getattr(script, "filename", script)) for name in UNUSED_SCRIPTS)

    context["script_files"] = [script for script in context["script_files"] if wanted(script)]


def copy_katex(app):
    """KaTeX's style sheet and its fonts (woff2 only: every browser that can show the rest of the page reads it)."""
    source, target = node.MODULES / "katex" / "dist", Path(app.outdir, "_static", "katex")
    (target / "fonts").mkdir(parents=True, exist_ok=True)
    style = (source / "katex.min.css").read_text(encoding="utf-8")
    # Naming formats that aren't shipped would only cost requests to nowhere.
    for suffix, name in (("woff", "woff"), ("ttf", "truetype")):
        style = re.sub(rf',url\([^)]*\.{suffix}\) format\("{name}"\)', "", style)
    (target / "katex.css").write_text(style, encoding="utf-8")
    for font in (source / "fonts").glob("*.woff2"):
        shutil.copy(font, target / "fonts")


def finish(app, exception):
    if not exception and app.builder.format == "html":
        copy_katex(app)


def setup(app):
    app.connect("html-page-context", select, priority=900)
    app.connect("build-finished", finish)
    app.add_css_file("katex/katex.css")
    app.add_css_file("book.css")
    app.add_js_file("book.js", loading_method="defer")
