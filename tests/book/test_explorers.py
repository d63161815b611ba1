"""The explorers inside chapters compute what `lib` computes, and what they show without scripts is true."""

import re
from collections import Counter

import nbformat
import numpy as np
import pytest
from bs4 import BeautifulSoup

from book.explorers import presets
from lib.accounting import kv_cache_bytes
from lib.functional import softmax
from lib.model import PRESETS
from lib.position import rotary, sinusoidal_encoding
from lib.sampling import apply_temperature
from lib.tokenizer import BPE
from tests.book.test_journey import array, ask
from tests.conftest import ROOT

CHAPTERS = {"bpe-explorer": "01-tokenization", "position-explorer": "03-position",
            "sampling-explorer": "10-generation", "cache-explorer": "11-kv-cache"}  # fmt: skip
RULES = {"first": "first", "lexicographic": "lexicographic", "largest": max}
CORPORA = ["low low low low low lower lower newest newest newest widest widest widest", "aaaaa aaaa aaa", "吃葡萄 不吐 葡萄皮 不吃葡萄 倒吐",
           "𠀀𠀁 ｗｗ 𠀀ｗ ｗ𠀀 é e\u0301", "constructor toString __proto__"]  # fmt: skip


def element(tag):
    nb = nbformat.read(ROOT / "chapters" / f"{CHAPTERS[tag]}.ipynb", as_version=4)
    (cell,) = [cell for cell in nb.cells if f"<{tag}" in cell.source]
    return BeautifulSoup(cell.source, "html.parser").find(tag)


def fallback(tag):
    return [[cell.get_text() for cell in row.find_all("td")] for row in element(tag).find("tbody").find_all("tr")]


def numbers(row):
    return [float(text.replace("−", "-")) for text in row]


@pytest.mark.parametrize("rule", RULES)
def test_bpe_merges_what_lib_merges(rule):
    rng = np.random.default_rng(1)
    corpora = CORPORA + [" ".join("".join(rng.choice(list("ab你"), rng.integers(1, 7))) for _ in range(12)) for _ in range(25)]
    words = ["lowest", "aaaa", "葡萄", "ab你你ab"]
    for text, steps in zip(corpora, ask([["bpe", text, rule, 40] for text in corpora])):
        expected = list(BPE.steps(text, num_merges=40, tie_break=RULES[rule]))
        assert [tuple(step["pair"]) for step in steps] == [step.pair for step in expected], text
        for got, wanted in zip(steps, expected):
            assert (got["count"], [tuple(pair) for pair in got["tied"]]) == (wanted.count, wanted.tied)
            assert {tuple(c["pair"]): c["count"] for c in got["counts"]} == wanted.counts
            merged = Counter()
            for word in got["words"]:
                merged[tuple(word["symbols"])] += word["count"]
            assert merged == wanted.words
        bpe = BPE.train(text, num_merges=40, tie_break=RULES[rule])
        cut = ask([["numerics", "bpeTokenize", word, [list(pair) for pair in bpe.merges]] for word in words])
        assert cut == [bpe.tokenize(word) for word in words]


def test_positions_are_libs():
    cases = [(p, d, base) for d in (2, 8, 64) for base in (10.0, 10000.0) for p in (0, 1, 47)]
    for (p, d, base), row in zip(cases, ask([["numerics", "sinusoid", p, d, base] for p, d, base in cases])):
        np.testing.assert_allclose(row, sinusoidal_encoding(p + 1, d, base)[p], atol=1e-12)
    x = np.random.default_rng(2).normal(size=8)
    for p, row in zip((0, 3, 39), ask([["numerics", "rotate", x, p, 10000] for p in (0, 3, 39)])):
        np.testing.assert_allclose(row, rotary(x[None], np.array([p]))[0], atol=1e-12)


def test_softmax_of_nothing_visible_is_zero():
    assert ask([["numerics", "softmax", [-np.inf, -np.inf]]]) == [[0, 0]]
    np.testing.assert_allclose(array(ask([["numerics", "softmax", [1000.0, 1001.0]]])[0]), softmax(np.array([1000.0, 1001.0])))


def test_cache_bytes_are_libs():
    models = presets.presets()
    cases = [(model, tokens, batch, size) for model in models for tokens in (1, 4096, 8192) for batch in (1, 32) for size in (1, 2, 4)]
    answers = ask([["numerics", "cacheBytes", model, tokens, batch, size] for model, tokens, batch, size in cases])
    names = {shown: PRESETS[name] for name, shown in presets.SHOWN.items()}
    assert answers == [kv_cache_bytes(names[m["name"]], tokens, batch, size) for m, tokens, batch, size in cases]


def test_presets_are_written_from_lib():
    assert presets.FILE.read_text(encoding="utf-8") == presets.text(), "python -m book.explorers.presets"


def test_bpe_table_without_scripts():
    steps = BPE.steps(element("bpe-explorer")["corpus"], num_merges=3)
    assert fallback("bpe-explorer") == [[str(s.number), " + ".join(s.pair), str(s.count)] for s in steps]


def test_position_table_without_scripts():
    rows = [numbers(row) for row in fallback("position-explorer")]
    np.testing.assert_allclose([row[1:] for row in rows], sinusoidal_encoding(4, 4), atol=5.01e-4)


def test_sampling_table_without_scripts():
    logits = np.array(eval(element("sampling-explorer")["logits"], {}), dtype=float)
    heads = [cell.get_text() for cell in element("sampling-explorer").find("thead").find_all("th")]
    assert numbers(re.sub("z = ", "", head) for head in heads[1:]) == logits.tolist()
    for row in fallback("sampling-explorer"):
        T, *p = numbers(row)
        np.testing.assert_allclose(p, softmax(apply_temperature(logits, T)), atol=5.01e-4)


def test_cache_table_without_scripts():
    (model,) = [m for m in presets.presets() if m["name"] == element("cache-explorer")["model"]]
    tokens = int(re.search(r"[\d,]+", element("cache-explorer").find_all("th")[1].get_text())[0].replace(",", ""))
    for heads, size in fallback("cache-explorer"):
        exact = kv_cache_bytes((model["layers"], int(heads), model["dHead"]), tokens)
        assert float(size.removesuffix(" GB")) == pytest.approx(exact / 1e9, abs=0.005)
