"""What holds on every page of the real site. `site` builds it from the cache of executed notebooks."""

import re
from collections import Counter
from functools import cache
from urllib.parse import unquote, urldefrag, urlsplit

import lxml.html
import pytest
from fontTools.ttLib import TTFont

from book import execute

LOADING = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src", "object": "data", "video": "src"}
# <link> that names a place without asking it for anything.
NAMING = {"canonical", "next", "prev", "alternate", "license", "search", "index"}
CJK = re.compile(r"[\u3400-\u9fff]")


@cache
def parsed(path):
    return lxml.html.parse(str(path), lxml.html.HTMLParser(encoding="utf-8")).getroot()


@cache
def ids(path):
    return set(parsed(path).xpath("//@id"))


def classes(element):
    return set((element.get("class") or "").split())


def is_code(element):
    return element.tag in ("pre", "code", "script", "style") or "katex" in classes(element)


def outside(node, left_out):
    """The elements of a tree without those that `left_out` holds for and all inside them. One walk: an XPath condition
    on the ancestors of every text took longer than all else here together."""
    if isinstance(node.tag, str) and not left_out(node):
        yield node
        for child in node:
            yield from outside(child, left_out)


def texts(element):
    """The texts that stand directly in an element."""
    return [element.text or "", *(child.tail or "" for child in element)]


@cache
def prose(article):
    """The text of an article without code and formulas, in the order of the page."""

    def pieces(node):
        if isinstance(node.tag, str) and not is_code(node):
            yield node.text or ""
            for child in node:
                yield from pieces(child)
                yield child.tail or ""

    return "".join(pieces(article))


@pytest.fixture(scope="module")
def pages(site):
    return {path.relative_to(site).as_posix(): parsed(path) for path in sorted(site.rglob("*.html")) if "_static" not in path.parts}


@pytest.fixture(scope="module")
def articles(pages):
    return {name: page.xpath("//article")[0] for name, page in pages.items() if page.xpath("//article")}


def each(pages, check):
    """All faults of all pages in one message."""
    faults = {name: found for name, page in pages.items() if (found := list(check(page)))}
    assert not faults, faults


def test_the_pages_are_those_of_the_table_of_contents(pages, root):
    """A build that silently lost pages has been green elsewhere."""
    documents = {f"{name}.html" for name in execute.toc_documents(root)}
    assert set(pages) - {"search.html", "404.html"} == documents


def test_every_notebook_and_appendix_is_in_the_table_of_contents(root):
    listed = set(execute.toc_documents(root))
    for path in [*root.glob("chapters/*.ipynb"), *root.glob("chapters/appendix/*")]:
        if path.suffix in (".ipynb", ".md"):
            assert path.relative_to(root).with_suffix("").as_posix() in listed


def test_nothing_is_loaded_from_another_host(pages, site):
    def loads(page):
        for tag, attribute in LOADING.items():
            for element in page.iter(tag):
                address = element.get(attribute) or ""
                if urlsplit(address).netloc and not (tag == "link" and NAMING & set((element.get("rel") or "").split())):
                    yield address
        yield from page.xpath("//@srcset")

    each(pages, loads)
    for path in site.rglob("*.css"):
        for address in re.findall(r"(?:url\(|@import\s+)['\"]?([^'\")]+)", path.read_text(encoding="utf-8")):
            assert address.startswith("data:") or not urlsplit(address).netloc, (path.name, address)
            assert address.startswith("data:") or (path.parent / address).exists(), (path.name, address)


def test_every_link_and_file_inside_the_site_exists(pages, site):
    def broken(name, page):
        for tag, attribute in [("a", "href"), *LOADING.items()]:
            for element in page.iter(tag):
                address = element.get(attribute) or ""
                if not address or urlsplit(address).scheme:
                    continue
                file, anchor = urldefrag(unquote(address))
                target = (site / name).parent.joinpath(file.split("?")[0]).resolve() if file else site / name
                if not target.is_file() or anchor and target.suffix == ".html" and anchor not in ids(target):
                    yield address

    faults = {name: found for name, page in pages.items() if (found := list(broken(name, page)))}
    assert not faults


def test_ids_are_unique(pages, site):
    faults = {name: {i for i, times in Counter(parsed(site / name).xpath("//@id")).items() if times > 1} for name in pages}
    assert not {name: doubled for name, doubled in faults.items() if doubled}


def test_every_picture_has_an_alternative_text(pages, articles):
    each(pages, lambda page: [img.get("src") for img in page.iter("img") if img.get("alt") is None])
    each(articles, lambda article: [img.get("src") for img in article.iter("img") if not CJK.search(img.get("alt"))])


def test_no_formula_is_left_unset(articles):
    unset = re.compile(r"\$[^$\n]{1,60}\$|\\(?:frac|sqrt|operatorname|mathrm|begin)\b.{0,40}")
    each(articles, lambda article: unset.findall(prose(article)))


def test_no_raw_markup_is_left(articles):
    """`**…）**字` isn't bold in CommonMark; it stands there with its stars. A table that isn't one keeps its bars."""
    raw = re.compile(r".{0,12}(?:\*\*|\{(?:term|cite|eq|ref|doc)[:\w]*\}`|:::|^#+ |\|[-—:]+\|).{0,12}", re.M)
    each(articles, lambda article: raw.findall(prose(article)))


ENGLISH = re.compile(r"[A-Za-z]{3,}")
# Names, not interface texts.
NAMES = {"Binder", "Colab", "Ctrl", ".ipynb", ".pdf", "html", "GitHub", "JupyterHub"}
# Texts that come from the chapters' own headings.
HEADINGS = {"bd-toc-nav", "page-toc", "sidebar-secondary-item", "prev-next-area", "bd-links"}


def test_the_interface_is_chinese(pages):
    def left_out(element):
        return element.tag in ("article", "head", "script", "style") or HEADINGS & classes(element)

    def english(page):
        headings = {"".join(h.itertext()).strip().rstrip("#") for h in page.xpath("//article//*[self::h2 or self::h3 or self::h4 or self::dt]")}
        for element in outside(page, left_out):
            for attribute in ("title", "aria-label", "placeholder", "alt", "data-bs-title"):
                text = element.get(attribute) or ""
                if ENGLISH.search(text) and not CJK.search(text):
                    yield text
            for text in texts(element):
                # Headings that are the name of a function or a module stand in the page's table of contents too.
                if ENGLISH.search(text) and not CJK.search(text) and text.strip() not in NAMES | headings:
                    yield text.strip()

    each(pages, english)


def test_each_page_has_one_way_to_report_a_fault(pages, site):
    """Under the text, with page and section filled in; the theme's own button would open an empty form."""
    documents = {name: page for name, page in pages.items() if page.xpath("//article") and name != "search.html"}
    for name, page in documents.items():
        links = page.xpath("//a[contains(@href, '/token-journey/issues')]/@href")
        assert len(links) == 1 and "/issues/new?title=" in links[0] and "body=" in links[0], name
        rest = page.xpath("//ul[@class='feedback']//a/@href")[1:]
        assert ["/blob/" in rest[0], "/commits/" in rest[1], rest[2].endswith("corrections.html") or rest[2] == "#"] == [True] * 3, name


def test_head_says_what_the_page_is(pages):
    def missing(page):
        if page.get("lang") not in ("zh-CN", "zh-Hans"):
            yield "lang"
        for path in ("//title", "//meta[@name='viewport']", "//link[@rel='icon']", "//link[@rel='stylesheet']", "//link[@rel='canonical']"):
            # The pages with interactive pieces load a style sheet of their own beside the book's.
            if not 1 <= len(page.xpath(path)) <= 1 + path.count("stylesheet"):
                yield path
        description = page.xpath("//meta[@name='description']/@content")
        if len(description) != 1 or not 12 <= len(description[0]) <= 160 or not CJK.search(description[0]):
            yield description

    each(pages, missing)
    for path in ("//meta[@name='description']/@content", "//title/text()"):
        texts = [page.xpath(path)[0] for page in pages.values()]
        assert len(set(texts)) == len(texts), f"each page has its own {path}"


def test_figures_font_has_every_character_of_the_book(articles, root):
    """What the text uses, a figure may use tomorrow: no empty boxes, in Noto or in matplotlib's own DejaVu Sans."""
    font = TTFont(root / "lib" / "fonts" / "NotoSansSC-Regular-subset.otf").getBestCmap()
    chinese = {c for article in articles.values() for c in article.text_content() if CJK.match(c)}
    assert len(chinese) > 200
    assert not {c for c in chinese if ord(c) not in font}


def test_nothing_of_this_machine_is_in_the_site(site, root):
    for path in site.rglob("*"):
        if path.is_file() and path.suffix in (".html", ".js", ".css", ".ipynb", ".json", ".svg", ".txt", ".inv"):
            assert str(root) not in path.read_text(encoding="utf-8", errors="replace"), path


def test_pages_stay_light(site, pages):
    """What a chapter needs besides its own text and pictures, compressed: style, script, icons. (The fonts of
    formulas, 16–28 kB each, are loaded as needed.) Plain Jupyter Book's is 900 kB."""
    import gzip

    static = site / "_static"
    shared = [*static.glob("book-*.css"), *static.glob("book-*.js"), *static.glob("fonts/fa-*")]
    assert len(shared) >= 4
    assert sum(len(gzip.compress(path.read_bytes())) for path in shared) < 90_000
    each(pages, lambda page: [s for s in page.xpath("//script/@src") if "/book-" not in "/" + s and "/interactive/" not in s])
