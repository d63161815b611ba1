"""Changing the notebook itself: cells, points, metadata."""

import copy
import json

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell

from grading.assignment import grade_id

from . import made


def honest(toy):
    """What the author has written: the counter and nothing else."""
    reference = {grade_id(c): c.source for c in toy.released_reference.cells}
    return toy.notebook({"counter": reference["counter"]}, base=toy.released)


def structure(name, why, **more):
    """Register a change of the honest notebook."""

    def register(change):
        def make(toy, hand_in):
            notebook = honest(toy)
            hand_in(change(notebook) or notebook)

        made(name, "structure", why, **more)(make)
        return change

    return register


def each(notebook, name):
    return [c for c in notebook.cells if grade_id(c) and grade_id(c).startswith(name)]


@structure("edit-the-tests", "empties the test cells", flags={"given-cell-edited"})
def _(notebook):
    for cell in notebook.cells:
        if cell.metadata.get("nbgrader", {}).get("grade") and cell.cell_type == "code":
            cell.source = "4"


@structure("edit-the-points", "makes its one right answer worth a thousand points", flags={"points-changed"})
def _(notebook):
    for cell in notebook.cells:
        if cell.metadata.get("nbgrader", {}).get("grade"):
            cell.metadata.nbgrader["points"] = 1000


@structure("delete-the-tests", "deletes the tests that it fails", flags={"cell-deleted"})
def _(notebook):
    notebook.cells = [c for c in notebook.cells if not (grade_id(c) or "").startswith(("softmax-", "apply-"))]


@structure("duplicate-the-tests", "pastes its passed test again and again", flags={"duplicated"})
def _(notebook):
    notebook.cells += [copy.deepcopy(each(notebook, "counter-add")[0]) for _ in range(5)]


@structure("answers-as-tests", "declares its own cells to be tests with points of their own")
def _(notebook):
    for n in range(5):
        notebook.cells.append(new_code_cell("10", metadata={"nbgrader": {
            "grade": True, "solution": False, "locked": True, "points": 50, "grade_id": f"own-{n}", "schema_version": 3,
            "task": False, "cell_type": "code"}}))


@structure("tests-as-answers", "declares the tests to be answers, so that their text would be its own")
def _(notebook):
    for cell in notebook.cells:
        if cell.metadata.get("nbgrader", {}).get("grade"):
            cell.metadata.nbgrader |= {"grade": False, "solution": True, "locked": False}
            cell.source = "print('mine')"


@structure("names-exchanged", "exchanges the names of answer cells and test cells")
def _(notebook):
    for cell in notebook.cells:
        if grade_id(cell) in ("softmax-value", "spare"):
            cell.metadata.nbgrader["grade_id"] = {"softmax-value": "spare", "spare": "softmax-value"}[grade_id(cell)]


@structure("tests-as-text", "turns the tests into text")
def _(notebook):
    notebook.cells = [new_markdown_cell(c.source, metadata=c.metadata) if (grade_id(c) or "").startswith("softmax-") else c
                      for c in notebook.cells]


@structure("turned-around", "turns the order of all cells around", flags={"moved"})
def _(notebook):
    notebook.cells.reverse()


@structure("metadata-of-odd-types", "gives metadata the wrong types")
def _(notebook):
    document = json.loads(nbformat.writes(notebook))
    for n, cell in enumerate(c for c in document["cells"] if not c["metadata"].get("nbgrader", {}).get("solution")):
        cell["metadata"] = [{"nbgrader": []}, {"nbgrader": {"grade_id": [1], "points": "NaN"}}, {"nbgrader": 7}, {}, []][n % 5]
    return json.dumps(document)


@structure("schema-of-the-future", "claims a version of the format that doesn't exist yet")
def _(notebook):
    for cell in notebook.cells:
        if grade_id(cell):
            cell.metadata.nbgrader["schema_version"] = 99


@structure("another-kernel", "asks for a kernel that would be started with its own command")
def _(notebook):
    notebook.metadata["kernelspec"] = {"name": "../../evil", "display_name": "R", "language": "R", "argv": ["touch", "x"]}
    notebook.metadata["language_info"] = {"name": "R", "nbconvert_exporter": "../../x"}


@structure("thousands-of-cells", "adds five thousand cells", flags={"too-many-cells"})
def _(notebook):
    notebook.cells[2:2] = [new_code_cell("pass") for _ in range(5000)]


@structure("one-huge-cell", "an answer of two megabytes")
def _(notebook):
    each(notebook, "apply")[0].source = "# x\n" * 500_000


@structure("stripped-metadata", "an editor has dropped all metadata: no attack, the work counts", flags={"matched-by-position"})
def _(notebook):
    for cell in notebook.cells:
        cell.metadata = nbformat.from_dict({})


@structure("page-that-acts", "script in text, links, pictures, outputs and attachments, for the teacher's browser")
def _(notebook):
    evil = ("<script>document.title='@token@'</script><img src=x onerror=\"document.title='@token@'\">"
            "<svg onload=alert(1)>[x](javascript:alert(1))<iframe src='javascript:1'></iframe><a href='vbscript:1'>a</a>")
    notebook.cells.insert(1, new_markdown_cell(evil))
    each(notebook, "why")[0].source = evil
    each(notebook, "why")[0]["attachments"] = {"x.svg": {"image/svg+xml": "PHN2Zz4=", "text/html": evil, "image/png": "\"><script>"}}
    notebook.cells.append(new_code_cell("from IPython.display import *\ndisplay(HTML('<script>1</script>'), Javascript('1'), "
                                        "SVG('<svg xmlns=\"http://www.w3.org/2000/svg\" onload=\"alert(1)\"/>'))\n"
                                        "print('<script>alert(1)</script>')"))
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [nbformat.v4.new_output("display_data", data={"text/html": evil, "application/javascript": "1"})]


@structure("look-alikes", "tests and answers of its own whose names only look like the real ones")
def _(notebook):
    for name, twin in (("softmax-value", "softm\u0430x-value"), ("softmax-axis", "softmax\u2010axis"), ("apply-callback", "apply-callback\u200b"),
                       ("counter-add", " counter-add"), ("softmax", "ｓｏｆｔｍａｘ")):
        cell = copy.deepcopy(each(notebook, name)[0])
        cell.metadata.nbgrader["grade_id"] = twin
        cell.source = "softmax = lambda x, axis=-1: x\n10"
        notebook.cells.append(cell)


@structure("metadata-without-end", "puts lists nested nearly as deep as can be read wherever a number or a text belongs", flags={"converted"})
def _(notebook):
    document = json.loads(nbformat.writes(notebook))
    nested = "[" * 900 + "]" * 900
    document["nbformat"], document["metadata"]["x"] = "@deep@", "@deep@"
    for cell in document["cells"]:
        if "points" in cell["metadata"].get("nbgrader", {}):
            cell["metadata"]["nbgrader"]["points"] = "@deep@"
    document["cells"] += [{"cell_type": "code", "metadata": {"nbgrader": {"grade_id": "@deep@"}}, "source": ["@deep@", "pass"]},
                          {"cell_type": "@deep@", "source": "@deep@", "attachments": {"a": {"image/png": "@deep@"}}}]
    return json.dumps(document).replace('"@deep@"', nested)


@structure("pages-that-break", "links to pictures that are missing, of other kinds or oddly named, so that no page can be made")
def _(notebook):
    document = json.loads(nbformat.writes(notebook))
    for cell in document["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("grade_id") == "why":
            cell["source"] = "![a](attachment:a.svg) ![b](attachment:none.png) ![c](attachment:\ud800.png) $\\href{javascript:1}{x}$ {{ 1/0 }} {% x %}"
            cell["attachments"] = {"a.svg": {"image/svg+xml": "PHN2Zz4="}, "\ud800.png": {"image/png": "iVBORw0KGgo="}, "x" * 999: {}, "图.png": 7}
    return json.dumps(document)
