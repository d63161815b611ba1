"""Full-text search made for Chinese: the sections' texts go to the reader, who searches them for exact strings.

A word index needs words, and Chinese has no spaces: whatever cuts the pages must cut the query the same way, or a term
is never found. A book of this size is small enough to look through letter by letter in a few milliseconds, so any two
neighbouring characters are found, each hit names its section, and excerpts need no further request (not even from
file://). `static/search.js` does the looking; this module writes what it looks through: `_static/search-data.js`.
"""

import html
import json
import re
from pathlib import Path

from docutils import nodes
from sphinx import addnodes

from . import glossary, maths

LONG_OUTPUT = 1200  # characters of an output that are looked through: nobody searches for the 50th row of a table
TAGS = re.compile(r"<(style|script)\b.*?</\1>|<[^>]*>", re.S)
# KaTeX gives each formula twice, for the eye and for the ear; the second reads "−∞", the source says "-\\infty".
SPOKEN = re.compile(r"<math\b.*?>(.*?)<annotation.*?</math>", re.S)


def text_of(app, node):
    """What a reader sees of a node, as plain text."""
    if isinstance(node, nodes.Text):
        return node.astext()
    if isinstance(node, (nodes.comment, addnodes.index)):
        return ""
    if isinstance(node, nodes.raw):
        return html.unescape(TAGS.sub(" ", node.astext())) if node["format"] == "html" else ""
    if isinstance(node, nodes.image):
        return " " + node.get("alt", "") + " "
    if isinstance(node, (nodes.math, nodes.math_block)):
        markup = maths.set_formula(app, node.astext().strip(), isinstance(node, nodes.math_block), node)
        return html.unescape(TAGS.sub("", "".join(SPOKEN.findall(markup))))
    inside = "".join(text_of(app, child) for child in node.children)
    return inside if isinstance(node, nodes.Inline) else f" {inside} "


def own_text(app, section):
    """The text of a section without its title and its subsections."""
    parts = []
    for child in section.children:
        if isinstance(child, (nodes.section, nodes.title)):
            continue
        if isinstance(child, nodes.Element) and "cell" in child.get("classes", ()):
            for part in child.children:
                text = text_of(app, part)
                parts.append(text[:LONG_OUTPUT] if "cell_output" in part.get("classes", ()) else text)
        else:
            parts.append(text_of(app, child))
    return " ".join(" ".join(parts).split())


def sections_of(app, doctree):
    """[anchor, title, text] for every section; the first is the page itself (empty anchor)."""
    found = []
    for number, section in enumerate(doctree.findall(nodes.section)):
        title = section.next_node(nodes.title)
        anchor = "" if number == 0 else section["ids"][0]
        found.append([anchor, " ".join(text_of(app, title).split()) if title else "", own_text(app, section)])
    return found


def collect(app, doctree, docname):
    if app.builder.format == "html":
        app.env.book_search = getattr(app.env, "book_search", {})
        app.env.book_search[docname] = sections_of(app, doctree)


def terms(app):
    """Glossary entries as search results of their own, and every name of a term beside its others."""
    page = next((d for d in app.env.found_docs if d.endswith("glossary")), None)
    return [
        [
            [entry["term"], entry["english"], *entry.get("synonyms", ())],
            entry["meaning"],
            app.builder.get_target_uri(page) + "#" + glossary.identity(entry) if page else "",
        ]
        for entry in glossary.entries()
    ]


def write(app, exception):
    if exception or app.builder.format != "html":
        return
    order = [d for d in app.env.toctree_includes.get(app.config.root_doc, ())]
    pages = getattr(app.env, "book_search", {})
    rank = {name: i for i, name in enumerate([app.config.root_doc, *order])}
    data = {
        "pages": [
            {"url": app.builder.get_target_uri(name), "sections": pages[name]}
            for name in sorted(pages, key=lambda n: (rank.get(n, len(rank)), n))
        ],
        "terms": terms(app),
    }
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")
    Path(app.outdir, "_static", "search-data.js").write_text(f"globalThis.bookSearchData={text};\n", encoding="utf-8")


def replace_builtin(app):
    """Sphinx's word index is never asked: don't make it. Its page stays, with our template."""
    if app.builder.format == "html":
        app.builder.search = False
        app.config.html_additional_pages["search"] = "search.html"


def setup(app):
    app.connect("builder-inited", replace_builtin)
    app.connect("doctree-resolved", collect)
    app.connect("build-finished", write)
