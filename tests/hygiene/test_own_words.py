"""No sentence of the documents is copied; short quotations stand in 「」 and in the ledger."""

import re

import pytest

from tests.hygiene.files import markdown_cells, notebooks, read_notebook, tracked
from tests.hygiene.shingles import STORE, copied_runs, hashes

# The ledger quotes by design; the tests of this room hold no prose.
PAGES = [p for p in tracked() if p.suffix in {".md", ".py", ".yml"} and not p.as_posix().startswith(("claims/records/", "tests/"))]


def own(text):
    return re.sub(r"「[^」]*」|“[^”]*”", "。", text)


@pytest.mark.parametrize("path", PAGES, ids=str)
def test_page(path):
    assert not copied_runs(own(path.read_text()))


@pytest.mark.parametrize("path", notebooks(), ids=str)
def test_notebook(path):
    text = "\n".join([source for _, source in markdown_cells(path)] + [c.source for c in read_notebook(path).cells if c.cell_type == "code"])
    assert not copied_runs(own(text))


def test_a_copied_sentence_is_found(monkeypatch):
    # The set can't be read, so the test makes its own document.
    import numpy as np

    sentence = "这是一句只为测试而写的句子，长度超过十八个字，抄一遍就该被发现。"
    monkeypatch.setattr(np, "load", lambda path: np.array([value for _, value in hashes(sentence)], dtype=np.uint64))
    assert copied_runs("前面的话。" + sentence + "后面的话。")
    assert not copied_runs("换一种说法写同样的意思，就不会与原来的句子有这么长的相同部分。")
    assert STORE.exists()
