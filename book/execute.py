"""Run the book's notebooks freshly, in parallel, and only those that something has made stale.

A notebook's fingerprint covers its own cells, the modules of this repository that it uses (followed through their
imports), the data beside the chapters, the locked environment and the interpreter. The executed copy is kept under
its fingerprint, so an unchanged rebuild runs nothing and a change in `lib` runs exactly what uses it.
"""

import ast
import hashlib
import json
import multiprocessing
import os
import platform
import re
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import yaml

from book import quick  # noqa: F401  (before anything that imports jsonschema)

TIMEOUT = 600  # seconds a cell
# matplotlib says this when a picture would contain empty boxes: through `warnings` for text, `logging` for mathtext.
MISSING_GLYPH = re.compile(r"Glyph \d+.*missing from|does not have a glyph for")
# What a cell can do that following its imports would not see; then everything counts as used.
OPAQUE = re.compile(r"^\s*!|^\s*%+(?:run|load|bash|sh|cd)\b|import_module|__import__|subprocess|runpy|os\.system", re.M)
MAGIC = re.compile(r"^(\s*)[!%].*$", re.M)


class ExecutionFailed(Exception):
    """At least one notebook has a cell that fails; the message names each with its traceback."""


def toc_documents(source):
    """Document names of `_toc.yml` in reading order, without suffix."""
    found = []

    def walk(node):
        if isinstance(node, list):
            for child in node:
                walk(child)
        elif isinstance(node, dict):
            found.extend(str(node[key]) for key in ("root", "file") if key in node)
            for key in ("parts", "chapters", "sections", "subtrees", "entries"):
                walk(node.get(key))

    walk(yaml.safe_load((source / "_toc.yml").read_text(encoding="utf-8")))
    return found


def notebooks(source):
    """The notebooks that the table of contents lists."""
    paths = (source / f"{name.removesuffix('.ipynb')}.ipynb" for name in toc_documents(source))
    return [path for path in paths if path.exists()]


class Sources:
    """The Python packages of this repository, and which of their files a piece of code reaches."""

    def __init__(self, source):
        self.source = source
        self.packages = {p.parent.name for p in source.glob("*/__init__.py") if p.parent.name not in ("tests", "book")}
        self._digests = {}

    def digest(self, path):
        if path not in self._digests:
            self._digests[path] = hashlib.sha256(path.read_bytes()).hexdigest()
        return self._digests[path]

    def whole(self, package):
        folder = self.source / package
        return {p for p in folder.rglob("*") if p.is_file() and "__pycache__" not in p.parts}

    def module_files(self, name):
        """`lib.attention` -> lib/__init__.py, lib/attention.py; names that are no module add nothing."""
        parts, files = name.split("."), set()
        for depth in range(1, len(parts) + 1):
            base = self.source.joinpath(*parts[:depth])
            files |= {p for p in (base / "__init__.py", base.with_suffix(".py")) if p.is_file()}
        return files

    def imported(self, code, package=""):
        """Dotted names of this repository's modules that `code` imports (`package` resolves relative imports)."""
        for node in ast.walk(ast.parse(MAGIC.sub(r"\1pass", code))):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                stem = ".".join(filter(None, (package if node.level else "", node.module)))
                names = [stem, *(f"{stem}.{alias.name}" for alias in node.names)]
            else:
                continue
            yield from (name for name in names if name.split(".")[0] in self.packages)

    def reached(self, code):
        """All files that running `code` can depend on. Only `lib` is followed module by module (it is plain imports
        by rule, and its data are small); any other package counts as a whole."""
        if OPAQUE.search(code):
            return set().union(*map(self.whole, self.packages))
        files, queue = set(), list(self.imported(code))
        while queue:
            name = queue.pop()
            top = name.split(".")[0]
            new = self.module_files(name) if top == "lib" and name != "lib" else self.whole(top)
            if top == "lib":
                new |= {p for p in self.whole("lib") if p.suffix != ".py"}
            for path in new - files:
                files.add(path)
                if path.suffix == ".py":
                    parent = ".".join(path.relative_to(self.source).parts[:-1])
                    queue.extend(self.imported(path.read_text(encoding="utf-8"), parent))
        return files


def fingerprint(path, sources):
    """What the outputs of this notebook depend on, as one hexadecimal number."""
    nb = json.loads(path.read_text(encoding="utf-8"))
    cells = [[c["cell_type"], "".join(c["source"]), c["metadata"]] for c in nb["cells"]]
    code = "\n".join(source for kind, source, _ in cells if kind == "code")
    try:
        files = sources.reached(code)
    except SyntaxError:  # the run will say what is wrong; meanwhile everything counts
        files = set().union(*map(sources.whole, sources.packages))
    root = sources.source
    files |= {p for p in (root / "chapters").rglob("*") if p.is_file() and p.suffix not in (".ipynb", ".md")}
    files |= {p for p in (root / "requirements.txt", Path(__file__)) if p.is_file()}
    state = {
        "cells": cells,
        "place": path.relative_to(root).as_posix(),
        "python": [platform.python_version(), platform.system(), platform.machine()],
        "files": sorted(
            (p.relative_to(root).as_posix() if p.is_relative_to(root) else p.name, sources.digest(p)) for p in files
        ),
    }
    return hashlib.sha256(json.dumps(state, sort_keys=True).encode()).hexdigest()


def executed_path(output, source, path, key):
    name = path.relative_to(source).with_suffix("").as_posix().replace("/", "--")
    return output / "executed" / f"{name}--{key[:20]}.ipynb"


def execute_one(path, target):
    """Run one notebook in a fresh kernel in its own folder. Returns (seconds, problem or None)."""
    # Imported here: the pool's processes need them, the parent of an unchanged rebuild doesn't.
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
    from traitlets.config import Config

    start = time.perf_counter()
    nb = nbformat.read(path, as_version=4)
    # One kernel a core is enough: BLAS threads on top of it would only fight each other.
    os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", PYTHONUTF8="1", PYDEVD_DISABLE_FILE_VALIDATION="1")
    with tempfile.TemporaryDirectory(prefix="nb-") as sockets:
        settings = Config()
        if os.name != "nt":
            # Files, not ports: kernels that start at the same moment would take each other's free port.
            settings.KernelManager.update(transport="ipc", ip=os.path.join(sockets, "k"))
        client = NotebookClient(
            nb, timeout=TIMEOUT, kernel_name="python3", resources={"metadata": {"path": str(path.parent)}}, config=settings,
            coalesce_streams=True,  # where the kernel happens to flush would show as an empty line (MyST-NB adds one)
        )
        try:
            client.execute()
        except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
            return time.perf_counter() - start, re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    if problem := stderr_problem(nb):
        return time.perf_counter() - start, problem
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_suffix(".partial")
    nbformat.write(nb, partial)
    partial.replace(target)
    return time.perf_counter() - start, None


def stderr_problem(nb):
    """A reader's page shows no stray warning, and no picture has empty boxes."""
    for number, cell in enumerate(nb.cells, 1):
        text = "".join(o.text for o in cell.get("outputs", ()) if o.output_type == "stream" and o.name == "stderr")
        if MISSING_GLYPH.search(text):
            return f"第 {number} 个单元的图缺字（会显示成空方框）：\n{text}"
        if text.strip() and "remove-stderr" not in cell.metadata.get("tags", ()):
            return f"第 {number} 个单元向 stderr 输出了内容；请消除警告，或给单元加标签 remove-stderr：\n{text}"
    return None


def run(source, output, *, jobs=None, force=False, report=print):
    """Execute what is stale; return {document name: executed notebook}. Raises ExecutionFailed."""
    source, output = source.resolve(), output.resolve()
    sources, result, stale = Sources(source), {}, []
    for path in notebooks(source):
        target = executed_path(output, source, path, fingerprint(path, sources))
        result[path.relative_to(source).with_suffix("").as_posix()] = target
        if force or not target.exists():
            stale.append((path, target))
    failures = execute_all(source, stale, jobs or default_jobs(), report) if stale else []
    if failures:
        raise ExecutionFailed("\n\n".join(f"✗ {name}\n{problem}" for name, problem in failures))
    keep = set(result.values())
    for old in (output / "executed").glob("*.ipynb"):
        if old not in keep:
            old.unlink()
    report(f"notebook：执行 {len(stale)} 个，沿用 {len(result) - len(stale)} 个")
    return result


def default_jobs():
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def execute_all(source, stale, jobs, report):
    """Longest first would need a history; big files first is near enough."""
    stale = sorted(stale, key=lambda pair: -pair[0].stat().st_size)
    failures = []
    # "spawn": forking a process that holds event loops and ZeroMQ contexts is asking for hangs.
    with ProcessPoolExecutor(min(jobs, len(stale)), mp_context=multiprocessing.get_context("spawn")) as pool:
        waiting = {pool.submit(execute_one, path, target): path for path, target in stale}
        for future in as_completed(waiting):
            name = waiting[future].relative_to(source).as_posix()
            seconds, problem = future.result()
            report(f"  {'✗' if problem else '✓'} {name}  {seconds:.1f} s")
            sys.stdout.flush()
            if problem:
                failures.append((name, problem))
    return failures
