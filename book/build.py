"""From notebooks to the site: execute what is stale, then build every page anew into an empty folder.

Pages are never built incrementally: a second Sphinx run after a failing one would pass without looking again, and
outputs that `lib` has outdated could stay. When nothing at all has changed since the last success, nothing is done.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

from book import execute, node

# What a page can depend on, besides the notebooks' own fingerprints.
INPUTS = ("_config.yml", "_toc.yml", "_redirects.yml", "requirements.txt", "*.md", "*.bib", "book", "chapters", "claims", "lib", "exercises")
IGNORED = {"__pycache__", ".ipynb_checkpoints", "node_modules"}


class BuildError(Exception):
    """The site could not be built; the message says why."""


def input_files(source):
    for pattern in INPUTS:
        for path in source.glob(pattern):
            yield from (p for p in ([path] if path.is_file() else path.rglob("*")) if p.is_file())


def site_key(source):
    """One number for everything that the site is made from."""
    digest = hashlib.sha256(sys.version.encode())
    for path in sorted(set(input_files(source))):
        if not IGNORED & set(path.parts) and path.suffix not in (".pyc", ".mo"):
            digest.update(path.relative_to(source).as_posix().encode() + b"\0" + path.read_bytes())
    # The extensions may come from another tree than the text (the tests build small books with them).
    for path in sorted(Path(__file__).parent.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            digest.update(path.read_bytes())
    if (vendored := source / "data" / "pyodide" / "pyodide-lock.json").exists():
        digest.update(vendored.read_bytes())
    return digest.hexdigest()


def run(source, output, *, jobs=None, force=False, builder="html", report=print):
    """Build the book; return the folder with the site. Raises BuildError or execute.ExecutionFailed."""
    source, output = source.resolve(), output.resolve()
    output.mkdir(parents=True, exist_ok=True)
    with locked(output / ".lock"):
        return run_locked(source, output, jobs, force, builder, report)


@contextmanager
def locked(path):
    """Two builds into one folder (a test run and `make book`, say) take turns. Windows goes without."""
    with path.open("w") as file:
        try:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        except ImportError:
            pass
        yield


def run_locked(source, output, jobs, force, builder, report):
    start = time.perf_counter()
    site, stamp, key = output / builder, output / f".{builder}-key", site_key(source)
    if not force and (site / "index.html").exists() and stamp.exists() and stamp.read_text() == key:
        report("notebook：执行 0 个；自上次成功构建以来没有任何改动。")
    else:
        stamp.unlink(missing_ok=True)
        node.install(report)
        documents = execute.run(source, output, jobs=jobs, force=force, report=report)
        build_pages(source, output, site, documents, builder)
        stamp.write_text(key)
    report(f"\n完成，用时 {time.perf_counter() - start:.0f} s。用浏览器打开：\n  {site / 'index.html'}")
    return site


def named_cells(warnings):
    """MyST-NB numbers lines of notebooks as cell × 10000 + line; say that."""
    place = re.compile(r"(\.ipynb):(\d+)(\d{4}):")
    return place.sub(lambda m: f"{m[1]} 第 {int(m[2])} 单元第 {int(m[3])} 行（从 0 数起）:", warnings)


def build_pages(source, output, site, documents, builder):
    """Run Jupyter Book with every warning an error, beside the old site, and swap when it succeeds."""
    work = output / "work"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    manifest = work / "executed.json"
    manifest.write_text(json.dumps({name: str(path) for name, path in documents.items()}), encoding="utf-8")
    environment = os.environ | {
        "BOOK_EXECUTED": str(manifest),
        "PYTHONPATH": os.pathsep.join(filter(None, (str(Path(__file__).parent.parent), os.environ.get("PYTHONPATH")))),
        "PYTHONUTF8": "1",
    }
    command = [sys.executable, "-m", "book.jupyter_book", "build", str(source), "--path-output", str(work)]
    command += ["--builder", builder, "-W", "-n", "--keep-going", "-q"]
    # Warnings come on stderr; on stdout Jupyter Book would only name the folder that is moved below.
    done = subprocess.run(command, env=environment, cwd=source, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    sys.stderr.write(named_cells(done.stderr))
    built = work / "_build" / builder
    if done.returncode or not (built / "index.html").exists():
        raise BuildError("书没有建成：上面每一条 WARNING 都要消除（警告即错误）。")
    shutil.rmtree(site, ignore_errors=True)
    built.rename(site)
    shutil.rmtree(work)
