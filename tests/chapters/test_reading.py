"""What a reader of one chapter alone needs: whose words are quoted, sections that exist, a reason beside every wrong answer."""

import re
from pathlib import Path

import nbformat
import pytest

CHAPTERS = sorted(Path(__file__).resolve().parents[2].glob("chapters/[0-9]*.ipynb"))
TEXTS = {path.stem: [c.source for c in nbformat.read(path, as_version=4).cells if c.cell_type == "markdown"] for path in CHAPTERS}
HEADINGS = {number for cells in TEXTS.values() for text in cells for number in re.findall(r"^#+ (\d+(?:\.\d+)?) ", text, re.M)}
each_chapter = pytest.mark.parametrize("name", TEXTS)


@each_chapter
def test_the_documents_are_introduced_where_they_are_first_named(name):
    cells = TEXTS[name]
    first = next((i for i, text in enumerate(cells) if re.search("原文|文档 00[01]", text)), None)
    if first is not None and name != "00-journey":  # chapter 00 introduces them in 0.3
        assert re.search(r"\*\*原文\*\*.*文档 00[01].*「」", cells[0], re.S)


@each_chapter
def test_named_sections_exist(name):
    text = "\n".join(TEXTS[name])
    named = re.findall(r"见 ?\[?(\d{1,2}\.\d{1,2})", text) + re.findall(r"(\d{1,2}\.\d{1,2}) ?节", text)
    assert [number for number in named if number not in HEADINGS] == []


@each_chapter
def test_every_wrong_answer_says_why(name):
    options = re.findall(r"<details><summary>(.*?)</summary>(.*?)</details>", "\n".join(TEXTS[name]), re.S)
    assert options
    bare = [answer for answer, reason in options if not reason.strip().startswith("对。") and len(reason.strip().removeprefix("不对。")) < 6]
    assert bare == []
