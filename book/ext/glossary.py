"""The glossary page and everything else that comes from book/glossary.yml, so that no term is written twice.

`{book-glossary}` sets all terms; `` {term}`缩放点积注意力` `` links to one, by its Chinese or English name or a synonym.
"""

import re
from functools import lru_cache
from pathlib import Path

import yaml
from docutils import nodes
from sphinx import addnodes
from sphinx.util.docutils import SphinxDirective

DATA = Path(__file__).resolve().parent.parent / "glossary.yml"


@lru_cache(1)
def entries():
    return yaml.safe_load(DATA.read_text(encoding="utf-8"))


def chapter_documents(env):
    """'04' -> 'chapters/04-attention', for the chapters that stand."""
    return {
        name.split("/")[1].split("-")[0]: name
        for name in env.found_docs
        if name.startswith("chapters/") and name.split("/")[1][:2].isdigit()
    }


@lru_cache(None)
def owner(name):
    """The entry that a name belongs to: its own first, else the first that has it as a synonym."""
    key = name.lower()
    own = [e for e in entries() if key in (e["term"].lower(), e["english"].lower())]
    return (own or [e for e in entries() if key in map(str.lower, e.get("synonyms", ()))])[0]


def identity(entry):
    return "term-" + re.sub(r"[^0-9a-z\u3400-\u9fff]+", "-", entry["term"].lower()).strip("-")


class BookGlossary(SphinxDirective):
    """All terms in the order of the file, which is the order of the journey."""

    def run(self):
        self.env.note_dependency(str(DATA))
        chapters = chapter_documents(self.env)
        listing = nodes.definition_list(classes=["glossary", "book-glossary"])
        listing += [self.item(entry, chapters) for entry in entries()]
        self.register([name for e in entries() for name in (e["term"], e["english"])], strict=True)
        self.register([name for e in entries() for name in e.get("synonyms", ())], strict=False)
        return [listing]

    def register(self, names, strict):
        """Make every name findable by {term}. A synonym may also be the name of another entry: the entry wins."""
        domain = self.env.get_domain("std")
        for name in names:
            if name.lower() in domain._terms and not strict:
                continue
            domain._terms[name.lower()] = (self.env.docname, identity(owner(name)))

    def item(self, entry, chapters):
        term = nodes.term("", "", *self.parse_inline(f"{entry['term']}（{entry['english']}）"))
        term["ids"].append(identity(entry))
        term.source, term.line = self.get_source_info()
        self.state.document.note_explicit_target(term)
        self.env.get_domain("std").note_object("term", entry["term"], identity(entry), location=term)
        # A symbol that is just the abbreviation among the names would only repeat it.
        if (symbol := entry.get("symbol")) and symbol not in (entry["english"], *entry.get("synonyms", ())):
            term += [nodes.Text(" "), *self.parse_inline(symbol)]
        definition = nodes.definition("", nodes.paragraph("", "", *self.parse_inline(entry["meaning"])))
        notes = nodes.paragraph(classes=["glossary-notes"])
        if synonyms := entry.get("synonyms"):
            notes += nodes.Text("也写作：" + "、".join(synonyms) + "。")
        if document := chapters.get(str(entry["chapter"])):
            notes += [nodes.Text("首次讲到："), self.chapter_link(document)]
        definition += notes if notes.children else []
        return nodes.definition_list_item("", term, definition)

    def parse_inline(self, text):
        return self.state.inline_text(text, self.lineno)[0]

    def chapter_link(self, document):
        return addnodes.pending_xref(
            "", nodes.inline("", ""), refdomain="std", reftype="doc", refexplicit=False, refwarn=True,
            reftarget="/" + document, refdoc=self.env.docname,
        )  # fmt: skip


def setup(app):
    app.add_directive("book-glossary", BookGlossary)
