"""Notebooks run when, and only when, something that they use has changed; nothing broken gets through."""

import shutil

import nbformat
import pytest

from book import execute
from tests.book.conftest import HEADER, notebook


def prints(source, name):
    """Fingerprints of the notebooks under this name before anything runs."""
    return execute.fingerprint(source / f"{name}.ipynb", execute.Sources(source))


@pytest.mark.parametrize(
    ("change", "stale"),
    [
        ("lib/tiny.py", {"chapters/04-one"}),
        ("lib/deep.py", {"chapters/04-one"}),  # only through lib.tiny
        ("lib/other.py", {"chapters/08-two"}),
        ("lib/__init__.py", {"chapters/04-one", "chapters/08-two"}),
        ("lib/fonts/x.otf", {"chapters/04-one", "chapters/08-two"}),
        ("chapters/stored/data.json", {"chapters/04-one", "chapters/08-two"}),
        ("requirements.txt", {"chapters/04-one", "chapters/08-two"}),
        ("index.md", set()),
    ],
)
def test_a_change_makes_exactly_its_users_stale(book_source, change, stale):
    names = ["chapters/04-one", "chapters/08-two"]
    before = {name: prints(book_source, name) for name in names}
    path = book_source / change
    path.parent.mkdir(exist_ok=True)
    path.write_text((path.read_text() if path.exists() else "") + "# changed\n")
    assert {name for name in names if prints(book_source, name) != before[name]} == stale


@pytest.mark.parametrize("position", [0, 3])
def test_any_changed_cell_counts(book_source, position):
    path = book_source / "chapters/04-one.ipynb"
    before = prints(book_source, "chapters/04-one")
    nb = nbformat.read(path, as_version=4)
    nb.cells[position].source += "\n"
    nbformat.write(nb, path)
    assert prints(book_source, "chapters/04-one") != before


def test_stored_outputs_do_not_count(book_source):
    path = book_source / "chapters/04-one.ipynb"
    before = prints(book_source, "chapters/04-one")
    nb = nbformat.read(path, as_version=4)
    nb.cells[1].outputs = [nbformat.v4.new_output("stream", text="stored")]
    nbformat.write(nb, path)
    assert prints(book_source, "chapters/04-one") == before


@pytest.mark.parametrize("code", ["!python -m claims", "%run x.py", "import importlib\nimportlib.import_module('lib.' + n)", "x = ("])
def test_code_that_cannot_be_followed_uses_everything(book_source, code):
    (book_source / "claims").mkdir()
    (book_source / "claims" / "__init__.py").write_text("")
    nbformat.write(notebook((code,)), book_source / "chapters/08-two.ipynb")
    before = prints(book_source, "chapters/08-two")
    (book_source / "claims" / "records.json").write_text("[]")
    assert prints(book_source, "chapters/08-two") != before


def test_the_ledger_counts_as_a_whole(book_source):
    (book_source / "claims").mkdir()
    (book_source / "claims" / "__init__.py").write_text("")
    nbformat.write(notebook(("from claims import rows",)), book_source / "chapters/08-two.ipynb")
    before = prints(book_source, "chapters/08-two")
    (book_source / "claims" / "records.json").write_text("[]")
    assert prints(book_source, "chapters/08-two") != before


def test_real_chapters_are_followed_not_taken_whole(root):
    """The rule would be useless if every chapter depended on everything: a chapter on attention must not be run
    again for a change in the training loop."""
    sources = execute.Sources(root)
    used = sources.reached("from lib.attention import softmax_attention")
    assert root / "lib" / "attention.py" in used
    assert root / "lib" / "training.py" not in used
    assert not any(path.is_relative_to(root / "claims") for path in used)


def test_run_then_nothing_then_only_what_changed(book_source, tmp_path):
    said = []
    first = execute.run(book_source, tmp_path / "out", report=said.append)
    assert "执行 2 个，沿用 0 个" in said[-1]
    assert set(first) == {"chapters/04-one", "chapters/08-two"}
    text = nbformat.read(first["chapters/04-one"], as_version=4).cells[3].outputs[0].text
    assert text == "42\n"

    execute.run(book_source, tmp_path / "out", report=said.append)
    assert "执行 0 个，沿用 2 个" in said[-1]

    (book_source / "lib" / "deep.py").write_text("SCALE = 3\n")
    second = execute.run(book_source, tmp_path / "out", report=said.append)
    assert "执行 1 个，沿用 1 个" in said[-1]
    assert nbformat.read(second["chapters/04-one"], as_version=4).cells[3].outputs[0].text == "63\n"
    assert not first["chapters/04-one"].exists(), "the outdated copy is gone"


TEXT_TOFU = "import matplotlib.pyplot as plt\nplt.title(chr(0x12000))\nplt.show()"
MATH_TOFU = "import matplotlib.pyplot as plt\nplt.title('$x$ ' + chr(0x12000))\nplt.show()"
BROKEN = {
    "error": ("1 / 0", "ZeroDivisionError"),
    "text glyph": (TEXT_TOFU, "缺字"),
    "mathtext glyph": (MATH_TOFU, "缺字"),
    "warning": ("import warnings\nwarnings.warn('小心')", "小心"),
    "death": ("import os\nos._exit(1)", "died"),
}


def test_every_kind_of_broken_notebook_is_named(book_source, tmp_path):
    """One bad notebook hides no other, and a good one beside them still runs."""
    shutil.rmtree(book_source / "chapters")
    (book_source / "chapters").mkdir()
    pages = {f"chapters/{i:02}": notebook((HEADER,), (code,)) for i, (code, _) in enumerate(BROKEN.values())}
    pages["chapters/quiet"] = notebook(("import sys\nprint('进度', file=sys.stderr)", {"tags": ["remove-stderr"]}))
    for name, nb in pages.items():
        nbformat.write(nb, book_source / f"{name}.ipynb")
    (book_source / "_toc.yml").write_text("root: index\nchapters:\n" + "".join(f"- file: {n}\n" for n in pages))
    said = []
    with pytest.raises(execute.ExecutionFailed) as failed:
        execute.run(book_source, tmp_path / "out", report=said.append)
    message = str(failed.value)
    for i, (_, expected) in enumerate(BROKEN.values()):
        part = message.split(f"chapters/{i:02}.ipynb", 1)[1].split("✗")[0]
        assert expected in part
    assert "chapters/quiet" not in message
    assert len(list((tmp_path / "out" / "executed").glob("*.ipynb"))) == 1
