"""Last touches on finished pages: the theme's texts that no catalogue translates, and names that assistive software
reads out. Plain replacements of exact markup; a test finds whatever English is left."""

import re
from pathlib import Path

from docutils import nodes

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
    ">Table of contents<": ">目录<",
    ">Open issue<": ">报告问题<",
    ">Repository<": ">仓库<",
    "© Copyright ": "© ",
    # A corner cell of a table names nothing: it is no header.
    '<th class="head"><p></p></th>': "<td></td>",
    '<th class="stub"><p></p></th>': "<td></td>",
}
# The book's name at the top of the side bar stands in no landmark.
LOGO = re.compile(r'(<div class="sidebar-primary-item")(>\s*<a class="navbar-brand)')


DESCRIPTION_LENGTH = 110


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


def finish(app, exception):
    if exception or app.builder.name != "html":
        return
    for path in Path(app.outdir).rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        for old, new in REPLACED.items():
            text = text.replace(old, new)
        text = LOGO.sub(r'\1 role="region" aria-label="书名"\2', text)
        path.write_text(text, encoding="utf-8")


def setup(app):
    app.connect("html-page-context", describe)
    app.connect("build-finished", finish)
