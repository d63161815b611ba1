"""Stable, readable section anchors from Chinese titles.

docutils makes ids from ASCII letters only; a Chinese title gets `id3`, which moves when a section is added before it.
Here `## 4.6 为什么除以 √d` is reached as `#4-6-为什么除以-d`, whatever else changes on the page.
"""

import re

from docutils import nodes

GENERATED = re.compile(r"id\d+")


def slug(title):
    return re.sub(r"[^0-9a-z\u3400-\u9fff]+", "-", title.lower()).strip("-")


def chinese_ids(app, doctree):
    for section in doctree.findall(nodes.section):
        title = section.next_node(nodes.title)
        if title is None or not section["ids"]:
            continue
        wanted = slug(title.astext())
        # An id that docutils made from the few ASCII characters of a Chinese title ("q-k-v") says too little.
        made = GENERATED.fullmatch(section["ids"][0]) or re.search(r"[\u3400-\u9fff]", wanted)
        if not wanted or not made or wanted in doctree.ids:
            continue
        section["ids"].insert(0, wanted)
        doctree.ids[wanted] = section


def setup(app):
    # Before the collectors (priority 500) note ids for the toctree and the numbering.
    app.connect("doctree-read", chinese_ids, priority=100)
