"""The built site in headless Chromium, as readers use it: clicks, typing, keyboard, dark, phone, no network.

`make test` runs the first half on a machine with Chromium; `make test-site` runs all of it, with Python in the page.
"""

import functools
import http.server
import sys
import threading
from pathlib import Path

import pytest
from playwright.sync_api import expect, sync_playwright

from book import execute, node

pytestmark = pytest.mark.browser
HERE = Path(__file__).resolve().parent
DESKTOP, PHONE = {"width": 1366, "height": 900}, {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def browser(chromium_path):
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium_path, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


@pytest.fixture(scope="module")
def address(site):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=site))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@pytest.fixture
def open_page(browser):
    """Opens a page that can reach nothing but itself; at the end, no request and no script may have failed."""
    contexts, faults = [], []

    def go(url, viewport=DESKTOP, scheme="light", **options):
        context = browser.new_context(viewport=viewport, color_scheme=scheme, locale="zh-CN", **options)
        contexts.append(context)
        origin = "file://" if url.startswith("file:") else "/".join(url.split("/")[:3])

        def guard(route):
            if route.request.url.startswith((origin, "data:", "blob:")):
                route.continue_()
            else:
                faults.append(f"asks another host: {route.request.url}")
                route.abort()

        context.route("**/*", guard)
        page = context.new_page()
        page.on("pageerror", lambda error: faults.append(f"script error: {error}"))
        page.on("console", lambda message: message.type == "error" and faults.append(f"console: {message.text}"))
        page.on("response", lambda response: response.status >= 400 and faults.append(f"{response.status} {response.url}"))
        page.goto(url, wait_until="load")
        return page

    yield go
    for context in contexts:
        context.close()
    assert not faults


@pytest.fixture(scope="session")
def names(root):
    return [*execute.toc_documents(root), "search"]


@pytest.fixture(scope="session")
def artefacts(root):
    folder = root / "_build" / "screenshots"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def is_chapter(name):
    return name.startswith("chapters/") and name.split("/")[1][:2].isdigit()


def test_every_page_stands_alone(open_page, address, names):
    """No other host, no missing file, no script error, no sideways scrolling on a phone."""
    page = open_page(f"{address}/index.html", viewport=PHONE)
    wide = []
    for name in names:
        page.goto(f"{address}/{name}.html", wait_until="load")
        if page.evaluate("document.documentElement.scrollWidth") > PHONE["width"]:
            wide.append(name)
    assert not wide


AXE = "axe.run(document, {resultTypes: ['violations']}).then(r => r.violations.map(v => [v.id, v.nodes[0].html.slice(0, 200)]))"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(open_page, address, names, scheme):
    modules = node.install(print, folder=HERE / "axe", target=Path(sys.prefix) / "npm-axe")
    source = (modules / "axe-core" / "axe.min.js").read_text(encoding="utf-8")
    page = open_page(f"{address}/index.html", scheme=scheme)
    faults = {}
    for name in names:
        page.goto(f"{address}/{name}.html", wait_until="load")
        page.evaluate(source)
        if found := page.evaluate(AXE):
            faults[name] = found
    assert not faults


def test_search_while_typing(open_page, address):
    page = open_page(f"{address}/index.html")
    loaded = "performance.getEntriesByType('resource').filter(r => r.name.includes('search-data')).length"
    assert page.evaluate(loaded) == 0, "the index is loaded only when asked for"
    page.keyboard.press("Control+k")
    for query in ("残差连接", "因果掩码", "层归一化", "缩放点积", "温度", "一化", "KV cache", "self-attention"):
        page.locator("#pst-search-dialog input").fill(query)
        expect(page.locator("#pst-search-dialog .book-search-summary")).to_contain_text("找到")
        expect(page.locator("#pst-search-dialog .result-page").first).to_have_text("术语表")
    assert page.evaluate(loaded) == 1
    page.locator("#pst-search-dialog input").fill("缩放点积注意力")
    link = page.locator("#pst-search-dialog a", has_text="4 Q、K、V").first
    link.click()
    page.wait_for_url("**/04-attention.html*")


def test_search_page_and_enter(open_page, address):
    page = open_page(f"{address}/index.html")
    page.locator(".search-button-field, .search-button__button").first.click()
    page.locator("#pst-search-dialog input").fill("交叉熵")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search.html?q=*")
    expect(page.locator(".bd-search-container .book-search-summary")).to_contain_text("找到")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert "result" in page.evaluate("document.activeElement.innerHTML"), "the first hit is the next stop of the Tab key"


def test_read_from_a_folder(open_page, site):
    """Unpacked anywhere, without a server: text, formulas, icons, figures, search with excerpts."""
    page = open_page((site / "chapters" / "04-attention.html").as_uri())
    assert page.evaluate("document.fonts.ready.then(() => [...document.fonts].filter(f => f.status === 'error').length)") == 0
    assert page.evaluate("document.fonts.check('16px KaTeX_Main')")
    broken = "[...document.images].filter(i => i.complete && !i.naturalWidth && i.checkVisibility()).length"
    assert page.evaluate(broken) == 0
    page.keyboard.press("Control+k")
    page.locator("#pst-search-dialog input").fill("因果掩码")
    expect(page.locator("#pst-search-dialog .result-text").first).not_to_be_empty()


def test_theme_switch_and_figures_follow(open_page, address):
    page = open_page(f"{address}/chapters/04-attention.html", scheme="dark")
    figure = page.locator(".cell_output img").first
    assert "invert" in figure.evaluate("e => getComputedStyle(e).filter")
    for _ in range(3):
        if page.evaluate("document.documentElement.dataset.theme") == "light":
            break
        page.locator(".theme-switch-button").first.click()
    assert figure.evaluate("e => getComputedStyle(e).filter") == "none"


def test_keyboard_reaches_the_text_first(open_page, address):
    page = open_page(f"{address}/chapters/04-attention.html")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('href')") == "#main-content"
    page.keyboard.press("Enter")
    seen = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        seen.add(page.evaluate("document.activeElement.tagName + '.' + document.activeElement.className"))
    assert any("headerlink" in name for name in seen)
    assert any("math-scroll" in name or "pyrun" in name or name.startswith("PRE") for name in seen)


def test_issue_form_names_page_and_section(open_page, address):
    page = open_page(f"{address}/chapters/04-attention.html")
    page.evaluate("location.hash = '#' + document.querySelectorAll('article section section')[2].id")
    link = page.locator("a.feedback-issue")
    link.evaluate("e => { e.addEventListener('click', v => v.preventDefault()); e.click(); }")
    url = page.evaluate("decodeURIComponent(document.querySelector('a.feedback-issue').href)")
    assert "04-attention.ipynb" in url and "/issues/new" in url
    assert page.evaluate("document.querySelectorAll('article section section')[2].id") in url


def test_screenshots_for_eyes(open_page, address, artefacts):
    """Kept in _build/screenshots; nothing can pass or fail here but the pages must open."""
    for name in ("index", "chapters/04-attention", "chapters/08-residual-norm", "chapters/appendix/glossary"):
        for scheme, viewport in (("light", DESKTOP), ("dark", DESKTOP), ("light", PHONE), ("dark", PHONE)):
            page = open_page(f"{address}/{name}.html", viewport=viewport, scheme=scheme)
            page.screenshot(path=artefacts / f"{name.replace('/', '-')}-{scheme}-{viewport['width']}.png")
            page.context.close()


# --------------------------------------------------------------------------- Python in the page (make test-site)

OUTPUTS = """() => [...document.querySelectorAll('div.cell')].filter(c => c.querySelector('.cell_input pre')).map(c =>
  [[...c.querySelectorAll('.cell_output pre')].map(p => p.textContent).join('').trim(), c.querySelectorAll('.cell_output img').length])"""


@pytest.fixture
def running(open_page, address, root):
    assert (root / "data" / "pyodide" / "pyodide-lock.json").exists(), "先运行 make vendor-pyodide"

    def start(name, viewport=PHONE):
        page = open_page(f"{address}/{name}.html", viewport=viewport)
        page.set_default_timeout(600_000)
        before = page.evaluate(OUTPUTS)
        page.locator(".pyrun-start").click()
        page.locator(".pyrun-run").first.wait_for()
        return page, before

    return start


def finish(page):
    page.wait_for_function("document.querySelector('.pyrun-stop').disabled", timeout=600_000)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_a_chapter_in_the_page_prints_what_the_book_prints(running):
    """Chapter 04 from its first cell to its last, offline, on a phone: every output and every figure."""
    page, before = running("chapters/04-attention")
    page.locator(".pyrun-all").click()
    finish(page)
    assert page.evaluate("document.querySelectorAll('.pyrun-error').length") == 0
    assert page.evaluate(OUTPUTS) == before


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_edit_run_error_stop_reload_reset(running, address):
    page, _ = running("chapters/04-attention")
    cells = page.locator("div.cell:has(.cell_input pre)")
    first = cells.nth(0)
    code = first.locator(".cell_input pre")
    original = code.inner_text()

    def put(text):
        code.fill(text)

    put("print('你好', 6 * 7)\n[i ** 2 for i in range(4)]")
    page.keyboard.press("Control+Enter")
    finish(page)
    assert first.locator(".pyrun-out").inner_text().strip() == "你好 42\n[0, 1, 4, 9]"

    put("def f(x):\n    return 1 / x\n\nf(0)")
    first.locator(".pyrun-run").click()
    finish(page)
    shown = first.locator(".pyrun-error").inner_text()
    assert shown.startswith("Traceback") and "return 1 / x" in shown and shown.strip().endswith("ZeroDivisionError: division by zero")

    put("import torch")
    first.locator(".pyrun-run").click()
    finish(page)
    assert "浏览器里的 Python 没有 torch" in first.locator(".pyrun-hint").inner_text()

    put("while True: pass")
    first.locator(".pyrun-run").click()
    page.wait_for_function("document.querySelector('.pyrun-note').textContent.includes('运行中')")
    page.locator(".pyrun-stop").click()
    expect(page.locator(".pyrun-status")).to_contain_text("已停止")

    page.reload()
    page.locator(".pyrun-start").click()
    assert code.inner_text().strip() == "while True: pass", "edits survive a reload"
    first.locator(".pyrun-reset").click()
    assert code.inner_text().strip() == original.strip()
    page.reload()
    page.locator(".pyrun-start").click()
    assert code.inner_text().strip() == original.strip()


@pytest.mark.long
def test_what_is_vendored_is_official(root):
    """Every file of the distribution against the official lock of the npm package."""
    import hashlib
    import json

    official = json.loads((Path(sys.prefix) / "npm-pyodide/node_modules/pyodide/pyodide-lock.json").read_text())
    folder = root / "data" / "pyodide"
    hashes = {package["file_name"]: package["sha256"] for package in official["packages"].values()}
    core = Path(sys.prefix) / "npm-pyodide/node_modules/pyodide"
    for path in folder.iterdir():
        if path.name in hashes:
            assert hashlib.sha256(path.read_bytes()).hexdigest() == hashes[path.name], path.name
        elif path.name != "pyodide-lock.json":
            assert path.read_bytes() == (core / path.name).read_bytes(), path.name


# --------------------------------------------------------------------------- Lighthouse (make test-site)


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", ["chapters/04-attention", "chapters/08-residual-norm"])
def test_lighthouse(address, chromium_path, tmp_path, monkeypatch, name):
    import json

    modules = node.install(print, folder=HERE / "lighthouse", target=Path(sys.prefix) / "npm-lighthouse")
    report = tmp_path / "report.json"
    monkeypatch.setenv("CHROME_PATH", chromium_path)
    done = node.run(
        modules / "lighthouse" / "cli" / "index.js", f"{address}/{name}.html", "--quiet", "--output=json", f"--output-path={report}",
        "--chrome-flags=--headless=new --no-sandbox --disable-gpu", "--only-categories=accessibility,best-practices,seo,performance",
        "--preset=desktop", capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    result = json.loads(report.read_text())
    scores = {key: round(category["score"] * 100) for key, category in result["categories"].items()}
    print(name, scores)
    faults = [a["id"] for a in result["audits"].values() if a.get("score") == 0 and a.get("scoreDisplayMode") == "binary"]
    assert (scores["accessibility"], scores["best-practices"], scores["seo"]) == (100, 100, 100), (scores, faults)
