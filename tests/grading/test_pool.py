"""The crew of processes: every task gets one result, whatever becomes of the process that had it."""

import os
import signal
import time
from pathlib import Path

import psutil
import pytest

from grading import pool


def work(task):
    """A task says what happens to its process."""
    kind, value, *folder = task
    if kind == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if kind == "die once":
        mark = Path(folder[0]) / f"{value}"
        if not mark.exists():
            mark.touch()
            os._exit(7)
    if kind == "raise once":
        mark = Path(folder[0]) / f"{value}"
        if not mark.exists():
            mark.touch()
            raise RuntimeError("passing trouble")
    if kind == "raise":
        raise type("Unheard", (RuntimeError,), {})("lasting trouble") if value == "odd" else OSError("lasting trouble")
    if kind == "hang":
        time.sleep(600)
    if kind == "sleep":
        time.sleep(0.2)
    return value


def done(tasks, workers=2, seconds=20):
    return sorted(map(str, pool.run(work, tasks, workers, seconds, lambda task, reason, _: f"{reason} {task[1]}")))


def test_every_task_has_a_result():
    assert done([("sleep", n) for n in range(9)]) == sorted(map(str, range(9)))


def test_a_process_that_dies_or_stumbles_once_loses_nothing(tmp_path):
    tasks = [("die once", "a", tmp_path), ("sleep", "b"), ("raise once", "c", tmp_path), ("die once", "d", tmp_path)]
    assert done(tasks) == list("abcd")


def test_a_task_that_always_kills_its_process_is_given_up():
    assert done([("die", "x"), ("sleep", "a"), ("sleep", "b")]) == ["a", "b", "died x"]


def test_a_task_that_takes_too_long_is_ended():
    began = time.monotonic()
    assert done([("hang", "x"), ("sleep", "a")], seconds=4) == ["a", "too-long x"]
    assert time.monotonic() - began < 60


def test_lasting_trouble_with_one_task_is_not_the_others():
    """Also where the error is of a kind that no other process knows."""
    assert done([("raise", "x"), ("sleep", "a"), ("raise", "odd"), ("sleep", "b")]) == ["a", "b", "error odd", "error x"]


def test_trouble_that_is_everybodys_may_end_the_run_and_no_process_stays():
    def give_up(task, reason, error):
        assert "in work" in error.__notes__[0]  # where it happened
        raise error

    with pytest.raises(OSError, match="lasting trouble"):
        list(pool.run(work, [("raise", 1), ("hang", 2)], 2, 60, give_up))
    time.sleep(0.2)
    assert not [p for p in psutil.Process().children(recursive=True) if "_serve" in " ".join(p.cmdline())]


def test_ending_early_ends_the_processes():
    results = pool.run(work, [("sleep", 1), ("hang", 2), ("hang", 3)], 2, 600, None)
    assert next(results) == 1
    before = time.monotonic()
    results.close()
    assert time.monotonic() - before < 10
