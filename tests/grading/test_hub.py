"""A class on a JupyterHub, end to end in a real browser: `make test-hub`.

The teacher generates and releases, a student fetches, answers and submits, the teacher collects, grades and returns feedback,
the student reads it. Real system users (made for the test and removed after it), nbgrader's own exchange and pages, our grading.
"""

import contextlib
import json
import os
import pwd
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import psutil
import pytest

from grading.assignment import grade_id

from .test_sandbox import readable_interpreter

pytestmark = [pytest.mark.long, pytest.mark.sandbox, pytest.mark.browser, pytest.mark.timeout(2400)]
ROOT = Path(__file__).resolve().parents[2]
HUB = ROOT / ".hub"
TEACHER, STUDENT, PASSWORD = "hubtest-teacher", "hubtest-student", "a test password"
SLOW = 300_000  # milliseconds that a page may take on a busy machine


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@pytest.fixture(scope="module")
def users():
    if os.geteuid() != 0:
        pytest.skip("建立系统用户需要 root")
    if not (HUB / ".ready").exists():
        pytest.skip("先运行 make hub-setup（make test-hub 会自动运行）")
    if readable_interpreter() is None:
        pytest.skip("没有一个普通用户也能运行的同版本 Python")
    for name in (TEACHER, STUDENT):
        subprocess.run(["useradd", "--create-home", name], check=True)
    yield
    for name in (TEACHER, STUDENT):
        uid = pwd.getpwnam(name).pw_uid
        for process in psutil.process_iter(["uids"]):
            if process.info["uids"] and process.info["uids"].real == uid:
                with contextlib.suppress(psutil.Error):
                    process.kill()
        time.sleep(0.5)
        subprocess.run(["userdel", "--remove", name], capture_output=True)


@pytest.fixture(scope="module")
def hub(users, toy, open_folder):
    """A running hub with a course of one assignment; its address and folders."""
    base = open_folder
    account = pwd.getpwnam(TEACHER)
    course = base / "course"
    shutil.copytree(toy.solutions, course / "solutions")
    shutil.copy(ROOT / "nbgrader_config.py", course)
    subprocess.run(["chown", "-R", TEACHER, course], check=True)
    state = base / "state"
    state.mkdir()
    (state / "node_modules").symlink_to(HUB / "node_modules")
    exchange = base / "exchange"
    layer = next((HUB / "venv" / "lib").glob("python3*/site-packages"))
    packages = Path(psutil.__file__).parents[1]
    url = f"http://127.0.0.1:{free_port()}"
    environment = {
        **os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "PYTHONPATH": f"{layer}",
        "HUB_PYTHONPATH": f"{ROOT}:{packages}:{layer}", "HUB_PYTHON": readable_interpreter(), "HUB_STATE": str(state),
        "HUB_EXCHANGE": str(exchange), "HUB_COURSE": str(course), "HUB_TEACHERS": TEACHER, "HUB_STUDENTS": STUDENT, "HUB_URL": url,
        "HUB_AUTHENTICATOR": "dummy", "HUB_DUMMY_PASSWORD": PASSWORD, "HUB_START_TIMEOUT": "300",
        "HUB_PROXY_API_PORT": str(free_port()), "HUB_PORT": str(free_port())}
    log = open(base / "hub.log", "w")
    process = subprocess.Popen([sys.executable, "-m", "jupyterhub", "-f", str(ROOT / "deploy/jupyterhub/jupyterhub_config.py")],
                               env=environment, cwd=state, stdout=log, stderr=subprocess.STDOUT)
    try:
        deadline = time.monotonic() + 300
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", int(url.rsplit(":", 1)[1])), 1):
                break
            assert process.poll() is None, (base / "hub.log").read_text()[-3000:]
            time.sleep(0.5)
        yield {"url": url, "course": course, "exchange": exchange, "log": base / "hub.log", "account": account}
    finally:
        children = psutil.Process(process.pid).children(recursive=True)
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(60)
        for child in [*children, psutil.Process(process.pid)] if process.poll() is None else children:
            with contextlib.suppress(psutil.Error):
                child.kill()


@pytest.fixture(scope="module")
def browser(start_browser):
    browser = start_browser()
    yield browser
    browser.close()


def log_in(browser, hub, user):
    """A page of a logged-in user whose server runs."""
    context = browser.new_context(viewport={"width": 1400, "height": 900})
    page = context.new_page()
    page.set_default_timeout(SLOW)
    page.goto(f"{hub['url']}/hub/login")
    page.fill("#username_input", user)
    page.fill("#password_input", PASSWORD)
    page.click("#login_submit")
    page.wait_for_url(f"**/user/{user}/**", timeout=SLOW)
    return page


def formgrader(page, hub, cell, done):
    """Click a button in the row of the assignment and wait until done() holds."""
    page.goto(f"{hub['url']}/user/{TEACHER}/formgrader/manage_assignments")
    page.locator("tr", has_text="toy-attention").locator(f"td.{cell} a").click()
    wait(page, done)
    page.locator(".modal.in button.close, .modal.in [data-dismiss=modal]").first.click()


def wait(page, done, seconds=SLOW / 1000):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := done():
            return found
        page.wait_for_timeout(300)
    raise AssertionError(f"it did not happen; the page says: {page.inner_text('body')[-1500:]}")


def assignment_list(page, hub):
    """The student's list of assignments in JupyterLab."""
    page.goto(f"{hub['url']}/user/{STUDENT}/lab?reset")
    page.locator("#jp-top-panel .lm-MenuBar-item", has_text="Nbgrader").click()
    page.locator(".lm-Menu-item", has_text="Assignment List").click()
    page.locator("#fetched_assignments_list, #released_assignments_list").first.wait_for()


def test_from_release_to_feedback(hub, browser, toy):
    name, course, exchange = toy.name, hub["course"], hub["exchange"]
    teacher, student = log_in(browser, hub, TEACHER), log_in(browser, hub, STUDENT)

    # The teacher generates the student version and releases it.
    formgrader(teacher, hub, "assign", lambda: (course / "exercises" / name / f"{name}.ipynb").exists())
    outbound = exchange / "token-journey" / "outbound" / name
    formgrader(teacher, hub, "release", lambda: (outbound / f"{name}.ipynb").exists())
    assert "HIDDEN" not in (outbound / f"{name}.ipynb").read_text("utf-8")

    # The student fetches, answers in JupyterLab's own file service, and submits.
    home = Path(pwd.getpwnam(STUDENT).pw_dir)
    assignment_list(student, hub)
    student.locator("#released_assignments_list button", has_text="Fetch").first.click()
    mine = wait(student, lambda: next(iter(home.rglob(f"{name}.ipynb")), None))
    notebook = nbformat.read(mine, as_version=4)
    answers = {grade_id(c): c.source for c in toy.notebook({"counter": "class Counter:\n    pass", "why": "因为会溢出。"}).cells}
    for cell in notebook.cells:
        if cell.metadata.get("nbgrader", {}).get("solution"):
            cell.source = answers[grade_id(cell)]
    saved = student.evaluate(
        """async ([path, content]) => {
            const token = document.cookie.match(/_xsrf=([^;]+)/g).map(c => c.split("=")[1]).pop();
            const reply = await fetch(path, {method: "PUT", headers: {"Content-Type": "application/json", "X-XSRFToken": token},
                                             body: JSON.stringify({type: "notebook", format: "json", content: JSON.parse(content)})});
            return reply.status;
        }""", [f"/user/{STUDENT}/api/contents/{mine.relative_to(home)}", nbformat.writes(notebook)])
    assert saved == 200
    assignment_list(student, hub)
    student.locator("#fetched_assignments_list button", has_text="Submit").first.click()
    inbound = exchange / "token-journey" / "inbound"
    wait(student, lambda: list(inbound.glob(f"{STUDENT}+{name}+*/{name}.ipynb")) if os.access(inbound, os.R_OK) else False)
    # Links in the handed-in folder lead nowhere: what the student can't read is not collected.
    handed_in = next(inbound.glob(f"{STUDENT}+{name}+*"))
    (handed_in / "solutions").symlink_to(course / "solutions")
    os.lchown(handed_in / "solutions", pwd.getpwnam(STUDENT).pw_uid, -1)

    # The teacher collects, grades, and returns feedback.
    formgrader(teacher, hub, "collect", lambda: (course / "submissions" / STUDENT / name / f"{name}.ipynb").exists())
    assert not (course / "submissions" / STUDENT / name / "solutions").exists()
    teacher.goto(f"{hub['url']}/user/{TEACHER}/formgrader/manage_submissions/{name}")
    teacher.locator("tr", has_text=STUDENT).locator("td.autograde a").click()
    executed = course / "grades" / "autograded" / STUDENT / name / f"{name}.ipynb"
    wait(teacher, lambda: (course / "grades" / "grades.csv").exists() and executed.exists())
    assert f"{STUDENT},{name},8,12,needs-manual-grade" in (course / "grades" / "grades.csv").read_text("utf-8")
    teacher.goto(f"{hub['url']}/user/{TEACHER}/formgrader/gradebook/{name}/{name}")
    teacher.get_by_text("Submission #1").first.wait_for()
    formgrader(teacher, hub, "generate-feedback", lambda: (course / "grades" / "returned" / STUDENT / name / f"{name}.html").exists())
    formgrader(teacher, hub, "release-feedback", lambda: list((exchange / "token-journey" / "feedback").glob("*.html")))

    # The student reads it.
    assignment_list(student, hub)
    student.locator("#submitted_assignments_list button", has_text="Fetch Feedback").first.click()
    page = wait(student, lambda: next(iter(home.rglob("feedback/*/*.html")), None))
    text = page.read_text("utf-8")
    assert "8</strong> / 12" in text and "待人工评分" in text and "hidden_input" not in text
    student.goto(f"{hub['url']}/user/{STUDENT}/files/{page.relative_to(home)}".replace("+", "%2B").replace(" ", "%20"))
    student.get_by_text("得分").first.wait_for()

    # Nobody else sees what is not theirs.
    assert student.goto(f"{hub['url']}/user/{STUDENT}/formgrader").status in (404, 403)
    assert json.loads(student.evaluate("async (u) => JSON.stringify((await fetch(u)).status)", f"/user/{TEACHER}/api/contents")) in (403, 404)
