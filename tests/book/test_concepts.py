"""The concept map, both ways: each concept of the documents is treated in the chapter that is named for it, and no cell names one that doesn't exist."""

import nbformat
import pytest
import yaml

from tests.conftest import ROOT

CONCEPTS = yaml.safe_load((ROOT / "chapters/concepts.yml").read_text(encoding="utf-8"))
CHAPTERS = sorted((ROOT / "chapters").glob("[0-9][0-9]-*.ipynb"))


def marked(path):
    nb = nbformat.read(path, as_version=4)
    return [concept for cell in nb.cells for concept in cell.metadata.get("concepts", [])]


def test_ids_are_whole():
    assert [c["id"] for c in CONCEPTS] == [f"A{i}" for i in range(1, 51)] + [f"B{i}" for i in range(1, 106)]
    assert all(c["status"] in {"保留", "订正", "合并"} for c in CONCEPTS)
    assert not [c["id"] for c in CONCEPTS if c["status"] != "保留" and not c.get("reason")], "订正与合并要写原因"


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda p: p.stem)
def test_chapter_treats_its_concepts(path):
    chapter, found = path.name[:2], set(marked(path))
    assert not found - {c["id"] for c in CONCEPTS}, "单元元数据里有不存在的编号"
    assert not {c["id"] for c in CONCEPTS if c["chapter"] == chapter} - found, "这些概念归本章，却没有单元标明讲到了它"
