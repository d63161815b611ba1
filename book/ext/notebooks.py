"""Give MyST-NB the executed copy of each notebook, so that a page shows what the code prints today.

What is stored in the repository is for readers on GitHub; it never reaches the site.
"""

import json
import os
from pathlib import Path

from sphinx.errors import ExtensionError


def use_executed(app, docname, source):
    if not app.env.doc2path(docname).endswith(".ipynb"):
        return
    manifest = os.environ.get("BOOK_EXECUTED")
    if not manifest:
        raise ExtensionError("请用 make book 构建：它先执行 notebook，再生成网页")
    executed = json.loads(Path(manifest).read_text(encoding="utf-8"))
    source[0] = Path(executed[docname]).read_text(encoding="utf-8")


def setup(app):
    app.connect("source-read", use_executed)
