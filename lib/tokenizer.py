"""分词：把文字变成编号，再变回来。

两个分词器，同一个想法——数相邻符号对，合并最常见的一对，再数：

- `BPE`：从字符出发，每个词以 `</w>` 结尾。它每步都从头重数，慢，但每一步都看得见（`BPE.steps`）。
- `ByteBPE`：从 256 个字节出发，任何字符串都能编码（GPT-2 起的主流做法）。训练用堆和增量计数，结果与重数逐个相同；
  也能读 tiktoken、GPT-2、GGUF 的现成词表。

这里没有的：Unicode 归一化、SentencePiece 的 unigram 模型、训练时的并行。
"""

import math
import operator
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain

END_OF_WORD = "</w>"


# ---------------------------------------------------------------- 两个基本动作


def count_pairs(words):
    """统计相邻符号对的出现次数：`words` 是「符号序列 → 词频」，每个词的贡献乘以它的词频。

    数的是一次合并真能合并几处，所以重叠的只数一次：`a a a` 里 (a, a) 是 1 次。
    词与词之间不成对。返回的字典按第一次见到的先后排列，`words` 不变。

    >>> count_pairs({("l", "o", "w"): 5, ("l", "o"): 2})
    {('l', 'o'): 7, ('o', 'w'): 5}

    来源：Sennrich 等 2016，3.2 节；文档 001「BPE 算法动手走一遍」。
    """
    _check_mapping("words", words)
    counts = {}
    for symbols, frequency in words.items():
        overlaps = False
        for pair in zip(symbols, symbols[1:]):
            # 一串相同的符号里，隔一对才数一次：前一对已经用掉了中间那个符号。
            overlaps = pair[0] == pair[1] and not overlaps
            if pair[0] != pair[1] or overlaps:
                counts[pair] = counts.get(pair, 0) + frequency
    return counts


def merge_pair(symbols, pair):
    """把 `symbols` 中的 `pair` 从左到右合并成一个符号，返回新的元组；没有这一对就原样返回。

    >>> merge_pair(("a", "a", "a"), ("a", "a"))
    ('aa', 'a')

    来源：Sennrich 等 2016，3.2 节。
    """
    if len(pair) != 2:
        raise ValueError(f"pair 是 {pair!r}，应为两个符号")
    left, right = pair
    merged, i = [], 0
    while i < len(symbols):
        if i + 1 < len(symbols) and symbols[i] == left and symbols[i + 1] == right:
            merged.append(left + right)
            i += 2
        else:
            merged.append(symbols[i])
            i += 1
    return tuple(merged)


# ---------------------------------------------------------------- 字符级 BPE


@dataclass(frozen=True)
class BPEStep:
    """`BPE.steps` 的一条记录：第 `number` 次合并了哪一对、为什么是它、合并后各词的样子。"""

    number: int  # 第几次合并，从 1 数起
    pair: tuple  # 被合并的一对
    symbol: str  # 合并出的新符号
    count: int  # 这一对的次数
    tied: list  # 次数并列最高的全部候选，按见到的先后
    counts: dict  # 合并前的全部对频
    words: dict  # 合并后的「符号序列 → 词频」
    vocab_size: int  # 合并后的词表大小


def _first(pairs):
    return pairs[0]


TIE_BREAKS = {"first": _first, "lexicographic": min}


class BPE:
    """字符级 BPE：`merges` 是合并规则（按先后），`vocab` 是「符号 → 编号」（按创建的先后）。

    >>> bpe = BPE.train("low low low lower", num_merges=2)
    >>> bpe.merges
    [('l', 'o'), ('lo', 'w')]
    >>> bpe.tokenize("lowest")
    ['low', 'e', 's', 't', '</w>']

    来源：Sennrich 等 2016；文档 001「BPE 算法动手走一遍」。
    """

    def __init__(self, merges, vocab):
        self.merges = [tuple(pair) for pair in merges]
        self.vocab = dict(vocab)
        self._ranks = {pair: rank for rank, pair in enumerate(self.merges)}
        self._symbols = {index: symbol for symbol, index in self.vocab.items()}

    @classmethod
    def train(cls, corpus, *, vocab_size=None, num_merges=None, tie_break="first"):
        """从语料学合并规则：到 `vocab_size` 个符号或 `num_merges` 次合并为止；都不给就合并到无对可合并。

        `corpus` 是一段文字（按空白切词）或「词 → 次数」。次数并列时由 `tie_break` 决定：
        `"first"` 取先见到的，`"lexicographic"` 取字典序最小的，也可以给一个函数（收到并列的各对，返回其中一对）。
        """
        vocab = _symbols_of(_corpus_words(corpus))
        merges = []
        for step in cls.steps(corpus, vocab_size=vocab_size, num_merges=num_merges, tie_break=tie_break):
            merges.append(step.pair)
            vocab.setdefault(step.symbol, len(vocab))
        return cls(merges, vocab)

    @staticmethod
    def steps(corpus, *, vocab_size=None, num_merges=None, tie_break="first"):
        """与 `train` 相同的过程，每合并一次给出一条 `BPEStep`，供展示和检查。"""
        words = _corpus_words(corpus)
        choose = _tie_rule(tie_break)
        symbols = set(_symbols_of(words))
        limit = _merge_limit(vocab_size, num_merges, len(symbols))
        number = 0
        while number < limit and (counts := count_pairs(words)):
            most = max(counts.values())
            tied = [pair for pair, count in counts.items() if count == most]
            pair = choose(list(tied))
            if pair not in tied:
                raise ValueError(f"tie_break 返回了 {pair!r}，它不在并列的候选 {tied} 里")
            merged = Counter()
            for word, frequency in words.items():
                merged[merge_pair(word, pair)] += frequency
            words = dict(merged)
            symbol = pair[0] + pair[1]
            symbols.add(symbol)
            number += 1
            yield BPEStep(number, pair, symbol, most, tied, counts, words, len(symbols))

    def tokenize(self, word):
        """把一个词切成符号：反复合并学得最早的那一对，直到没有学过的对。没见过的字符保持单个。"""
        _check_word(word)
        symbols = (*word, END_OF_WORD)
        while known := [pair for pair in zip(symbols, symbols[1:]) if pair in self._ranks]:
            symbols = merge_pair(symbols, min(known, key=self._ranks.get))
        return list(symbols)

    def encode(self, text):
        """按空白切词，再把每个词变成编号。训练语料里没有的字符没有编号，报错。"""
        _check_text("text", text)
        ids = []
        for word in text.split():
            for symbol in self.tokenize(word):
                if symbol not in self.vocab:
                    raise ValueError(
                        f"词表里没有符号 {symbol!r}（在词 {word!r} 里）：训练语料没出现过它；要编码任何文字请用 ByteBPE"
                    )
                ids.append(self.vocab[symbol])
        return ids

    def decode(self, ids):
        """把编号变回文字：词与词之间放一个空格（原来的空白是几个、哪一种，训练时就没有保留）。"""
        text = "".join(self._symbols[_check_id(i, self._symbols)] for i in ids)
        return text.replace(END_OF_WORD, " ").removesuffix(" ")


def _corpus_words(corpus):
    """语料 → 「符号元组 → 次数」，词的顺序不变。"""
    if isinstance(corpus, str):
        corpus = Counter(corpus.split())
    _check_mapping("corpus", corpus, "一段文字，或「词 → 次数」的字典")
    if not corpus:
        raise ValueError("corpus 里一个词也没有，无法训练")
    for word, count in corpus.items():
        _check_word(word)
        if isinstance(count, bool) or not hasattr(count, "__index__") or count < 1:
            raise ValueError(f"词 {word!r} 的次数是 {count!r}，应为正整数")
    return {(*word, END_OF_WORD): count for word, count in corpus.items()}


def _symbols_of(words):
    """初始词表：出现过的单个符号，按见到的先后编号。"""
    return {symbol: index for index, symbol in enumerate(dict.fromkeys(chain.from_iterable(words)))}


def _tie_rule(tie_break):
    if callable(tie_break):
        return tie_break
    if tie_break not in TIE_BREAKS:
        raise ValueError(f'tie_break 是 {tie_break!r}，应为 "first"、"lexicographic" 或一个函数')
    return TIE_BREAKS[tie_break]


def _merge_limit(vocab_size, num_merges, base):
    """最多合并几次。"""
    if vocab_size is not None and num_merges is not None:
        raise ValueError("vocab_size 与 num_merges 只能给一个：前者 = 基本符号数 + 后者")
    if vocab_size is not None:
        if vocab_size < base:
            raise ValueError(f"vocab_size 是 {vocab_size}，比基本符号数 {base} 还小")
        return vocab_size - base
    if num_merges is not None and num_merges < 0:
        raise ValueError(f"num_merges 是 {num_merges}，应为非负整数")
    return math.inf if num_merges is None else num_merges


# ---------------------------------------------------------------- 输入检查


def _check_mapping(name, value, expected="「符号序列 → 词频」的字典"):
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} 是 {type(value).__name__}，应为{expected}")


def _check_text(name, value):
    if not isinstance(value, str):
        raise TypeError(f"{name} 是 {type(value).__name__}，应为字符串")


def _check_word(word):
    _check_text("word", word)
    if not word or END_OF_WORD in word or word.split() != [word]:
        raise ValueError(f"词 {word!r} 不合规：不能为空，不能含空白，也不能含词尾标记 {END_OF_WORD}")


def _check_id(value, table):
    """编号必须是整数，并且在表里。"""
    try:
        index = operator.index(value)
    except TypeError:
        raise TypeError(f"编号 {value!r} 是 {type(value).__name__}，应为整数") from None
    if index not in table:
        raise IndexError(f"编号 {index} 不在词表里：词表有 {len(table)} 个符号，最大编号 {max(table, default=-1)}")
    return index
