"""课程里有哪些练习，每份练习里有什么：全部从 `solutions/` 的笔记本读出，别处不再写一遍。"""

import re
from dataclasses import dataclass
from functools import cache

import nbformat

from grading.assignment import ROOT, SOLUTIONS, Assignment, is_graded

# role -> nbgrader's (grade, solution, locked)
ROLES = {
    "solution": (False, True, False),  # the student's code
    "test": (True, False, True),  # a visible part and a hidden region
    "manual": (True, True, False),  # a text that a person grades
    "setup": (False, False, True),  # given code: runs on both sides of the grader
}
EXERCISES, CHAPTERS = ROOT / "exercises", ROOT / "chapters"
VERIFY = re.compile(r'^verify\("([^"]+)", "([^"]+)", "([^"]+)", ', re.M)
HIDDEN = re.compile(r"^[ \t]*### BEGIN HIDDEN TESTS$.*?^[ \t]*### END HIDDEN TESTS$\n?", re.M | re.S)


def assignments():
    """Names of all assignments in the order of the course."""
    return sorted(path.parent.name for path in SOLUTIONS.glob("ex*/*.ipynb") if path.stem == path.parent.name)


def role(cell):
    """solution, test, manual or setup; None for a cell that nbgrader leaves alone."""
    grading = cell.metadata.get("nbgrader")
    if not grading:
        return None
    flags = grading["grade"], grading["solution"], grading["locked"]
    return next((name for name, known in ROLES.items() if known == flags), None)


@dataclass(frozen=True)
class Part:
    """One test cell: its points and the checks behind it."""

    id: str
    title: str  # its first comment line
    points: int
    function: str
    checks: tuple


class Exercise:
    """An assignment as readers meet it."""

    def __init__(self, name):
        self.assignment = Assignment.load(name)
        self.name, self.number = name, re.match(r"ex(\d+)", name)[1]
        self.notebook = self.assignment.source

    @property
    def release(self):
        return EXERCISES / self.name / f"{self.name}.ipynb"

    @property
    def title(self):
        return re.match(r"# 练习 \d+[\s　]*(.*)", self.notebook.cells[0].source)[1].strip()

    @property
    def _table(self):
        """[(stars, minutes)] of the parts that count, from the table of the first cell."""
        rows = re.findall(r"^\| .* \| ([★☆]{3}) \| (\d+) \| \d+ \|$", self.notebook.cells[0].source, re.M)
        return [(stars.count("★"), int(minutes)) for stars, minutes in rows]

    @property
    def minutes(self):
        return sum(minutes for _, minutes in self._table)

    @property
    def difficulty(self):
        """Its parts' difficulty, weighted by their minutes."""
        stars = round(sum(stars * minutes for stars, minutes in self._table) / self.minutes)
        return "★" * stars + "☆" * (3 - stars)

    def cells(self, *roles):
        return [cell for cell in self.notebook.cells if role(cell) in roles]

    @property
    def parts(self):
        """The test cells in order."""
        found = []
        for cell in self.cells("test"):
            calls = VERIFY.findall(cell.source)
            title = cell.source.splitlines()[0].lstrip("# ")
            names = tuple(name for _, _, names in calls for name in names.split())
            function = calls[0][1] if calls else ""
            found.append(Part(cell.id, title, cell.metadata["nbgrader"]["points"], function, names))
        return found

    @property
    def functions(self):
        """Names of the graded functions in order."""
        return list(dict.fromkeys(part.function for part in self.parts))

    @property
    def automatic(self):
        """Points that the checks give."""
        return sum(part.points for part in self.parts)

    @property
    def points(self):
        return sum(cell.metadata["nbgrader"]["points"] for cell in self.notebook.cells if is_graded(cell))

    def reference(self):
        """The namespace of the reference solution: given code and solution cells, run in order."""
        space = {}
        for cell in self.cells("setup", "solution"):
            if cell.cell_type == "code":
                exec(compile(cell.source, f"{self.name}:{cell.id}", "exec"), space)  # noqa: S102  our own source
        return space


@cache
def exercise(name):
    return Exercise(name)


def headings(number):
    """Section numbers that the chapter with this number has: {"4.6": "为什么除以 √d", …}."""
    found = {}
    for path in CHAPTERS.glob(f"{int(number):02d}-*.ipynb"):
        for cell in nbformat.read(path, as_version=nbformat.NO_CONVERT).cells:
            if cell.cell_type == "markdown":
                found |= dict(re.findall(r"^#+ (\d+(?:\.\d+)*)\s+(.+)$", cell.source, re.M))
    return found
