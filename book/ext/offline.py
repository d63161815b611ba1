"""The whole site on the reader's device: the list of its files for offline.js, which keeps them and gives them out."""

import hashlib
import json
import shutil
from pathlib import Path

SCRIPT = Path(__file__).resolve().parent.parent / "offline" / "offline.js"
BOX = '<div class="offline-reading"'


def part(name):
    """Python is twice as heavy as the book, so a reader may leave it out."""
    return "python" if name.startswith(("_static/pyodide/", "_static/pyrun/")) else "book"


def finish(app, exception):
    if exception or app.builder.name != "html":
        return
    outdir, sizes = Path(app.outdir), {}
    names = sorted(p.relative_to(outdir).as_posix() for p in outdir.rglob("*") if p.is_file() and not p.name.startswith("."))
    for name in names:
        sizes[part(name)] = sizes.get(part(name), 0) + (outdir / name).stat().st_size
    # What it takes stands on the page before the reader decides.
    index = outdir / "index.html"
    told = "".join(f' data-{kind}="{max(1, round(size / 1e6))}"' for kind, size in sizes.items())
    index.write_text(index.read_text(encoding="utf-8").replace(BOX, BOX + told), encoding="utf-8")
    files = {kind: {} for kind in ("book", "python")}
    for name in names:
        files[part(name)][name] = hashlib.sha256((outdir / name).read_bytes()).hexdigest()
    (outdir / "offline.json").write_text(json.dumps(files, separators=(",", ":"), ensure_ascii=False), encoding="utf-8")
    shutil.copy(SCRIPT, outdir)


def setup(app):
    app.connect("build-finished", finish, priority=990)  # when every file stands as it will be served
