"""Every picture says in words what it shows: a missing alternative text is a warning of the build, hence an error."""

import re

from docutils import nodes
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)
# MyST-NB falls back to the file name that it made from a hash.
HASHED = re.compile(r"^(\.\./)*(_build|jupyter_execute|_images)?/?.*[0-9a-f]{32,}\.\w+$")


def require_alt(app, doctree):
    for image in doctree.findall(nodes.image):
        alt = (image.get("alt") or "").strip()
        if not alt or HASHED.match(alt):
            LOGGER.warning(
                '图没有替代文字：给单元写元数据 {"mystnb": {"image": {"alt": "…"}}}',
                location=image, type="book", subtype="alt",
            )  # fmt: skip


def setup(app):
    app.connect("doctree-read", require_alt)
