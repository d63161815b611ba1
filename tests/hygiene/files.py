"""The files of the project as git knows them, plus new ones that it would take."""

import subprocess
from functools import cache
from pathlib import Path

import nbformat

ROOT = Path(__file__).resolve().parents[2]


@cache
def tracked():
    out = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, capture_output=True, check=True, text=True).stdout
    return [path for name in sorted(filter(None, out.split("\0"))) if (path := Relative(name)).exists()]


class Relative(type(Path())):
    """A path that prints relative to the repository and reads from it, whatever the working folder is."""

    def exists(self):
        return (ROOT / str(self)).is_file()

    def read_text(self, encoding="utf-8"):
        return (ROOT / str(self)).read_text(encoding=encoding)

    def read_bytes(self):
        return (ROOT / str(self)).read_bytes()


def notebooks():
    return [path for path in tracked() if path.suffix == ".ipynb" and not path.as_posix().startswith("tests/")]


@cache
def read_notebook(path):
    return nbformat.reads(path.read_text(), as_version=4)


def markdown_cells(path):
    return [(number, cell.source) for number, cell in enumerate(read_notebook(path).cells) if cell.cell_type == "markdown"]
