"""The released notebooks: made by `make exercises` alone, the same bytes every time, and nothing in them gives an answer."""

import re
import subprocess

import nbformat
import pytest

from grading import pages, release
from grading.assignment import ROOT
from grading.catalog import HIDDEN, assignments, exercise
from grading.release import CODE_STUB, TEXT_STUB

SOLUTION = re.compile(r"### BEGIN SOLUTION\n(.*?)[ \t]*### END SOLUTION", re.S)


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    folder = tmp_path_factory.mktemp("release")
    release.generate(folder)
    return folder


def files(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_release_is_current(fresh):
    """What is committed is what `make exercises` makes; a reader's own answers in the working tree don't count."""
    listed = subprocess.run(["git", "ls-files", "-z", "exercises"], cwd=ROOT, capture_output=True, check=True, text=True)
    names = {n.removeprefix("exercises/") for n in listed.stdout.split("\0") if n}
    assert names == set(files(fresh)), "run make exercises"
    for name, wanted in files(fresh).items():
        path = ROOT / "exercises" / name
        touched = path.suffix == ".ipynb" and (release.answered(path) or b'"output_type"' in path.read_bytes())
        have = subprocess.run(["git", "show", f"HEAD:exercises/{name}"], cwd=ROOT, capture_output=True, check=True).stdout if touched else path.read_bytes()
        assert have == wanted, f"exercises/{name}: run make exercises"


def test_release_is_reproducible(fresh, tmp_path):
    release.generate(tmp_path)
    assert files(tmp_path) == files(fresh)


@pytest.mark.parametrize("name", pages.PAGES)
def test_appendix_pages_are_current(name):
    assert (pages.APPENDIX / name).read_text("utf-8") == pages.PAGES[name](), "run make exercises"


def test_cards_in_chapters_are_current():
    assert [path.name for path, _ in pages.stale_cards()] == [], "run make exercises"


def secrets(name):
    """Every line of a solution or hidden region that is long enough to tell something."""
    for cell in exercise(name).notebook.cells:
        for region in [*SOLUTION.findall(cell.source), *HIDDEN.findall(cell.source)]:
            for line in region.splitlines():
                if len(line.strip()) >= 16:
                    yield line.strip()


@pytest.mark.parametrize("name", assignments())
def test_nothing_leaks(fresh, name):
    assert sorted(p.name for p in (fresh / name).iterdir()) == [f"{name}.ipynb"]
    cells = nbformat.read(fresh / name / f"{name}.ipynb", 4).cells
    text = "\n".join(cell.source for cell in cells)
    known = list(secrets(name))
    assert len(known) > 10
    assert [line for line in known if line in text] == []
    assert not re.search(r"(BEGIN|END) (SOLUTION|HIDDEN TESTS|MARK SCHEME)|grading\.checks", text)
    code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    assert not re.search(r"\b(grading|lib|solutions|claims)\b", code)


@pytest.mark.parametrize("name", assignments())
def test_cells_are_stubs_without_outputs(fresh, name):
    cells = {cell.id: cell for cell in nbformat.read(fresh / name / f"{name}.ipynb", 4).cells}
    for source in exercise(name).cells("solution", "manual"):
        stub = CODE_STUB.splitlines()[-1] if source.cell_type == "code" else TEXT_STUB
        assert stub in cells[source.id].source, source.id
    for cell in cells.values():
        assert cell.cell_type != "code" or (cell.outputs == [] and cell.execution_count is None)


def test_answers_are_never_overwritten(tmp_path, monkeypatch, fresh):
    """A notebook with an answer in it stops `make exercises`, and stays as it is."""
    name = assignments()[0]
    path = tmp_path / name / f"{name}.ipynb"
    path.parent.mkdir()
    notebook = nbformat.read(fresh / name / f"{name}.ipynb", 4)
    answer = next(cell for cell in notebook.cells if cell.cell_type == "code" and "raise NotImplementedError()" in cell.source)
    answer.source = answer.source.replace(CODE_STUB.splitlines()[-1], "return 1")
    nbformat.write(notebook, path)
    before = path.read_bytes()
    monkeypatch.setattr(release, "EXERCISES", tmp_path)
    monkeypatch.setattr(release, "ROOT", tmp_path)
    monkeypatch.setattr(release, "generate", lambda target: None)
    with pytest.raises(SystemExit, match=name):
        release.publish()
    assert path.read_bytes() == before
