"""The interactive page and the explorers as a reader meets them: typed at, walked by keyboard, read by axe, from a folder."""

import json
import re
import shutil

import nbformat
import numpy as np
import pytest

from book import build
from book.journey import model as journey
from lib.accounting import kv_cache_bytes
from lib.functional import cross_entropy, softmax
from lib.position import sinusoidal_encoding
from lib.sampling import apply_temperature, top_k_filter
from lib.tokenizer import BPE
from tests.book.conftest import notebook, write_book
from tests.book.test_explorers import CHAPTERS
from tests.book.test_journey import reference

pytestmark = pytest.mark.browser
SENTENCE = "床前明月光，疑"


@pytest.fixture(scope="module")
def pages_folder(tmp_path_factory, root):
    """A small book: the page itself, and of each chapter the title and the explorer, as they stand in the real one."""
    pages = {}
    for path in sorted(root.glob("chapters/[0-9][0-9]-*.ipynb")):
        cells = [cell.source for cell in nbformat.read(path, as_version=4).cells if "-explorer>" in cell.source]
        pages[f"chapters/{path.stem}"] = notebook(f"# {path.stem}", *cells)
    source = write_book(tmp_path_factory.mktemp("interactive") / "src", root, pages)
    shutil.copy(root / "chapters" / "journey.md", source / "chapters")
    with (source / "_toc.yml").open("a", encoding="utf-8") as toc:
        toc.write("  - file: chapters/journey\n")
    return build.run(source, source / "_build", report=lambda text: None) / "chapters"


@pytest.fixture(scope="module")
def open_page(browser, pages_folder):
    """Opens a page from its folder; in the end nothing may have been asked of a host, and no script may have failed."""
    faults = []

    def open_page(name, width=1280, theme="light"):
        page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=theme)
        page.set_default_timeout(180_000)  # a busy machine draws slowly
        page.on("request", lambda request: faults.append(request.url) if not request.url.startswith(("file:", "data:", "blob:")) else None)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.goto((pages_folder / f"{name}.html").as_uri())
        assert page.evaluate("document.documentElement.dataset.theme") == theme
        return page

    yield open_page
    assert not faults


@pytest.fixture
def tour(open_page):
    """The page as it is first met, with the sentence of these tests."""
    page = open_page("journey")
    page.wait_for_selector("html[data-journey=ready]")
    write(page, SENTENCE)
    yield page
    page.close()


def write(page, text):
    page.locator("#journey-text").focus()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(text)
    page.wait_for_function("text => document.querySelector('[data-station=sampling] .journey-text').textContent === text", arg=text)


def part(page, station):
    return page.locator(f'.journey[data-station="{station}"]')


def press(page, locator, key="Space"):
    """A key on a control, and the redrawing that follows it."""
    locator.focus()
    page.keyboard.press(key)
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def numbers(text):
    return [float(found.replace("−", "-").replace(",", "")) for found in re.findall(r"[−-]?\d[\d,]*(?:\.\d+)?", text)]


def table(page, station, index=0):
    """The numbers under a picture, as its opened table shows them."""
    picture = part(page, station).locator("array-picture").nth(index)
    summary = picture.locator("summary")
    if picture.locator("details").get_attribute("open") is None:
        press(page, summary, "Enter")
    picture.locator("table").wait_for()
    rows = picture.locator("tbody tr").evaluate_all("rows => rows.map(row => Array.from(row.cells).slice(1).map(cell => cell.textContent))")
    return np.array([[float(x.replace("−", "-").replace("∞", "inf")) for x in row] for row in rows])


def violations(page, axe):
    page.evaluate(axe)
    found = page.evaluate("async () => (await axe.run('.bd-article', {resultTypes: ['violations']})).violations")
    return [(v["id"], [n["html"][:160] + " | " + (n["failureSummary"] or "")[:200] for n in v["nodes"][:3]]) for v in found]


# ---------------------------------------------------------------- the page


def test_a_typed_sentence_reaches_every_station(tour):
    tokenizer, models = journey.load()
    ids = tokenizer.encode(SENTENCE)
    t = reference(models["pre-learned"], ids, True, True, True)
    assert "".join(part(tour, "tokens").locator(".journey-glyph").all_text_contents()) == SENTENCE
    assert str(ids) in part(tour, "ids").inner_text()
    for station, index, expected in (
        ("embedding", 0, t["embedding"]), ("position", 1, t["input"]), ("qkv", 0, t["blocks"][0]["q"][0]), ("qkv", 2, t["blocks"][0]["v"][0]),
        ("softmax", 0, t["blocks"][0]["weights"][0]), ("heads", 3, t["blocks"][0]["weights"][3]), ("heads", 4, t["blocks"][0]["concat"]),
        ("output", 0, models["pre-learned"].params["blocks"][0]["attention"]["W_O"]), ("output", 1, t["blocks"][0]["attention"]),
        ("residual", 2, t["blocks"][0]["middle"]), ("ffn", 1, t["blocks"][0]["activated"]), ("ffn", 2, t["blocks"][0]["ffn"]),
        ("block", 1, t["blocks"][0]["output"]), ("logits", 0, t["final"]), ("logits", 1, t["logits"]),
    ):  # fmt: skip
        shown = table(tour, station, index)
        assert shown.shape == expected.shape, station
        np.testing.assert_allclose(shown, expected, rtol=0, atol=5.1e-3 if station == "logits" else 5.1e-4, err_msg=f"{station} {index}")
    assert np.isinf(table(tour, "mask")).sum() == len(ids) * (len(ids) - 1) / 2


def test_bytes_are_never_shown_as_a_replacement_character(tour):
    write(tour, "龘 🍓\ufeffé")
    text = tour.locator(".bd-article").inner_text()
    assert "\ufffd" not in text and "「龘」的第" in part(tour, "tokens").inner_html()


def test_all_stations_are_walked_with_the_keyboard(tour):
    tour.locator(".journey-walk .journey-stops select").select_option("0")
    titles = tour.locator(".journey-walk .journey-stops option").all_text_contents()
    assert len(titles) == 19 and titles[1:18] == [title for title in titles if title.startswith("第")]
    for title in titles[1:]:
        press(tour, tour.get_by_role("button", name="下一站"), "Enter")
        assert tour.locator(".journey-walk [role=status]").text_content() == title
        y = tour.locator("h2").filter(has_text=title).last.evaluate("e => e.getBoundingClientRect().y")
        assert 0 <= y < 900, title
    press(tour, tour.get_by_role("button", name="上一站"), "Enter")
    press(tour, tour.get_by_role("button", name="进入这一站"), "Enter")
    assert tour.evaluate("document.activeElement.textContent").startswith(titles[-2])


def test_cells_are_read_with_the_arrow_keys(tour):
    tokenizer, models = journey.load()
    row = models["pre-learned"].params["wte"][tokenizer.encode(SENTENCE)[1]]
    picture = part(tour, "embedding").locator("array-picture")
    for key in ("ArrowDown", "ArrowRight", "ArrowRight"):
        press(tour, picture.get_by_role("group").first, key)
    said = picture.locator("output").text_content()
    assert "行 前，第 2 维" in said and numbers(said)[-1] == pytest.approx(row[2], abs=5.1e-5)


SWITCHES = {
    "post": (("radio", "Post-LN"), "post-learned", {}), "rotary": (("radio", "旋转（RoPE）"), "pre-rotary", {}), "none": (("radio", "没有"), "pre-none", {}),
    "scale": (("checkbox", "除以 √d"), "pre-learned", {"scale": False}), "mask": (("checkbox", "因果掩码"), "pre-learned", {"mask": False}),
    "position": (("checkbox", "用上位置编码"), "pre-learned", {"position": False}),
}  # fmt: skip


@pytest.mark.parametrize("switch", SWITCHES)
def test_each_switch_gives_libs_numbers(tour, switch):
    (role, name), model, changed = SWITCHES[switch]
    press(tour, tour.get_by_role(role, name=name, exact=True))
    tokenizer, models = journey.load()
    ids = tokenizer.encode(SENTENCE)
    t = reference(models[model], ids, **({"scale": True, "mask": True, "position": True} | changed))
    said = part(tour, "controls").locator("[role=status]").text_content()
    loss = float(cross_entropy(t["logits"][:-1], np.array(ids[1:])))
    assert float(re.search(r"交叉熵是 ([\d.]+)", said)[1]) == pytest.approx(loss, abs=5.1e-4)
    np.testing.assert_allclose(table(tour, "softmax"), t["blocks"][0]["weights"][0], atol=5.1e-4)
    np.testing.assert_allclose(table(tour, "block", 1), t["blocks"][0]["output"], atol=5.1e-4)
    assert ("没有重新训练" in tour.locator(".bd-article").inner_text()) == bool(changed), "what switching without training means is said"


def test_layer_head_and_token_are_chosen(tour):
    tokenizer, models = journey.load()
    t = reference(models["pre-learned"], tokenizer.encode(SENTENCE), True, True, True)
    tour.get_by_role("combobox", name="层", exact=True).select_option("1")
    tour.get_by_role("combobox", name="头", exact=True).select_option("2")
    tour.get_by_role("combobox", name="跟着", exact=True).select_option("3")
    np.testing.assert_allclose(table(tour, "softmax"), t["blocks"][1]["weights"][2], atol=5.1e-4)
    assert part(tour, "tokens").locator("[aria-pressed=true]").get_attribute("aria-label").endswith("，第 3 个词元")


def test_sampling_controls_follow_lib(tour):
    tokenizer, models = journey.load()
    logits = models["pre-learned"](np.array(tokenizer.encode(SENTENCE)))[-1]
    for name, key, times in (("温度 T", "ArrowRight", 10), ("Top-k", "End", 1), ("Top-k", "ArrowLeft", 26)):
        for _ in range(times):
            press(tour, part(tour, "sampling").get_by_role("slider", name=name), key)
    assert part(tour, "sampling").get_by_role("slider", name="Top-k").get_attribute("aria-valuetext") == "5"
    expected = np.sort(softmax(top_k_filter(apply_temperature(logits, 1.5), 5)))[::-1][:5]
    shown = [numbers(text)[-1] / 100 for text in part(tour, "sampling").locator("tbody tr td:nth-child(3)").all_text_contents()[:5]]
    np.testing.assert_allclose(shown, expected, atol=5.1e-4)
    part(tour, "sampling").get_by_role("button", name="抽 12 个").click()
    written = part(tour, "sampling").locator(".journey-text").text_content()
    assert written.startswith(SENTENCE) and len(written) > len(SENTENCE)


def test_the_cache_counts_its_work_and_fails_without_the_mask(tour):
    cached = numbers(part(tour, "cache").locator(".journey-facts").text_content())
    press(tour, part(tour, "cache").get_by_role("checkbox"))
    plain = numbers(part(tour, "cache").locator(".journey-facts").text_content())
    assert cached[1] == plain[3] and plain[1] == cached[3] and plain[1] > 3 * cached[1]
    assert "逐个相同" in part(tour, "cache").inner_text()
    press(tour, tour.get_by_role("checkbox", name="因果掩码"))
    assert "存下来的就过期了" in part(tour, "cache").inner_text()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_axe_and_width(open_page, axe, theme, width):
    page = open_page("journey", width, theme)
    page.wait_for_selector("html[data-journey=ready]")
    write(page, "人工智能与明月")
    press(page, page.get_by_role("checkbox", name="因果掩码"))
    table(page, "softmax")
    assert not violations(page, axe)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_without_scripts_the_words_remain(browser, pages_folder):
    page = browser.new_context(java_script_enabled=False).new_page()
    page.goto((pages_folder / "journey.html").as_uri())
    assert "需要打开 JavaScript" in page.locator(".bd-article").inner_text()
    for tag, chapter in CHAPTERS.items():
        page.goto((pages_folder / f"{chapter}.html").as_uri())
        assert page.locator(f"{tag} table tbody tr").count() >= 3
    page.context.close()


# ---------------------------------------------------------------- the explorers


def explorer(open_page, tag, **options):
    page = open_page(CHAPTERS[tag], **options)
    page.locator(f"{tag} .journey").wait_for()
    return page, page.locator(tag)


def test_bpe_explorer(open_page):
    page, box = explorer(open_page, "bpe-explorer")
    steps = list(BPE.steps(json.loads(json.dumps(box.get_attribute("corpus")))))
    for step in steps[:5]:
        press(page, box.get_by_role("button", name="合并一次"), "Enter")
        assert f"{' + '.join(step.pair)} → {step.symbol}，{step.count} 次" in box.inner_text()
    press(page, box.get_by_role("button", name="退一步"), "Enter")
    assert f"第 4 次合并：{' + '.join(steps[3].pair)}" in box.inner_text()
    box.get_by_role("combobox").select_option("largest")
    press(page, box.get_by_role("button", name="合并到底"), "Enter")
    bpe = BPE.train(box.get_attribute("corpus"), tie_break=max)
    assert f"第 {len(bpe.merges)} 次合并" in box.inner_text() and "再没有可以合并的对" in box.inner_text()
    box.get_by_role("textbox", name="语料（空格分词）").fill("吃葡萄 吃葡萄 葡萄")
    press(page, box.get_by_role("button", name="合并一次"), "Enter")
    assert "葡 + 萄 → 葡萄，3 次" in box.inner_text()
    box.get_by_role("textbox", name="用学到的规则切一个词").fill("葡萄皮")
    assert "葡萄皮 → 葡萄 | 皮 | </w>" in box.inner_text()


def test_position_explorer(open_page):
    page, box = explorer(open_page, "position-explorer")
    for name in ("位置 p", "往后移"):
        press(page, box.get_by_role("slider", name=name), "ArrowRight")
    pe = sinusoidal_encoding(60, 16)
    assert f"PE[4] · PE[7] = {pe[4] @ pe[7]:.4f}" in box.inner_text()
    press(page, box.locator("summary"), "Enter")
    rows = box.locator(".journey-table tbody tr").evaluate_all("rows => rows.map(row => Array.from(row.cells).slice(1).map(cell => cell.textContent))")
    np.testing.assert_allclose([[float(x.replace("−", "-")) for x in row] for row in rows], pe[:32], atol=5.1e-4)


def test_sampling_explorer(open_page):
    page, box = explorer(open_page, "sampling-explorer")
    box.get_by_role("spinbutton", name="z0").fill("4")
    press(page, box.get_by_role("slider", name="Top-k"), "ArrowLeft")
    expected = softmax(top_k_filter(np.array([4, 1, 0.5, 0, -1]), 4))
    shown = [numbers(text)[0] / 100 for text in box.locator("tbody tr td:nth-child(4)").all_text_contents()]
    np.testing.assert_allclose(shown, expected, atol=5.1e-4)
    box.get_by_role("button", name="抽 200 次").click()
    counts = [numbers(text)[0] for text in box.locator("tbody tr td:nth-child(5)").all_text_contents()]
    assert sum(counts) == 200 and counts[-1] == 0 and abs(counts[0] / 200 - expected[0]) < 0.12


def test_cache_explorer(open_page):
    page, box = explorer(open_page, "cache-explorer")
    press(page, box.get_by_role("slider", name="词元数"), "ArrowRight")
    press(page, box.get_by_role("slider", name="同时几句"), "ArrowRight")
    size = kv_cache_bytes((32, 8, 128), 16384, batch=2)
    assert f"{size / 1e9:.3g} GB" in box.inner_text()
    box.get_by_role("combobox", name="模型").select_option("Mistral 7B")
    assert f"{kv_cache_bytes((32, 8, 128), 4096, batch=2) / 1e9:.3g} GB" in box.inner_text() and "只看最近 4,096 个" in box.inner_text()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("tag", CHAPTERS)
def test_explorers_are_accessible_and_fit_a_phone(open_page, axe, tag, theme):
    page, _ = explorer(open_page, tag, width=390, theme=theme)
    assert not violations(page, axe)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
