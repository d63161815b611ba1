"""The hidden checks, checked: known mistakes are caught and named, right solutions of any style get full marks."""

import numpy as np
import pytest

from grading import checks
from grading.catalog import HIDDEN, assignments, exercise, headings
from grading.mutants import mutants_of, rights_of

MANY = 8  # wrong solutions that a function should have at least
# Functions about which fewer things can be got wrong.
FEWER = {}
SEEDS = ("token-journey", "a private seed of a teacher")

MUTANTS = [pytest.param(name, m, id=f"{name}:{m.function}:{m.body.__name__}") for name in assignments() for m in mutants_of(name)]
RIGHTS = [pytest.param(name, r, id=f"{name}:{r.function}:{r.body.__name__}") for name in assignments() for r in rights_of(name)]


@pytest.fixture(params=SEEDS)
def seed(request, monkeypatch):
    """The properties hold for any inputs, not just for the published ones."""
    monkeypatch.setenv("GRADING_SEED", request.param)
    checks.course_seed.cache_clear()
    yield request.param
    checks.course_seed.cache_clear()


def failures(name, function, body):
    """{check: failure} of every check of this function that the body doesn't pass."""
    found = {}
    for (other, check), record in checks.checks_of(name).items():
        if other == function:
            try:
                checks.run(record, body)
            except checks.CheckFailure as failure:
                found[check] = failure
    return found


@pytest.mark.parametrize("name, mutant", MUTANTS)
def test_mistake_is_caught_and_named(seed, name, mutant):
    found = failures(name, mutant.function, mutant.body)
    assert next(iter(found), None) == mutant.caught_by, f"caught by {list(found)}"
    assert found[mutant.caught_by].mutant is mutant
    assert f"诊断：{mutant.message}" in str(found[mutant.caught_by])
    assert not any(failure.mutant is None for failure in found.values()), "a failure without a diagnosis"


def failing_cells(name, function, body, change=lambda source: source):
    """Ids of the test cells of this function that fail when the reference has this body instead; `change` edits a cell."""
    space, failed = exercise(name).reference() | {function: body}, set()
    for part, cell in zip(exercise(name).parts, exercise(name).cells("test")):
        if part.function == function:
            try:
                with np.errstate(all="ignore"):
                    exec(compile(change(cell.source), part.id, "exec"), dict(space))
            except Exception:  # noqa: BLE001  any failure of a test cell
                failed.add(part.id)
    return failed


@pytest.mark.parametrize("name, mutant", MUTANTS)
def test_visible_part_asks_for_nothing_more(name, mutant):
    """Where the hidden checks of a cell pass, its visible part passes too: so every lost point has a diagnosis."""
    hidden = failing_cells(name, mutant.function, mutant.body, lambda source: "\n".join(HIDDEN.findall(source)))
    visible = failing_cells(name, mutant.function, mutant.body, lambda source: HIDDEN.sub("", source))
    assert visible <= hidden
    assert hidden, "no points lost"


@pytest.mark.parametrize("name, right", RIGHTS)
def test_right_solution_gets_full_marks(seed, name, right):
    assert failures(name, right.function, right.body) == {}
    assert failing_cells(name, right.function, right.body) == set()


@pytest.mark.parametrize("name", assignments())
def test_reference_passes(seed, name):
    space = exercise(name).reference()
    for function in exercise(name).functions:
        assert failures(name, function, space[function]) == {}


@pytest.mark.parametrize("name", assignments())
def test_each_function_has_its_mistakes_and_alternatives(name):
    for function in exercise(name).functions:
        assert len(mutants_of(name, function)) >= FEWER.get((name, function), MANY), function
        assert len(rights_of(name, function)) >= 3, function
    known = set(exercise(name).functions)
    assert {s.function for s in (*mutants_of(name), *rights_of(name))} <= known


@pytest.mark.parametrize("name", assignments())
def test_sections_named_in_messages_exist(name):
    sections = headings(exercise(name).number)
    named = {m.section for m in mutants_of(name)} | {c.section for c in checks.checks_of(name).values()}
    assert named <= sections.keys(), f"no such heading in chapter {exercise(name).number}"


@pytest.mark.parametrize("name", assignments())
def test_texts_read_as_sentences(name):
    texts = [t for m in mutants_of(name) for t in (m.name, m.remedy)] + [t for c in checks.checks_of(name).values() for t in (c.claim, c.hint)]
    for text in texts:
        assert not text.endswith(("。", "，", "；")) and "见 " not in text, text
