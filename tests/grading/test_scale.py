"""The same command on a Dask cluster and with PostgreSQL: same grades, none lost, none twice, a worker killed in between."""

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
import sqlalchemy as sa

from grading import batch
from grading.gradebook import GradeStore

from .test_batch import PARTLY, SLOW, family, graded_count, once_each, scores, wait_for

pytestmark = [pytest.mark.long, pytest.mark.sandbox, pytest.mark.timeout(1800)]
ROOT = Path(__file__).resolve().parents[2]


def hand_in(toy, place, count=8):
    for n in range(count):
        toy.hand_in(place, f"s{n}", toy.notebook(PARTLY if n % 2 else {}, extra=[("setup", SLOW)]))
    toy.hand_in(place, "broken", "{")
    return {f"s{n}": 5.0 if n % 2 else 10.0 for n in range(count)} | {"broken": 0.0}


def start(*command, **how):
    return subprocess.Popen([sys.executable, *map(str, command)], cwd=ROOT, stdout=subprocess.DEVNULL, **how)


def grade(toy, place, out, *more):
    return start("-m", "grading", "grade", toy.name, "--submissions", place, "--out", out, "--solutions", toy.solutions,
                 "--workers", 2, "--quiet", *more)


def graders(run):
    """Processes that have a sandbox under way."""
    return {p.ppid() for p in family(run.pid) if p.name() == "bwrap" and p.parent() and p.parent().name() != "bwrap"}


def test_a_local_dask_cluster_loses_nothing_with_a_worker(toy, tmp_path):
    deserved = hand_in(toy, tmp_path / "s")
    run = grade(toy, tmp_path / "s", tmp_path / "out", "--scheduler", "local")
    wait_for(lambda: graded_count(tmp_path / "out") >= 2 or run.poll() is not None, 300)
    os.kill(graders(run).pop(), signal.SIGKILL)
    assert run.wait(600) == 0
    once_each(tmp_path / "out", toy, deserved)


@pytest.fixture
def scheduler(tmp_path):
    """A scheduler and two workers as they would run on other machines."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    run = [start("-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", port, "--no-dashboard", stderr=subprocess.DEVNULL)]
    run += [start("-m", "distributed.cli.dask_worker", address, "--nthreads", 1, "--no-dashboard", "--local-directory",
                  tmp_path / f"w{n}", stderr=subprocess.DEVNULL) for n in range(2)]
    yield address
    for process in reversed(run):
        for child in family(process.pid):
            with contextlib.suppress(psutil.NoSuchProcess):
                child.kill()
        process.kill()
        process.wait()


def test_workers_elsewhere_give_the_same_grades(toy, tmp_path, scheduler):
    deserved = hand_in(toy, tmp_path / "s", 4)
    assert grade(toy, tmp_path / "s", tmp_path / "out", "--scheduler", scheduler).wait(600) == 0
    once_each(tmp_path / "out", toy, deserved)
    batch.grade(toy.name, tmp_path / "s", tmp_path / "plain", solutions=toy.solutions, workers=1, progress=False)
    assert scores(tmp_path / "plain") == scores(tmp_path / "out")


def test_a_worker_with_other_code_is_refused(toy, tmp_path, scheduler, monkeypatch):
    from grading import worker

    hand_in(toy, tmp_path / "s", 1)
    monkeypatch.setattr(worker, "code_digest", lambda name: "something else")
    with pytest.raises(worker.DifferentCode, match="同一个提交"):
        batch.grade(toy.name, tmp_path / "s", tmp_path / "out", solutions=toy.solutions, scheduler=scheduler, progress=False)


# -- PostgreSQL --------------------------------------------------------------------------------------------------------


def programs():
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb")) or [Path(shutil.which("initdb"))]
    return found[-1].parent


@pytest.fixture(scope="module")
def postgres(open_folder):
    """A server of our own on a free port, stopped afterwards. It refuses to run as root."""
    folder = open_folder
    as_user, user = [], pwd.getpwuid(os.getuid()).pw_name
    if os.geteuid() == 0:
        account = pwd.getpwnam("postgres")
        os.chown(folder, account.pw_uid, account.pw_gid)
        as_user, user = ["setpriv", f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--clear-groups"], "postgres"
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    data = folder / "data"
    environment = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "HOME": str(folder)}
    run = lambda *command: subprocess.run([*as_user, *map(str, command)], check=True, capture_output=True, cwd="/", env=environment)
    run(programs() / "initdb", "-D", data, "-U", user, "--auth=trust", "--encoding=UTF8")
    server = subprocess.Popen([*as_user, str(programs() / "postgres"), "-D", str(data), "-p", str(port), "-h", "127.0.0.1",
                               "-k", str(folder)], cwd="/", env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"postgresql+psycopg2://{user}@127.0.0.1:{port}"
    wait_for(lambda: subprocess.run([str(programs() / "pg_isready"), "-h", "127.0.0.1", "-p", str(port)],
                                    capture_output=True).returncode == 0, 60)
    yield url
    server.send_signal(signal.SIGINT)
    server.wait(30)


def database(url, name):
    engine = sa.create_engine(f"{url}/postgres", isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(sa.text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return f"{url}/{name}"


@pytest.mark.postgres
def test_postgresql_holds_the_same_grades_whatever_is_killed(toy, tmp_path, postgres):
    url = database(postgres, "course")
    deserved = hand_in(toy, tmp_path / "s")
    out = tmp_path / "out"

    def graded():
        try:
            with sa.create_engine(url).connect() as connection:
                return connection.execute(sa.text("select count(*) from grading_record")).scalar()
        except sa.exc.SQLAlchemyError:
            return 0

    run = grade(toy, tmp_path / "s", out, "--db-url", url)
    wait_for(lambda: graded() >= 2 or run.poll() is not None, 300)
    os.kill(graders(run).pop(), signal.SIGKILL)  # a worker …
    wait_for(lambda: graded() >= 4 or run.poll() is not None, 300)
    processes = family(run.pid)
    run.kill()  # … and then the whole run
    run.wait()
    wait_for(lambda: not [p for p in processes if p.is_running() and p.status() != psutil.STATUS_ZOMBIE], 30)
    done = graded()
    assert 4 <= done < len(deserved)
    summary = batch.grade(toy.name, tmp_path / "s", out, solutions=toy.solutions, db_url=url, workers=2, progress=False)
    assert len(summary.graded) == len(deserved) - done and scores(out) == deserved
    assert not (out / "gradebook.db").exists()
    with GradeStore(url) as store:
        assert {row["student"]: row["score"] for row in store.results()} == deserved
    with sa.create_engine(url).connect() as connection:
        count = lambda table: connection.execute(sa.text(f"select count(*) from {table}")).scalar()
        assert count("submitted_assignment") == count("submitted_notebook") == len(deserved)


@pytest.mark.postgres
def test_nbgraders_own_tools_read_the_database(toy, tmp_path, postgres):
    """Its gradebook, its upgrade, and grading by hand."""
    from nbgrader.api import Gradebook

    url = database(postgres, "tools")
    toy.hand_in(tmp_path / "s", "a", toy.notebook({"why": "汉字也行：𝒳"}))
    batch.grade(toy.name, tmp_path / "s", tmp_path / "out", solutions=toy.solutions, db_url=url, workers=1, progress=False)
    with Gradebook(url) as book:
        grade = book.find_grade("why", toy.name, toy.name, "a")
        grade.manual_score, grade.needs_manual_grade = 2, False
        book.db.commit()
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run([sys.executable, "-m", "nbgrader", "db", "upgrade", f"--CourseDirectory.db_url={url}"], cwd=tmp_path,
                          env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    batch.grade(toy.name, tmp_path / "s", tmp_path / "out", solutions=toy.solutions, db_url=url, progress=False)
    assert scores(tmp_path / "out") == {"a": 12}
