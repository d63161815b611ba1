"""The whole book on the reader's device: what is kept, that it is read without a network, and how it is renewed."""

import hashlib
import json
import re
import shutil

import pytest
from playwright.sync_api import expect

from book.serve import serve


def listed(site):
    return json.loads((site / "offline.json").read_text(encoding="utf-8"))


def test_every_file_of_the_site_is_listed_with_its_hash(mini):
    site = mini[1]
    own = {"offline.js", "offline.json"}
    files = {p.relative_to(site).as_posix(): p for p in site.rglob("*") if p.is_file() and not p.name.startswith(".")}
    assert own <= set(files) and "chapters/04-one.html" in files
    wanted = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items() if name not in own}
    assert listed(site) == {"book": wanted, "python": {}}


def test_the_size_stands_on_the_first_page_before_anything_is_kept(site):
    said = re.search(r'class="offline-reading"( data-book="(\d+)")( data-python="(\d+)")?', (site / "index.html").read_text("utf-8"))
    files = listed(site)
    for kind, told in (("book", said[2]), ("python", said[4] or 0)):
        assert abs(sum((site / name).stat().st_size for name in files[kind]) / 1e6 - int(told)) < 1, kind


@pytest.fixture
def served(mini, tmp_path):
    """(a copy of the small site that a test may change, its address)"""
    site = shutil.copytree(mini[1], tmp_path / "site")
    with serve(site) as address:
        yield site, address


def change(site, name, edit):
    """Another version of a page, listed as the build lists it."""
    path = site / name
    path.write_text(edit(path.read_text(encoding="utf-8")), encoding="utf-8")
    files = listed(site)
    files["book"][name] = hashlib.sha256(path.read_bytes()).hexdigest()
    (site / "offline.json").write_text(json.dumps(files), encoding="utf-8")


@pytest.fixture
def reader(browser):
    """A page of a browser of its own, as on a phone."""
    context = browser.new_context(viewport={"width": 390, "height": 844}, locale="zh-CN")
    context.set_default_timeout(60_000)
    yield context.new_page()
    context.close()


def keep(page, address):
    page.goto(f"{address}/index.html")
    page.get_by_role("button", name="存下整本书").click()
    expect(page.locator(".offline-status")).to_contain_text("存好了。整本书在这台设备上", timeout=60_000)


PLACES = "caches.keys().then(async names => (await (await caches.open(names[0])).keys()).map(request => request.url))"


@pytest.mark.browser
def test_what_is_kept_is_read_without_a_network(served, reader):
    site, address = served
    keep(reader, address)
    reader.context.set_offline(True)
    faults = []
    asked_past_the_worker = ("offline.json", "favicon.svg")  # by the page, for something newer; by Chromium itself
    reader.on("requestfailed", lambda request: request.url.endswith(asked_past_the_worker) or faults.append(request.url))
    reader.goto(f"{address}/")  # as a bookmark has it
    for name in (name for name in listed(site)["book"] if name.endswith(".html")):
        reader.goto(f"{address}/{name}")
        assert reader.evaluate("[...document.images].every(i => i.complete && i.naturalWidth)"), name
        assert reader.evaluate("document.fonts.ready.then(() => document.styleSheets.length)") > 0
    reader.goto(f"{address}/chapters/04-one.html")
    reader.keyboard.press("Control+k")
    reader.locator("#pst-search-dialog input").fill("数值稳定")
    expect(reader.locator("#pst-search-dialog .book-search-summary")).to_contain_text("找到")
    assert faults == []


@pytest.mark.browser
def test_without_being_asked_nothing_is_kept(served, reader):
    _, address = served
    reader.goto(f"{address}/index.html")
    expect(reader.get_by_role("button", name="存下整本书")).to_be_visible()
    assert reader.evaluate("caches.keys()") == [] and reader.evaluate("navigator.serviceWorker.getRegistrations().then(r => r.length)") == 0
    reader.context.set_offline(True)
    with pytest.raises(Exception, match="ERR_INTERNET_DISCONNECTED"):
        reader.goto(f"{address}/chapters/04-one.html")


@pytest.mark.browser
def test_a_newer_book_replaces_what_is_kept_at_the_next_visit(served, reader):
    site, address = served
    keep(reader, address)
    before = reader.evaluate(PLACES)
    change(site, "chapters/04-one.html", lambda text: text.replace("层归一化与残差", "改过的标题"))
    reader.goto(f"{address}/chapters/08-two.html")
    new = f"{address}/chapters/04-one.html?kept={listed(site)['book']['chapters/04-one.html']}"
    for _ in range(600):
        if new in (places := reader.evaluate(PLACES)) and len(places) == len(before):
            break
        reader.wait_for_timeout(100)
    assert set(before) ^ set(places) == {new, next(p for p in before if "04-one.html" in p)}, "the old page is gone"
    reader.context.set_offline(True)
    reader.goto(f"{address}/chapters/04-one.html")
    expect(reader.locator("article")).to_contain_text("改过的标题")


@pytest.mark.browser
def test_a_half_renewed_site_never_becomes_the_kept_one(served, reader):
    """A host gives out a page that isn't the one of its list: what was kept stands, every page of it."""
    site, address = served
    keep(reader, address)
    change(site, "chapters/04-one.html", lambda text: text.replace("层归一化与残差", "改过的标题"))
    (site / "chapters" / "08-two.html").write_text("<p>别的日子", encoding="utf-8")
    files = listed(site)
    files["book"]["chapters/08-two.html"] = "0" * 64
    (site / "offline.json").write_text(json.dumps(files), encoding="utf-8")
    reader.goto(f"{address}/index.html")
    reader.wait_for_load_state("networkidle")
    reader.context.set_offline(True)
    for name, text in (("04-one", "层归一化与残差"), ("08-two", "残差连接")):
        reader.goto(f"{address}/chapters/{name}.html")
        expect(reader.locator("article")).to_contain_text(text)


@pytest.mark.browser
def test_broken_off_it_goes_on_and_can_be_deleted(served, reader):
    site, address = served
    page = (site / "chapters" / "08-two.html").rename(site / "away.html")
    reader.goto(f"{address}/index.html")
    reader.get_by_role("button", name="存下整本书").click()
    expect(reader.locator(".offline-status")).to_contain_text("没有存完")
    page.rename(site / "chapters" / "08-two.html")
    reader.get_by_role("button", name="存下整本书").click()
    expect(reader.locator(".offline-status")).to_contain_text("存好了")
    reader.get_by_role("button", name="从这台设备删除").click()
    expect(reader.locator(".offline-status")).to_have_text("已删除。")
    assert reader.evaluate("caches.keys()") == []
    assert reader.evaluate("navigator.serviceWorker.getRegistrations().then(r => r.length)") == 0


@pytest.mark.browser
def test_a_page_that_cannot_keep_anything_says_so(served, reader):
    site, _ = served
    reader.goto((site / "index.html").as_uri())
    expect(reader.locator(".offline-reading")).to_contain_text("https 或 localhost")


@pytest.mark.browser
@pytest.mark.long
@pytest.mark.timeout(1800)
def test_chapter_04_runs_without_a_network(reader, address, root):
    """The real book with its Python, kept on a phone: read, run a cell, follow a sentence, all with the network gone."""
    assert (root / "data" / "pyodide" / "pyodide-lock.json").exists(), "先运行 make vendor-pyodide"
    reader.set_default_timeout(600_000)
    reader.goto(f"{address}/index.html")
    reader.get_by_role("button", name="连同运行代码的 Python 一起存").click()
    expect(reader.locator(".offline-status")).to_contain_text("能读、能运行", timeout=600_000)
    reader.context.set_offline(True)
    reader.goto(f"{address}/chapters/04-attention.html")
    reader.get_by_role("button", name="在本页运行和修改代码").click()
    cell = reader.locator("div.cell:has(.cell_input pre)", has_text="plots.bars").first
    cell.locator(".pyrun-run").click()
    cell.locator(".pyrun-figure").wait_for()
    reader.goto(f"{address}/chapters/journey.html")
    reader.wait_for_selector("html[data-journey=ready]")
    reader.locator("#journey-text").fill("春风又绿江南岸")
    expect(reader.locator("[data-station=sampling] .journey-text")).to_have_text("春风又绿江南岸")
