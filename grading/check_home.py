"""在家检查：用评分的同一套流程检查自己的笔记本，给出每条性质的结果。从不改动笔记本。

    python -m grading.check_home ex04-attention [path/to/notebook.ipynb]

The notebook is rebuilt and run as a submission would be (in the sandbox where there is one), the report is printed and
kept in `reports/`, and `make progress` reads the points from there.
"""

import argparse
import hashlib
import json
import re
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path

from grading.assignment import ROOT, is_test
from grading.catalog import exercise
from grading.execution import execute
from grading.rebuild import Unreadable, read_cells, rebuild
from grading.sandbox import PRIVATE_PACKAGES, SandboxUnavailable, require_sandbox

REPORTS = ROOT / "reports"
PLACE = re.compile(r"\s*\((?:<[^>]*>|[^\s()]+), line (\d+)\)$")  # of a syntax error: the cell has no file name of its own
FORBIDDEN = re.compile(rf"^\s*(?:import|from)\s+({'|'.join(PRIVATE_PACKAGES)})\b", re.M)
NO_SANDBOX = "这台机器没有沙箱（bubblewrap），你的代码直接在本机运行；只用来检查自己写的笔记本。"


@dataclass
class Result:
    """What one check of a notebook found, as it is stored."""

    exercise: str
    notebook: str
    digest: str  # of the answers and the checks: the same digest gives the same result
    score: float
    automatic: float  # points that the checks give at most
    points: float  # all points
    parts: list  # [{"id", "title", "function", "points", "score", "message"}]
    written: list  # ids of the questions for a person that hold an answer
    remarks: list
    sandboxed: bool
    built_on: dict = field(default_factory=dict)  # function -> other functions of the exercise that its answer calls

    @property
    def complete(self):
        return self.score == self.automatic and bool(self.written)


def digest_of(name, path):
    """Changes when the notebook's answers or anything in the assignment's folder does."""
    text = hashlib.sha256(exercise(name).assignment.fingerprint.encode())
    cells, _ = read_cells(Path(path).read_bytes())
    text.update(json.dumps([[cell.kind, cell.source] for cell in cells]).encode())
    return text.hexdigest()


def sandbox_available():
    try:
        require_sandbox()
    except SandboxUnavailable:
        return False
    return True


def check(name, path, sandbox=None):
    """Grade one notebook as `grading.execution` does, without writing anything."""
    task, path = exercise(name), Path(path)
    cells, notes = read_cells(path.read_bytes())
    rebuilt = rebuild(cells, task.assignment, notes)
    sandbox = sandbox_available() if sandbox is None else sandbox
    run = execute(rebuilt.notebook, task.assignment, sandbox=sandbox)
    verdicts = {test.grade_id: test for test in run.tests}
    parts = [asdict(part) | {"checks": list(part.checks), "score": verdicts[part.id].score, "message": verdicts[part.id].message} for part in task.parts]
    answers = {name: text for name, text in rebuilt.answers.items() if text is not None}
    questions = [cell.id for cell in task.cells("manual")]
    return Result(
        exercise=name, notebook=_shown(path), digest=digest_of(name, path), score=run.score, automatic=run.max_score,
        points=task.points, parts=parts, written=[q for q in questions if q in answers],
        remarks=_remarks(rebuilt, run, answers, sandbox), sandboxed=sandbox, built_on=_built_on(task.functions, answers))


def _built_on(functions, answers):
    """Which of the exercise's functions the answer to each of them calls."""
    found = {}
    for text in answers.values():
        for name in functions:
            if re.search(rf"^(?:def|class) {name}\b", text, re.M):
                found[name] = [other for other in functions if other != name and re.search(rf"\b{other}\(", text)]
    return found


def _remarks(rebuilt, run, answers, sandbox):
    remarks = [] if sandbox else [NO_SANDBOX]
    remarks += [*rebuilt.notes.values(), *run.setup_problems]
    for cell in run.notebook.cells:
        remarks += [f"单元格 {cell.id} 运行出错：{output.ename}：" + PLACE.sub(r"（第 \1 行）", output.evalue[:200]) for output in cell.get("outputs", [])
                    if output.output_type == "error" and not is_test(cell) and output.ename != "NotImplementedError"]
    for text in answers.values():
        if found := FORBIDDEN.search(text):
            remarks.append(f"答案里有 {found[0].strip()}：评分的环境里没有 {found[1]}，那里会运行失败。")
    return list(dict.fromkeys(remarks))


def _shown(path):
    path = path.resolve()
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else path.name


# ---- the report ------------------------------------------------------------------------------------------------------


def report(result):
    """The result as Markdown, which reads well in a terminal too."""
    task = exercise(result.exercise)
    lines = [f"# {result.exercise}　{task.title}", "", f"笔记本：{result.notebook}", ""]
    lines += [f"> {remark}\n" for remark in result.remarks]
    for function in task.functions:
        parts = [part for part in result.parts if part["function"] == function]
        lines += ["", f"## {function}　{_sum(parts, 'score')} / {_sum(parts, 'points')} 分", ""]
        if weak := _unfinished_below(result, function):
            lines += [f"> {function} 用到了你的 {'、'.join(weak)}，那里还没有全对：先改那里。", ""]
        if len({part["message"] for part in parts}) == 1 and not part_passed(parts[0]):
            lines += [f"- ✗ {parts[0]['message']}", ""]
            continue
        for part in parts:
            mark = "✓" if part_passed(part) else "✗"
            lines.append(f"- {mark} {part['title']}（{part['score']:g} / {part['points']}）")
            if part["message"]:
                lines += ["", *(f"      {line}" for line in part["message"].splitlines()), ""]
    lines += ["", f"自动评分：{result.score:g} / {result.automatic:g} 分。{_question(task, result)}", _next_step(task, result)]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)) + "\n"


def _unfinished_below(result, function):
    """Functions that this one calls and that lost points, if it lost some itself."""
    lost = {part["function"] for part in result.parts if not part_passed(part)}
    return [other for other in result.built_on.get(function, []) if other in lost] if function in lost else []


def part_passed(part):
    return part["score"] == part["points"]


def _sum(parts, key):
    return f"{sum(part[key] for part in parts):g}"


def _question(task, result):
    points = sum(cell.metadata["nbgrader"]["points"] for cell in task.cells("manual"))
    return f"简答 {points} 分由老师评，{'你已作答' if result.written else '你还没有作答'}。"


def _next_step(task, result):
    unwritten = [part for part in result.parts if "NotImplementedError" in part["message"]]
    if result.score == result.automatic:
        return "全部性质都成立。" + ("" if result.written else "把简答也写上，就完成了。")
    if len(unwritten) == len(result.parts):
        return f"还没有开始：打开 {_shown(task.release)}，先写第一个函数。"
    return "哪条不成立，就把报告里那行调用粘到笔记本里单独运行；仍想不通，看那一题的三步提示。"


def store(result):
    """Keep the report for reading and the result for `make progress`."""
    REPORTS.mkdir(exist_ok=True)
    (REPORTS / f"{result.exercise}.md").write_text(report(result), encoding="utf-8")
    text = json.dumps(asdict(result), ensure_ascii=False, indent=1)
    (REPORTS / f"{result.exercise}.json").write_text(text, encoding="utf-8")


def stored(name):
    """The last result of this exercise, or None."""
    try:
        return Result(**json.loads((REPORTS / f"{name}.json").read_text("utf-8")))
    except (FileNotFoundError, ValueError, TypeError):
        return None


def main():
    parser = argparse.ArgumentParser(prog="make check", description="检查自己的练习：make check EX=ex04-attention [NOTEBOOK=路径]")
    parser.add_argument("exercise", help="练习名，如 ex04-attention")
    parser.add_argument("notebook", nargs="?", help="笔记本路径，默认 exercises/ 里的那一份")
    options = parser.parse_args()
    try:
        path = Path(options.notebook or exercise(options.exercise).release)
        result = check(options.exercise, path)
    except FileNotFoundError as error:
        sys.exit(f"没有这个文件：{error.filename}")
    except (ValueError, Unreadable) as error:
        sys.exit(str(error))
    store(result)
    print(report(result))
    print(f"报告：{_shown(REPORTS / f'{result.exercise}.md')}")


if __name__ == "__main__":
    main()
