"""What a page loads: one style sheet, one script, fonts with only what is used; all of it part of the site.

The theme, its extensions and ours bring some twenty files, 2.5 MB, most of which no page uses. When the pages stand,
their style sheets are joined and stripped of rules that no page can meet (PurgeCSS), their scripts are joined, the
icon font is cut to the icons in use, and what nothing refers to any more is deleted.
"""

import hashlib
import json
import logging
import re
import shutil
from pathlib import Path

from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTFont

from book import node

from . import offline

logging.getLogger("fontTools").setLevel(logging.ERROR)

# Scripts that no page needs here: the search is our own, formulas are set already, found words are highlighted by the
# browser (`#:~:text=`), and what the theme reads from documentation_options.js is undefined there as well as here.
UNUSED_SCRIPTS = (
    "searchtools", "language_data", "sphinx_highlight", "mathjax", "translations", "searchindex",
    "doctools", "documentation_options",
)  # fmt: skip
# In the order in which they must run. book.js finds its own address from the joined script's.
SCRIPTS = (
    "clipboard.min.js", "copybutton.js", "togglebutton.js", "scripts/sphinx-book-theme.js", "scripts/bootstrap.js",
    "scripts/pydata-sphinx-theme.js", "book.js",
)  # fmt: skip
# Loaded later, by scripts; nothing in the pages names them.
LATER = ("search.js", "search-data.js", "pyrun", "pyodide")
# The interactive pieces keep a sheet of their own: only the pages that have one load it.
STYLESHEET = re.compile(r'[ \t]*<link\b[^>]*\brel="stylesheet"[^>]*\bhref="([^"]*?_static/)((?!interactive/)[^"?]+)[^"]*"[^>]*>\n?|'
                        r'[ \t]*<link\b[^>]*\bhref="([^"]*?_static/)((?!interactive/)[^"?]+)[^"]*"[^>]*\brel="stylesheet"[^>]*>\n?')  # fmt: skip
SCRIPT = re.compile(r'[ \t]*<script\b[^>]*\bsrc="[^"]*?_static/([^"?]+)[^"]*"[^>]*></script>\n?')


def select(app, pagename, templatename, context, doctree):
    """Drop unused scripts from a page."""

    def wanted(script):
        name = str(getattr(script, "filename", script))
        if "design-tabs" in name and "sd-tab-set" not in context.get("body", ""):
            return False
        return not any(unused in name for unused in UNUSED_SCRIPTS)

    context["script_files"] = [script for script in context["script_files"] if wanted(script)]


def digest(data):
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()[:10]


def copy_katex(static):
    """KaTeX's style sheet and its fonts (woff2 only: every browser that can show the rest of the page reads it)."""
    source = node.modules() / "katex" / "dist"
    (static / "fonts").mkdir(parents=True, exist_ok=True)
    style = (source / "katex.min.css").read_text(encoding="utf-8")
    style = re.sub(r',url\([^)]*\.(?:woff|ttf)\) format\("(?:woff|truetype)"\)', "", style)
    (static / "katex.css").write_text(style, encoding="utf-8")
    for font in (source / "fonts").glob("*.woff2"):
        shutil.copy(font, static / "fonts")


def join_styles(static, pages):
    """Put all style sheets of the pages, in their order, into one text whose addresses start from `_static`."""
    names = {}
    for text in pages.values():
        for match in STYLESHEET.finditer(text):
            names.setdefault(match[2] or match[4])
    return "\n".join(flatten(static, static / name) for name in names)


def flatten(static, path):
    """One style sheet with its imports put in place and all its addresses counted from `_static`."""
    text = re.sub(
        r"""@import\s+(?:url\()?['"]?([^'")?;]+)[^;]*;""",
        lambda match: flatten(static, (path.parent / match[1]).resolve()),
        path.read_text(encoding="utf-8"),
    )

    def absolute(match):
        address = match[1].strip("'\"")
        file = (path.parent / re.split(r"[?#]", address)[0]).resolve()
        # What was imported is absolute already.
        if address.startswith(("data:", "#")) or not file.is_relative_to(static.resolve()) or not file.exists():
            return match[0]
        return f"url({file.relative_to(static.resolve()).as_posix()})"

    return re.sub(r"url\(([^)]+)\)", absolute, text)


def purge(static, style, outdir):
    """Drop the rules that no page and no script can bring to bear."""
    scripts = [static / name for name in SCRIPTS] + [p for p in static.glob("interactive/*.js") if p.stem != "weights"]
    work = {"css": style, "content": [str(p) for p in [*outdir.rglob("*.html"), *scripts]]}
    done = node.run(
        Path(__file__).with_name("purge.cjs"), input=json.dumps(work), capture_output=True, text=True, encoding="utf-8", check=True
    )
    return done.stdout


def cut_icons(static, style):
    """The icon fonts with only the icons whose codes are left in the style sheet, as WOFF beside the other fonts."""
    codes = {int(code, 16) for code in re.findall(r'content:\s*"\\([0-9a-f]{4})"', style)}

    def subset(match):
        source = static / match[1]
        font = TTFont(source.with_suffix(".ttf"))
        if not codes & set(font.getBestCmap()):
            return ""
        subsetter = Subsetter(Options(layout_features=[], hinting=False))
        subsetter.populate(unicodes=codes)
        subsetter.subset(font)
        font.flavor = "woff"
        font.save(static / "fonts" / f"{source.stem}.woff")
        return f'url(fonts/{source.stem}.woff) format("woff")'

    # url(….woff2) format("woff2"),url(….ttf) format("truetype"); a font of which nothing is left loses its rule.
    style = re.sub(r'url\((vendor/[^)]+)\.woff2\) format\("woff2"\),\s*url\([^)]+\) format\("truetype"\)', subset, style)
    return re.sub(r"@font-face\s*\{[^}]*src:\s*[;}][^}]*\}?", "", style)


def rewrite(pages, style_name, script_name):
    for path, text in pages.items():
        first = True

        def style(match, text=text):
            nonlocal first
            root, first_now = match[1] or match[3], first
            first = False
            return f'<link rel="stylesheet" href="{root}{style_name}"/>\n' if first_now else ""

        root = STYLESHEET.search(text)
        root = root[1] or root[3]
        text = STYLESHEET.sub(style, text)
        text = SCRIPT.sub(lambda m: "" if m[1] in SCRIPTS else m[0], text)
        text = text.replace("</head>", f'<script defer src="{root}{script_name}"></script>\n</head>', 1)
        # Sphinx tells each page its name in an object that nothing here reads.
        text = re.sub(r"<script>DOCUMENTATION_OPTIONS\.[^<]*</script>\n?", "", text)
        text = text.replace("<head>", "<head>\n<script>const DOCUMENTATION_OPTIONS = {};</script>", 1)
        path.write_text(text, encoding="utf-8")


def delete_unused(static, outdir, style):
    """Delete the files of `_static` that no page, style sheet or later-loaded script refers to."""
    used = set(re.findall(r"url\(([^)]+)\)", style))
    for path in outdir.rglob("*.html"):
        if static not in path.parents:
            used |= set(re.findall(r"""_static/([^"'?#)\s]+)""", path.read_text(encoding="utf-8")))
    for path in sorted(static.rglob("*"), reverse=True):
        name = path.relative_to(static).as_posix()
        if path.is_dir():
            if not any(path.iterdir()):
                path.rmdir()
        elif name not in used and name.split("/")[0] not in LATER:
            path.unlink()


def finish(app, exception):
    if exception or app.builder.name != "html":
        return
    outdir = Path(app.outdir)
    static = outdir / "_static"
    pages = {path: path.read_text(encoding="utf-8") for path in outdir.rglob("*.html") if static not in path.parents}
    style = cut_icons(static, purge(static, join_styles(static, pages), outdir))
    style_name = f"book-{digest(style)}.css"
    (static / style_name).write_text(style, encoding="utf-8")
    later = "".join(digest(path.read_bytes()) for path in (static / "search.js", static / "search-data.js", offline.SCRIPT))
    script = "\n;\n".join((static / name).read_text(encoding="utf-8") for name in SCRIPTS).replace("@version@", digest(later))
    script = re.sub(r"^//# sourceMappingURL=.*$", "", script, flags=re.M)
    script_name = f"book-{digest(script)}.js"
    (static / script_name).write_text(script, encoding="utf-8")
    rewrite(pages, style_name, script_name)
    delete_unused(static, outdir, style)


def setup(app):
    app.connect("builder-inited", lambda app: copy_katex(Path(app.outdir, "_static")))
    app.connect("html-page-context", select, priority=900)
    app.connect("build-finished", finish, priority=900)
    app.add_css_file("katex.css")
    app.add_css_file("book.css", priority=900)
    app.add_js_file("book.js", loading_method="defer")
