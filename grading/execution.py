"""运行一份提交：学生的单元格在（沙箱）内核里，测试单元格在可信的一侧，按笔记本的顺序。"""

import copy
from dataclasses import dataclass, field

import nbformat

from grading.assignment import grade_id, is_setup, is_test, role
from grading.kernels import StudentKernel
from grading.sandbox import Limits
from grading.trusted import Bridge, hidden_lines, new_namespace, run_setup, run_test

REVIVALS = 2  # of a kernel that a submission has killed


@dataclass
class TestResult:
    """The verdict of one test cell."""

    grade_id: str
    points: float
    score: float
    message: str = ""  # for the student; shows nothing of a hidden test
    detail: str = ""  # for the teacher
    hidden: bool = False  # the cell has a part that students don't see

    @property
    def passed(self):
        return self.score >= self.points


@dataclass
class Execution:
    """A notebook that has been run."""

    notebook: nbformat.NotebookNode  # with outputs; hidden tests included: for the teacher only
    tests: list = field(default_factory=list)
    notes: set = field(default_factory=set)  # short codes of what was odd
    setup_problems: list = field(default_factory=list)
    seconds: float = 0.0

    @property
    def score(self):
        return sum(test.score for test in self.tests)

    @property
    def max_score(self):
        return sum(test.points for test in self.tests)


def execute(notebook, assignment, sandbox=True, *, limits=None, files=None, folder=None, kernels=None):
    """Run a rebuilt notebook (see `grading.rebuild`) and judge its test cells.

    `sandbox=False` gives the student's code all powers of the user: for checking one's own work at home, never for the
    work of others. `files` are plain files {name: bytes} that the submission brought along; without a sandbox the code
    runs in `folder` (or a fresh empty one). `kernels` makes kernels (a pool of ones started ahead).
    """
    _insist_on_own_tests(notebook, assignment)
    notebook = copy.deepcopy(notebook)
    kernels = kernels or (lambda: StudentKernel(limits or Limits(), sandbox, folder).ready())
    with _Run(kernels, files or {}) as run:
        for cell in notebook.cells:
            if cell.cell_type == "code":
                cell.outputs, cell.execution_count = [], None
                if cell.source.strip():
                    run.cell(cell)
        return Execution(notebook, run.tests, run.notes | run.kernel.notes, run.setup_problems, run.kernel.spent)


def _insist_on_own_tests(notebook, assignment):
    """Test and setup cells run with the grader's powers: they must be the source's, to the letter."""
    own = {grade_id(c): c.source for c in assignment.pristine.cells if is_test(c) or is_setup(c)}
    for cell in notebook.cells:
        if (is_test(cell) or is_setup(cell)) and own.get(grade_id(cell)) != cell.source:
            raise ValueError(f"单元格 {grade_id(cell)} 不是 {assignment.name} 的原文：先用 grading.rebuild 重建")


class _Run:
    """The state of one run: the kernel, the trusted namespace, what has been run so far."""

    def __init__(self, kernels, files):
        self.start, self.files = kernels, files
        self.kernel = kernels()
        self.bridge, self.namespace = Bridge(self.kernel), new_namespace()
        self.tests, self.notes, self.setup_problems = [], set(), []
        self.done, self.revived = [], 0
        self._put_files()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kernel.close()

    def _put_files(self):
        if self.files:
            self.kernel.put(self.files)

    def cell(self, cell):
        """Run one cell where it belongs."""
        if is_test(cell):
            self._test(cell)
            return
        if is_setup(cell) and (problem := run_setup(cell.source, self.namespace, self.bridge)):
            self.setup_problems.append(f"{grade_id(cell)}: {problem}")
        run = self.kernel.run(cell.source)
        cell.outputs = run.outputs
        if not run.problem:
            self.done.append(cell.source)
        elif self.kernel.lost:
            self._revive()

    def _test(self, cell):
        points = float(role(cell, "points"))
        run = run_test(cell.source, grade_id(cell), self.namespace, self.bridge)
        cell.outputs = run.outputs
        hidden = bool(hidden_lines(cell.source))
        self.tests.append(TestResult(grade_id(cell), points, score(run.outputs, points), run.message, run.detail, hidden))
        if self.kernel.lost:
            self._revive()

    def _revive(self):
        """A new kernel in the state of the old one, as far as its cells bring it there; what killed it stays barred."""
        if self.revived >= REVIVALS or self.kernel.spent >= self.kernel.limits.total_seconds:
            return
        self.revived += 1
        spent, barred = self.kernel.spent, self.bridge.barred
        self.notes |= self.kernel.notes
        self.kernel.close()
        self.kernel = self.start()
        self.kernel.spent = spent
        self.bridge = Bridge(self.kernel)
        self.bridge.barred = {key: why for key, why in barred.items() if "['n'," in key}  # numbers of objects are void
        self._put_files()
        for source in self.done:
            self.kernel.run(source)


def score(outputs, points):
    """nbgrader's rule for a test cell: an error gives nothing, a number as the result gives that much, else all.

    nbgrader refuses to grade a notebook at all where the number is out of range, so it is brought into it.
    """
    for output in outputs:
        if output.output_type == "error":
            return 0.0
        if output.output_type == "execute_result":
            value = min(max(float(output.data["text/plain"]), 0.0), points)
            output.data["text/plain"] = repr(value)
            return value
    return points
