"""A small book with its own `lib`, built once with the real configuration, and the real site built from the cache."""

import json
import shutil
from pathlib import Path

import nbformat
import pytest

from book import build, node
from book.serve import serve

CHART = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><path d="M0 9L9 0" stroke="#1f2328"/></svg>\n'
INDEX = """# 小书

首页的公式 $a^2+b^2=c^2$，见 {term}`词元`、{term}`token` 与 {term}`KV Cache`。

```{figure} chart.svg
:alt: 一条从左下到右上的线

说明文字
```

## 数值稳定性

交叉熵从中间被切开也要找得到。

$$
\\operatorname{softmax}(x_{你})=\\frac{e^{x_i}}{\\sum_j e^{x_j}}
$$ (eq-softmax)

公式 {eq}`eq-softmax`。

|  | 甲 | $x_1$ |
|---|---|---|
| 乙 | 1 | 2 |

<details><summary>选项 $x<1$ 与 `code`</summary>

折叠的文字。

</details>

<div class="offline-reading"></div>
"""
HEADER = 'import sys\n\nsys.path.insert(0, "..")'
FIGURE = "import matplotlib.pyplot as plt\n\nplt.plot([1, 2])\nplt.show()"
LIB = {
    "__init__.py": "",
    "tiny.py": "from lib.deep import SCALE\n\n\ndef double(x):\n    return SCALE * x\n",
    "deep.py": "SCALE = 2\n",
    "other.py": "def other():\n    return 'other'\n",
}


def notebook(*cells):
    """Cells are (source, tags-or-metadata) for code, or plain strings for text."""
    nb = nbformat.v4.new_notebook(metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}})
    for position, cell in enumerate(cells):
        if isinstance(cell, str):
            made = nbformat.v4.new_markdown_cell(cell)
        else:
            made = nbformat.v4.new_code_cell(cell[0], metadata=cell[1] if len(cell) > 1 else {})
        made["id"] = f"c{position:03d}"
        nb.cells.append(made)
    return nb


ALT = {"mystnb": {"image": {"alt": "一条上升的线"}}}
ONE = notebook("# 4 缩放点积注意力", (HEADER,), "## 4.1 层归一化与残差", ("from lib.tiny import double\nprint(double(21))",), (FIGURE, ALT))
TWO = notebook("# 8 残差连接", (HEADER,), ("from lib.other import other\nprint(other())",))


def write_book(folder, root, pages):
    """A book source with our configuration and a `lib` of its own. `pages` is {path without suffix: notebook}."""
    (folder / "chapters" / "appendix").mkdir(parents=True)
    (folder / "lib").mkdir()
    for name, text in LIB.items():
        (folder / "lib" / name).write_text(text, encoding="utf-8")
    (folder / "book").symlink_to(root / "book")
    shutil.copy(root / "_config.yml", folder)
    shutil.copy(root / "chapters" / "references.bib", folder / "chapters")
    shutil.copy(root / "chapters" / "appendix" / "glossary.md", folder / "chapters" / "appendix")
    (folder / "chart.svg").write_text(CHART, encoding="utf-8")
    (folder / "index.md").write_text(INDEX, encoding="utf-8")
    for name, nb in pages.items():
        nbformat.write(nb, folder / f"{name}.ipynb")
    if "chapters/04-one" in pages:
        (folder / "_redirects.yml").write_text("chapters/old/attention: chapters/04-one\n", encoding="utf-8")
    chapters = "".join(f"  - file: {name}\n" for name in [*pages, "chapters/appendix/glossary"])
    (folder / "_toc.yml").write_text(f"format: jb-book\nroot: index\nchapters:\n{chapters}", encoding="utf-8")
    return folder


@pytest.fixture
def book_source(tmp_path, root):
    """A fresh small book that a test may break."""
    return write_book(tmp_path / "src", root, {"chapters/04-one": ONE, "chapters/08-two": TWO})


@pytest.fixture(scope="session")
def mini(tmp_path_factory, root):
    """(source, site, what the build said) of the small book, built once."""
    source = write_book(tmp_path_factory.mktemp("mini") / "src", root, {"chapters/04-one": ONE, "chapters/08-two": TWO})
    said = []
    return source, build.run(source, source / "_build", report=said.append), said


@pytest.fixture(scope="session")
def site(root):
    """The real site; what hasn't changed since the last build is taken as it is."""
    return build.run(root, root / "_build", report=lambda text: None)


@pytest.fixture(scope="session")
def search_data():
    """Reads the data that the shipped search looks through."""
    return lambda folder: json.loads(
        (folder / "_static" / "search-data.js").read_text(encoding="utf-8").removeprefix("globalThis.bookSearchData=").rstrip(";\n")
    )


@pytest.fixture(scope="session")
def address(site):
    """The real site behind a server that compresses, as sites do."""
    with serve(site) as address:
        yield address


@pytest.fixture(scope="session")
def axe():
    """The script of axe-core."""
    modules = node.install(print, Path(__file__).parent / "axe")
    return (modules / "axe-core" / "axe.min.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def browser(start_browser):
    """Chromium that can reach nothing but this machine: a name of another host leads nowhere, even past the tests' own guard."""
    browser = start_browser("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1")
    yield browser
    browser.close()
