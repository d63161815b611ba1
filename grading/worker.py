"""一份提交的评分，作为纯函数：字节进，结果出。

A worker knows neither the gradebook nor other submissions, so it may run in any process on any machine, be killed at any
moment and be asked again. Only plain data comes back.
"""

import hashlib
import json
import os
import resource
import threading
from functools import lru_cache
from pathlib import Path

import nbformat

from grading import suspicion
from grading.assignment import SOLUTIONS, Assignment
from grading.checks import course_seed
from grading.execution import execute
from grading.kernels import StudentKernel
from grading.rebuild import Unreadable, read_cells, rebuild
from grading.sandbox import Limits, SandboxUnavailable

# The code that decides about a grade.
DECIDING = ("assignment", "checks", "execution", "kernels", "plain", "rebuild", "trusted", "inside/kernel", "inside/wire")
_one_at_a_time = threading.Lock()  # test cells redirect the process's output; Dask workers have several threads
MAX_HELPERS = 32 << 20
OWN_MEMORY = 4 << 30  # bytes of data that a grading process may hold


class DifferentCode(RuntimeError):
    """A process elsewhere would grade with other code than this one expects."""


def code_digest(assignment):
    """Of the code that decides about a grade, the assignment's own checks and table of mistakes included."""
    here = Path(__file__).resolve().parent
    files = [here / f"{name}.py" for name in DECIDING]
    files += [here / "mutants" / f"{assignment.replace('-', '_')}.py", SOLUTIONS / assignment / "checks.py"]
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in files if path.exists())).hexdigest()


@lru_cache(maxsize=4)
def _assignment(name, pristine):
    return Assignment.shipped(name, nbformat.reads(pristine, as_version=4))


class WarmKernels:
    """Hands out sandboxed kernels, with the next one starting while the last one is used."""

    def __init__(self):
        self._next = None

    def __call__(self, limits):
        kernel, self._next = self._next, None
        if kernel is None or kernel.limits != limits or not kernel.alive():
            if kernel is not None:
                kernel.close()
            kernel = StudentKernel(limits)
        self._next = StudentKernel(limits)
        try:
            return kernel.ready()
        except Exception:
            kernel.close()
            raise


_kernels = WarmKernels()


def grade(task):
    """Grade one submission. Never raises for what a submission holds, only if there is no sandbox.

    task: {"assignment", "pristine", "student", "files", "notebook", "notes", "limits", "seed"}; see `grading.batch`.
    """
    with _one_at_a_time:
        _bound_memory()
        _set_seed(task["seed"])
        assignment = _assignment(task["assignment"], task["pristine"])
        limits = Limits(**task["limits"])
        try:
            return _writable(_grade(task, assignment, limits))
        except SandboxUnavailable:
            raise
        except Unreadable as problem:
            return ungraded(task, {"unreadable": str(problem)})


def _bound_memory():
    """What comes from a student may grow on this side: a small array that a test compares broadcasts to gigabytes, a flood of
    messages waits to be read. Then this process fails, and the machine keeps its memory for the others."""
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if soft == resource.RLIM_INFINITY or soft > OWN_MEMORY:
        resource.setrlimit(resource.RLIMIT_DATA, (OWN_MEMORY, hard))


def _writable(result):
    """The same in text that every file and database takes; a hostile process may send halves of characters."""
    return json.loads(json.dumps(result, ensure_ascii=False).encode("utf-8", "replace"))


def _set_seed(seed):
    """The private seed comes with the task: a worker elsewhere doesn't have it."""
    if course_seed() != seed:
        os.environ["GRADING_SEED"] = seed
        course_seed.cache_clear()


def ungraded(task, notes):
    """The result of a submission that can't be run: no points, and the reason."""
    return {"student": task["student"], "tests": [], "answers": {}, "notes": {**task["notes"], **notes},
            "suspicions": [], "notebook": None, "seconds": 0.0}


def _grade(task, assignment, limits):
    if task["notebook"] is None:
        return ungraded(task, {})
    cells, notes = read_cells(task["files"][task["notebook"]])
    rebuilt = rebuild(cells, assignment, {**task["notes"], **notes})
    done = execute(rebuilt.notebook, assignment, limits=limits, files=_helpers(task), kernels=lambda: _kernels(limits))
    for code in sorted(done.notes):
        rebuilt.notes.setdefault(code, EXPLANATIONS[code])
    tests = [{"grade_id": t.grade_id, "points": t.points, "score": t.score, "message": t.message, "detail": t.detail,
              "hidden": t.hidden} for t in done.tests]
    return {"student": task["student"], "tests": tests, "answers": rebuilt.answers, "notes": rebuilt.notes,
            "suspicions": suspicion.examine(rebuilt), "seconds": done.seconds, "setup": done.setup_problems,
            "notebook": nbformat.writes(done.notebook, version=nbformat.NO_CONVERT)}


EXPLANATIONS = {
    "kernel-died": "内核在运行中退出",
    "memory": "占用内存过多，内核被终止",
    "timeout": "有单元格或调用超时",
    "malformed-message": "内核发来无法识别的消息",
}


def _helpers(task):
    """Plain files beside the notebook that the student's code may read; never another notebook."""
    helpers, room = {}, MAX_HELPERS
    folder = task["notebook"].rpartition("/")[0]
    for name, data in task["files"].items():
        if folder and not name.startswith(folder + "/"):
            continue
        if not name.endswith((".ipynb", ".zip")) and len(data) <= room:
            room -= len(data)
            helpers[name[len(folder) + 1 if folder else 0:]] = data
    return helpers
