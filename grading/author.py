"""写作业：`.ipynb`（唯一的源）与便于编辑的 MyST 文本互相转换。

    python -m grading.author edit solutions/ex04-attention/ex04-attention.ipynb    # makes the .md beside it
    python -m grading.author write solutions/ex04-attention/ex04-attention.md      # back, and removes the .md

In the text a cell says what it is in three words instead of nbgrader's seven fields: `role` (solution, test, manual,
setup), `id` (nbgrader's grade_id and the cell's id, so both are stable) and `points`. Cells of prose need neither.
"""

import sys
from pathlib import Path

import jupytext
import nbformat

from grading.catalog import ROLES

METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def to_text(notebook):
    """The notebook as MyST text with short cell options."""
    for cell in notebook.cells:
        grading = cell.metadata.pop("nbgrader", None)
        short = {"id": cell.id}
        if grading:
            flags = grading["grade"], grading["solution"], grading["locked"]
            short["role"] = next(role for role, known in ROLES.items() if known == flags)
            short |= {"points": grading["points"]} if grading["grade"] else {}
        cell.metadata |= short
    return jupytext.writes(notebook, fmt="md:myst")


def from_text(text):
    """A clean notebook: nbgrader metadata from the short options, stable ids, no outputs."""
    notebook = jupytext.reads(text, fmt="md:myst")
    notebook.metadata = nbformat.from_dict(METADATA)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    taken = {cell.metadata.get("id") for cell in notebook.cells}
    free = (f"text-{number:02d}" for number in range(1, 1000) if f"text-{number:02d}" not in taken)
    for cell in notebook.cells:
        role, points = cell.metadata.pop("role", None), cell.metadata.pop("points", None)
        cell.id = cell.metadata.pop("id", None) or next(free)
        if role:
            cell.metadata["nbgrader"] = _nbgrader(cell, role, points)
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    nbformat.validate(notebook)
    return notebook


def _nbgrader(cell, role, points):
    grade, solution, locked = ROLES[role]
    if grade != isinstance(points, int) or (grade and points < 1):
        raise ValueError(f"{cell.id}: a {role} cell with points={points}")
    entry = {"cell_type": cell.cell_type, "grade": grade, "grade_id": cell.id, "locked": locked,
             "schema_version": 3, "solution": solution, "task": False}
    return entry | ({"points": points} if grade else {})


def save(notebook, path):
    """One form on disk: sorted keys, a final newline, real Chinese characters."""
    Path(path).write_text(nbformat.writes(notebook, version=nbformat.NO_CONVERT) + "\n", encoding="utf-8")


def main(command, path):
    path = Path(path)
    if command == "edit":
        path.with_suffix(".md").write_text(to_text(nbformat.read(path, nbformat.NO_CONVERT)), encoding="utf-8")
    elif command == "write":
        save(from_text(path.read_text("utf-8")), path.with_suffix(".ipynb"))
        path.unlink()
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(*sys.argv[1:3]) if len(sys.argv) == 3 else sys.exit(__doc__)
