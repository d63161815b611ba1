"""The interactive pieces: their scripts go into the site, and onto those pages alone that use them."""

import shutil
from pathlib import Path

BOOK = Path(__file__).resolve().parent.parent
# What a page must contain → the files it then loads, in this order. All are classic scripts: they work from a folder.
PIECES = {
    'class="journey"': ("numerics.js", "engine.js", "weights.js", "parts.js", "journey.js", "journey.css"),
    "-explorer>": ("numerics.js", "parts.js", "presets.js", "explorers.js", "journey.css"),
}
FOLDERS = (BOOK / "journey", BOOK / "explorers")


def copy(app):
    """Before the pages are written, so that Sphinx can put the files' checksums into their addresses."""
    if app.builder.name == "html":
        target = Path(app.outdir, "_static", "interactive")
        target.mkdir(parents=True, exist_ok=True)
        for file in (path for folder in FOLDERS for path in folder.glob("*") if path.suffix in (".js", ".css")):
            shutil.copy(file, target)


def load(app, pagename, templatename, context, doctree):
    if app.builder.name != "html":
        return  # on paper the words and the small tables stand for themselves
    body = context.get("body") or ""
    wanted = dict.fromkeys(name for mark, names in PIECES.items() if mark in body for name in names)
    for name in wanted:
        if name.endswith(".css"):
            app.add_css_file(f"interactive/{name}")
        else:
            app.add_js_file(f"interactive/{name}", loading_method="defer")


def setup(app):
    app.connect("builder-inited", copy)
    app.connect("html-page-context", load, priority=400)  # before assets.select drops what no page uses
