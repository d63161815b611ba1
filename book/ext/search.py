"""Full-text search made for Chinese: the sections' texts go to the reader, who searches them for exact strings.

A word index needs words, and Chinese has no spaces: whatever cuts the pages must cut the query the same way, or a term
is never found. A book of this size is small enough to look through letter by letter in a few milliseconds, so any two
neighbouring characters are found, each hit names its section, and excerpts need no further request (not even from
file://). `static/search.js` does the looking; this module writes what it looks through: `_static/search-data.js`.
"""

import json
import re
from pathlib import Path

from docutils import nodes
from sphinx import addnodes

from . import glossary

# What nobody searches for: pictures' addresses, index entries, and outputs of more than a few lines.
LONG_OUTPUT = 1200


def own_text(section):
    """The text of a section without its subsections, titles and pictures."""
    parts = []
    for child in section.children:
        if isinstance(child, (nodes.section, nodes.title, nodes.comment, addnodes.index)):
            continue
        # Raw HTML is a folded answer's heading, or markup around it.
        text = re.sub(r"<[^>]*>", " ", child.astext()) if isinstance(child, nodes.raw) else child.astext()
        if isinstance(child, nodes.Element) and "cell_output" in child.get("classes", ()):
            text = text[:LONG_OUTPUT]
        parts.append(text)
    return " ".join(" ".join(parts).split())


def sections_of(doctree):
    """[anchor, title, text] for every section; the first is the page itself (empty anchor)."""
    found = []
    for number, section in enumerate(doctree.findall(nodes.section)):
        title = section.next_node(nodes.title)
        anchor = "" if number == 0 else section["ids"][0]
        found.append([anchor, title.astext() if title else "", own_text(section)])
    return found


def collect(app, doctree, docname):
    if app.builder.format == "html":
        app.env.book_search = getattr(app.env, "book_search", {})
        app.env.book_search[docname] = sections_of(doctree)


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
