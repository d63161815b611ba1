"""The other forms of the same state: one PDF, and the archives of site, notebooks and exercises, unpacked elsewhere and used."""

import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import lxml.html
import nbformat
import pikepdf
import pytest
from playwright.sync_api import expect

from book import build, bundle, execute, node, pdf
from book.serve import serve

HERE = Path(__file__).resolve().parent
expect.set_options(timeout=60_000)  # a busy machine is slow


@pytest.fixture(scope="module")
def archives(tmp_path_factory, site):
    target = tmp_path_factory.mktemp("dist")
    bundle.write_all(site, target)
    return sorted(target.glob("*.zip"))


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory, archives):
    """{name: folder} of the archives, unpacked where nothing of the repository is near."""
    folders = {}
    for archive in archives:
        folder = tmp_path_factory.mktemp("某处 别的地方") / archive.stem
        zipfile.ZipFile(archive).extractall(folder)
        (inside,) = folder.iterdir()
        folders[archive.stem.removeprefix("token-journey-")] = inside
    return folders


def files(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_the_site_is_whole(unpacked, site):
    assert files(unpacked["site"]) == files(site)


def test_the_notebooks_come_with_all_they_use(unpacked, root):
    folder = unpacked["notebooks"]
    assert {p.name for p in folder.glob("chapters/*.ipynb")} == {p.name for p in root.glob("chapters/*.ipynb")}
    assert (folder / "binder" / "requirements.txt").exists() and (folder / "LICENSE").exists()
    # A whole chapter in a fresh kernel, in the unpacked folder alone.
    path = folder / "chapters" / "04-attention.ipynb"
    _, problem = execute.execute_one(path, folder / "done.ipynb")
    assert problem is None
    done = nbformat.read(folder / "done.ipynb", as_version=4)
    assert sum(bool(cell.get("outputs")) for cell in done.cells) > 30
    where = subprocess.run([sys.executable, "-c", "import sys; sys.path.insert(0, '..'); import lib; print(lib.__file__)"],
                           cwd=folder / "chapters", capture_output=True, text=True, check=True)  # fmt: skip
    assert where.stdout.startswith(str(folder))


def test_the_exercises_are_those_of_the_repository(unpacked, root):
    assert files(unpacked["exercises"] / "exercises") == {f for f in files(root / "exercises") if not re.search("__pycache__|checkpoints", f)}
    for path in (unpacked["exercises"] / "exercises").rglob("*.ipynb"):
        assert "BEGIN SOLUTION" not in path.read_text(encoding="utf-8")


def test_the_same_state_gives_the_same_archives(archives, site, tmp_path):
    bundle.write_all(site, tmp_path)
    assert len(archives) == 3
    for archive in archives:
        assert archive.read_bytes() == (tmp_path / archive.name).read_bytes(), archive.name


@pytest.mark.browser
@pytest.mark.parametrize("way", ["folder", "server"])
def test_the_unpacked_site_works(unpacked, browser, way):
    """Opened from its folder, and served: text, formulas, figures, links, search; nothing fails."""
    folder, faults = unpacked["site"], []
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("requestfailed", lambda request: faults.append(request.url))
    page.on("response", lambda response: response.status >= 400 and faults.append(response.url))
    with serve(folder) as address:
        page.goto(f"{folder.as_uri()}/index.html" if way == "folder" else f"{address}/index.html")
        page.locator("article a", has_text="核验账本").first.click()
        page.wait_for_url("**/appendix/ledger.html")
        page.keyboard.press("Control+k")
        page.locator("#pst-search-dialog input").fill("缩放点积注意力")
        page.locator("#pst-search-dialog a", has_text="4 Q、K、V").first.click()
        page.wait_for_url("**/04-attention.html*")
        expect(page.locator("article h1")).to_contain_text("缩放点积注意力")
        page.evaluate("document.querySelectorAll('img').forEach(i => i.loading = 'eager')")
        page.wait_for_function("[...document.images].every(i => i.complete)")
        assert page.evaluate("[...document.images].filter(i => !i.naturalWidth && i.checkVisibility()).length") == 0
        assert page.evaluate("document.fonts.ready.then(() => document.fonts.check('16px KaTeX_Main'))")
    page.close()
    assert not faults


# --------------------------------------------------------------------------- PDF (make test-site)


def read_pdf(path):
    """What pdf.js reads in it, as read_pdf.mjs says."""
    modules = node.install(print, HERE / "pdfjs")
    done = node.run(HERE / "read_pdf.mjs", modules, path, capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


@pytest.mark.browser
def test_a_heading_on_top_of_a_page_stands_once_in_the_outline(browser, tmp_path):
    titles = [f"第 {i} 节" for i in range(5)]
    sections = "".join(f"<h2>{title}</h2><p>字</p>" for title in titles)
    style = "h2 { break-before: page; margin: 0; line-height: 1 }"
    (tmp_path / "page.html").write_text(f"<!doctype html><meta charset=utf-8><style>{style}</style><p>字</p>{sections}", encoding="utf-8")
    pdf.write(browser, tmp_path / "page.html", tmp_path / "page.pdf")
    assert [title for title, _, _ in read_pdf(tmp_path / "page.pdf")["outline"]] == titles


@pytest.mark.browser
def test_shadows_and_tags_do_not_swell_the_file(browser, tmp_path):
    """No shadow becomes a picture, though the theme insists on it; what tells a screen reader the structure is there, packed."""
    style = "html[data-theme=light] .box { box-shadow: 0 3px 8px #0003 !important }"
    page = f"<!doctype html><html data-theme=light><meta charset=utf-8><style>{style}</style>" + "<p class=box>字</p>" * 50
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    pdf.write(browser, tmp_path / "page.html", tmp_path / "page.pdf")
    with pikepdf.open(tmp_path / "page.pdf") as document:
        kinds = [thing.get("/Subtype", thing.get("/Type")) for thing in document.objects if isinstance(thing, pikepdf.Stream)]
        assert "/ObjStm" in kinds and "/Image" not in kinds
        assert len([o for o in document.objects if isinstance(o, pikepdf.Dictionary) and o.get("/S") == "/P"]) == 50


def test_links_find_their_place_among_equal_ids(browser):
    """Every page of the book has its own id1; side by side each link still leads to the one that it meant."""
    part = "<span id='document-chapters/{0}'></span><section id={0}><p id=id1>{0}</p>{1}</section>"
    page = browser.new_page()
    page.set_content("<article>" + part.format("04-one", "<a href='#id1'>own</a><a href='05-two.html'>page</a><a href='05-two.html#id1'>other</a>"
        "<span class=bibtex-citation><a href='index.html#id1'>cited</a></span><a href='https://a.b/05-two.html#id1'>out</a>")
        + part.format("05-two", "<div class='tag_hide-output'><details><i id=claim>twice</i></details></div><a href='../04-one.html#%E7%AB%99'>word</a>")
        + part.format("appendix/words", "<div id=站>x</div><i id=claim>once</i><a href='#claim'>claim</a>")
        + "<span id='document-appendix/works'></span><section id=works><div class=citation id=id1>work</div></section></article>")
    page.evaluate(pdf.PREPARE)
    where = "a => { const to = a.getAttribute('href'); return to[0] === '#' ? document.getElementById(decodeURIComponent(to.slice(1))).textContent.slice(0, 6) : to; }"
    assert {link.text_content(): link.evaluate(where) for link in page.locator("a").all()} == {
        "own": "04-one", "page": "05-two", "other": "05-two", "cited": "work", "out": "https://a.b/05-two.html#id1", "word": "x", "claim": "once",
    }  # fmt: skip
    page.close()


@pytest.fixture(scope="module")
def printed(tmp_path_factory, root, browser):
    """(what pdf.js reads in the PDF, the page it was printed from)"""
    page = build.run(root, root / "_build", builder="singlehtml", report=lambda text: None) / "index.html"
    target = tmp_path_factory.mktemp("pdf") / "book.pdf"
    pdf.write(browser, page, target)
    return read_pdf(target), lxml.html.parse(str(page), lxml.html.HTMLParser(encoding="utf-8")).getroot()


def squeezed(text):
    return re.sub(r"\s+", "", text)


@pytest.mark.browser
@pytest.mark.long
@pytest.mark.timeout(1200)
class TestPdf:
    def test_every_font_is_embedded(self, printed):
        fonts = printed[0]["fonts"]
        assert [name for name, embedded in fonts.items() if not embedded] == []
        assert any("KaTeX_Main" in name for name in fonts) and len(fonts) > 5
        assert any("NotoSansSC" in name for name in fonts)

    def test_outline_leads_to_every_page_of_the_book(self, printed, root):
        outline = printed[0]["outline"]
        titles = {squeezed(title): page for title, _, page in outline}
        for path in execute.notebooks(root):
            first = next(c.source for c in nbformat.read(path, as_version=4).cells if c.source.startswith("# "))
            title = squeezed(first.split("\n")[0].lstrip("# "))
            assert titles.get(title, -1) > 0, title
        assert all(page >= 0 for _, _, page in outline) and len(outline) > 200

    def test_links_lead_somewhere(self, printed):
        links = printed[0]["links"]
        assert len(links["inside"]) > 500
        bad = [url for url in links["outside"] if not url.startswith(("https://", "http://", "mailto:")) or "127.0.0.1" in url]
        assert bad == []

    def test_chinese_is_text(self, printed):
        document, page = printed
        text = squeezed("".join(item["text"] for sheet in document["pages"] for item in sheet["items"]))
        assert len(re.findall(r"[\u4e00-\u9fff]", text)) > 50_000 and "勘误记录" in text
        assert text.count("\ufffd") == page.xpath("//article")[0].text_content().count("\ufffd"), "shown only where the book shows it"
        assert re.findall(r"[\u2e80-\u2fdf]", text) == [], "radicals in place of characters"

    def test_nothing_runs_over_the_edge(self, printed):
        over = [(number, item["text"]) for number, page in enumerate(printed[0]["pages"], 1) for item in page["items"]
                if item["text"].strip() and not 0 <= item["x"] <= item["right"] <= page["width"] - 20]  # fmt: skip
        assert over == []

    def test_no_code_line_is_lost(self, printed):
        """Every line of every listing and output, letter by letter (but emoji, which not every machine can print)."""
        document, page = printed
        # Below the margin stand the page number and, unseen, what touches the top of the next page.
        margin = 20 / 25.4 * 72
        plain = lambda text: re.sub(r"[\s\0\U00010000-\U0010ffff]", "", text)
        text = plain("".join(item["text"] for sheet in document["pages"] for item in sheet["items"] if item["y"] > margin))
        wanted = {plain(line) for pre in page.xpath("//article//pre") for line in pre.text_content().split("\n")}
        # Where a page ends within a wrapped line, Chromium may paint the next heading between its two halves.
        halves = lambda line: any(line[:cut] in text and line[cut:] in text for cut in range(len(line) - 1, 0, -1))
        lost = [line for line in wanted if line not in text and not (len(line) > 60 and halves(line))]
        assert len(wanted) > 1000 and lost == []
