"""Rules for the source notebooks: what nbgrader, the isolated test kernel and a student at home rely on."""

import ast
import builtins
import math
import re

import numpy as np
import pytest

from grading.catalog import HIDDEN, VERIFY, assignments, exercise, role
from grading.checks import Callback, Student, checks_of
from grading.plain import SHOWN
from grading.release import CODE_STUB

NAMES = assignments()


def without_solution(source):
    return re.sub(r"^([ \t]*)### BEGIN SOLUTION.*?### END SOLUTION", lambda m: CODE_STUB.replace("\n", f"\n{m[1]}").join([m[1], ""]), source, flags=re.M | re.S)


def outcome(source, space):
    """The exception that a cell ends with, or None."""
    try:
        exec(compile(source, "cell", "exec"), dict(space))
    except Exception as error:  # noqa: BLE001
        return error
    return None


@pytest.mark.parametrize("name", NAMES)
def test_cells_are_well_formed(name):
    cells = exercise(name).notebook.cells
    ids = [cell.id for cell in cells]
    assert len(set(ids)) == len(ids)
    for cell in cells:
        if grading := cell.metadata.get("nbgrader"):
            assert role(cell), f"{cell.id}: unknown combination of flags"
            assert grading["grade_id"] == cell.id
        if role(cell) == "test":
            assert cell.source.startswith("# "), f"{cell.id}: the first line says what is tested"
            assert len(VERIFY.findall(cell.source)) == 1 and len(HIDDEN.findall(cell.source)) == 1, cell.id
            assert re.search(r"^assert ", HIDDEN.sub("", cell.source), re.M), f"{cell.id}: no visible test"
            # The hidden part comes first: it names the misconception where a plain assert can only say that something is wrong.
            assert cell.source.index("BEGIN HIDDEN") < cell.source.index("\nassert "), cell.id


@pytest.mark.parametrize("name", NAMES)
def test_every_check_is_used_once(name):
    used = [(part.function, check) for part in exercise(name).parts for check in part.checks]
    assert sorted(used) == sorted(checks_of(name))
    for cell in exercise(name).cells("test"):
        (target, function, _), = VERIFY.findall(cell.source)
        assert target == name
        assert f', {function})' in cell.source


@pytest.mark.parametrize("name", NAMES)
def test_test_cells_stand_alone(name):
    """A test cell reads only what it imports or defines, the given code, and the student's functions; and it defines
    nothing that a later cell of the student reads."""
    given = {n for cell in exercise(name).cells("setup") for n in defined(cell.source)}
    for cell in exercise(name).cells("test"):
        free = read(cell.source) - defined(cell.source) - set(dir(builtins))
        assert free <= given | set(exercise(name).functions), f"{cell.id}: {free}"
    solutions = set().union(*(read(cell.source) for cell in exercise(name).cells("solution") if cell.cell_type == "code"))
    tests = set().union(*(defined(cell.source) for cell in exercise(name).cells("test")))
    assert not (tests - given - {"np"}) & (solutions - set(exercise(name).functions) - local(name)), name


def local(name):
    """Names that solution cells define inside functions: parameters and variables."""
    trees = [ast.parse(cell.source) for cell in exercise(name).cells("solution") if cell.cell_type == "code"]
    return {a.arg for t in trees for a in ast.walk(t) if isinstance(a, ast.arg)} | {
        n.id for t in trees for n in ast.walk(t) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def defined(source):
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            found.add(node.name)
    return found


def read(source):
    return {n.id for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


@pytest.mark.parametrize("name", NAMES)
def test_reference_gets_full_marks(name):
    space = exercise(name).reference()
    for cell in exercise(name).cells("test"):
        assert (error := outcome(cell.source, space)) is None, f"{cell.id}: {error}"


@pytest.mark.parametrize("name", NAMES)
def test_empty_release_gets_nothing(name):
    space = {}
    for cell in exercise(name).cells("setup", "solution"):
        if cell.cell_type == "code":
            exec(without_solution(cell.source), space)
    for cell in exercise(name).cells("test"):
        assert outcome(cell.source, space) is not None, f"{cell.id} passes without an answer"
        assert outcome(HIDDEN.sub("", cell.source), space) is not None, f"{cell.id}: its visible part passes without an answer"


@pytest.mark.parametrize("name", NAMES)
def test_the_overview_tells_the_truth(name):
    """Points and minutes of the first cell's table agree with the cells; each function has a contract with three hints."""
    task = exercise(name)
    table = dict(re.findall(r"^\| \d+　`?([^`|]*?)`? \| .* \| (\d+) \|$", task.notebook.cells[0].source, re.M))
    by_function = {f: sum(p.points for p in task.parts if p.function == f) for f in task.functions}
    assert {f: int(table.get(f, 0)) for f in task.functions} == by_function
    assert sum(map(int, table.values())) == task.points
    assert len(task.cells("manual")) == 1
    headings = {f: cell.source for cell in task.notebook.cells if cell.cell_type == "markdown"
                for f in task.functions if re.match(rf"## \d+　`{f}`", cell.source)}
    for function, points in by_function.items():
        text = headings[function]
        assert re.match(rf"## \d+　`{function}`　[★☆]{{3}}　\d+ 分钟　{points} 分\n", text), function
        assert len(re.findall(r"<details><summary>提示[一二三]：", text)) == 3, function


def floats(value):
    """Every float in an argument."""
    if isinstance(value, np.ndarray):
        value = value.ravel().tolist() if value.dtype == np.float64 and value.size <= SHOWN else ()
    if isinstance(value, Callback):
        value = value.data
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from floats(item)
    elif isinstance(value, float) and math.isfinite(value):
        yield value


@pytest.mark.parametrize("name", NAMES)
def test_inputs_that_a_message_shows_are_short(name):
    """0.3, not 0.30000000000000004: arithmetic on the short numbers of `small` leaves such tails unless they are rounded again."""
    space = exercise(name).reference()
    for (function, check), record in checks_of(name).items():
        student = Student(record, space[function], judge=False)
        record.body(student, record.rng())
        given_back = set(floats([call.seen.result for call in student.calls]))  # and put in again, as a cache is
        for number in {*floats([[call.args, call.kwargs] for call in student.calls])} - given_back:
            near = float(f"{number:.6g}")
            assert number == near or not math.isclose(number, near, rel_tol=1e-14), f"{function} · {check}: {number!r}"
