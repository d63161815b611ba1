"""The derived appendix pages are what their sources give, and their links lead to headings that exist."""

import re

import nbformat
import pytest

from book.appendix import APPENDIX, PAGES, chapter_notebooks
from book.ext.anchors import slug


@pytest.mark.parametrize("name", PAGES)
def test_page_is_current(name):
    assert (APPENDIX / name).read_text(encoding="utf-8") == PAGES[name]().rstrip() + "\n", "先运行 python -m book.appendix"


def test_every_section_link_has_its_heading():
    headings = {}
    for path in chapter_notebooks():
        for cell in nbformat.read(path, as_version=4).cells:
            if cell.cell_type == "markdown":
                headings.setdefault(path.stem, set()).update(
                    slug(re.sub(r"\$([^$]*)\$", lambda m: re.sub(r"\\\w+|[{}]", "", m[1]), title)) for title in re.findall(r"^#{1,3} (.+)$", cell.source, re.M))
    links = re.findall(r'href="\.\./([^.]+)\.html#([^"]*)"', (APPENDIX / "concepts.md").read_text(encoding="utf-8"))
    assert len(links) >= 155
    assert not [(stem, anchor) for stem, anchor in links if anchor not in headings[stem]]
