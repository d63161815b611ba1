"""`lib.tokenizer`: the documents' corpus step by step, properties of any text, and the ids of tiktoken and tokenizers."""
import doctest
import json
import math
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lib import tokenizer as module
from lib.tokenizer import (
    BPE,
    CL100K_PATTERN,
    GPT2_PATTERN,
    O200K_PATTERN,
    SMOLLM_PATTERN,
    ByteBPE,
    count_pairs,
    learn_merges,
    learn_merges_plain,
    merge_pair,
    merge_parts,
    merge_parts_plain,
)

GOLDEN = Path(__file__).parent / "golden" / "tokenizer"
IDS = json.loads((GOLDEN / "ids.json").read_text(encoding="utf-8"))
CORPUS = {"low": 5, "lower": 2, "newest": 3, "widest": 3}
WORDS = {(*word, "</w>"): count for word, count in CORPUS.items()}

few = settings(deadline=None, max_examples=50)
# Letters that repeat, so that overlapping and neighbouring occurrences are common.
byte_words = st.dictionaries(st.text("abc", min_size=1, max_size=14).map(str.encode), st.integers(1, 4), max_size=6)
any_text = st.text(st.characters())  # every code point, lone surrogates too
mixed = st.lists(st.sampled_from([
    "a", "the", " ", "  ", "\n", "\r\n", "\t", "1", "2024", "中国", "。", "'s", "'LL", "é", "e\u0301", "😀", "👨‍👩‍👧", "\u200b", "\x00", "\x1c",
    "\x85", "\u3000", "...", "<|endoftext|>", "<|", "|>", "Abc", "ABC", "ß", "ſ", "\u2028", "\ufeff", "ไท", "/"]), max_size=12).map("".join)


def test_examples_in_the_docstrings():
    assert doctest.testmod(module).attempted >= 8 and doctest.testmod(module).failed == 0


# The documents' corpus


def test_pairs_of_the_corpus():
    counts = count_pairs(WORDS)
    assert counts == {("l", "o"): 7, ("o", "w"): 7, ("e", "s"): 6, ("s", "t"): 6, ("t", "</w>"): 6, ("w", "</w>"): 5, ("w", "e"): 5,
                      ("n", "e"): 3, ("e", "w"): 3, ("w", "i"): 3, ("i", "d"): 3, ("d", "e"): 3, ("e", "r"): 2, ("r", "</w>"): 2}
    assert list(counts)[:3] == [("l", "o"), ("o", "w"), ("w", "</w>")], "in the order of first sight"


MERGES = {
    "first": "lo low es est est</w> low</w> ne new newest</w> wi wid widest</w> lowe lower lower</w>",
    "lexicographic": "lo low es est est</w> low</w> dest</w> ew ewest</w> idest</w> newest</w> widest</w> er er</w> lower</w>",
    max: "ow low t</w> st</w> est</w> low</w> wi wid widest</w> west</w> ne newest</w> r</w> lowe lower</w>",
    (lambda pairs: pairs[-1]): "ow low t</w> st</w> est</w> low</w> dest</w> idest</w> widest</w> west</w> ewest</w> newest</w> r</w> er</w> lower</w>",
}


@pytest.mark.parametrize("tie_break", MERGES)
def test_every_tie_rule_gives_the_audited_merges(tie_break):
    bpe = BPE.train(CORPUS, tie_break=tie_break)
    assert ["".join(pair) for pair in bpe.merges] == MERGES[tie_break].split()
    assert len(bpe.vocab) == 11 + 15 and list(bpe.vocab.values()) == list(range(26))
    assert bpe.tokenize("lowest") == ["low", "est</w>"]
    assert all(bpe.tokenize(word) == [word + "</w>"] for word in CORPUS)


def test_whatever_the_ties_the_fifth_and_sixth_merge_are_decided():
    """Follow every choice among tied pairs: (e, w) is never the 5th merge, though the document says so."""
    states, seen = [WORDS], {}
    for number in range(1, 9):
        branches = {}
        for words in states:
            counts = count_pairs(words)
            most = max(counts.values())
            for pair in (pair for pair, count in counts.items() if count == most):
                seen.setdefault("".join(pair), number)
                branches[frozenset((merge_pair(word, pair), count) for word, count in words.items())] = ("".join(pair), most)
        states = [dict(state) for state in branches]
        if number == 5:
            assert set(branches.values()) == {("est</w>", 6)}
        if number == 6:
            assert set(branches.values()) == {("low</w>", 5)}
    assert seen["ew"] == 7 and seen["new"] == 8


def test_growing_vocabulary():
    assert list(BPE.train(CORPUS, num_merges=0).vocab) == "l o w </w> e r n s t i d".split()
    twelve = BPE.train(CORPUS, vocab_size=12)
    assert twelve.merges == [("l", "o")] and twelve.vocab["lo"] == 11
    assert twelve.tokenize("lowest") == ["lo", "w", "e", "s", "t", "</w>"]
    assert BPE.train(CORPUS, num_merges=4).tokenize("lowest") == ["low", "est", "</w>"]
    assert BPE.train(CORPUS, num_merges=999).merges == BPE.train(CORPUS).merges, "stops when no pair is left"
    text = " ".join(word for word, count in CORPUS.items() for _ in range(count))
    assert BPE.train(text).merges == BPE.train(CORPUS).merges


def test_steps_say_why():
    steps = list(BPE.steps(CORPUS, num_merges=3))
    assert [step.symbol for step in steps] == ["lo", "low", "es"]
    assert [step.tied for step in steps] == [[("l", "o"), ("o", "w")], [("lo", "w")], [("e", "s"), ("s", "t"), ("t", "</w>")]]
    assert [(step.number, step.count, step.vocab_size) for step in steps] == [(1, 7, 12), (2, 7, 13), (3, 6, 14)]
    assert steps[0].counts == count_pairs(WORDS)
    assert steps[1].words == {("low", "</w>"): 5, ("low", "e", "r", "</w>"): 2, (*"newest", "</w>"): 3, (*"widest", "</w>"): 3}


# Counting and merging


def occurrences(symbols, pair):
    """How many times a left-to-right merge would fire: the plain definition."""
    count = i = 0
    while i < len(symbols) - 1:
        found = tuple(symbols[i : i + 2]) == pair
        count, i = count + found, i + 1 + found
    return count


@few
@given(st.lists(st.tuples(st.text("abc", min_size=1, max_size=9).map(tuple), st.integers(1, 5)), max_size=5))
def test_counting_counts_what_merging_merges(entries):
    words = dict(entries)
    before = dict(words)
    counts = count_pairs(words)
    assert words == before
    pairs = {pair for word in words for pair in zip(word, word[1:])}
    assert counts == {pair: sum(occurrences(word, pair) * count for word, count in words.items()) for pair in pairs}
    for pair in pairs:
        for word in words:
            merged = merge_pair(word, pair)
            assert "".join(merged) == "".join(word) and len(word) - len(merged) == occurrences(word, pair)


def test_overlapping_and_edges():
    assert count_pairs({("a",) * 5: 3}) == {("a", "a"): 6}
    assert count_pairs({}) == {} and count_pairs({("a",): 2}) == {}
    assert merge_pair(("a", "a", "a"), ("a", "a")) == ("aa", "a")
    assert merge_pair(("x", "a", "b"), ("a", "b")) == ("x", "ab") and merge_pair(("a",), ("a", "b")) == ("a",)
    assert merge_pair((), ("a", "b")) == () and merge_pair(("a", "b"), ("b", "a")) == ("a", "b")


@few
@given(st.lists(st.text("lowerst", min_size=1, max_size=8), min_size=1, max_size=12), st.integers(0, 12))
def test_character_bpe_goes_there_and_back(words, num_merges):
    bpe = BPE.train(" ".join(words), num_merges=num_merges)
    ids = bpe.encode("  ".join(words))
    assert bpe.decode(ids) == " ".join(words)
    for word in words:
        assert "".join(bpe.tokenize(word)) == word + "</w>"
        replayed = (*word, "</w>")
        for pair in bpe.merges:  # merging in the order of learning is the definition of the algorithm
            replayed = merge_pair(replayed, pair)
        assert bpe.tokenize(word) == list(replayed)


# The fast ways and the plain ones


@few
@given(byte_words, st.integers(0, 25))
def test_learning_by_changes_equals_recounting(words, num_merges):
    assert learn_merges(words, num_merges) == learn_merges_plain(words, num_merges)


def test_learning_by_changes_equals_recounting_on_real_text():
    text = (Path(module.__file__)).read_text(encoding="utf-8")[:6_000]
    words = Counter(word.encode() for word in text.split())
    assert learn_merges(words, 100) == learn_merges_plain(words, 100)


@few
@given(st.text("ab", max_size=40).map(str.encode), st.dictionaries(st.text("ab", min_size=2, max_size=5), st.integers(0, 6)))
def test_merging_with_a_heap_equals_scanning(data, ranks):
    parts = [bytes([b]) for b in data]

    def rank(left, right):
        return ranks.get((left + right).decode(), math.inf)

    before = list(parts)
    assert merge_parts(parts, rank) == merge_parts_plain(parts, rank)
    assert parts == before


# Byte-level BPE on any text


@pytest.fixture(scope="module")
def trained():
    text = (GOLDEN.parent.parent / "test_tokenizer.py").read_text(encoding="utf-8")
    return ByteBPE.train(text, 500, special_tokens=["<|endoftext|>", "<|end|>"])


@few
@given(text=any_text | mixed)
def test_any_string_comes_back(trained, text):
    ids = trained.encode(text)
    assert trained.decode(ids) == text
    assert b"".join(trained.token_bytes(ids)) == text.encode("utf-8", "surrogatepass")
    assert trained.decode(trained.encode(text, "all")) == text
    assert not set(ids) & set(trained.special_tokens.values()), "nothing special unless allowed"


@pytest.mark.parametrize("pattern", [GPT2_PATTERN, CL100K_PATTERN, O200K_PATTERN, SMOLLM_PATTERN])
@few
@given(text=any_text | mixed)
def test_every_pattern_keeps_every_character(pattern, text):
    assert "".join(module._pieces(pattern)(text)) == text


def test_training_is_deterministic_and_stops(trained):
    text = (GOLDEN.parent.parent / "test_tokenizer.py").read_text(encoding="utf-8")
    again = ByteBPE.train(text, 500, special_tokens=["<|endoftext|>", "<|end|>"])
    assert again.merges == trained.merges and again.vocab == trained.vocab and trained.vocab_size == 500
    assert trained.special_tokens == {"<|endoftext|>": 498, "<|end|>": 499}
    small = ByteBPE.train("ab ab", 1000)
    assert small.merges == [(b"a", b"b"), (b" ", b"ab")] and small.vocab_size == 258
    assert ByteBPE.train("", 256).encode("hé") == [104, 195, 169]
    # Ties go to the smallest ids: (a, b) before (c, d), whichever comes first in the text.
    assert ByteBPE.train("cd.ab", 257).merges == [(b"a", b"b")]


def test_special_tokens_stay_out_of_training():
    bpe = ByteBPE.train("<s>ab<s>ab<s>", 258, special_tokens=["<s>"])
    assert bpe.merges == [(b"a", b"b")]
    assert bpe.encode("<s>ab", ["<s>"]) == [257, 256] and bpe.encode("<s>") == [60, 115, 62]
    longer = ByteBPE.train("", 258, special_tokens=["<a>", "<a><b>"])
    assert longer.encode("<a><b><a>", "all") == [257, 256], "the longer one where both fit"


def test_long_pieces_take_no_quadratic_time(trained):
    for text in ("a" * 20_000, " " * 20_000, "ab" * 10_000, "汉" * 7_000):
        assert trained.decode(trained.encode(text)) == text


@pytest.mark.parametrize("make", [
    lambda folder: ByteBPE.train("low lower lowest 低处", 270, special_tokens=["<|x|>"]),
    lambda folder: ByteBPE.from_tiktoken(GOLDEN / "o200k_base.tiktoken", pattern=O200K_PATTERN),
])
def test_saving_and_loading(make, tmp_path):
    bpe = make(tmp_path)
    bpe.save(tmp_path / "tokenizer.json")
    back = ByteBPE.load(tmp_path / "tokenizer.json")
    for name in ("vocab", "merges", "pattern", "special_tokens"):
        assert getattr(back, name) == getattr(bpe, name)
    assert all(back.encode(text, "all") == bpe.encode(text, "all") for text in IDS["texts"])


# Other people's vocabularies

KNOWN = {"r50k_base": 50256, "cl100k_base": 100256, "o200k_base": 199998}


@pytest.mark.parametrize("name", KNOWN)
def test_ids_of_tiktoken(name):
    """The excerpt holds every token that the texts can touch; pattern and special tokens are the known vocabulary's."""
    pattern, specials = module._KNOWN[KNOWN[name]]
    for source in (GOLDEN / f"{name}.tiktoken", (GOLDEN / f"{name}.tiktoken").read_bytes()):
        bpe = ByteBPE.from_tiktoken(source, pattern=pattern, special_tokens=specials)
        for text, (ordinary, special) in zip(IDS["texts"], IDS[name], strict=True):
            assert bpe.encode(text) == ordinary, text
            assert bpe.encode(text, "all") == special, text
            assert bpe.decode(ordinary) == bpe.decode(special) == text


def test_a_known_vocabulary_is_recognised_by_its_size():
    lines = [b"%s %d\n" % (module.base64.b64encode(b"%c" % b), b) for b in range(256)]
    lines += [b"%s %d\n" % (module.base64.b64encode(b"token%d" % n), n) for n in range(256, 100256)]
    bpe = ByteBPE.from_tiktoken(b"".join(lines))
    assert bpe.pattern == CL100K_PATTERN and bpe.special_tokens["<|endoftext|>"] == 100257 and bpe.vocab_size == 100277


def test_ids_of_hugging_face():
    bpe = ByteBPE.from_gpt2(GOLDEN / "vocab.json", GOLDEN / "merges.txt")
    assert bpe.special_tokens == {"<|endoftext|>": 0}
    for text, ids in zip(IDS["texts"], IDS["hugging_face"], strict=True):
        assert bpe.encode(text, "all") == ids, text


def test_merge_order_decides_not_the_longest_match(tmp_path):
    """A hand-made list in which the same token could also come from another pair: only listed pairs merge."""
    tokens = [module._BYTE_TO_CHAR[b] for b in range(256)] + ["ab", "bc", "abc"]
    (tmp_path / "vocab.json").write_text(json.dumps({token: i for i, token in enumerate(tokens)}), encoding="utf-8")
    (tmp_path / "merges.txt").write_text("#version: 0.2\na b\nb c\na bc\n", encoding="utf-8")
    bpe = ByteBPE.from_gpt2(tmp_path / "vocab.json", tmp_path / "merges.txt")
    assert bpe.token_bytes(bpe.encode("abc")) == [b"ab", b"c"]


def test_decoding_half_a_character():
    bpe = ByteBPE.train("", 256)
    assert bpe.decode(bpe.encode("汉")[:2], errors="replace") == "\ufffd"
    with pytest.raises(ValueError, match="不是完整的 UTF-8"):
        bpe.decode(bpe.encode("汉")[:2])
