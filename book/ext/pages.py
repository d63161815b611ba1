"""Last touches on finished pages: the theme's texts that no catalogue translates, and names that assistive software
reads out. Plain replacements of exact markup; a test finds whatever English is left."""

import html
import re
from pathlib import Path
from urllib.parse import quote, urlencode

import lxml.html
import yaml
from docutils import nodes
from sphinx.util import logging
from sphinx.util.osutil import relative_uri

LOGGER = logging.getLogger(__name__)

REPLACED = {
    'title="Toggle primary sidebar"': 'title="显示或隐藏全书目录" aria-label="显示或隐藏全书目录"',
    'title="Toggle secondary sidebar"': 'title="显示或隐藏本页目录" aria-label="显示或隐藏本页目录"',
    'aria-label="Color mode"': 'aria-label="配色：浅色、深色或跟随系统"',
    'data-bs-title="Color mode"': 'data-bs-title="配色：浅色、深色或跟随系统"',
    'title="System Settings"': 'title="跟随系统"',
    'title="Light"': 'title="浅色"',
    'title="Dark"': 'title="深色"',
    'aria-label="Launch interactive content"': 'aria-label="在线运行这一页"',
    'aria-label="Source repositories"': 'aria-label="源代码仓库"',
    'aria-label="Main"': 'aria-label="全书目录"',
    'aria-label="Page"': 'aria-label="本页目录（打印）"',
    'title="Launch on Binder"': 'title="在 Binder 上运行"',
    'title="Launch on Colab"': 'title="在 Colab 上运行"',
    'alt="Binder logo"': 'alt=""',
    'alt="Colab logo"': 'alt=""',
    'title="Link to this heading"': 'title="本节的链接" aria-label="本节的链接"',
    'aria-label="Toggle hidden content"': "",
    'title="列印成 PDF"': 'title="打印，或存成 PDF"',
    ">Table of contents<": ">目录<",
    "© Copyright ": "© ",
    # docutils gives each work of the bibliography a role that ARIA has since given up.
    'role="doc-biblioentry"': 'role="listitem"',
    # A corner cell of a table names nothing: it is no header.
    '<th class="head"><p></p></th>': "<td></td>",
    '<th class="stub"><p></p></th>': "<td></td>",
}
# What the wide search button shows ("搜索 Ctrl+K") is its name; a shorter one would differ from what one sees and says.
SEARCH = re.compile(r'(<button class="btn search-button-field [^"]*")[^>]*>')
# The book's name at the top of the side bar stands in no landmark.
LOGO = re.compile(r'(<div class="sidebar-primary-item")(>\s*<a class="navbar-brand)')
# The head of a column that is a formula and nothing else.
FORMULA_HEAD = re.compile(r'<th class="(head|stub)">(<p>(?:(?!</th>).)*?<math(?:(?!</th>).)*?</p>)</th>', re.S)
DESCRIPTION_LENGTH = 110


def name_formula_head(match):
    """Tools that don't look into MathML take such a head for empty; hidden text says what it shows."""
    paragraph = lxml.html.fragment_fromstring(match[2])
    for annotation in paragraph.xpath(".//annotation"):
        annotation.drop_tree()
    spoken = "".join(paragraph.xpath(".//*[local-name()='math']//text()"))
    if "".join(paragraph.xpath(".//text()[not(ancestor::*[@class='katex'])]")).strip() or not spoken:
        return match[0]
    return f'<th class="{match[1]}"><span class="visually-hidden">{html.escape(spoken)}</span><div aria-hidden="true">{match[2]}</div></th>'


def description(title, doctree):
    """What search engines show of a page: its title, then its first sentences."""
    text = title
    for block in doctree.findall(lambda n: isinstance(n, (nodes.paragraph, nodes.list_item))):
        if isinstance(block.parent, nodes.list_item):
            continue
        text += ("" if text.endswith(("。", "：", "；")) else "。") + " ".join(block.astext().replace("$", "").split())
        if len(text) > DESCRIPTION_LENGTH:
            break
    return text if len(text) <= DESCRIPTION_LENGTH else text[: DESCRIPTION_LENGTH - 1] + "…"


def describe(app, pagename, templatename, context, doctree):
    title = re.sub(r"<[^>]+>", "", context.get("title") or "")
    # docutils and the theme both say it.
    context["metatags"] = re.sub(r'<meta name="viewport"[^>]*>', "", context.get("metatags") or "")
    if pagename == "search":
        context["description"] = f"在《{app.config.html_title}》全书中搜索术语、公式、代码与句子。"
    else:
        context["description"] = description(title, doctree) if doctree else f"{title} —— {app.config.html_title}"


def feedback(app, pagename, templatename, context, doctree):
    """Under each page: its source, an issue form that already names page and section, and what changed."""
    if not doctree or app.builder.name != "html":
        return
    options = app.config.html_theme_options
    repository, branch = options["repository_url"], options.get("repository_branch", "main")
    file = Path(app.env.doc2path(pagename)).relative_to(app.srcdir).as_posix()
    title = re.sub(r"<[^>]+>", "", context["title"])
    form = urlencode({"title": f"{title}：", "body": f"页面：{file}\n小节：\n\n问题：\n\n应当是：\n"})
    links = (
        (f"{repository}/issues/new?{form}", "报告这一页的问题", "feedback-issue"),
        (f"{repository}/blob/{branch}/{quote(file)}", "查看源文件", ""),
        (f"{repository}/commits/{branch}/{quote(file)}", "这一页的修改记录", ""),
    )
    if (corrections := "chapters/appendix/corrections") in app.env.found_docs:
        links += ((context["pathto"](corrections), "勘误记录", ""),)
    items = "".join(f'<li><a class="{kind}" href="{html.escape(url)}">{text}</a></li>' for url, text, kind in links)
    context["body"] += f'\n<ul class="feedback" aria-label="反馈">{items}</ul>'


MOVED = """<!DOCTYPE html>
<html lang="zh-CN"><head><meta charset="utf-8"><title>这一页搬家了</title>
<meta name="robots" content="noindex"><link rel="canonical" href="{target}">
<meta http-equiv="refresh" content="0; url={target}">
<script>location.replace("{target}" + location.hash)</script></head>
<body><p>这一页搬到了 <a href="{target}">{target}</a>。</p></body></html>
"""


def redirect(app, exception):
    """A page that moved leaves its address behind: `_redirects.yml` maps old document names to new ones."""
    table = Path(app.srcdir, "_redirects.yml")
    if exception or app.builder.name != "html" or not table.exists():
        return
    for old, new in (yaml.safe_load(table.read_text(encoding="utf-8")) or {}).items():
        if new not in app.env.found_docs or old in app.env.found_docs:
            LOGGER.warning("_redirects.yml：%s → %s：旧名应当已经没有，新名应当存在", old, new, type="book", subtype="redirect")
            continue
        path = Path(app.outdir, f"{old}.html")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(MOVED.format(target=relative_uri(f"{old}.html", f"{new}.html")), encoding="utf-8")


def finish(app, exception):
    if exception or app.builder.name != "html":
        return
    Path(app.outdir, ".nojekyll").touch()  # GitHub Pages would leave out every folder whose name starts with "_"
    for path in Path(app.outdir).rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        for old, new in REPLACED.items():
            text = text.replace(old, new)
        text = SEARCH.sub(r"\1>", text)
        text = FORMULA_HEAD.sub(name_formula_head, text)
        text = LOGO.sub(r'\1 role="region" aria-label="书名"\2', text)
        path.write_text(text, encoding="utf-8")


def setup(app):
    app.connect("html-page-context", describe)
    app.connect("html-page-context", feedback)
    app.connect("build-finished", redirect, priority=980)  # after assets.finish: these pages load nothing
    app.connect("build-finished", finish)
