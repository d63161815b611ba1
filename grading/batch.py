"""一次评完一个文件夹或压缩包：并行，能从任何一刻的中断处继续，只重评变了的。

The main process alone reads submissions and writes results; workers turn bytes into results (see `grading.worker`). So no
worker needs the gradebook, and losing one loses nothing.
"""

import csv
import fcntl
import functools
import hashlib
import io
import json
import os
import re
import sys
import time
import traceback
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from urllib.parse import unquote

import nbformat
from tqdm import tqdm

from grading import feedback, intake, pool, report, worker
from grading.assignment import SOLUTIONS, Assignment
from grading.checks import course_seed
from grading.gradebook import COURSE, GradeStore, sqlite_url
from grading.kernels import WAITING
from grading.sandbox import Limits, SandboxUnavailable, require_sandbox

HOPELESS = 3  # submissions in which the grader itself fails, and no other yet: then the trouble isn't theirs
OVERHEAD = 120.0  # seconds a worker may take beyond the student's code before it is taken for stuck
# A tag, an address, an entity, a command of MathJax that makes links, styles or more commands.
BEGINS = re.compile(r"<(?=[A-Za-z/!?])|\b[A-Za-z]+:(?=//)|&(?=#|\w+;)|\\(?=(?:href|url|require|style|class|cssId|data|html\w*|unicode|mmlToken|"
                    r"texttip|mathtip|action|toggle|let|n?e?w?def|newcommand|newenvironment)(?![A-Za-z]))")
COLUMNS = ["student", "assignment", "score", "max_score", "flags"]


class Busy(RuntimeError):
    """Somebody is grading into this folder already."""


@dataclass
class Summary:
    """What a run did."""

    graded: list = field(default_factory=list)
    unchanged: list = field(default_factory=list)
    rows: list = field(default_factory=list)
    seconds: float = 0.0


def grade(name, submissions, out, *, solutions=SOLUTIONS, workers=None, scheduler=None, db_url=None, limits=None,
          again=False, progress=True, course_id=COURSE, chosen=None):
    """Grade all submissions of one assignment. See `python -m grading grade --help`.

    `chosen(student)` narrows the run to some students.
    """
    began = time.monotonic()
    require_sandbox()
    assignment, limits, out = Assignment.load(name, solutions), limits or Limits(), Path(out)
    out.mkdir(parents=True, exist_ok=True)
    with _only_one(out), GradeStore(db_url or sqlite_url(out / "gradebook.db"), course_id) as store:
        store.register(assignment)
        found = intake.collect(submissions, name)
        base = _base_fingerprint(assignment, limits)
        known = {} if again else store.fingerprints(name)
        todo, summary = {}, Summary()
        for submission in found:
            if chosen is not None and not chosen(submission.student):
                continue
            fingerprint = hashlib.sha256(f"{base}{submission.digest}".encode()).hexdigest()
            if known.get(submission.student) == fingerprint:
                summary.unchanged.append(submission.student)
            else:
                todo[submission.student] = submission, fingerprint
        pristine = nbformat.writes(assignment.pristine, version=nbformat.NO_CONVERT)
        tasks = (_task(assignment, pristine, submission, limits) for submission, _ in todo.values())
        troubles = []
        results = _engine(scheduler, workers, len(todo), limits, troubles)(tasks)
        for result in tqdm(results, total=len(todo), desc=name, unit="份", disable=not progress or not todo, file=sys.stderr):
            submission, fingerprint = todo[result["student"]]
            _keep_notebook(out, assignment, result)
            final = "given-up" not in result["notes"]  # else the next run tries again
            store.save(assignment, result, fingerprint if final else "", submission.submitted)
            summary.graded.append(result["student"])
            if len(troubles) == len(summary.graded) >= HOPELESS:
                raise troubles[-1]
        summary.rows = write_reports(store, out, {name: assignment}, solutions)
    summary.seconds = time.monotonic() - began
    return summary


@contextmanager
def _only_one(out):
    """A second run into the same folder would grade the same work again."""
    with open(out / ".lock", "a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Busy(f"另一个评分正在写 {out}，等它结束再来") from None
        yield


def _base_fingerprint(assignment, limits):
    """What a grade depends on besides the submission: the source, the private seed, the limits, the code."""
    text = f"{assignment.name}{assignment.fingerprint}{course_seed()}{limits}{worker.code_digest(assignment.name)}"
    return hashlib.sha256(text.encode()).hexdigest()


def _task(assignment, pristine, submission, limits):
    return {"assignment": assignment.name, "pristine": pristine, "student": submission.student, "files": submission.files,
            "notebook": submission.notebook, "notes": submission.notes, "limits": asdict(limits), "seed": course_seed()}


def _engine(scheduler, workers, count, limits, troubles):
    """The function that turns tasks into results: a Dask cluster, or processes of this machine. Errors go into `troubles`."""
    given_up = functools.partial(_given_up, troubles)
    if scheduler:
        from grading.cluster import run

        return lambda tasks: run(scheduler, tasks, workers, given_up) if count else ()
    number = max(1, min(workers or os.cpu_count() or 1, count))
    seconds = WAITING * limits.total_seconds + OVERHEAD
    return lambda tasks: pool.run(worker.grade, tasks, number, seconds, given_up, ["grading.worker"]) if count else ()


def _given_up(troubles, task, reason, error):
    """The result of a submission that could not be graded; it never ends the run, unless no other could be graded either."""
    if isinstance(error, (SandboxUnavailable, worker.DifferentCode)):
        raise error
    words = {"died": "评分进程在这份提交上多次中断", "too-long": "评分超过总时限", "error": f"评分程序在这份提交上出错（{type(error).__name__}）"}
    result = worker.ungraded(task, {"given-up": words[reason]})
    if reason == "error":
        troubles.append(error)
        print("".join(traceback.format_exception(error)), file=sys.stderr)
    return result


def _keep_notebook(out, assignment, result):
    """The executed notebook, for the teacher and for nbgrader's formgrader."""
    path = out / "autograded" / result["student"] / assignment.name / f"{assignment.name}.ipynb"
    if result["notebook"]:
        notebook = harmless(nbformat.reads(result["notebook"], as_version=4), assignment)
        write_if_changed(path, nbformat.writes(notebook, version=nbformat.NO_CONVERT))
    else:
        path.unlink(missing_ok=True)


def harmless(notebook, assignment):
    """Texts of the student's can't act in the browser in which a teacher reads them; outputs are data already.

    No tag begins, no link leads anywhere, no formula carries one, and nothing of that is hidden in entities; emphasis, code,
    formulas and attached pictures stay. What would begin such a thing is followed by a word joiner, which nobody sees: it
    needs no escaping and so reads the same in text, code and formulas.
    """
    given = {cell.source for cell in assignment.pristine.cells if cell.cell_type == "markdown"}
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and cell.source not in given:
            text = BEGINS.sub("\\g<0>\u2060", re.sub(r"\](?=:)", "] ", cell.source))
            cell.source, cell.attachments = _pictures(text, cell.get("attachments", {}))
    return notebook


def _pictures(text, attachments):
    """Links to attached pictures stay, under names that need no escaping; no page can be made of a link to one that is missing."""
    names = {name: f"picture-{number}" for number, name in enumerate(attachments, 1)}

    def link(match):
        known = names.get(unquote(match[1] or ""))
        return f"](attachment:{known}" if known else f"] ({match[0][2:]}"

    text = re.sub(r"\]\((?:attachment:([^)\s]+)(?=[)\s]))?", link, text)
    return text, nbformat.from_dict({names[name]: bundle for name, bundle in attachments.items()})


def write_if_changed(path, text):
    """Replace a file as a whole, so that a kill never leaves half of one."""
    if path.exists() and path.read_text("utf-8") == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    scratch.write_text(text, encoding="utf-8")
    os.replace(scratch, path)


# -- what comes out --------------------------------------------------------------------------------------------------


def write_reports(store, out, assignments, solutions=SOLUTIONS):
    """grades.csv, a page for each student, and the teacher's report, from what the gradebook holds now."""
    rows = store.results()
    for row in rows:
        row["flags"] = flags(row)
    for name in {row["assignment"] for row in rows} - set(assignments):
        assignments[name] = Assignment.load(name, solutions)
    write_if_changed(out / "grades.csv", f"\ufeff{as_csv(rows)}")  # by the mark Excel knows that it is UTF-8
    pages = {}
    for row in rows:
        pages.setdefault(row["student"], []).append(sheet_of(assignments[row["assignment"]], row))
    for student, sheets in pages.items():
        write_if_changed(out / "feedback" / f"{student}.html", feedback.page(student, sheets))
    write_if_changed(out / "report.html", report.page(rows))
    return rows


def flags(row):
    """Short codes of all that a teacher may want to know."""
    codes = set(row["result"]["notes"])
    if row["result"]["suspicions"]:
        codes.add("suspicious")
    if row["pending"]:
        codes.add("needs-manual-grade")
    return sorted(codes)


def as_csv(rows):
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(COLUMNS)
    for row in rows:
        student = f"'{row['student']}" if row["student"][0] in "=+-@＝＋－＠" else row["student"]  # never a formula
        table.writerow([student, row["assignment"], feedback.number(row["score"]), feedback.number(row["max_score"]),
                        ";".join(row["flags"])])
    return text.getvalue()


def sheet_of(assignment, row):
    """The page of one row of GradeStore.results."""
    result = row["result"]
    messages = {test["grade_id"]: test["message"] for test in result["tests"]}
    return feedback.sheet(assignment.pristine, assignment.name, result["answers"], messages, row["cells"], row["comments"],
                          result["notes"].values())


def as_json(rows):
    """Everything of a row that another program may want."""
    return json.dumps([{k: row[k] for k in ("student", "assignment", "score", "max_score", "pending", "flags", "cells")}
                       for row in rows], ensure_ascii=False, indent=1)
