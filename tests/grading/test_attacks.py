"""The attack suite: one batch of hostile and broken submissions with honest ones among them.

`make test` grades those that end quickly, `make test-all` every one. Each must get exactly what its author earned; nothing may
be left behind, nothing hidden may come back, and the honest ones must not notice.
"""

import json
import os
import re
import socket
import threading
import uuid
from pathlib import Path

import nbformat
import numpy as np
import psutil
import pytest
from bs4 import BeautifulSoup
from nbconvert import HTMLExporter
from nbgrader.api import Gradebook

from grading import batch
from grading.assignment import Assignment
from grading.gradebook import sqlite_url
from grading.sandbox import Limits

from ..conftest import ALL, ROOT
from .attacks import QUICK, every_attack
from .attacks.structure import honest
from .conftest import Toy

pytestmark = [pytest.mark.sandbox, pytest.mark.timeout(3600)]
ATTACKS = [attack for attack in every_attack() if ALL or attack.name in QUICK]
LIMITS = Limits(cell_seconds=4, call_seconds=3, total_seconds=15)
HIDDEN_NUMBER = repr(float(np.random.default_rng(20).normal()))[:10]  # the first input of a hidden test


class Listeners:
    """Counts who gets through to the world outside."""

    def __init__(self, folder, token):
        self.heard, self.sockets = [], []
        tcp = socket.create_server(("127.0.0.1", 0))
        self.port = tcp.getsockname()[1]
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        udp.bind(("127.0.0.1", self.port))
        named, abstract = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
        named.bind(str(folder / "socket"))
        (folder / "socket").chmod(0o777)
        abstract.bind(f"\0{token}")
        for listener in (tcp, named, abstract):
            listener.listen()
            threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        threading.Thread(target=self._receive, args=(udp,), daemon=True).start()
        self.sockets = [tcp, udp, named, abstract]

    def _accept(self, listener):
        while True:
            try:
                self.heard.append(listener.accept()[0])
            except OSError:
                return

    def _receive(self, udp):
        while True:
            try:
                self.heard.append(udp.recv(100))
            except OSError:
                return

    def close(self):
        for listener in self.sockets:
            listener.close()


class World:
    """What the batch is graded in: places, tokens, listeners, and afterwards the results."""

    def __init__(self, folder):
        self.folder = folder
        self.places = {name: folder / name for name in ("source", "out", "submissions", "planted")}
        for place in self.places.values():
            place.mkdir()
        self.places["planted"].chmod(0o777)
        self.token = uuid.uuid4().hex
        self.secrets = {name: f"{name}-{uuid.uuid4().hex}" for name in ("hidden", "neighbour", "environment")}
        self.listeners = Listeners(self.places["planted"], self.token)
        self.toy = self._source()

    def _source(self):
        """The toy assignment with a token in its hidden tests."""
        from grading.author import from_text, save

        text = (Path(__file__).parent / "toy" / f"{Toy.name}.md").read_text("utf-8")
        text = text.replace("### BEGIN HIDDEN TESTS\n", f"### BEGIN HIDDEN TESTS\nhidden_token = '{self.secrets['hidden']}'\n")
        (self.places["source"] / Toy.name).mkdir()
        save(from_text(text), self.places["source"] / Toy.name / f"{Toy.name}.ipynb")
        toy = Toy(self.places["source"])
        toy.assignment = Assignment.load(Toy.name, self.places["source"])
        return toy

    def fill(self, text):
        """The text with the places and tokens of this run."""
        known = {**{name: str(place) for name, place in self.places.items()}, "root": str(ROOT), "token": self.token,
                 "port": str(self.listeners.port)}
        return re.sub(r"@(\w+)@", lambda m: known.get(m[1], m[0]), text)

    def lay(self, attack):
        """Hand the attack in."""
        def hand_in(notebook, name=None):
            if isinstance(notebook, nbformat.NotebookNode):
                notebook = nbformat.writes(notebook, version=nbformat.NO_CONVERT)
            return self.toy.hand_in(self.places["submissions"], attack.name,
                                    self.fill(notebook) if isinstance(notebook, str) else notebook, name)

        if attack.make:
            attack.make(self.toy, hand_in)
        else:
            base = honest(self.toy)
            hand_in(self.toy.notebook(attack.answers, attack.cells, base))
        folder = self.places["submissions"] / attack.name
        for path in [p for p in folder.rglob("*") if p.is_symlink() and "@" in os.readlink(p)]:
            target = self.fill(os.readlink(path))
            path.unlink()
            path.symlink_to(target)

    def grade(self):
        witness = self.toy.notebook({"why": self.secrets["neighbour"]})
        for name in ("aaa-witness", "witness-a", "zzz-witness"):
            self.toy.hand_in(self.places["submissions"], name, witness)
        for attack in ATTACKS:
            self.lay(attack)
        self.submitted = {p: os.lstat(p).st_size for p in self.places["submissions"].rglob("*")}
        before = {p.pid for p in psutil.process_iter()}
        os.environ["JUPYTERHUB_API_TOKEN"] = self.secrets["environment"]
        try:
            batch.grade(Toy.name, self.places["submissions"], self.places["out"], solutions=self.places["source"], workers=2,
                        limits=LIMITS, progress=True)
        finally:
            del os.environ["JUPYTERHUB_API_TOKEN"]
        self.processes = [p for p in psutil.process_iter(["pid", "cmdline", "uids"]) if p.pid not in before]
        with Gradebook(sqlite_url(self.places["out"] / "gradebook.db")) as book:
            self.grades = {s.student.id: {g.name: (g.auto_score, g.manual_score) for n in s.notebooks for g in n.grades}
                           for s in book.assignment_submissions(Toy.name)}
        rows = (self.places["out"] / "grades.csv").read_text("utf-8").splitlines()[1:]
        self.flags = {row.split(",")[0]: set(row.split(",")[4].split(";")) for row in rows}
        return self


@pytest.fixture(scope="module")
def world(open_folder):
    world = World(open_folder).grade()  # no lock protects it: who gets out of the sandbox could read here
    yield world
    world.listeners.close()


@pytest.mark.parametrize("attack", ATTACKS, ids=[f"{a.family}/{a.name}" for a in ATTACKS])
def test_it_gets_what_it_deserves(world, attack):
    got = {name: auto for name, (auto, _) in world.grades[attack.name].items() if auto}
    assert got == attack.deserves
    assert attack.flags <= world.flags[attack.name], world.flags[attack.name]


@pytest.mark.parametrize("attack", ATTACKS, ids=[f"{a.family}/{a.name}" for a in ATTACKS])
def test_nothing_hidden_comes_back(world, attack):
    """Neither to the student nor, of other people's, into the executed notebook."""
    page = (world.places["out"] / "feedback" / f"{attack.name}.html").read_text("utf-8")
    for name, secret in world.secrets.items():
        assert secret not in page, name
    assert HIDDEN_NUMBER not in page and "hidden_input" not in page and str(ROOT) not in page.replace(str(world.folder), "")
    assert "<script" not in page.lower() and "onerror=" not in re.sub("&lt;.*?&gt;", "", page)
    executed = world.places["out"] / "autograded" / attack.name / Toy.name / f"{Toy.name}.ipynb"
    if executed.exists():
        outputs = json.dumps([c.get("outputs", []) for c in nbformat.read(executed, 4).cells
                              if not c.metadata.get("nbgrader", {}).get("grade")])
        assert not [name for name, secret in world.secrets.items() if secret in outputs]


def test_the_honest_notice_nothing(world):
    for name in ("aaa-witness", "witness-a", "zzz-witness"):
        assert sum(auto or 0 for auto, _ in world.grades[name].values()) == 10, name
        assert world.flags[name] == {"needs-manual-grade"}


def test_every_submission_is_in_the_gradebook_once_and_nobody_has_changed_it(world):
    assert set(world.grades) == {a.name for a in ATTACKS} | {"aaa-witness", "witness-a", "zzz-witness"}
    assert all(manual is None for grades in world.grades.values() for _, manual in grades.values())


def test_nothing_is_left_behind(world):
    tops = [*world.places.values(), ROOT, Path("/"), Path("/tmp"), Path("/var/tmp"), Path("/etc"), Path.home(), Path("/usr/local/lib")]
    assert not [p for top in tops for p in top.glob(f"planted-{world.token}*")]
    assert sorted(p.name for p in world.places["planted"].iterdir()) == ["socket"]
    assert {p: os.lstat(p).st_size for p in world.places["submissions"].rglob("*")} == world.submitted
    kept = {p.relative_to(world.places["out"]).parts[0] for p in world.places["out"].iterdir()}
    assert {name for name in kept if not name.startswith(("gradebook.db", ".lock"))} == {"autograded", "feedback", "grades.csv", "report.html"}


def test_no_process_stays(world):
    alive = [p for p in world.processes if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]
    strange = [p.info for p in alive if p.info["uids"] and p.info["uids"].real >= 20_000 and p.info["uids"].real != 65534
               or any(world.token in word or "zygote.py" in word or "bwrap" in word for word in p.info["cmdline"] or [])]
    assert not strange


def test_nobody_was_reached(world):
    assert not world.listeners.heard


def acting_parts(page):
    """What of a page would act in a browser: elements, handlers and addresses that are code; escaped text is none of them."""
    for element in BeautifulSoup(page, "html.parser").find_all(True):
        if element.name in {"script", "iframe", "object", "embed", "form", "base", "link", "meta", "svg"}:
            yield str(element)
        for name, value in element.attrs.items():
            if name.startswith("on") or re.match(r"\s*(javascript|vbscript|data:text)", str(value).replace("\t", ""), re.I):
                yield f"{element.name} {name}={value}"


def test_executed_notebooks_hold_nothing_that_acts_in_a_browser(world):
    def page(student):
        path = world.places["out"] / "autograded" / student / Toy.name / f"{Toy.name}.ipynb"
        notebook = nbformat.read(path, 4)
        assert {m for c in notebook.cells for o in c.get("outputs", []) for m in o.get("data", {})} <= {"text/plain", "image/png"}
        exporter = HTMLExporter(template_name="basic")
        exporter.preprocessors = []
        return exporter.from_notebook_node(notebook)[0]

    assert len(list(acting_parts("<p onload=x><a href=' javascript:1'>&lt;script&gt;</a><script>1</script>"))) == 3
    usual = set(acting_parts(page("witness-a")))
    for attack in ATTACKS:  # a page can be made of each, or nobody could grade it by hand
        if attack.family == "structure" or attack.name in ("halves-of-characters", "many-pictures"):
            assert set(acting_parts(page(attack.name))) <= usual, attack.name
            assert (world.places["out"] / "autograded" / attack.name / Toy.name / f"{Toy.name}.ipynb").stat().st_size < 48 << 20


def test_texts_of_students_read_as_they_were_written_and_do_nothing(world):
    """Honest formulas and code stay what they are; a formula can't carry a link, an entity can't bring one back."""
    def shown(text):
        cell = nbformat.v4.new_markdown_cell(text, attachments={"图 1.png": {"image/png": "iVBORw0KGgo="}})
        batch.harmless(nbformat.v4.new_notebook(cells=[cell]), world.toy.assignment)
        return cell

    for text in ("$a < b \\le c$，`x < y and z & 1`", "**粗**、_斜_\n\n```python\nif a<b: pass\n```", "$$\\begin{aligned}a &= b \\\\ c &< d\\end{aligned}$$"):
        assert shown(text).source.replace("\u2060", "") == text
    exporter = HTMLExporter(template_name="basic")
    exporter.preprocessors = []
    for text in ("$\\href{javascript:alert(1)}{x}$", "&#36;&#92;href{javascript:alert(1)}{x}&#36;", "<a href=x>y</a>", "<!-- x -->",
                 "[x](javascript:alert(1))", "[x][y]\n\n[y]: javascript:alert(1)", "<https://example.org>", "&lt;script&gt;",
                 "`<script>`<script>", "$x<img src=y>$", "\\\\href{x}{y}", "![x](https://example.org/x.png)", "![x](attachment:a.png)"):
        page = exporter.from_notebook_node(nbformat.v4.new_notebook(cells=[shown(text)]))[0]
        body = BeautifulSoup(page, "html.parser")
        assert not list(acting_parts(page)) and not body.find_all(["script", "iframe"]) and "\\href" not in body.text
        assert not [e for e in body.find_all(["a", "img"]) if not e.get("src", e.get("href", "#")).startswith("#")], text
    page = exporter.from_notebook_node(nbformat.v4.new_notebook(cells=[shown('![x](attachment:图%201.png "标题")')]))[0]
    assert "data:image/png;base64,iVBORw0KGgo=" in page


def test_the_suspicious_are_named_with_a_reason(world):
    report = (world.places["out"] / "report.html").read_text("utf-8")
    named = {name for name, flags in world.flags.items() if "suspicious" in flags}
    families = {a.name: a.family for a in ATTACKS}
    for family in ("testing", "channel", "network", "writing", "reading"):
        members = {name for name, known in families.items() if known == family}
        assert len(members & named) >= 0.6 * len(members), (family, sorted(members - named))
    assert all(name in report for name in named) and "ast_transformers" in report


def test_the_reference_is_full_and_the_release_empty(world):
    """The two ends between which everything above lies."""
    from grading.execution import execute
    from grading.rebuild import rebuild, source_as_submission

    for notebook, want in ((world.toy.released_reference, 10), (world.toy.released, 0)):
        rebuilt = rebuild(source_as_submission(notebook), world.toy.assignment)
        assert execute(rebuilt.notebook, world.toy.assignment).score == want


def test_there_are_enough():
    attacks = every_attack()
    assert len(attacks) >= 60 and {a.family for a in attacks} == {
        "reading", "writing", "network", "limits", "testing", "channel", "structure", "files"}
