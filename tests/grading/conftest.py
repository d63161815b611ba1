"""A small assignment of our own, and ways to hand it in."""

import copy
import shutil
import tempfile
from pathlib import Path

import nbformat
import pytest

from grading.assignment import Assignment, grade_id
from grading.author import from_text, save

TOY = Path(__file__).parent / "toy"


class Toy:
    """The toy assignment with means to make submissions of it."""

    name = "toy-attention"

    def __init__(self, solutions):
        self.solutions = solutions
        self.assignment = Assignment.load(self.name, solutions)

    def notebook(self, answers=None, extra=(), base=None, drop=()):
        """The reference (or `base`) with some cells' texts replaced, cells added after a named one, cells dropped."""
        notebook = copy.deepcopy(base or self.released_reference)
        for cell in notebook.cells:
            if grade_id(cell) in (answers or {}):
                cell.source = answers[grade_id(cell)]
        for after, source in extra:
            place = next((i for i, c in enumerate(notebook.cells) if grade_id(c) == after), -1)
            notebook.cells.insert(place + 1, nbformat.v4.new_code_cell(source))
        notebook.cells = [cell for cell in notebook.cells if grade_id(cell) not in drop]
        return notebook

    @property
    def released_reference(self):
        """What a student with all answers right would hand in: no hidden tests."""
        from grading.rebuild import released_text

        notebook = copy.deepcopy(self.assignment.source)
        for cell in notebook.cells:
            cell.source = "\n".join(line for line in released_text(cell).splitlines() if "### " not in line)
        return notebook

    @property
    def released(self):
        """What a student gets."""
        from grading.rebuild import released_text

        notebook = copy.deepcopy(self.assignment.pristine)
        for cell in notebook.cells:
            cell.source = released_text(cell)
        return notebook

    def hand_in(self, folder, student, notebook, name=None):
        """Lay a submission (a notebook, text or bytes) where nbgrader would."""
        place = Path(folder) / student / self.name
        place.mkdir(parents=True, exist_ok=True)
        data = notebook if isinstance(notebook, (str, bytes)) else nbformat.writes(notebook, version=nbformat.NO_CONVERT)
        path = place / (name or f"{self.name}.ipynb")
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return path


@pytest.fixture(scope="module")
def open_folder():
    """A folder that other users can enter; pytest shuts its own to them whenever it starts, here or in another run."""
    folder = Path(tempfile.mkdtemp(prefix="grading-test-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def toy(tmp_path_factory):
    solutions = tmp_path_factory.mktemp("solutions")
    folder = solutions / Toy.name
    folder.mkdir()
    save(from_text((TOY / f"{Toy.name}.md").read_text("utf-8")), folder / f"{Toy.name}.ipynb")
    return Toy(solutions)
