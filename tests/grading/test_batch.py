"""A class's work from a folder to grades: what each submission deserves, once, whatever happens in between."""

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import psutil
import pytest
from nbgrader.api import Gradebook

from grading import batch, pool
from grading.gradebook import GradeStore, sqlite_url
from grading.sandbox import SandboxUnavailable

pytestmark = pytest.mark.sandbox
ROOT = Path(__file__).resolve().parents[2]

PARTLY = {"softmax": "def softmax(x, axis=-1):\n    e = np.exp(x)\n    return e / e.sum(axis=axis, keepdims=True)",
          "counter": "class Counter:\n    def add(self, token):\n        return 1", "why": "因为会溢出。"}


def hand_in_class(toy, place):
    """A small class: {student: the score that the work deserves}."""
    toy.hand_in(place, "good", toy.notebook({"why": "指数会溢出。"}))
    toy.hand_in(place, "partly", toy.notebook(PARTLY))
    toy.hand_in(place, "broken", '{"cells": [')
    toy.hand_in(place, "李雷", toy.released)
    toy.hand_in(place, "empty", "")
    toy.hand_in(place, "crash", toy.notebook({"softmax": "import os\nos._exit(1)"}))
    toy.hand_in(place, "gbk", json.dumps(json.loads(nbformat.writes(toy.notebook({"why": "汉字"}))), ensure_ascii=False)
                .encode("gb18030"))
    toy.hand_in(place, "renamed", toy.released_reference, "toy-attention (2).ipynb")
    (place / "none" / toy.name).mkdir(parents=True)
    toy.hand_in(place, "link", "").unlink()
    (place / "link" / toy.name / f"{toy.name}.ipynb").symlink_to(place / "good" / toy.name / f"{toy.name}.ipynb")
    return {"good": 10, "partly": 5, "broken": 0, "李雷": 0, "empty": 0, "crash": 3, "gbk": 10, "renamed": 10, "none": 0,
            "link": 0}


def command(toy, place, out, *more):
    return [sys.executable, "-m", "grading", "grade", toy.name, "--submissions", str(place), "--out", str(out),
            "--solutions", str(toy.solutions), *more]


def rows(out):
    with open(out / "grades.csv", encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def scores(out):
    return {row["student"]: float(row["score"]) for row in rows(out)}


@pytest.fixture(scope="module")
def graded(toy, tmp_path_factory):
    """The small class, graded by the command."""
    place, out = tmp_path_factory.mktemp("submissions"), tmp_path_factory.mktemp("out")
    deserved = hand_in_class(toy, place)
    run = subprocess.run(command(toy, place, out, "--workers", "2"), cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return {"place": place, "out": out, "deserved": deserved, "printed": run.stdout, "progress": run.stderr}


def test_everybody_gets_what_the_work_deserves(graded):
    assert scores(graded["out"]) == graded["deserved"]


def test_the_table_has_the_agreed_columns(graded, toy):
    table = rows(graded["out"])
    assert list(table[0]) == ["student", "assignment", "score", "max_score", "flags"]
    assert all(row["assignment"] == toy.name and row["max_score"] == "12" for row in table)
    flags = {row["student"]: set(filter(None, row["flags"].split(";"))) for row in table}
    assert flags["good"] == {"needs-manual-grade"} and flags["李雷"] == set()
    assert "unreadable" in flags["broken"] and "unreadable" in flags["empty"] and "no-notebook" in flags["none"]
    assert "not-a-plain-file" in flags["link"] and "renamed" in flags["renamed"] and "reencoded" in flags["gbk"]
    assert {"kernel-died", "suspicious"} <= flags["crash"]


def test_the_summary_names_everybody(graded):
    assert all(student in graded["printed"] for student in graded["deserved"])
    assert "10 份" in graded["printed"] and "100%" in graded["progress"]


def test_feedback_is_chinese_and_hides_what_is_hidden(graded, toy):
    pages = {p.stem: p.read_text("utf-8") for p in (graded["out"] / "feedback").glob("*.html")}
    assert set(pages) == set(graded["deserved"])
    secrets = [line.strip() for cell in toy.assignment.source.cells if "BEGIN HIDDEN" in cell.source
               for line in cell.source.split("### BEGIN HIDDEN TESTS")[1].splitlines() if len(line.strip()) > 12]
    for student, text in pages.items():
        assert "得分" in text and "<script" not in text and "http-equiv" in text
        assert not [s for s in secrets if s in text], student
        assert "src=\"http" not in text and "href=\"http" not in text
    assert "隐藏测试没有通过" in pages["partly"] and "5</strong> / 12" in pages["partly"]
    assert "待人工评分" in pages["partly"] and "没有作答" in pages["李雷"]
    assert "不是有效的 JSON" in pages["broken"]


def test_the_report_names_the_suspicious(graded):
    text = (graded["out"] / "report.html").read_text("utf-8")
    assert "可疑的提交" in text and "crash" in text and "强行结束进程" in text


def test_nbgraders_own_gradebook_holds_the_grades(graded, toy):
    with Gradebook(sqlite_url(graded["out"] / "gradebook.db")) as book:
        for student, score in graded["deserved"].items():
            submission = book.find_submission(toy.name, student)
            assert submission.score == score and submission.max_score == 12
        assert {s.student.id for s in book.assignment_submissions(toy.name)} == set(graded["deserved"])
        assert book.find_submission(toy.name, "good").needs_manual_grade
        assert not book.find_submission(toy.name, "broken").needs_manual_grade


def test_executed_notebooks_are_kept_where_the_formgrader_looks(graded, toy):
    place = graded["out"] / "autograded"
    notebook = nbformat.read(place / "partly" / toy.name / f"{toy.name}.ipynb", as_version=4)
    nbformat.validate(notebook)
    assert any(o.output_type == "error" for c in notebook.cells for o in c.get("outputs", []))
    assert not (place / "broken").exists()


def test_a_second_run_grades_nothing_and_changes_nothing(graded, toy):
    before = {p: p.stat().st_mtime_ns for p in graded["out"].rglob("*") if p.is_file() and p.suffix in (".html", ".csv", ".ipynb")}
    summary = batch.grade(toy.name, graded["place"], graded["out"], solutions=toy.solutions, progress=False)
    assert not summary.graded and len(summary.unchanged) == 10
    assert before == {p: p.stat().st_mtime_ns for p in before}


def test_only_what_changed_is_graded_again_and_scores_given_by_hand_stay(toy, tmp_path):
    place, out = tmp_path / "s", tmp_path / "out"
    for student in ("a", "b"):
        toy.hand_in(place, student, toy.notebook(PARTLY))
    grade = lambda solutions=toy.solutions: batch.grade(toy.name, place, out, solutions=solutions, workers=1, progress=False)
    assert sorted(grade().graded) == ["a", "b"]
    with Gradebook(sqlite_url(out / "gradebook.db")) as book:
        mark = book.find_grade("why", toy.name, toy.name, "b")
        mark.manual_score, mark.needs_manual_grade = 1.5, False
        book.find_comment("why", toy.name, toy.name, "b").manual_comment = "差一点：比值为什么不变？"
        book.db.commit()
    subprocess.run([sys.executable, "-m", "grading", "report", "--out", str(out), "--solutions", str(toy.solutions)],
                   cwd=ROOT, check=True, capture_output=True)
    assert scores(out) == {"a": 5, "b": 6.5}
    assert "差一点：比值为什么不变？" in (out / "feedback" / "b.html").read_text("utf-8")
    toy.hand_in(place, "a", toy.released_reference)
    assert grade().graded == ["a"] and scores(out) == {"a": 10, "b": 6.5}
    # the source changes: a test cell goes, another one comes
    solutions = tmp_path / "solutions"
    source = toy.assignment.source.copy()
    source.cells = [c for c in source.cells if c.metadata.get("nbgrader", {}).get("grade_id") != "apply-partial"]
    new = nbformat.v4.new_code_cell("assert twice(abs, -1) == 1", metadata={"nbgrader": {
        "grade": True, "grade_id": "apply-new", "locked": True, "points": 4, "schema_version": 3, "solution": False,
        "task": False, "cell_type": "code"}})
    source.cells.append(new)
    (solutions / toy.name).mkdir(parents=True)
    nbformat.write(source, solutions / toy.name / f"{toy.name}.ipynb")
    assert sorted(grade(solutions).graded) == ["a", "b"] and scores(out) == {"a": 13, "b": 9.5}


def test_a_submission_that_is_taken_back_stays_in_the_gradebook(toy, tmp_path):
    """Nothing is ever deleted from a gradebook by running a command."""
    place, out = tmp_path / "s", tmp_path / "out"
    path = toy.hand_in(place, "a", toy.released)
    batch.grade(toy.name, place, out, solutions=toy.solutions, workers=1, progress=False)
    path.unlink()
    path.parent.rmdir()
    assert not batch.grade(toy.name, place, out, solutions=toy.solutions, workers=1, progress=False).graded
    assert set(scores(out)) == {"a"}


def test_a_zip_of_moodle_is_graded_like_a_folder(toy, tmp_path):
    import zipfile

    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        for name, notebook in (("张三_1", toy.released_reference), ("李四_2", toy.released)):
            archive.writestr(f"{name}_assignsubmission_file_/{toy.name}.ipynb", nbformat.writes(notebook))
    batch.grade(toy.name, tmp_path / "export.zip", tmp_path / "out", solutions=toy.solutions, workers=1, progress=False)
    assert scores(tmp_path / "out") == {"张三_1": 10, "李四_2": 0}


SLOW = "import time\ntime.sleep(1.0)"


def slow_class(toy, place, count=6):
    for n in range(count):
        toy.hand_in(place, f"s{n}", toy.notebook(PARTLY if n % 2 else {}, extra=[("setup", SLOW)]))
    return {f"s{n}": 5.0 if n % 2 else 10.0 for n in range(count)}


def family(pid):
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def wait_for(condition, seconds=120):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := condition():
            return found
        time.sleep(0.05)
    raise AssertionError("it did not happen in time")


def records(out, toy):
    if not (out / "gradebook.db").exists():
        return {}
    with GradeStore(sqlite_url(out / "gradebook.db")) as store:
        return store.fingerprints(toy.name)


def graded_count(out):
    """Rows of the table of records, read as an outsider would."""
    import sqlite3

    try:
        with sqlite3.connect(f"file:{out / 'gradebook.db'}?mode=ro", uri=True) as db:
            return db.execute("select count(*) from grading_record").fetchone()[0]
    except sqlite3.Error:
        return 0


def once_each(out, toy, deserved):
    """Each submission stands once, in every table, with its score."""
    import sqlite3

    assert scores(out) == deserved
    with sqlite3.connect(out / "gradebook.db") as db:
        assert db.execute("select count(*) from submitted_assignment").fetchone()[0] == len(deserved)
        assert db.execute("select count(*) from submitted_notebook").fetchone()[0] == len(deserved)
        cells = sum(1 for c in toy.assignment.pristine.cells if c.metadata.get("nbgrader", {}).get("grade"))
        assert db.execute("select count(*) from grade").fetchone()[0] == len(deserved) * cells


def kill_when(toy, place, out, condition):
    """Start a run, kill it without warning when condition(run) holds, and see that none of its processes stays."""
    run = subprocess.Popen(command(toy, place, out, "--workers", "2", "--quiet"), cwd=ROOT, stdout=subprocess.DEVNULL)
    wait_for(lambda: condition(run) or run.poll() is not None)
    assert run.poll() is None
    processes = family(run.pid)
    run.send_signal(signal.SIGKILL)
    run.wait()
    wait_for(lambda: not [p for p in processes if p.is_running() and p.status() != psutil.STATUS_ZOMBIE], 30)


def test_killed_at_any_moment_it_goes_on_from_there(toy, tmp_path):
    place, out = tmp_path / "s", tmp_path / "out"
    deserved = slow_class(toy, place)
    kill_when(toy, place, out, lambda run: len(family(run.pid)) > 4)  # before the first result
    kill_when(toy, place, out, lambda run: graded_count(out) >= 2)
    done = set(records(out, toy))
    assert 2 <= len(done) < len(deserved)
    summary = batch.grade(toy.name, place, out, solutions=toy.solutions, workers=2, progress=False)
    assert set(summary.graded) == set(deserved) - done and set(summary.unchanged) == done
    once_each(out, toy, deserved)


def test_a_worker_killed_in_the_middle_loses_nothing(toy, tmp_path):
    place, out = tmp_path / "s", tmp_path / "out"
    deserved = slow_class(toy, place)
    run = subprocess.Popen(command(toy, place, out, "--workers", "2", "--quiet"), cwd=ROOT, stdout=subprocess.DEVNULL)
    wait_for(lambda: graded_count(out) >= 1)
    workers = {p.ppid() for p in family(run.pid) if p.name() == "bwrap" and p.parent() and p.parent().name() != "bwrap"}
    assert workers
    os.kill(workers.pop(), signal.SIGKILL)
    assert run.wait(300) == 0
    once_each(out, toy, deserved)


def test_two_runs_never_write_into_one_folder(toy, tmp_path):
    toy.hand_in(tmp_path / "s", "a", toy.released)
    with batch._only_one(tmp_path), pytest.raises(batch.Busy, match="另一个评分"):
        batch.grade(toy.name, tmp_path / "s", tmp_path, solutions=toy.solutions, progress=False)


def test_an_unknown_assignment_is_refused_in_words(toy, tmp_path):
    run = subprocess.run([sys.executable, "-m", "grading", "grade", "nothing", "--submissions", str(tmp_path), "--out",
                          str(tmp_path), "--solutions", str(toy.solutions)], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 2 and "没有作业 nothing" in run.stderr and toy.name in run.stderr and "Traceback" not in run.stderr


def test_whatever_a_student_is_called_there_is_a_row_and_a_page(toy, tmp_path):
    """Names that are formulas to a spreadsheet, commands to a terminal, too long for a file, or no text at all."""
    names = ["=cmd|' calc'!A0", "+1", "-2", "@SUM(1)", "＝1", "a,b\"c", "line\nbreak", "\x1b[31mred", "名" * 84, "..x", "\udcff", "~",
             "a;b", "<b>x", "$HOME", "%s{0}", " x ", "o'brien", "report", "CON", "é", "e\u0301"]
    for name in names:
        toy.hand_in(tmp_path / "s", name, toy.released)
    batch.grade(toy.name, tmp_path / "s", tmp_path / "out", solutions=toy.solutions, workers=2, progress=False)
    table = rows(tmp_path / "out")
    assert len(table) == len(names) - 2  # "..x" is hidden, and é is é however it is written
    for row in table:
        assert row["student"][0] not in "=+-@＝＋－＠" and row["student"].isprintable() and row["score"] == "0"
        assert (tmp_path / "out" / "feedback" / f"{row['student'].removeprefix(chr(39))}.html").exists()
    assert {"'+1", "'-2", "'＝1", "o'brien", "é"} <= {row["student"] for row in table}


def test_trouble_of_the_graders_own_is_one_submissions_and_is_tried_again(toy, tmp_path, monkeypatch, capsys):
    """An error that nobody foresaw costs the others nothing, is named, and is no grade that stays."""
    for name in ("a", "b"):
        toy.hand_in(tmp_path / "s", name, toy.notebook({"why": "因为。"}))

    def run(function, tasks, workers, seconds, given_up, prepare):
        for task in tasks:
            yield given_up(task, "error", RecursionError("x")) if task["student"] == "a" else function(task)

    monkeypatch.setattr(pool, "run", run)
    summary = batch.grade(toy.name, tmp_path / "s", tmp_path / "out", solutions=toy.solutions, progress=False)
    assert scores(tmp_path / "out") == {"a": 0, "b": 10} and "RecursionError" in capsys.readouterr().err
    assert {row["student"]: row["flags"] for row in summary.rows} == {"a": ["given-up"], "b": ["needs-manual-grade"]}
    monkeypatch.setattr(pool, "run", lambda function, tasks, *_: map(function, tasks))
    assert batch.grade(toy.name, tmp_path / "s", tmp_path / "out", solutions=toy.solutions, progress=False).graded == ["a"]
    assert scores(tmp_path / "out") == {"a": 10, "b": 10}
    for name in "cdef":
        toy.hand_in(tmp_path / "s", name, toy.released)
    # Nobody's in particular after some, or at once where nobody can be graded: that ends the run.
    for error in (OSError("no disk"), SandboxUnavailable("no disk")):
        fails = lambda function, tasks, n, s, given_up, *_, e=error: (given_up(task, "error", e) for task in tasks)
        monkeypatch.setattr(pool, "run", fails)
        with pytest.raises(type(error), match="no disk"):
            batch.grade(toy.name, tmp_path / "s", tmp_path / "out", solutions=toy.solutions, progress=False)


def test_a_grading_process_keeps_the_machines_memory():
    """What a student returns may grow on this side; then the process fails, not the machine."""
    code = ("from grading import worker\nimport numpy as np\nworker._bound_memory()\nsmall = np.zeros((1 << 24, 1), np.uint8)\n"
            "try:\n    small + np.zeros((1, 1 << 10), np.uint8)\nexcept MemoryError:\n    print('refused')")
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.strip() == "refused", done.stderr


def test_the_handbook_explains_every_flag():
    handbook = (ROOT / "chapters" / "appendix" / "teaching.md").read_text("utf-8")
    sources = "".join(p.read_text("utf-8") for p in (ROOT / "grading").glob("*.py"))
    patterns = (r'notes\["([a-z-]+)"\]', r'note(?:s)? ?= ?\{"([a-z-]+)"', r'notes\.add\("([a-z-]+)"\)', r'_lose\([^\n]+, "([a-z-]+)"\)',
                r'codes\.add\("([a-z-]+)"\)', r'Refused\("([a-z-]+)"', r'ungraded\(task, \{"([a-z-]+)"')
    codes = {code for pattern in patterns for code in re.findall(pattern, sources)}
    assert len(codes) > 20 and not [code for code in sorted(codes) if f"`{code}`" not in handbook]
