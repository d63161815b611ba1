"""The whole site on the reader's device: the list of its files for offline.js, which keeps them and gives them out."""

import hashlib
import json
import math
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
    outdir, parts = Path(app.outdir), {"book": {}, "python": {}}
    for path in sorted(p for p in outdir.rglob("*") if p.is_file() and not p.name.startswith(".")):
        name = path.relative_to(outdir).as_posix()
        parts[part(name)][name] = path
    # What it takes, in MB, stands on the page before the reader decides.
    told = "".join(f' data-{kind}="{math.ceil(sum(p.stat().st_size for p in paths.values()) / 1e6)}"' for kind, paths in parts.items() if paths)
    index = outdir / "index.html"
    index.write_text(index.read_text(encoding="utf-8").replace(BOX, BOX + told), encoding="utf-8")
    files = {kind: {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in paths.items()} for kind, paths in parts.items()}
    (outdir / "offline.json").write_text(json.dumps(files, separators=(",", ":"), ensure_ascii=False), encoding="utf-8")
    shutil.copy(SCRIPT, outdir)


def setup(app):
    app.connect("build-finished", finish, priority=990)  # when every file stands as it will be served
