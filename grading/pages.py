"""由练习生成的文字：附录「常见错误写法图鉴」与「检查与错误写法对照」，以及每章末尾的练习卡片。

`make exercises` writes them; nothing in them is typed twice.
"""

import inspect
import re
import textwrap

import nbformat

from grading.assignment import ROOT
from grading.catalog import CHAPTERS, assignments, exercise
from grading.checks import checks_of
from grading.mutants import mutants_of, rights_of

APPENDIX = ROOT / "chapters" / "appendix"


def mistakes():
    """The page for readers."""
    lines = [
        "# 常见错误写法图鉴", "",
        "> **先做练习，再读这一页。** 它逐个写出练习里的函数最常见的写错法，会剧透。", "",
        f"下面是 {sum(len(mutants_of(n)) for n in assignments())} 种错误写法。它们大多形状正确、也不报错，所以能活很久；"
        "带链接的，公开的讨论里有人报告过。练习的隐藏检查逐一认得它们：你的结果与哪一种完全一致，反馈就会说出它的名字。", ""]
    for name in assignments():
        task = exercise(name)
        lines += [f"## {task.title}", "", f"练习 `{name}`，{_chapter_link(task)}。", ""]
        for function in task.functions:
            lines += _function(name, function)
    return "\n".join(lines).rstrip() + "\n"


def _chapter_link(task):
    path = next(iter(CHAPTERS.glob(f"{task.number}-*.ipynb")), None)
    text = f"第 {int(task.number)} 章"
    return f"[{text}](../{path.name})" if path else text


def _function(name, function):
    rows = [f"| {_text(m.name)} | {_text(m.remedy)} | {m.section} | {_threads(m.seen_in)} |" for m in mutants_of(name, function)]
    code = "\n\n\n".join(f"# {m.name}\n{_code(m)}" for m in mutants_of(name, function))
    return [f"### `{function}`", "", "| 错误写法 | 为什么错，应当怎样 | 见 | 谁报告过 |", "|---|---|---|---|", *rows, "",
            "````{dropdown} 它们的代码", "```{code-block} python", code, "```", "````", ""]


def _text(words):
    """Plain words in a table of Markdown."""
    return re.sub(r"([\\|*<$`])", r"\\\1", words)


def _threads(threads):
    links = [f"[{_short(thread)}](https://github.com/{thread})" for thread in threads]
    return "、".join(links)


def _short(thread):
    """owner/repository/issues/7 → repository#7"""
    _, repository, _, number = thread.split("/")
    return f"{repository}#{number}"


def _code(mutant):
    """The source of a wrong solution without its registration."""
    source = textwrap.dedent(inspect.getsource(mutant.body))
    return source[re.search(r"^(?:def|class) ", source, re.M).start():].rstrip()


def coverage():
    """The page for teachers."""
    lines = [
        "# 检查与错误写法对照", "",
        "每份练习的每个函数：各部分的分、其中的检查各问哪条性质、已知的错误写法由哪一条先抓住。"
        "这张表由诊断表生成；测试保证每种错误都被所列的检查抓住并说对名字，参考答案与其他正确写法得满分，空的发布版得 0 分。", "",
        "| 练习 | 函数 | 检查 | 错误写法 | 其他正确写法 |", "|---|---|---|---|---|"]
    for name in assignments():
        lines += [f"| {name} | `{f}` | {_count(checks_of(name), f)} | {len(mutants_of(name, f))} | {len(rights_of(name, f))} |"
                  for f in exercise(name).functions]
    for name in assignments():
        lines += ["", f"## {name}　{exercise(name).title}", "", "| 部分（分） | 检查 | 性质 | 先由它抓住的错误写法 |", "|---|---|---|---|"]
        for part in exercise(name).parts:
            for check in part.checks:
                caught = "、".join(_text(m.name) for m in mutants_of(name, part.function) if m.caught_by == check)
                lines.append(f"| `{part.id}`（{part.points}） | `{check}` | {_text(checks_of(name)[part.function, check].claim)} | {caught or '—'} |")
    return "\n".join(lines) + "\n"


def _count(registry, function):
    return sum(1 for other, _ in registry if other == function)


def card(name):
    """What the end of the chapter says about its exercise."""
    task = exercise(name)
    return (
        f"> **`{name}`**　难度 {task.difficulty} · 约 {task.minutes} 分钟 · {task.points} 分\n>\n"
        f"> 实现 {'、'.join(f'`{f}`' for f in task.functions)}。打开 `exercises/{name}/{name}.ipynb`，"
        f"写好后运行 `make check EX={name}`：看得到得分、没通过的性质、出错的小输入和提示。")


CARD = re.compile(r"^> \*\*`(ex\d\d-[a-z-]+)`\*\*.*\n(?:>.*(?:\n|$))*", re.M)


def stale_cards():
    """[(path of a chapter, its notebook with the current card)] where the card isn't current."""
    stale = []
    for path in sorted(CHAPTERS.glob("*.ipynb")):
        notebook, changed = nbformat.read(path, as_version=nbformat.NO_CONVERT), False
        for cell in notebook.cells:
            found = CARD.search(cell.source) if cell.cell_type == "markdown" else None
            if found and found[1] in assignments() and found[0].rstrip("\n") != card(found[1]):
                cell.source = cell.source.replace(found[0].rstrip("\n"), card(found[1]))
                changed = True
        if changed:
            stale.append((path, notebook))
    return stale


PAGES = {"mutants.md": mistakes, "check-coverage.md": coverage}


def write():
    """Write the pages and the chapters' cards that changed; their names."""
    changed = []
    for path, notebook in stale_cards():
        path.write_text(nbformat.writes(notebook, version=nbformat.NO_CONVERT) + "\n", encoding="utf-8")
        changed.append(f"{path.parent.name}/{path.name}")
    for name, make in PAGES.items():
        text = make()
        if not (APPENDIX / name).exists() or (APPENDIX / name).read_text("utf-8") != text:
            (APPENDIX / name).write_text(text, encoding="utf-8")
            changed.append(f"chapters/appendix/{name}")
    return changed
