"""作业：一个源笔记本（solutions/ 下），以及评分需要从它知道的一切。

The roles of cells are nbgrader's. Its code is imported only where it is used: a grading worker needs none of it, and the
import alone costs more than grading a submission.
"""

import copy
import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import nbformat

ROOT = Path(__file__).resolve().parent.parent
SOLUTIONS = ROOT / "solutions"


class AssignmentError(ValueError):
    """The source notebook can't be graded, and the message says why."""


def role(cell, key):
    """A field of the cell's nbgrader metadata, or None."""
    return cell.metadata.get("nbgrader", {}).get(key)


def grade_id(cell):
    """nbgrader's name of the cell, or None."""
    return role(cell, "grade_id")


def is_answer(cell):
    """A cell whose text is the student's."""
    return bool(role(cell, "solution"))


def is_graded(cell):
    """A cell that carries points."""
    return bool(role(cell, "grade"))


def is_test(cell):
    """A cell of code that decides about points."""
    return cell.cell_type == "code" and is_graded(cell) and not is_answer(cell)


def is_setup(cell):
    """A cell of code that is given and runs on both sides."""
    return cell.cell_type == "code" and bool(role(cell, "locked")) and not is_answer(cell) and not is_graded(cell)


@dataclass(frozen=True)
class Assignment:
    """One assignment. `folder` holds NAME.ipynb and whatever its checks need."""

    name: str
    folder: Path | None

    @classmethod
    def load(cls, name, solutions=SOLUTIONS):
        """The assignment of this name; the message of the error lists what there is."""
        folder = Path(solutions) / name
        if not (folder / f"{name}.ipynb").is_file():
            there = sorted(p.parent.name for p in Path(solutions).glob("*/*.ipynb"))
            raise AssignmentError(f"没有作业 {name}；{solutions} 下有：{'、'.join(there) or '（空）'}")
        return cls(name, folder)

    @classmethod
    def shipped(cls, name, pristine):
        """As a worker gets it: nothing but the pristine notebook."""
        assignment = cls(name, None)
        assignment.__dict__["pristine"] = pristine
        return assignment

    @property
    def path(self):
        return self.folder / f"{self.name}.ipynb"

    @cached_property
    def source(self):
        """The source notebook with solutions and hidden tests. Treat as read-only."""
        notebook = nbformat.read(self.path, as_version=4)
        ids = [grade_id(cell) for cell in notebook.cells if grade_id(cell)]
        if repeated := sorted({i for i in ids if ids.count(i) > 1}):
            raise AssignmentError(f"{self.path.name}：grade_id 重复：{'、'.join(repeated)}")
        if not any(is_graded(cell) for cell in notebook.cells):
            raise AssignmentError(f"{self.path.name}：没有计分的单元格")
        return notebook

    @cached_property
    def pristine(self):
        """The source with stubs in place of solutions: what a student starts from, plus the hidden tests."""
        from nbgrader.preprocessors import ClearSolutions
        from nbgrader.utils import compute_checksum

        from grading.release import CODE_STUB, TEXT_STUB

        clear = ClearSolutions(code_stub={"python": CODE_STUB}, text_stub=TEXT_STUB)
        notebook, _ = clear.preprocess(copy.deepcopy(self.source), {"language": "python"})
        for cell in notebook.cells:
            if cell.cell_type == "code":
                cell.outputs, cell.execution_count = [], None
            if grade_id(cell):
                cell.metadata.nbgrader["checksum"] = compute_checksum(cell)
        return notebook

    @cached_property
    def max_score(self):
        """All points, those that a person gives included."""
        return float(sum(role(c, "points") for c in self.pristine.cells if is_graded(c)))

    @cached_property
    def max_auto_score(self):
        """Points that need no person."""
        return float(sum(role(c, "points") for c in self.pristine.cells if is_test(c)))

    @cached_property
    def fingerprint(self):
        """Changes whenever a grade could: the notebook and every file beside it."""
        digest = hashlib.sha256()
        for path in sorted(p for p in self.folder.rglob("*") if p.is_file() and "__pycache__" not in p.parts):
            digest.update(f"{path.relative_to(self.folder)}\0".encode() + path.read_bytes())
        return digest.hexdigest()
