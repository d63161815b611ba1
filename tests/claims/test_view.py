"""What readers see of the ledger: tables that are well formed, complete, safe, and readable as plain text."""

import re
from html.parser import HTMLParser

import pytest

import claims
from claims.judge import VERDICTS
from claims.ledger import HARMS
from claims.texts import readable, show


class Outline(HTMLParser):
    """Checks that tags close in order, and keeps the cells of every row and the visible text."""

    VOID = {"br", "input"}

    def __init__(self, markup):
        super().__init__()
        self.open, self.rows, self.text = [], [], []
        self.feed(markup)
        assert not self.open, f"没有关闭的标签 {self.open}"

    def handle_starttag(self, tag, attributes):
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, f"标签 {tag} 关闭得不是时候"

    def handle_data(self, data):
        if "style" in self.open or "script" in self.open:
            return
        self.text.append(data)
        if {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data


def test_a_chapter_shows_all_its_rows():
    rows = claims.rows("04")
    table = Outline(rows._repr_html_())
    assert len(table.rows) == len(rows) + 1 and {len(row) for row in table.rows} == {5}
    for row, cells in zip(rows, table.rows[1:]):
        assert cells[0] == row.label and row.id in cells[1] and readable(row.quote) in cells[1]
        assert (row.correct or "") in cells[4] and (row.note or "") in cells[4]


@pytest.mark.parametrize("chapter", sorted({record["chapter"] for record in claims.load()}))
def test_every_chapter_has_plain_text(chapter):
    rows = claims.rows(chapter)
    text = repr(rows)
    assert all(row.id in text and (row.correct or "") in text for row in rows) and "<" not in re.sub(r"</?w>|< ", "", text)
    assert [row.chapter for row in rows] == [chapter] * len(rows)


def test_a_wrong_chapter_is_refused():
    with pytest.raises(ValueError, match="两位"):
        claims.rows("4")
    with pytest.raises(KeyError, match="b-no-such"):
        claims.claim("b-no-such")


def test_rows_filter():
    assert {row.verdict for row in claims.rows(verdict="rounding")} == {"rounding"}
    assert {row.doc for row in claims.rows(doc="000")} == {"000"}
    assert sum(len(claims.rows(harm=harm)) for harm in HARMS) + len(claims.rows(verdict="holds")) == len(claims.rows())


def test_whatever_is_quoted_is_escaped():
    row = claims.claim("b-merge-5")
    assert "</w>" in row.correct and "&lt;/w&gt;" in claims.Rows([row])._repr_html_()
    Outline(claims.rows()._repr_html_())


def test_controls_name_only_what_is_there():
    markup = claims.rows("06").with_filters()._repr_html_()
    assert re.findall(r'<option value="(\w+)">', markup) == ["holds", "06", "000", "001"]
    assert "<form>" not in claims.rows("06")._repr_html_()


@pytest.mark.browser
def test_filters_work_in_a_browser(start_browser, tmp_path):
    page_file = tmp_path / "ledger.html"
    head = "<!doctype html><meta charset=utf-8><meta name=viewport content='width=device-width'>"
    page_file.write_text(head + claims.rows("04").with_filters()._repr_html_(), encoding="utf-8")
    browser = start_browser()
    page = browser.new_page(viewport={"width": 390, "height": 800})
    page.goto(page_file.as_uri())
    visible = lambda: page.locator("tbody tr:visible").count()
    assert visible() == len(claims.rows("04"))
    assert page.evaluate("document.documentElement.scrollWidth") <= 390, "手机宽度下页面横向溢出"
    page.select_option("select[name=verdict]", "rounding")
    assert visible() == len([row for row in claims.rows("04") if row.verdict == "rounding"])
    page.fill("input[name=text]", "b-out0")
    assert visible() == 1 and "1 / " in page.locator("output").inner_text()
    browser.close()


def test_summary_and_legend():
    table = Outline(claims.summary()._repr_html_())
    assert table.rows[-1][-1] == str(len(claims.ledger())) and len(table.rows) == 15
    assert all(rule in str(claims.legend()) for _, rule in VERDICTS.values())
    harms = Outline(claims.harms()._repr_html_())
    assert sum(int(row[1]) for row in harms.rows[1:]) == len(claims.ledger()) - len(claims.rows(verdict="holds"))


def test_contradictions_stand_side_by_side():
    between, within = claims.contradictions(True), claims.contradictions(False)
    assert "000 L101" in between and "001 L868" in between and "以 000 L101 为准" in between, "Post-LN 以 000 为准"
    pairs = len(str(between).splitlines()) + len(str(within).splitlines())
    assert len(str(claims.contradictions()).splitlines()) == pairs
    for page in (between, within):
        assert {len(row) for row in Outline(page._repr_html_()).rows} == {3}
    assert all(re.match(r"以 00[01] L\d+ 为准", line.split("→ ")[-1]) for line in str(between).splitlines()), "两份文档之间的每个矛盾都有定论"


@pytest.mark.parametrize("value, text", [
    (True, "是"), (None, "—"), (47.561, "47.561"), (617558016, "617,558,016"), ([1.5, 2], "[1.5, 2]"), (float("inf"), "∞"), (8.4e-6, "8.4e-06"),
    ({"GPT-3": 50257}, "GPT-3：50,257"), (0.0, "0"),
])
def test_values_as_text(value, text):
    assert show(value) == text


def test_quotations_lose_their_latex():
    assert readable(r"W_1\in\mathbb R^{d_{\mathrm{ff}}\times d}") == "W_1∈ℝ^(d_ff×d)"
    assert not [row.id for row in claims.ledger() if re.search(r"[\\{}]", readable(row.quote))]
