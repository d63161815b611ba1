"""`make check` and `make progress` as a student meets them, through the same execution as grading."""

import inspect
import sys

import nbformat
import pytest

from grading import check_home, progress
from grading.catalog import assignments, exercise
from grading.check_home import check, report, store, stored
from grading.mutants import mutants_of
from grading.release import generate

NAME = "ex04-attention"
NO_SCALE = """def scaled_dot_product_attention(q, k, v, mask=None, scale=None):
    scores = q @ k.swapaxes(-1, -2) * (1 if scale is None else scale)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    weights = softmax(scores)
    return weights @ v, weights"""


@pytest.fixture(scope="module")
def releases(tmp_path_factory):
    folder = tmp_path_factory.mktemp("releases")
    generate(folder)
    return folder


@pytest.fixture
def released(releases):
    return releases / NAME / f"{NAME}.ipynb"


def answer(released, path, answers):
    """A student's notebook: {cell id: text} over the released one."""
    notebook = nbformat.read(released, 4)
    for cell in notebook.cells:
        cell.source = answers.get(cell.id, cell.source)
    nbformat.write(notebook, path)
    return path


def reference(name=NAME, **changes):
    texts = {c.id: c.source for c in exercise(name).cells("solution", "manual")}
    return texts | changes


def test_good_work(released, tmp_path):
    path = answer(released, tmp_path / "mine.ipynb", reference())
    before = path.read_bytes()
    result = check(NAME, path, sandbox=False)
    assert path.read_bytes() == before
    assert (result.score, result.automatic, result.points) == (26, 26, 30)
    assert result.complete
    text = report(result)
    assert check_home.NO_SANDBOX in text
    assert "✗" not in text and "全部性质都成立" in text


def test_a_mistake_is_named_and_costs_only_its_part(released, tmp_path):
    path = answer(released, tmp_path / "mine.ipynb", reference(attention=NO_SCALE))
    result = check(NAME, path, sandbox=False)
    assert result.score == 26 - 4
    assert "结果与“没有缩放”完全一致：得分要乘 1/√d_head" in report(result)
    assert "BEGIN HIDDEN" not in report(result) and "verify" not in report(result)


@pytest.mark.sandbox
def test_in_the_sandbox_it_is_the_same(released, tmp_path):
    path = answer(released, tmp_path / "mine.ipynb", reference(attention=NO_SCALE))
    result = check(NAME, path)
    assert result.sandboxed and result.score == 22
    assert check_home.NO_SANDBOX not in report(result)


def test_untouched_notebook(released):
    result = check(NAME, released, sandbox=False)
    assert result.score == 0 and not result.written
    text = report(result)
    assert text.count("softmax 还没有写") == 1
    assert "还没有开始" in text


def test_what_would_fail_elsewhere_is_said(released, tmp_path):
    path = answer(released, tmp_path / "mine.ipynb", {"softmax": "from lib.functional import softmax", "attention": "undefined_name"})
    remarks = "\n".join(check(NAME, path, sandbox=False).remarks)
    assert "from lib：评分的环境里没有 lib" in remarks
    assert "单元格 attention 运行出错：NameError" in remarks


def test_an_error_counts_as_what_it_is_by_inheritance(released, tmp_path):
    """np.linalg.LinAlgError is a ValueError: leaving the refusal to lstsq is fine."""
    mine = "def consistent_with_linear_map(X, Y, tol=1e-9):\n    W = np.linalg.lstsq(X, Y, rcond=None)[0]\n    return bool(abs(X @ W - Y).max() <= tol)"
    path = answer(released, tmp_path / "mine.ipynb", reference(consistent_with_linear_map=mine))
    assert check(NAME, path, sandbox=False).score == 26


def test_line_of_a_syntax_error_is_the_line_of_the_cell(released, tmp_path):
    path = answer(released, tmp_path / "mine.ipynb", {"softmax": "x = 1\ndef softmax(x)\n    return x"})
    assert "单元格 softmax 运行出错：SyntaxError：expected ':'（第 2 行）" in check(NAME, path, sandbox=False).remarks


def test_what_to_mend_first_is_said(released, tmp_path):
    """A function that calls another one of the student's that is wrong."""
    said = "> scaled_dot_product_attention 用到了你的 softmax，那里还没有全对"
    wrong = reference(softmax="def softmax(x, axis=-1):\n    return x")
    assert said in report(check(NAME, answer(released, tmp_path / "a.ipynb", wrong), sandbox=False))
    right = reference(attention=NO_SCALE)
    assert said not in report(check(NAME, answer(released, tmp_path / "b.ipynb", right), sandbox=False))


def test_stored_result_and_progress(released, tmp_path, monkeypatch):
    """Progress checks anew exactly when an answer has changed."""
    monkeypatch.setattr(check_home, "REPORTS", tmp_path / "reports")
    monkeypatch.setattr("grading.catalog.EXERCISES", tmp_path)
    ran = []
    monkeypatch.setattr(progress, "check", lambda name, path: ran.append(name) or check(name, path, sandbox=False))
    path = tmp_path / NAME / f"{NAME}.ipynb"
    path.parent.mkdir()
    answer(released, path, {})
    assert progress.current(NAME) is None
    assert "未开始" in progress.table({NAME: None})[0]
    assert f"exercises/{NAME}" in progress.advice({NAME: None})

    answer(released, path, reference(attention=NO_SCALE))
    result = progress.current(NAME)
    assert result.score == 22 and ran == [NAME]
    assert progress.current(NAME) == result and ran == [NAME]
    assert "进行中" in progress.table({NAME: result})[0] and "还差 4 分" in progress.advice({NAME: result})

    answer(released, path, reference())
    result = progress.current(NAME)
    assert ran == [NAME, NAME] and "完成" in progress.table({NAME: result})[0]
    assert progress.advice({NAME: result}) == "全部完成。"


def test_store_keeps_what_report_shows(released, tmp_path, monkeypatch):
    monkeypatch.setattr(check_home, "REPORTS", tmp_path)
    result = check(NAME, released, sandbox=False)
    store(result)
    assert stored(NAME) == result
    assert (tmp_path / f"{NAME}.md").read_text("utf-8") == report(result)
    (tmp_path / f"{NAME}.json").write_text("{}", encoding="utf-8")
    assert stored(NAME) is None


# ---- every assignment through the same execution ----------------------------------------------------------------------


def with_answers(releases, name, path, **changes):
    return answer(releases / name / f"{name}.ipynb", path, reference(name, **changes))


@pytest.mark.parametrize("name", assignments())
def test_reference_through_execution(releases, tmp_path, name):
    """All that the checks ask crosses the border between the two sides: classes, functions as arguments, nested data."""
    result = check(name, with_answers(releases, name, tmp_path / "mine.ipynb"), sandbox=False)
    assert [p["message"] for p in result.parts if p["message"]] == []
    assert result.complete and result.remarks == [check_home.NO_SANDBOX]


@pytest.mark.parametrize("name", assignments())
def test_mistake_through_execution(releases, tmp_path, name):
    """A known mistake in the last function is named just as it is within one process."""
    function = exercise(name).functions[-1]
    mutant = mutants_of(name, function)[0]
    cell = next(c.id for c in exercise(name).cells("solution") if f"def {function}(" in c.source or f"class {function}" in c.source)
    module = inspect.getsource(sys.modules[mutant.body.__module__])
    module = module.replace("from grading.mutants import mutant, right", "mutant = right = lambda *_, **__: lambda body: body")
    answers = {cell: f"mistakes = {{}}\nexec({module!r}, mistakes)\n{function} = mistakes[{mutant.body.__name__!r}]"}
    result = check(name, with_answers(releases, name, tmp_path / "mine.ipynb", **answers), sandbox=False)
    assert mutant.message in report(result)
    assert all(p["score"] == p["points"] for p in result.parts if p["function"] != function)
