"""Byte-pair encoding: the corpus of document 001 under every way of breaking ties, and real GPT-2 tokens."""

import base64
from collections import Counter
from functools import cache
from pathlib import Path

from claims.judge import UNSET, Evidence
from claims.registry import computation
from lib.tokenizer import BPE, count_pairs, merge_pair

CORPUS = "low low low low low lower lower newest newest newest widest widest widest"
WORDS = {(*word, "</w>"): n for word, n in Counter(CORPUS.split()).items()}
# The six merges that the document lists (L96-101), and the pairs in its table (L83-89).
LISTED = [("l", "o"), ("lo", "w"), ("e", "s"), ("es", "t"), ("e", "w"), ("n", "ew")]
IN_TABLE = [("e", "s"), ("s", "t"), ("l", "o"), ("o", "w"), ("w", "</w>"), ("w", "e"), ("e", "w")]
POLICIES = {"first-seen": "first", "last-seen": lambda tied: tied[-1], "lex-min": "lexicographic", "lex-max": max}
# Ranks of the real GPT-2 vocabulary for every piece that the sentences below could be cut into.
_GPT2_SPLIT = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


def merged(words, pair):
    counts = Counter()
    for word, n in words:
        counts[merge_pair(word, pair)] += n
    return tuple(counts.items())


def best_pairs(words):
    counts = count_pairs(dict(words))
    most = max(counts.values(), default=0)
    return [pair for pair, n in counts.items() if n == most]


@cache
def layers(unseen=()):
    """Every state that some way of breaking ties reaches, merge by merge: ((words, an unseen word), ...) and its best pairs."""
    states, found = {(tuple(WORDS.items()), unseen)}, []
    while states:
        step = [(words, word, best_pairs(words)) for words, word in sorted(states)]
        found.append(step)
        states = {(merged(words, pair), merge_pair(word, pair)) for words, word, pairs in step for pair in pairs}
    return found


def spelled(pairs):
    return sorted(f"{a}+{b}" for a, b in pairs)


@computation
def pair_count(pair):
    """How often a pair occurs before the first merge."""
    return count_pairs(WORDS)[tuple(pair)]


@computation
def base_symbols():
    return len({symbol for word in WORDS for symbol in word})


@computation
def vocabulary_after(merges):
    return len(BPE.train(CORPUS, num_merges=merges).vocab)


@computation
def word_counts():
    return list(WORDS.values())


@computation
def pairs_left_out():
    """The pairs that the table hides behind dots; does one of them tie with pairs that it shows?"""
    counts = count_pairs(WORDS)
    hidden = {pair: n for pair, n in counts.items() if pair not in IN_TABLE}
    ties = [pair for pair, n in hidden.items() if n >= 5]
    return Evidence([[a, b, n] for (a, b), n in sorted(hidden.items(), key=lambda e: -e[1])], says="漏了并列第二的对" if ties else "omitted",
                    narrow="omitted" if all(n <= 3 for pair, n in hidden.items() if pair not in ties) else UNSET, show={"pairs": len(counts)})


@computation
def tied_at(merge):
    """The pairs that can be the k-th merge, over every way of breaking ties."""
    return spelled({pair for _, _, pairs in layers()[merge - 1] for pair in pairs})


@computation
def is_legal(merges):
    """Is each of these merges one of the best at its turn?"""
    words = tuple(WORDS.items())
    for pair in map(tuple, merges):
        if pair not in best_pairs(words):
            return False
        words = merged(words, pair)
    return True


@computation
def listed_merges_are_legal():
    """The six listed merges, with the end-of-word mark that the document adds and without it."""
    with_mark = is_legal(LISTED)
    words = tuple((word[:-1], n) for word, n in WORDS.items())
    without = True
    for pair in LISTED:
        without &= pair in best_pairs(words)
        words = merged(words, pair)
    return Evidence([with_mark, without], says=with_mark)


@computation
def earliest(pair):
    """The earliest turn at which any way of breaking ties can merge this pair."""
    return next(k for k, step in enumerate(layers(), 1) if any(tuple(pair) in pairs for _, _, pairs in step))


@computation
def merges_until_done():
    """How many merges until no pair is left, whatever the ties."""
    return Evidence(len(layers()) - 1, show={"symbols": base_symbols() + len(layers()) - 1})


@computation
def whole_tokens(tokens):
    """Which of these become tokens under four ways of breaking ties; all of them, whatever the way?"""
    kept = {name: [t for t in tokens if t in BPE.train(CORPUS, tie_break=rule).vocab] for name, rule in POLICIES.items()}
    return Evidence(kept, says=[t for t in tokens if all(t in found for found in kept.values())], narrow=kept["first-seen"])


@computation
def tokenize_unseen(word, merges):
    """A word that the corpus lacks, cut after the first merges of the document's list."""
    pieces = BPE(LISTED[:merges], {}).tokenize(word)
    return Evidence(pieces, narrow=[piece for piece in pieces if piece != "</w>"])


@computation
def tokenize_unseen_always(word):
    """The same word after five or more merges, over every way of breaking ties."""
    cuts = sorted({cut for step in layers((*word, "</w>"))[5:] for _, cut, _ in step})
    return Evidence(cuts, says=cuts[0] if len(cuts) == 1 else cuts, narrow=[piece.removesuffix("</w>") for piece in cuts[0]])


@computation
def small_vocabulary_is_clear(text, sizes):
    """Do the pieces of a smaller vocabulary say more? Counts in how many different words each piece occurs, and how often."""
    spread, uses = [], []
    for size in sizes:
        bpe = BPE.train(text, num_merges=size)
        cuts = {word: bpe.tokenize(word) for word in set(text.split())}
        pieces = {piece for cut in cuts.values() for piece in cut}
        spread.append(sum(piece in cut for cut in cuts.values() for piece in pieces) / len(pieces))
        uses.append(sum(len(cuts[word]) for word in text.split()) / len(pieces))
    return Evidence(spread[0] < spread[-1], narrow=uses[0] > uses[-1], show={"small": spread[0], "large": spread[-1]})


@cache
def gpt2_ranks():
    lines = (Path(__file__).parents[1] / "gpt2-excerpt.tiktoken").read_bytes().splitlines()
    return {base64.b64decode(token): int(rank) for token, rank in map(bytes.split, lines)}


def gpt2_pieces(text):
    """Cut a text as GPT-2 does: split first, then merge the bytes of each part, the earliest learned pair first."""
    ranks, pieces = gpt2_ranks(), []
    import regex  # only this one needs it, and a browser may not have it

    for part in regex.findall(_GPT2_SPLIT, text):
        symbols = tuple(bytes([byte]) for byte in part.encode())
        while known := [(a, b) for a, b in zip(symbols, symbols[1:]) if a + b in ranks]:
            symbols = merge_pair(symbols, min(known, key=lambda pair: ranks[pair[0] + pair[1]]))
        pieces += symbols
    return pieces


@computation
def gpt2_tokens(text):
    return [piece.decode() for piece in gpt2_pieces(text)]


@computation
def gpt2_split_of_word(word, corpus):
    """GPT-2's cut of a word, alone and after a space; and the cut of a tokenizer that was trained on its parts only."""
    other = [piece.removesuffix("</w>") for piece in BPE.train(corpus).tokenize(word)]
    return Evidence(gpt2_tokens(word), narrow=other, show={"after_space": len(gpt2_pieces(f" {word}"))})


@computation
def gpt2_decode(ids):
    """What these ids are in GPT-2's vocabulary; the document names neither tokenizer nor text."""
    token = {rank: piece for piece, rank in gpt2_ranks().items()}
    return [token[i].decode() for i in ids]


@computation
def chinese_costs_more(chinese, english):
    """The same sentence twice: tokens of each, and how much one English word says in Chinese characters."""
    zh, en, words = len(gpt2_pieces(chinese)), len(gpt2_pieces(english)), len(english.split())
    claim = "英文词语义少"
    return Evidence({"中文词元": zh, "英文词元": en, "汉字": len(chinese), "英文词": words}, says=claim if len(chinese) < words else "英文词语义不少",
                    narrow=claim if zh > en else UNSET, show={"zh": zh, "en": en, "chars": len(chinese), "words": words})


@computation
def gpt2_vocabulary_size():
    """256 bytes, 50,000 merges and one end-of-text mark."""
    return 256 + 50_000 + 1
