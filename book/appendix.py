"""Appendix pages that are derived, never typed: where each concept of the documents is treated, and the table of shapes.

    python -m book.appendix      writes chapters/appendix/concepts.md and shapes.md (a test compares them with what this gives)
"""

import importlib
import inspect
import re
import sys
from html import escape
from pathlib import Path

import nbformat
import yaml

from book.ext.anchors import slug

ROOT = Path(__file__).resolve().parent.parent
APPENDIX = ROOT / "chapters" / "appendix"
MODULES = ("tokenizer embedding position functional attention feedforward normalization block model sampling generation "
           "accounting gradients training").split()


def chapter_notebooks():
    return sorted((ROOT / "chapters").glob("[0-9][0-9]-*.ipynb"))


def concept_places():
    """{concept id: [(notebook stem, heading, number of its section)]}, from the cells' metadata: the heading in the cell, else the last one before it."""
    places = {}
    for path in chapter_notebooks():
        heading = number = ""
        for cell in nbformat.read(path, as_version=4).cells:
            titles = re.findall(r"^#{1,3} (.+)$", cell.source, re.M) if cell.cell_type == "markdown" else []
            here = titles[0] if titles else heading
            numbered = [title.split()[0] for title in titles if re.match(r"\d", title)]
            number = numbered[0] if numbered else number
            for concept in cell.metadata.get("concepts", []):
                places.setdefault(concept, []).append((path.stem, here, number))
            heading, number = (titles or [heading])[-1], (numbered or [number])[-1]
    return places


def link(stem, heading, number):
    # The anchor is the slug of the title as the page shows it: formulas without their dollars and commands.
    shown = re.sub(r"\$([^$]*)\$", lambda m: re.sub(r"\\\w+|[{}]", "", m[1]), heading).replace("`", "")
    label = number if shown.startswith(number) else f"{number} {shown}"
    return f'<a href="../{stem}.html#{slug(shown)}">{escape(label)}</a>'


def concepts_page():
    concepts = yaml.safe_load((ROOT / "chapters" / "concepts.yml").read_text(encoding="utf-8"))
    places = concept_places()
    counts = {status: sum(c["status"] == status for c in concepts) for status in ("保留", "订正", "合并")}
    lines = [
        "# 原文—章节对照", "",
        f"两份文档的 {len(concepts)} 个概念、类比、表、图、例与问答，各在本书的哪一节。"
        f"保留 {counts['保留']} 个，订正 {counts['订正']} 个，合并 {counts['合并']} 个；订正与合并都写明原因，逐条的数值见核验账本。", "",
        "A 是文档 000《核心组件》，B 是文档 001《理解原理》，按原文的次序编号。", "",
    ]
    for letter, title in (("A", "文档 000《核心组件》"), ("B", "文档 001《理解原理》")):
        lines += [f"## {title}", "", "| 编号 | 类型 | 内容 | 处理 | 在哪一节 |", "|---|---|---|---|---|"]
        for c in concepts:
            if c["id"][0] == letter:
                where = "、".join(link(*place) for place in dict.fromkeys(places.get(c["id"], [])))
                treated = c["status"] + (f"：{c['reason']}" if c.get("reason") else "")
                lines.append(f"| {c['id']} | {c['kind']} | {c['title']} | {treated} | {where} |")
        lines.append("")
    return "\n".join(lines)


def stated_shapes(function):
    """The lines behind 「形状：」 in a docstring, joined."""
    found = re.search(r"形状：(.+?)(?=\n\s*(?:错误|来源)：|\n\s*\n|\Z)", inspect.getdoc(function) or "", re.S)
    return " ".join(found[1].split()) if found else ""


def shapes_page():
    lines = [
        "# 符号、形状与变量", "",
        "同一个部件在公式、`lib` 与练习里用同一个名字。下面的形状取自 `lib` 每个函数的文档，测试用随机大小逐一核对过它们。", "",
        "| 记号 | 变量 | 含义 |", "|---|---|---|",
        "| $n$ | `n`、`n_q`、`n_k` | 词元个数；查询、键的个数 |",
        "| $d$ | `d`、`d_model` | 模型宽度 |",
        "| $h$ | `n_heads` | 查询头的个数；键值头是 `n_kv_heads` |",
        "| $d_{head}$ | `d_head` | 头宽，通常是 $d/h$（文档写作 $d_h$ 或 $d_k$） |",
        "| $d_{ff}$ | `d_ff` | 前馈的中间宽度 |",
        "| $L$ | `n_layers` | 层数 |",
        "| $V$ | `vocab_size` | 词表大小 |",
        "| $W_Q$、$W_K$、$W_V$、$W_O$ | `W_Q` … `W_O` | 投影矩阵，行向量写法，形状 [进, 出] |",
        "| $T$、$p$、$k$ | `temperature`、`top_p`、`top_k` | 采样的三种调法 |", "",
        "`...` 表示前面可以有任意几个轴：批、头，或没有。", "",
    ]
    for name in MODULES:
        module = importlib.import_module(f"lib.{name}")
        functions = [f for name_, f in vars(module).items() if inspect.isfunction(f) and f.__module__ == module.__name__ and name_[0] != "_"]
        rows = [(f.__name__, stated_shapes(f)) for f in functions if stated_shapes(f)]
        if not rows:
            continue
        summary = (inspect.getdoc(module) or "").split("\n")[0]
        lines += [f"## lib.{name}", "", summary, "", "| 函数 | 形状 |", "|---|---|"]
        lines += [f"| `{public}` | {_code(shape)} |" for public, shape in rows]
        lines.append("")
    return "\n".join(lines)


def _code(shape):
    return "<code>" + escape(shape).replace("|", "&#124;").replace("*", "&#42;").replace("_", "&#95;") + "</code>"


PAGES = {"concepts.md": concepts_page, "shapes.md": shapes_page}


def main():
    for name, page in PAGES.items():
        (APPENDIX / name).write_text(page().rstrip() + "\n", encoding="utf-8")
        print(APPENDIX.relative_to(ROOT) / name)


if __name__ == "__main__":
    sys.exit(main())
