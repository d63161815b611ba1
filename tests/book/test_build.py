"""The small book, built with the real configuration: what each extension promises."""

import json

import nbformat
import pytest
from bs4 import BeautifulSoup

from book import build
from tests.book.conftest import FIGURE, HEADER, notebook


@pytest.fixture(scope="module")
def page(mini):
    return lambda name: BeautifulSoup((mini[1] / f"{name}.html").read_text(encoding="utf-8"), "html.parser")


def test_code_is_run_and_its_output_shown(page):
    outputs = [e.get_text().strip() for e in page("chapters/04-one").select(".cell_output pre")]
    assert outputs == ["42"]


def test_chinese_headings_have_readable_stable_anchors(page):
    assert page("index").find(id="数值稳定性").name == "section"
    assert page("chapters/04-one").find(id="4-1-层归一化与残差").name == "section"


def test_formulas_are_set_while_building(page):
    index = page("index")
    assert len(index.select(".katex")) >= 2
    assert index.select_one(".math-block .katex-display")
    assert index.select(".katex annotation")[0].get_text() == "a^2+b^2=c^2"
    assert index.select_one(".math-block .eqno").get_text().startswith("(1)")
    assert [a["href"] for a in index.select("a.reference.internal") if a.get_text() == "(1)"] == ["#equation-eq-softmax"]
    assert not [s for s in index.find_all("script") if "mathjax" in str(s).lower()]


def test_formulas_and_code_inside_a_summary(page):
    summary = page("index").find("summary")
    assert summary.select_one(".katex annotation").get_text() == "x<1"
    assert summary.find("code").get_text() == "code"


def test_terms_link_to_the_glossary_by_any_name(page):
    links = {a.get_text(): a["href"] for a in page("index").select("a.reference.internal") if "glossary" in a["href"]}
    assert links["词元"] == links["token"] == "chapters/appendix/glossary.html#term-词元"
    assert links["KV Cache"] == "chapters/appendix/glossary.html#term-键值缓存"


def test_glossary_links_to_chapters_that_stand(page):
    glossary = page("chapters/appendix/glossary")
    entry = glossary.find(id="term-缩放点积注意力").find_next("dd")
    assert entry.find("a")["href"] == "../04-one.html"
    assert "首次讲到" not in glossary.find(id="term-词元").find_next("dd").get_text()


def test_empty_corner_of_a_table_is_no_header(page):
    assert page("index").select_one("thead tr").find(["td", "th"]).name == "td"


def test_a_head_that_is_a_formula_has_a_name(page):
    assert page("index").select_one("thead th .visually-hidden").get_text() == "x1"


def test_punctuation_is_held_by_its_formula(page):
    held = page("index").select_one("p .held")
    assert held.select_one(".katex") and held.get_text().endswith("，")


def test_only_parts_of_the_site_are_loaded(page):
    for name in ("index", "chapters/04-one", "search"):
        html = page(name)
        assert not [e for e in html.select("[src]") if ":" in e["src"].split("/")[0]]
        loaded = " ".join(e.get("src", "") for e in html.find_all("script"))
        assert not any(word in loaded for word in ("fontawesome", "searchindex", "search-data", "mathjax", "thebe"))


def test_each_page_asks_for_feedback_about_itself(page):
    links = [a["href"] for a in page("chapters/04-one").select(".feedback a")]
    repository = "https://github.com/token-journey/token-journey"
    assert links[0].startswith(f"{repository}/issues/new?title=4+") and "04-one.ipynb" in links[0]
    assert links[1:] == [f"{repository}/{kind}/main/chapters/04-one.ipynb" for kind in ("blob", "commits")]


def test_a_site_without_pyodide_says_where_to_run(page):
    panel = page("chapters/04-one").select_one(".pyrun")
    assert not panel.find("button")
    assert [a.get_text() for a in panel.find_all("a")] == ["Binder", "Colab"]
    assert not page("index").select(".pyrun")


def test_moved_pages_leave_their_address_behind(mini, page):
    moved = page("chapters/old/attention")
    assert moved.find("meta", attrs={"http-equiv": "refresh"})["content"] == "0; url=../04-one.html"
    assert moved.find("a")["href"] == "../04-one.html"


def test_second_build_does_nothing(mini):
    source, site, said = mini
    assert any("执行 2 个" in line for line in said)
    again = []
    before = (site / "index.html").stat().st_mtime_ns
    build.run(source, source / "_build", report=again.append)
    assert again[0].startswith("notebook：执行 0 个")
    assert (site / "index.html").stat().st_mtime_ns == before


FAULTS = {
    "{ref}`没有的地方`": "没有的地方",
    "{term}`没有的术语`": "没有的术语",
    "$\\frac{1}$": "公式排不出来",
    "\n\n```{image} chart.svg\n```\n\n": "替代文字",
    "[词](nowhere.md)": "nowhere.md",
}


def test_faults_fail_the_build_again_and_again_and_keep_the_old_site(book_source, capfd):
    (book_source / "_toc.yml").write_text("format: jb-book\nroot: index\nchapters:\n- file: chapters/appendix/glossary\n")
    old = book_source / "_build" / "html"
    old.mkdir(parents=True)
    (old / "index.html").write_text("old")
    (book_source / "index.md").write_text("# 小书\n\n" + "、".join(FAULTS), encoding="utf-8")
    for _ in range(2):  # the second run must not pass because pages are "unchanged"
        with pytest.raises(build.BuildError):
            build.run(book_source, book_source / "_build", report=lambda _: None)
        said = capfd.readouterr().err
        assert not [message for message in FAULTS.values() if message not in said]
    assert (old / "index.html").read_text() == "old"


def test_figure_without_alternative_text_fails(book_source, capfd):
    nbformat.write(notebook("# 图", (HEADER,), (FIGURE,)), book_source / "chapters/04-one.ipynb")
    with pytest.raises(build.BuildError):
        build.run(book_source, book_source / "_build", report=lambda _: None)
    assert "替代文字" in capfd.readouterr().err


def test_npm_lock_names_no_host(root):
    lock = json.loads((root / "book" / "package-lock.json").read_text())
    assert all("resolved" not in package for package in lock["packages"].values())
    assert all(package.get("integrity") for name, package in lock["packages"].items() if name)
