"""分词：把文字变成编号，再变回来。

两个分词器，同一个想法——数相邻符号对，合并最常见的一对，再数：

- `BPE`：从字符出发，每个词以 `</w>` 结尾。它每步都从头重数，慢，但每一步都看得见（`BPE.steps`）。
- `ByteBPE`：从 256 个字节出发，任何字符串都能编码（GPT-2 起的主流做法）。训练用堆和增量计数，结果与重数逐个相同；
  也能读 tiktoken、GPT-2、GGUF 的现成词表。

这里没有的：Unicode 归一化、SentencePiece 的 unigram 模型、训练时的并行。
"""

import base64
import heapq
import json
import math
import operator
import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

__all__ = ["count_pairs", "merge_pair", "BPE", "BPEStep", "ByteBPE", "learn_merges", "learn_merges_plain", "merge_parts",
           "merge_parts_plain", "GPT2_PATTERN", "CL100K_PATTERN", "O200K_PATTERN", "SMOLLM_PATTERN"]

END_OF_WORD = "</w>"

# 预切分：先按这些模式把文字切成小段，合并只在段内进行。三代词表各用一种（tiktoken 0.14，openai_public.py）；
# `\Z` 是文字的结尾。GPT-2：空格归后面的词，字母、数字、标点各自成段。
GPT2_PATTERN = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++\Z|\s+(?!\S)|\s"
# GPT-4：缩写不分大小写，数字三位一段，换行跟着标点。
CL100K_PATTERN = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+"
    r"| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++\Z|\s*[\r\n]|\s+(?!\S)|\s"
)
# GPT-4o：大小写交界处也切开。
O200K_PATTERN = "|".join(
    [
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ]
)
# SmolLM2：GPT-2 的切法，但先把每个数字单独切开，所以数字前面的空白也算走到了段尾。
SMOLLM_PATTERN = (
    r"\p{N}|'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?[^\s\p{L}\p{N}]++|\s+(?![^\s\p{N}])|\s"
)


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
    """tie_break 的写法 → 从并列的各对里选一对的函数。"""
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


# ---------------------------------------------------------------- 字节级：学合并规则


def learn_merges_plain(words, num_merges):
    """从「字节串 → 次数」学合并规则，最朴素的写法：每合并一次就全部重数一遍。

    返回编号对的列表：字节的编号是它的值 0–255，第 i 次合并（从 0 数起）的产物编号 256 + i。
    次数并列时取编号最小的一对：先比左边，再比右边。
    """
    words = {tuple(bytes([b]) for b in word): count for word, count in words.items()}
    ids = {bytes([b]): b for b in range(256)}
    merges = []
    while len(merges) < num_merges and (counts := count_pairs(words)):
        pair = min(counts, key=lambda p: (-counts[p], ids[p[0]], ids[p[1]]))
        words = {merge_pair(symbols, pair): count for symbols, count in words.items()}
        merges.append((ids[pair[0]], ids[pair[1]]))
        ids[pair[0] + pair[1]] = 255 + len(merges)  # merges 已经加长，所以是 255 不是 256
    return merges


def learn_merges(words, num_merges):
    """与 `learn_merges_plain` 逐条相同，但不重数：一次合并只改动它碰到的词和计数。

    一个符号写成一个字符（码位就是编号），于是一个词是一个字符串，一对是两个字符，合并是 `str.replace`。
    每一对记两件事：`counts` 次数，`where` 在哪些词里。合并只会让别的对变少，所以从次数最高的一层
    往下走就行：`levels[n]` 放次数曾经是 n 的对，同一层里用堆取编号最小的；取出来发现已经变少，就放到低层去。
    """
    # latin-1 把值为 b 的字节变成码位为 b 的字符
    texts, weights = [word.decode("latin-1") for word in words], list(words.values())
    counts, where, levels = defaultdict(int), defaultdict(list), defaultdict(list)
    for i, text in enumerate(texts):
        for pair in map(operator.add, text, text[1:]):
            where[pair].append(i)
    for pair, places in where.items():
        counts[pair] = sum([weights[i] for i in places])
        levels[counts[pair]].append(pair)
    merges = []
    for level in range(max(levels, default=0), 0, -1):
        heap = levels.pop(level, [])
        heapq.heapify(heap)
        while heap:
            if len(merges) == num_merges:
                return merges
            pair = heapq.heappop(heap)
            if pair[0] == pair[1]:  # 上面的计数把 aaa 里重叠的 aa 数了两次，是个上界；str.count 不数重叠
                counts[pair] = sum([texts[i].count(pair) * weights[i] for i in set(where[pair])])
            if counts[pair] < level:
                levels[counts[pair]].append(pair)
                continue
            new = chr(256 + len(merges))
            merges.append((ord(pair[0]), ord(pair[1])))
            for born, places in _replace_pair(texts, where.pop(pair), pair, new).items():
                counts[born] = sum([weights[i] for i in places])
                where[born] = places
                # 多了一个（左邻, new），就少了一个（左邻, 这一对的左半）；右邻同理。
                left = pair[1] if born[0] == new else born[0]
                right = pair[0] if born[1] == new else born[1]
                counts[left + right] -= counts[born]
                if counts[born] == level:
                    heapq.heappush(heap, born)
                else:
                    levels[counts[born]].append(born)
    return merges


def _replace_pair(texts, places, pair, new):
    """在 `places` 指的那些词里把 `pair` 换成 `new`；返回含 `new` 的新对各出现在哪些词（出现几次记几次）。"""
    born = defaultdict(list)
    for i in places:
        text = texts[i].replace(pair, new)
        if len(text) == len(texts[i]):
            continue  # 这一对早被别的合并拆掉了，或者这个词在 places 里列了两次
        texts[i] = text
        at = text.find(new)
        while at >= 0:
            if at > 0:
                born[text[at - 1 : at + 1]].append(i)
            following = text[at + 1 : at + 2]
            if following and following != new:  # 两个 new 相邻时，这一对由后一个来记
                born[new + following].append(i)
            at = text.find(new, at + 1)
    return born


# ---------------------------------------------------------------- 字节级：用合并规则切词


def merge_parts_plain(parts, rank):
    """反复合并排名最靠前（`rank` 最小，并列取最左）的相邻两段，直到没有一对有排名。

    `rank(left, right)` 给出一对的排名，没有就是 `math.inf`。
    """
    parts = list(parts)
    ranks = [rank(left, right) for left, right in zip(parts, parts[1:])]
    while ranks and (best := min(ranks)) < math.inf:
        i = ranks.index(best)
        parts[i : i + 2] = [parts[i] + parts[i + 1]]
        del ranks[i]
        if i > 0:
            ranks[i - 1] = rank(parts[i - 1], parts[i])
        if i < len(ranks):
            ranks[i] = rank(parts[i], parts[i + 1])
    return parts


def merge_parts(parts, rank):
    """与 `merge_parts_plain` 相同，给很长的段用：候选放在堆里，左右邻居用链表，n 段只要 n log n 步。"""
    parts, n = list(parts), len(parts)
    before, after = list(range(-1, n - 1)), list(range(1, n + 1))
    heap = []

    # before、after 是左右邻居的下标；被并入左边的一段变成 None
    def offer(i):  # 第 i 段和它右边那段若能合并，放进堆：排名小的先出，并列时靠左的先出
        if i >= 0 and after[i] < n and (r := rank(parts[i], parts[after[i]])) < math.inf:
            heapq.heappush(heap, (r, i, parts[i], parts[after[i]]))

    for i in range(n - 1):
        offer(i)
    while heap:
        _, i, left, right = heapq.heappop(heap)
        j = after[i]
        if parts[i] != left or j >= n or parts[j] != right:
            continue  # 其中一段已经被合并过
        parts[i], parts[j] = left + right, None
        after[i] = after[j]
        if after[j] < n:
            before[after[j]] = i
        offer(i)
        offer(before[i])
    return [part for part in parts if part is not None]


# ---------------------------------------------------------------- 字节级 BPE

# GPT-2 的词表文件不写字节，写一个看得见的字符：可见的字节是它自己，其余 68 个依次是 U+0100 起的字符
# （空格是 Ġ，换行是 Ċ）。来源：openai/gpt-2，src/encoder.py。
_VISIBLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_HIDDEN = [b for b in range(256) if b not in _VISIBLE]
_BYTE_TO_CHAR = {b: chr(b) for b in _VISIBLE} | {b: chr(0x100 + n) for n, b in enumerate(_HIDDEN)}
_CHAR_TO_BYTE = {char: b for b, char in _BYTE_TO_CHAR.items()}

# 词表文件里没有切分模式和特殊词元；认得的几份按条数补上（tiktoken 0.14，openai_public.py）。
_KNOWN = {
    50256: (GPT2_PATTERN, {"<|endoftext|>": 50256}),  # GPT-2、GPT-3（r50k_base）
    50280: (GPT2_PATTERN, {"<|endoftext|>": 50256}),  # Codex（p50k_base）
    100256: (  # GPT-3.5、GPT-4（cl100k_base）
        CL100K_PATTERN,
        {
            "<|endoftext|>": 100257,
            "<|fim_prefix|>": 100258,
            "<|fim_middle|>": 100259,
            "<|fim_suffix|>": 100260,
            "<|endofprompt|>": 100276,
        },
    ),
    199998: (O200K_PATTERN, {"<|endoftext|>": 199999, "<|endofprompt|>": 200018}),  # GPT-4o（o200k_base）
}
_GGUF_PATTERNS = {"gpt-2": GPT2_PATTERN, "smollm": SMOLLM_PATTERN}
_LONG = 128  # 超过这么多字节的段改用堆
_CACHED = 1 << 18  # 记住多少个不同的段


class ByteBPE:
    """字节级 BPE：先按 `pattern` 把文字切成段，段内从 UTF-8 字节开始合并。

    `vocab` 是「字节串 → 编号」，`special_tokens` 是「特殊词元 → 编号」。`merges` 是按先后排列的字节串对；
    为 None 时照 tiktoken 的规则：相邻两段拼起来在 `vocab` 里就能合并，编号小的先合并，整段就在词表里则直接取用。

    `decode(encode(s)) == s` 对任何字符串成立（词表含全部 256 个字节时）；连不成对的代理字符也不例外，
    它们按 surrogatepass 编成三个字节（tiktoken 会把它们换成 U+FFFD）。

    >>> bpe = ByteBPE.train("low lower lowest", 258)
    >>> bpe.merges
    [(b'l', b'o'), (b'lo', b'w')]
    >>> bpe.decode(bpe.encode("low 低"))
    'low 低'

    来源：Radford 等 2019，2.2 节（GPT-2）；tiktoken 0.14。
    """

    def __init__(self, vocab, *, merges=None, pattern=GPT2_PATTERN, special_tokens=None):
        self.vocab = dict(vocab)
        self.merges = None if merges is None else [tuple(pair) for pair in merges]
        self.pattern = pattern
        self.special_tokens = dict(special_tokens or {})
        specials = {index: name.encode("utf-8", "surrogatepass") for name, index in self.special_tokens.items()}
        self._bytes = {index: token for token, index in self.vocab.items()} | specials
        if len(self._bytes) < len(self.vocab) + len(specials):
            raise ValueError("词表里有两个词元用了同一个编号，无法解码")
        # 倒着建：同一对若列了两次，排名取靠前的
        ranks = None if merges is None else {pair: rank for rank, pair in reversed([*enumerate(self.merges)])}
        if ranks is None:
            self._rank = lambda left, right: self.vocab.get(left + right, math.inf)
        else:
            self._rank = lambda left, right: ranks.get((left, right), math.inf)
        self._split = _pieces(pattern)
        self._ids_of = _Remembered(self._encode_piece)

    @property
    def vocab_size(self):
        """最大编号加一：嵌入表需要的行数。"""
        return max(self._bytes) + 1

    @classmethod
    def train(cls, text, vocab_size, *, pattern=GPT2_PATTERN, special_tokens=()):
        """从一段文字学出 `vocab_size` 个词元：256 个字节、若干次合并的产物、最后是特殊词元。

        每种段只数一次、乘以次数；次数并列时合并编号最小的一对（见 `learn_merges`），同样的文字总得到同样的词表。
        特殊词元在文字里出现的地方不参与训练。无对可合并时提前结束，词表会小于 `vocab_size`。
        """
        _check_text("text", text)
        special_tokens = _check_specials(special_tokens)
        num_merges = vocab_size - 256 - len(special_tokens)
        if num_merges < 0 or vocab_size > 0x110000:  # learn_merges 用字符的码位当编号，码位只有这么多
            raise ValueError(
                f"vocab_size 是 {vocab_size}，应在 {256 + len(special_tokens)}（256 个字节加特殊词元）与 {0x110000} 之间"
            )
        split = _pieces(pattern)
        pieces = Counter()
        for part in _between(text, special_tokens)[::2]:  # 偶数项是普通文字
            pieces.update(split(part))
        words = {piece.encode("utf-8", "surrogatepass"): count for piece, count in pieces.items()}
        tokens = [bytes([b]) for b in range(256)]
        merges = []
        for left, right in learn_merges(words, num_merges):
            merges.append((tokens[left], tokens[right]))
            tokens.append(tokens[left] + tokens[right])
        vocab = {token: index for index, token in enumerate(tokens)}
        specials = {name: len(tokens) + n for n, name in enumerate(special_tokens)}
        return cls(vocab, merges=merges, pattern=pattern, special_tokens=specials)

    @classmethod
    def from_tiktoken(cls, source, *, pattern=None, special_tokens=None):
        """读 tiktoken 词表（文件路径，或文件内容的字节串）：每行是 base64 的词元、空格、编号。

        r50k、p50k、cl100k、o200k 的切分模式和特殊词元按条数认出；别的词表请自己给，默认用 GPT-2 的模式、没有特殊词元。
        """
        content = source if isinstance(source, bytes) else Path(source).read_bytes()
        vocab = {}
        for number, line in enumerate(content.splitlines(), 1):
            if line.strip():
                try:
                    token, index = line.split()
                    vocab[base64.b64decode(token, validate=True)] = int(index)
                except ValueError:
                    raise ValueError(f"第 {number} 行不是「base64 空格 编号」：{line[:60]!r}") from None
        known_pattern, known_specials = _KNOWN.get(len(vocab), (GPT2_PATTERN, {}))
        specials = known_specials if special_tokens is None else special_tokens
        return cls(vocab, pattern=pattern or known_pattern, special_tokens=specials)

    @classmethod
    def from_gpt2(cls, vocab_json, merges_txt, *, pattern=GPT2_PATTERN):
        """读 GPT-2 的两个文件（Hugging Face 也用它）：`vocab.json`（encoder.json）和 `merges.txt`（vocab.bpe）。

        既不是单个字节、也不由合并产生的条目是特殊词元，如 `<|endoftext|>`。
        """
        entries = json.loads(Path(vocab_json).read_text(encoding="utf-8"))
        lines = Path(merges_txt).read_text(encoding="utf-8").split("\n")
        lines = [line for line in lines if line and not line.startswith("#version")]
        return cls._from_visible(entries, lines, pattern)

    @classmethod
    def from_gguf(cls, path, *, pattern=None):
        """读 GGUF 文件里的字节级 BPE 分词器（需要 `gguf` 包：pip install gguf）。"""
        try:
            from gguf import GGUFReader
        except ImportError:
            raise ImportError("读 GGUF 文件需要 gguf 包，请先运行：pip install gguf") from None
        fields = GGUFReader(path).fields
        values = {name.removeprefix("tokenizer.ggml."): fields[name].contents() for name in fields if "ggml" in name}
        if values.get("model") != "gpt2":
            raise ValueError(f"{path} 的分词器是 {values.get('model')!r}，这里只读字节级 BPE（'gpt2'）")
        if pattern is None and values.get("pre") not in _GGUF_PATTERNS:
            raise ValueError(
                f"不认识预切分方式 {values.get('pre')!r}（认识 {', '.join(_GGUF_PATTERNS)}）；请用 pattern= 给出切分模式"
            )
        entries = {token: index for index, token in enumerate(values["tokens"])}
        return cls._from_visible(entries, values["merges"], pattern or _GGUF_PATTERNS[values["pre"]])

    @classmethod
    def _from_visible(cls, entries, lines, pattern):
        """`entries`：看得见的词元 → 编号；`lines`：每行两个看得见的词元，先合并的在前。"""
        merges = []
        for number, line in enumerate(lines, 1):
            pair = line.split(" ")
            if len(pair) != 2 or not all(char in _CHAR_TO_BYTE for char in "".join(pair)):
                raise ValueError(f"第 {number} 条合并规则 {line!r} 不是用一个空格隔开的两个词元")
            # 逐个查字典；写成「集合 - entries.keys()」会每条规则走遍整个词表
            if missing := [token for token in (*pair, "".join(pair)) if token not in entries]:
                raise ValueError(f"第 {number} 条合并规则 {line!r} 用到的 {sorted(missing)} 不在词表里")
            merges.append(pair)
        made = {left + right for left, right in merges} | _CHAR_TO_BYTE.keys()
        return cls(
            {_to_bytes(token): index for token, index in entries.items() if token in made},
            merges=[(_to_bytes(left), _to_bytes(right)) for left, right in merges],
            pattern=pattern,
            special_tokens={token: index for token, index in entries.items() if token not in made},
        )

    def encode(self, text, allowed_special=()):
        """文字 → 编号列表。`allowed_special`（若干特殊词元，或 "all"）里的特殊词元各编成一个编号，
        其余的按普通文字处理：用户输入里写着 `<|endoftext|>` 不该真的结束一段文字。
        """
        _check_text("text", text)
        allowed = self.special_tokens if allowed_special == "all" else _check_specials(allowed_special)
        if unknown := [name for name in allowed if name not in self.special_tokens]:
            raise ValueError(f"allowed_special 里的 {unknown} 不是特殊词元；有的是 {list(self.special_tokens)}")
        ids = []
        for n, part in enumerate(_between(text, allowed)):
            if n % 2:  # 奇数项是特殊词元
                ids.append(self.special_tokens[part])
            else:
                ids.extend(chain.from_iterable(map(self._ids_of.__getitem__, self._split(part))))
        return ids

    def _encode_piece(self, piece):
        """一段文字的编号，不经过缓存。"""
        data = piece.encode("utf-8", "surrogatepass")
        if self.merges is None and data in self.vocab:
            return [self.vocab[data]]
        merge = merge_parts if len(data) > _LONG else merge_parts_plain
        parts = merge([bytes([b]) for b in data], self._rank)
        if missing := [part for part in parts if part not in self.vocab]:
            raise ValueError(f"词表里没有字节 {missing[0]!r}（在 {piece!r} 里），这份词表无法编码它")
        return [self.vocab[part] for part in parts]

    def token_bytes(self, ids):
        """每个编号对应的字节串。一个汉字可能分在几个词元里，所以单个词元不一定是完整的字符。"""
        return [self._bytes[_check_id(index, self._bytes)] for index in ids]

    def decode(self, ids, errors="strict"):
        """编号 → 文字。字节拼不成完整字符时，`"strict"` 报错，`"replace"` 换成 U+FFFD。"""
        if errors not in ("strict", "replace"):
            raise ValueError(f'errors 是 {errors!r}，应为 "strict" 或 "replace"')
        data = b"".join(self.token_bytes(ids))
        try:
            return data.decode("utf-8", "surrogatepass" if errors == "strict" else errors)
        except UnicodeDecodeError as error:
            raise ValueError(
                f"第 {error.start} 个字节 0x{data[error.start]:02x} 处不是完整的 UTF-8 字符"
                '（可能把一个字从中间切断了）；要先看个大概可用 errors="replace"'
            ) from None

    def save(self, path):
        """写成一个 JSON 文件，词元用看得见的字符；`load` 读回的分词器与原来的相同。"""
        content = {
            "pattern": self.pattern,
            "special_tokens": self.special_tokens,
            "vocab": {_to_visible(token): index for token, index in self.vocab.items()},
            # None（照 tiktoken 的规则）仍写成 null
            "merges": self.merges and [f"{_to_visible(left)} {_to_visible(right)}" for left, right in self.merges],
        }
        Path(path).write_text(json.dumps(content, ensure_ascii=False, indent=0), encoding="utf-8")

    @classmethod
    def load(cls, path):
        """读 `save` 写的文件。"""
        content = json.loads(Path(path).read_text(encoding="utf-8"))
        merges = content["merges"]
        return cls(
            {_to_bytes(token): index for token, index in content["vocab"].items()},
            merges=None if merges is None else [tuple(map(_to_bytes, line.split(" "))) for line in merges],
            pattern=content["pattern"],
            special_tokens=content["special_tokens"],
        )


class _Remembered(dict):
    """记住算过的段：文字里的段大多重复出现。满了就从头记。"""

    def __init__(self, compute):
        self.compute = compute

    def __missing__(self, piece):  # 字典里没有这个键时，Python 改调这里
        if len(self) >= _CACHED:
            self.clear()
        self[piece] = ids = self.compute(piece)
        return ids


def _between(text, special_tokens):
    """在特殊词元处切开：偶数项是普通文字，奇数项是特殊词元。互为前缀时取长的。"""
    if not special_tokens:
        return [text]
    names = sorted(special_tokens, key=len, reverse=True)
    return re.split(f"({'|'.join(map(re.escape, names))})", text)


def _pieces(pattern):
    """预切分：文字 -> 小段。只有这里用到 regex（标准库的 re 不懂 \\p{L}）；没有它的地方，比如网页里，其余照常可用。"""
    import regex

    return regex.compile(pattern).findall


def _to_visible(token):
    """字节串 → 看得见的字符（见 _BYTE_TO_CHAR）。"""
    return "".join(map(_BYTE_TO_CHAR.__getitem__, token))


def _to_bytes(visible):
    """_to_visible 的逆。"""
    return bytes(map(_CHAR_TO_BYTE.__getitem__, visible))


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


def _check_specials(names):
    """特殊词元：若干个不同的非空字符串（单独一个字符串会被当成一串字符，所以不收）。"""
    if isinstance(names, str):
        raise TypeError(f"特殊词元应放在列表、元组或集合里，收到字符串 {names!r}；请写成 [{names!r}]")
    names = list(names)
    if not all(isinstance(name, str) and name for name in names) or len(set(names)) < len(names):
        raise ValueError(f"特殊词元 {names} 应是互不相同的非空字符串")
    return names
