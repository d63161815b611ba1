"""反馈：学生看到的一页。只有他自己写的字、评分一侧写的字和分数；隐藏测试的代码与内核的输出都不在其中。

What a student's process printed is left out on purpose: a function under test sees the hidden inputs and could print them
into a later cell. All text is escaped, the page carries no script and a policy that forbids any.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

import jinja2

from grading.assignment import grade_id, is_answer, is_graded, is_test, role
from grading.rebuild import released_text

TEMPLATES = Path(__file__).resolve().parent / "templates"


@dataclass
class Item:
    """One row of points."""

    id: str
    title: str
    score: float
    max: float
    message: str = ""
    pending: bool = False
    by_hand: bool = False

    @property
    def state(self):
        if self.pending:
            return "pending"
        return "full" if self.score >= self.max else "part" if self.score > 0 else "none"

    @property
    def word(self):
        return {"pending": "待人工评分", "full": "通过", "part": "部分得分", "none": "未通过"}[self.state]


@dataclass
class Task:
    """An answer and the rows of points that hang on it."""

    title: str
    answer: str | None = None
    expects_answer: bool = True
    items: list = field(default_factory=list)
    comment: str = ""

    @property
    def full(self):
        return all(item.state == "full" for item in self.items)


@dataclass
class Sheet:
    """One assignment of one student."""

    assignment: str
    title: str
    score: float
    max_score: float
    pending: bool = False
    notes: list = field(default_factory=list)
    tasks: list = field(default_factory=list)


def sheet(notebook, name, answers, messages, cells, comments, notes=()):
    """Assemble the page of one assignment.

    `notebook` gives order, titles and points (the pristine one will do); `answers` {grade_id: text or None}, `messages`
    {grade_id: text}, `cells` as in GradeStore.results, `comments` {grade_id: text}.
    """
    tasks, heading, title = [], "", name
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and not is_graded(cell):
            for level, text in re.findall(r"^(#{1,4})\s+(.+)$", cell.source, re.M):
                title, heading = (text, heading) if level == "#" else (title, text)
        if is_answer(cell):
            tasks.append(Task(heading or _title(cell), answers.get(grade_id(cell)),
                              comment=_comment(comments.get(grade_id(cell)))))
        if is_graded(cell):
            if not tasks:
                tasks.append(Task(heading or name, expects_answer=False))
            tasks[-1].items.append(_item(cell, messages, cells))
    tasks = [task for task in tasks if task.items]
    score, most = (sum(c[key] for c in cells.values()) for key in ("score", "max"))
    pending = any(c["pending"] for c in cells.values())
    return Sheet(name, title, score, most, pending, list(notes), tasks)


def _item(cell, messages, cells):
    name = grade_id(cell)
    known = cells.get(name, {"score": 0.0, "max": float(role(cell, "points")), "pending": False, "manual": None})
    passed = known["score"] >= known["max"]
    title = _title(cell) if is_test(cell) else "人工评分"
    return Item(name, title, known["score"], known["max"], "" if passed and is_test(cell) else messages.get(name, ""),
                bool(known["pending"]), known["manual"] is not None)


def _comment(text):
    return "" if text in (None, "没有作答。", "No response.") else text


def _title(cell):
    """The first comment of a cell of code, else what it defines, else its name."""
    for line in released_text(cell).splitlines():
        if cell.cell_type == "code" and line.startswith("#") and (text := line.strip("# ").strip()):
            return text
    if defined := re.search(r"^(?:def|class) (\w+)", cell.source, re.M):
        return defined[1]
    return grade_id(cell)


def page(student, sheets):
    """The HTML of one student's feedback."""
    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True, trim_blocks=True,
                                     lstrip_blocks=True)
    return environment.get_template("feedback.html.j2").render(student=student, sheets=sheets, number=number)


def number(x):
    """2 for 2.0, 1.5 for 1.5."""
    return f"{x:.2f}".rstrip("0").rstrip(".")
