"""Python in the page: the runner's files, what the code of the chapters needs, and the button under each title.

A site for which `make vendor-pyodide` was run carries Pyodide; one without it says so and offers Binder and Colab.
"""

import json
import os
import shutil
import zipfile
from pathlib import Path

PYRUN = Path(__file__).resolve().parent.parent / "pyrun"
# What a cell may import or read: the components, the ledger, the chapters' own small modules and data.
PACKED = ("lib/**/*", "claims/**/*", "chapters/*.py", "chapters/stored/**/*")
HIDDEN = {"remove-cell", "remove-input"}  # tags of cells whose code no page shows


def vendored(source):
    """The folder with Pyodide, or None."""
    folder = Path(source) / "data" / "pyodide"
    return folder if (folder / "pyodide-lock.json").exists() else None


def pack(source, target):
    """The same files give the same archive, byte for byte."""
    names = {p for pattern in PACKED for p in source.glob(pattern) if p.is_file() and "__pycache__" not in p.parts}
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(names):
            archive.writestr(zipfile.ZipInfo(path.relative_to(source).as_posix()), path.read_bytes(), zipfile.ZIP_DEFLATED)
        for path in sorted((PYRUN / "modules").glob("*.py")):
            archive.writestr(zipfile.ZipInfo(f"modules/{path.name}"), path.read_bytes(), zipfile.ZIP_DEFLATED)


def hidden_code(path):
    """The code that a page doesn't show and that the cells it shows build on (the first cell, which finds `lib`)."""
    cells = json.loads(Path(path).read_text(encoding="utf-8"))["cells"]
    hidden = [c for c in cells if c["cell_type"] == "code" and HIDDEN & set(c["metadata"].get("tags", ()))]
    return "\n".join("".join(cell["source"]) for cell in hidden)


def panel(context, available, setup):
    buttons = {b["text"]: b["url"] for group in context.get("header_buttons", ()) for b in group.get("buttons", ()) if b.get("url")}
    links = "、".join(f'<a href="{buttons[name]}">{name}</a>' for name in ("Binder", "Colab") if name in buttons)
    elsewhere = f"也可以在 {links} 上打开这个 notebook。" if links else ""
    if available:
        inside = '<button type="button" class="pyrun-start pst-js-only">在本页运行和修改代码</button>'
        inside += '<script type="application/json" class="pyrun-setup">' + json.dumps(setup, ensure_ascii=False).replace("</", "<\\/") + "</script>"
        text = f"不用安装任何东西，代码在你的浏览器里执行。{elsewhere}"
    else:
        inside, text = "", f"这个站点没有带上浏览器里的 Python。{elsewhere}"
    return f'\n<div class="pyrun" role="region" aria-label="运行这一页的代码">{inside}<span class="pyrun-about">{text}</span></div>'


def add_panel(app, pagename, templatename, context, doctree):
    manifest = os.environ.get("BOOK_EXECUTED")
    executed = json.loads(Path(manifest).read_text(encoding="utf-8")) if manifest else {}
    if app.builder.name != "html" or pagename not in executed:
        return
    body = context.get("body") or ""
    if 'class="cell_input' in body:
        markup = panel(context, vendored(app.srcdir) is not None, hidden_code(executed[pagename]))
        context["body"] = body.replace("</h1>", "</h1>" + markup, 1)


def copy(app, exception):
    if exception or app.builder.name != "html" or not (distribution := vendored(app.srcdir)):
        return
    target = Path(app.outdir, "_static", "pyrun")
    target.mkdir(parents=True, exist_ok=True)
    for name in ("pyrun.js", "worker.js", "runner.py"):
        shutil.copy(PYRUN / name, target)
    pack(Path(app.srcdir), target / "book.zip")
    shutil.copytree(distribution, target.parent / "pyodide", dirs_exist_ok=True)


def setup(app):
    app.connect("html-page-context", add_panel, priority=800)  # after the theme has made its buttons
    app.connect("build-finished", copy, priority=950)
