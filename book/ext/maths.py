"""Formulas become HTML and MathML while the book is built; a page carries no script for them.

One KaTeX process serves the whole build. Whatever KaTeX can't set, and anything it would only warn of (Chinese
outside \\text, say), is a warning of the build, hence an error.
"""

import html
import json
import re
import subprocess
from functools import lru_cache
from pathlib import Path

from docutils import nodes
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

from book import node as nodejs

LOGGER = logging.getLogger(__name__)
SERVER = Path(__file__).with_name("katex-server.cjs")


class Katex:
    """A Node process that answers one JSON line for each it is asked."""

    def __init__(self):
        self.process = subprocess.Popen(
            [nodejs.executable(), SERVER],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8", env=nodejs.environment(),
        )  # fmt: skip
        self.render = lru_cache(None)(self._render)

    def _render(self, tex, display):
        self.process.stdin.write(json.dumps({"tex": tex, "display": display}) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        return answer.get("html"), answer.get("error")

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=10)


def render(translator, node, display):
    return set_formula(translator.builder.app, node.astext().strip(), display, node)


def set_formula(app, tex, display, node):
    """The formula's HTML; what can't be set is a warning at its place and shown as code."""
    if not hasattr(app, "katex"):
        app.katex = Katex()
    markup, error = app.katex.render(tex, display)
    if error:
        LOGGER.warning("公式排不出来：%s\n%s", error, tex, location=node, type="book", subtype="maths")
        return f"<code>{html.escape(tex)}</code>"
    return markup


def inline(translator, node):
    translator.body.append(render(translator, node, display=False))
    raise nodes.SkipNode


def block(translator, node):
    """A numbered formula keeps its number at the right edge; a wide one scrolls inside its own box."""
    number = get_node_equation_number(translator, node) if node["number"] else None
    translator.body.append(translator.starttag(node, "div", CLASS="math-block"))
    # Focusable, so that a keyboard can scroll it as well.
    translator.body.append('<div class="math-scroll" tabindex="0" role="group" aria-label="公式">')
    translator.body.append(render(translator, node, display=True) + "</div>")
    if number:
        translator.body.append(f'<span class="eqno">({number})')
        translator.add_permalink_ref(node, "本公式的链接")
        translator.body.append("</span>")
    translator.body.append("</div>\n")
    raise nodes.SkipNode


# Closing punctuation never begins a line and opening punctuation never ends one; a browser that sets a formula as a
# box of its own would break there all the same. Chromium keeps them together only where the whole formula may not break,
# so a long one, which a phone must be able to break, goes without.
CLOSING = re.compile(r"[，。、；：！？）」』》〉】”’…]+")
LONGEST_HELD = 14  # characters as they show
OPENING = re.compile(r"[（「『《〈【“‘]+$")


def keep_punctuation(app, doctree):
    for formula in list(doctree.findall(nodes.math)):
        shown = re.sub(r"<annotation.*?</annotation>|<[^>]+>", "", set_formula(app, formula.astext().strip(), False, formula).split("</math>")[0])
        if len(html.unescape(shown)) > LONGEST_HELD:
            continue
        parent, held = formula.parent, [formula]
        place = parent.index(formula)
        after = parent[place + 1] if place + 1 < len(parent) else None
        before = parent[place - 1] if place else None
        if isinstance(after, nodes.Text) and (found := CLOSING.match(after)):
            parent.replace(after, nodes.Text(after[found.end() :]))
            held.append(nodes.Text(found[0]))
        if isinstance(before, nodes.Text) and (found := OPENING.search(before)):
            parent.replace(before, nodes.Text(before[: found.start()]))
            held.insert(0, nodes.Text(found[0]))
        if len(held) > 1:
            parent.replace(formula, nodes.inline("", "", *held, classes=["held"]))


# Markdown leaves the inside of a <summary> alone; here its formulas and code are set like everywhere else.
SUMMARY = re.compile(r"<summary>(.*?)</summary>", re.S)
INLINE = re.compile(r"\$([^$\n]+)\$|`([^`\n]+)`")


def set_summaries(app, doctree):
    for raw in doctree.findall(nodes.raw):
        if raw["format"] != "html" or "<summary>" not in (markup := raw.astext()):
            continue

        def piece(match, raw=raw):
            if match[2]:
                return f'<code class="docutils literal notranslate">{match[2]}</code>'
            return set_formula(app, html.unescape(match[1]), False, raw)

        raw.children = [nodes.Text(SUMMARY.sub(lambda m: f"<summary>{INLINE.sub(piece, m[1])}</summary>", markup))]


def stop(app, exception):
    if hasattr(app, "katex"):
        app.katex.close()


def setup(app):
    app.add_html_math_renderer("katex", inline_renderers=(inline, None), block_renderers=(block, None))
    app.connect("doctree-read", keep_punctuation)
    app.connect("doctree-read", set_summaries)
    app.connect("build-finished", stop)
