"""nbgrader's own commands, with our collecting, grading and feedback behind them."""

import logging
import os
import pwd
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbgrader.api import Gradebook

from grading.classroom import SafeCollect
from grading.gradebook import sqlite_url

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def course(toy, tmp_path_factory):
    """A course folder as a teacher has it: sources, submissions, our nbgrader_config.py."""
    root = tmp_path_factory.mktemp("course")
    shutil.copytree(toy.solutions, root / "solutions")
    shutil.copy(ROOT / "nbgrader_config.py", root)
    toy.hand_in(root / "submissions", "good", toy.notebook({"why": "因为指数会溢出。"}))
    toy.hand_in(root / "submissions", "cheat", toy.notebook({"softmax": "def softmax(x, axis=-1): return x"}, base=toy.released, extra=[
        ("setup", "import numpy as np\nnp.testing.assert_allclose = lambda *a, **k: None\nget_ipython().ast_transformers.clear()")]))
    toy.hand_in(root / "submissions", "broken", "{")
    return root


def nbgrader(course, *arguments, check=True, **more):
    environment = {**os.environ, "COURSE_ROOT": str(course), "PYTHONPATH": str(ROOT), "JUPYTER_NO_CONFIG": "",
                   "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", **more}
    done = subprocess.run([sys.executable, "-m", "nbgrader", *arguments], cwd=course, env=environment, capture_output=True, text=True)
    assert not check or done.returncode == 0, done.stderr
    return done


@pytest.mark.sandbox
def test_autograde_and_feedback_go_through_the_sandbox(course, toy):
    done = nbgrader(course, "autograde", toy.name)
    assert "good" in done.stderr and "unreadable" in done.stderr
    with Gradebook(sqlite_url(course / "grades" / "gradebook.db"), "token-journey") as book:
        assert {s.student.id: s.score for s in book.assignment_submissions(toy.name)} == {"good": 10, "cheat": 0, "broken": 0}
    assert (course / "grades" / "autograded" / "good" / toy.name / f"{toy.name}.ipynb").exists()
    assert (course / "grades" / "grades.csv").exists()
    submitted = course / "submissions" / "cheat" / toy.name
    for name in ("timestamp.txt", "submission_secret.txt"):  # the exchange writes them and wants them back beside the page
        (submitted / name).write_text(f"this is {name}")
    nbgrader(course, "generate_feedback", toy.name, "--student=cheat")
    returned = course / "grades" / "returned" / "cheat" / toy.name
    assert all((returned / name).read_text() == f"this is {name}" for name in ("timestamp.txt", "submission_secret.txt"))
    page = (course / "grades" / "returned" / "cheat" / toy.name / f"{toy.name}.html").read_text("utf-8")
    assert "得分" in page and "hidden_input" not in page
    assert not (course / "grades" / "returned" / "good").exists()
    again = nbgrader(course, "autograde", toy.name, "--student=cheat", "--force")
    assert "cheat" in again.stderr and "good：" not in again.stderr
    refused = nbgrader(course, "autograde", toy.name, "--student=nobody", check=False)
    assert refused.returncode != 0 and "nobody" in refused.stderr


def test_the_release_is_nbgraders_with_our_stubs(course, toy):
    nbgrader(course, "generate_assignment", toy.name, "--force")
    released = nbformat.read(course / "exercises" / toy.name / f"{toy.name}.ipynb", as_version=4)
    text = nbformat.writes(released)
    assert "HIDDEN" not in text and "SOLUTION" not in text and "在这里写你的代码" in text


def test_a_new_gradebook_needs_no_other_program(course, toy, tmp_path):
    """nbgrader would ask one for the version of its tables; on a hub the teacher may not be allowed to run it."""
    nbgrader(course, "generate_assignment", toy.name, "--force", PATH="/nowhere", GRADEBOOK_URL=f"sqlite:///{tmp_path}/new.db")
    with Gradebook(f"sqlite:///{tmp_path}/new.db", "token-journey") as book:
        assert [a.name for a in book.assignments] == [toy.name]


def collector(check_owner=True):
    collect = SafeCollect.__new__(SafeCollect)
    collect._trait_values = {"check_owner": check_owner}
    collect.log = logging.getLogger("collect")
    return collect


@pytest.fixture
def inbound(tmp_path):
    me = pwd.getpwuid(os.getuid()).pw_name
    place = tmp_path / "inbound" / f"{me}+toy+2026-01-01 00:00:00 UTC+abc"
    place.mkdir(parents=True)
    (place / "toy.ipynb").write_text("{}")
    (place / "timestamp.txt").write_text("2026-01-01 00:00:00.000000 UTC")
    secret = tmp_path / "teacher.txt"
    secret.write_text("secret")
    (place / "link.ipynb").symlink_to(secret)
    (place / "folder").symlink_to(tmp_path)
    os.mkfifo(place / "pipe")
    return place


def test_collecting_follows_no_link(inbound, tmp_path):
    collector().do_copy(str(inbound), str(tmp_path / "dest"))
    assert sorted(p.name for p in (tmp_path / "dest").rglob("*")) == ["timestamp.txt", "toy.ipynb"]


def test_collecting_refuses_a_folder_that_is_a_link_or_somebody_elses(inbound, tmp_path):
    link = inbound.with_name(inbound.name.replace("+abc", "+def"))
    link.symlink_to(inbound)
    collector().do_copy(str(link), str(tmp_path / "a"))
    other = inbound.with_name("somebody+toy+2026-01-01 00:00:00 UTC+abc")
    inbound.rename(other)
    collector().do_copy(str(other), str(tmp_path / "b"))
    assert not (tmp_path / "a").exists() and not (tmp_path / "b").exists()
    collector(check_owner=False).do_copy(str(other), str(tmp_path / "c"))
    assert (tmp_path / "c" / "toy.ipynb").exists()
