"""Nothing but answers survives of a submitted notebook."""

import copy
import json
import time

import nbformat
import pytest

from grading.assignment import grade_id, is_setup, is_test
from grading.rebuild import Unreadable, read_cells, rebuild, source_as_submission


def rebuilt(toy, notebook):
    return rebuild(source_as_submission(notebook), toy.assignment)


def sources(notebook):
    return {grade_id(c): c.source for c in notebook.cells if grade_id(c)}


def given(toy, result):
    """Test and given cells stand in their order and to the letter, with their points."""
    want = [c for c in toy.assignment.pristine.cells if is_test(c) or is_setup(c)]
    have = [c for c in result.notebook.cells if is_test(c) or is_setup(c)]
    assert [(c.source, dict(c.metadata.nbgrader)) for c in have] == [(c.source, dict(c.metadata.nbgrader)) for c in want]
    return result


def test_an_honest_notebook_gives_no_notes(toy):
    result = given(toy, rebuilt(toy, toy.released_reference))
    assert not result.notes
    assert "np.exp(x - x.max" in sources(result.notebook)["softmax"]
    assert set(result.answers) == {"softmax", "counter", "apply", "why"} and not result.unanswered


def test_the_empty_release_is_unanswered(toy):
    result = given(toy, rebuilt(toy, toy.released))
    assert not result.notes and sorted(result.unanswered) == ["apply", "counter", "softmax", "why"]


def test_edited_tests_and_points_are_restored(toy):
    notebook = toy.notebook({"softmax-value": "pass", "setup": "QUERY = None"})
    for cell in notebook.cells:
        if grade_id(cell) == "softmax-axis":
            cell.metadata.nbgrader["points"] = 100
    notes = given(toy, rebuilt(toy, notebook)).notes
    assert "softmax-value" in notes["given-cell-edited"] and "setup" in notes["given-cell-edited"]
    assert "softmax-axis" in notes["points-changed"]


def test_deleted_cells_come_back(toy):
    result = given(toy, rebuilt(toy, toy.notebook(drop=("softmax-value", "counter-add", "apply"))))
    assert set(result.notes) == {"cell-deleted"} and result.unanswered == ["apply"]


def test_the_last_of_duplicated_cells_counts(toy):
    notebook = toy.released_reference
    twin = copy.deepcopy(next(c for c in notebook.cells if grade_id(c) == "softmax"))
    twin.source = "def softmax(x, axis=-1):\n    return 'second'"
    notebook.cells.append(twin)
    result = given(toy, rebuilt(toy, notebook))
    assert "second" in sources(result.notebook)["softmax"] and "duplicated" in result.notes


def test_moved_cells_return_to_their_places(toy):
    notebook = toy.released_reference
    notebook.cells.reverse()
    assert "moved" in given(toy, rebuilt(toy, notebook)).notes


def test_retyped_cells_keep_their_type(toy):
    notebook = toy.released_reference
    place = next(i for i, c in enumerate(notebook.cells) if grade_id(c) == "softmax-value")
    notebook.cells[place] = nbformat.v4.new_markdown_cell("nothing", metadata=notebook.cells[place].metadata)
    answer = next(i for i, c in enumerate(notebook.cells) if grade_id(c) == "softmax")
    notebook.cells[answer] = nbformat.v4.new_markdown_cell(notebook.cells[answer].source,
                                                           metadata=notebook.cells[answer].metadata)
    result = given(toy, rebuilt(toy, notebook))
    assert "retyped" in result.notes
    assert next(c for c in result.notebook.cells if grade_id(c) == "softmax").cell_type == "code"


def test_a_test_cell_can_not_be_turned_into_an_answer(toy):
    notebook = toy.released_reference
    for cell in notebook.cells:
        if grade_id(cell) == "softmax-value":
            cell.metadata.nbgrader |= {"solution": True, "grade": False, "locked": False}
            cell.source = "evil = 1"
    assert "evil" not in json.dumps(given(toy, rebuilt(toy, notebook)).notebook)


def test_added_cells_stay_where_they_stood(toy):
    notebook = toy.notebook(extra=[("setup", "def helper(x):\n    return x"), ("softmax-axis", "later = 1")])
    result = given(toy, rebuilt(toy, notebook))
    order = [grade_id(c) or c.source for c in result.notebook.cells if c.cell_type == "code"]
    assert order.index("setup") < order.index("def helper(x):\n    return x") < order.index("softmax")
    assert order.index("softmax-axis") < order.index("later = 1") < order.index("counter")


def test_given_cells_without_a_name_are_not_repeated(toy):
    result = rebuilt(toy, toy.released_reference)
    assert len(result.notebook.cells) == len(toy.assignment.pristine.cells)


def stripped(notebook):
    """What an editor leaves that keeps no metadata and gives cells new ids."""
    for number, cell in enumerate(notebook.cells):
        cell.metadata = nbformat.from_dict({"id": f"x{number}"})
        cell.pop("id", None)
    return notebook


def test_stripped_metadata_is_matched_by_position_and_text(toy):
    result = given(toy, rebuilt(toy, stripped(toy.notebook({"why": "因为指数会溢出。"}))))
    assert "matched-by-position" in result.notes and not result.unanswered
    want = sources(toy.notebook({"why": "因为指数会溢出。"}))
    have = sources(result.notebook)
    assert all(have[name] == want[name] for name in ("softmax", "counter", "apply", "why"))
    assert "given-cell-edited" not in result.notes and "cell-deleted" not in result.notes


def test_stripped_and_extended_and_shortened(toy):
    notebook = toy.notebook({"why": "我不知道"}, extra=[("setup", "import math"), ("counter", "c = Counter()\nc")],
                            drop=("softmax-axis", "apply"))
    result = given(toy, rebuilt(toy, stripped(notebook)))
    assert result.answers["why"] == "我不知道" and result.answers["apply"] is None
    assert "class Counter" in result.answers["counter"]
    assert [c.source for c in result.notebook.cells if not grade_id(c) and "Counter()" in c.source] == ["c = Counter()\nc"]


def test_one_lost_name_is_found_by_what_the_cell_defines(toy):
    notebook = toy.released_reference
    for cell in notebook.cells:
        if grade_id(cell) == "counter":
            cell.metadata = nbformat.from_dict({})
    result = given(toy, rebuilt(toy, notebook))
    assert "class Counter" in result.answers["counter"] and "counter" in result.notes["matched-by-position"]


def test_a_thousand_cells_take_no_time(toy):
    notebook = stripped(toy.released_reference)
    notebook.cells[3:3] = [nbformat.v4.new_code_cell(f"x{n} = {n}\ny = 2\nz = 3") for n in range(5000)]
    cells = source_as_submission(notebook)
    began = time.process_time()
    result = given(toy, rebuild(cells, toy.assignment))
    assert time.process_time() - began < 2 and "too-many-cells" in result.notes


# -- reading -----------------------------------------------------------------------------------------------------------


def text_of(notebook):
    return nbformat.writes(notebook, version=nbformat.NO_CONVERT)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "gb18030"])
def test_encodings(toy, encoding):
    notebook = toy.notebook({"why": "因为指数会溢出"})
    data = json.dumps(json.loads(text_of(notebook)), ensure_ascii=False).encode(encoding)
    cells, notes = read_cells(data)
    assert any(c.source == "因为指数会溢出" for c in cells) and ("reencoded" in notes) == (encoding != "utf-8")


def test_line_ends_and_surrogates(toy):
    notebook = toy.notebook({"apply": "def twice(f, x):\r\n    return f(f(x))\r\n"})
    cells, _ = read_cells(json.dumps(json.loads(text_of(notebook))).replace("@@", "\\ud800").encode())
    assert all("\r" not in c.source for c in cells)
    cells, _ = read_cells(b'{"nbformat": 4, "cells": [{"cell_type": "code", "source": "\\ud800"}]}')
    cells[0].source.encode()


def test_old_formats(toy):
    old = {"nbformat": 3, "nbformat_minor": 0, "metadata": {}, "worksheets": [{"cells": [
        {"cell_type": "code", "language": "python", "input": ["a = 1\n", "b = 2"], "outputs": [], "metadata": {}},
        {"cell_type": "heading", "level": 1, "source": "T", "metadata": {}}]}]}
    cells, notes = read_cells(json.dumps(old).encode())
    assert [c.source for c in cells] == ["a = 1\nb = 2", "T"] and "converted" in notes


def test_a_newer_format_is_read_all_the_same(toy):
    document = json.loads(text_of(toy.released_reference))
    document |= {"nbformat": 5, "nbformat_minor": 12, "unknown": {}}
    cells, notes = read_cells(json.dumps(document).encode())
    assert "converted" in notes and not rebuild(cells, toy.assignment).unanswered


@pytest.mark.parametrize("data", [b"", b"  \n", b"{", b"[]", b"null", b"{}", b'{"cells": 3}', b'"text"', b"\0" * 100,
                                  b"\xff\xfe\xff\xff", b"[" * 100_000, b'{"cells": {"a": 1}}', b"PK\x03\x04 zip"])
def test_what_is_no_notebook_is_named_as_such(data):
    with pytest.raises(Unreadable, match="."):
        read_cells(data)


@pytest.mark.parametrize("cell", [
    3, None, {}, {"cell_type": 5}, {"cell_type": "code", "source": 7}, {"cell_type": "code", "source": {"a": 1}},
    {"cell_type": "code", "metadata": 3}, {"cell_type": "code", "metadata": {"nbgrader": []}},
    {"cell_type": "code", "metadata": {"nbgrader": {"grade_id": {}}}, "source": [1, None]},
    {"cell_type": "markdown", "attachments": [1], "source": "x"},
    {"cell_type": "markdown", "attachments": {"a": {"text/html": "<b>", "image/png": 3}}, "source": "x"}])
def test_odd_cells_do_no_harm(toy, cell):
    document = json.loads(text_of(toy.released_reference))
    document["cells"].insert(2, cell)
    cells, _ = read_cells(json.dumps(document).encode())
    assert not given(toy, rebuild(cells, toy.assignment)).unanswered
