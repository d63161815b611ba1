"""ex01-tokenizer 的错误写法与其他正确写法。"""

import re
from collections import Counter
from functools import reduce

from grading.mutants import mutant, right

COUNT, MERGE, TRAIN, TIES, ENCODE, BYTES = "1.2", "1.3", "1.4", "1.5", "1.6", "1.7"
END = "</w>"


def count(words):
    """The right one, for the mutants of what is built on it."""
    counts = {}
    for symbols, frequency in words.items():
        i = 0
        while i < len(symbols) - 1:
            pair = symbols[i], symbols[i + 1]
            counts[pair] = counts.get(pair, 0) + frequency
            # 三个相同的：跳过中间那一对
            i += 2 if pair[0] == pair[1] and symbols[i + 2:i + 3] == (pair[0],) else 1
    return counts


def merge(symbols, pair):
    out, i = [], 0
    while i < len(symbols):
        if symbols[i:i + 2] == tuple(pair):
            out.append(pair[0] + pair[1])
            i += 2
        else:
            out.append(symbols[i])
            i += 1
    return tuple(out)


def apply(words, pair):
    merged = {}
    for symbols, frequency in words.items():
        key = merge(symbols, pair)
        merged[key] = merged.get(key, 0) + frequency
    return merged


def choose(counts, tie):
    best = max(counts.values())
    tied = [pair for pair in counts if counts[pair] == best]
    return tied[0] if tie == "first" else min(tied)


# ---- count_pairs：错误写法 ----------------------------------------------------------------------------------

@mutant("count_pairs", "没有乘词频", "一个词出现 5 次，它的每一对就算 5 次", COUNT, caught_by="document")
def unweighted(words):
    return count({symbols: 1 for symbols in words})


@mutant("count_pairs", "后一个词盖掉了前一个", "次数要累加：counts[pair] = counts.get(pair, 0) + 词频", COUNT, caught_by="document")
def overwritten(words):
    counts = {}
    for symbols, frequency in words.items():
        for pair in count({symbols: 1}):
            counts[pair] = frequency
    return counts


@mutant("count_pairs", "词与词之间也成对", "合并从不跨词：每个词单独数", COUNT, caught_by="document")
def across_words(words):
    counts, last = {}, None
    for symbols, frequency in words.items():
        if last is not None and symbols:
            counts[last, symbols[0]] = counts.get((last, symbols[0]), 0) + frequency
        for pair, times in count({symbols: frequency}).items():
            counts[pair] = counts.get(pair, 0) + times
        last = symbols[-1]
    return counts


@mutant("count_pairs", "漏了最后一对", "n 个符号有 n − 1 对：range(len(symbols) - 1)", COUNT, caught_by="document")
def misses_last(words):
    return count({symbols[:-1]: frequency for symbols, frequency in words.items()})


@mutant("count_pairs", "隔一个数一对", "相邻的每一对都要数，只有一串相同的符号才跳过", COUNT, caught_by="document")
def steps_by_two(words):
    counts = {}
    for symbols, frequency in words.items():
        for i in range(0, len(symbols) - 1, 2):
            pair = symbols[i], symbols[i + 1]
            counts[pair] = counts.get(pair, 0) + frequency
    return counts


@mutant("count_pairs", "键是拼起来的字符串", "键要是两个符号的元组：拼起来就分不清 (lo, w) 与 (l, ow)", COUNT, caught_by="document")
def joined_keys(words):
    counts = {}
    for pair, times in count(words).items():
        counts["".join(pair)] = counts.get("".join(pair), 0) + times
    return counts


@mutant("count_pairs", "不分先后", "(a, b) 与 (b, a) 是不同的对", COUNT, caught_by="document")
def unordered(words):
    counts = {}
    for pair, times in count(words).items():
        key = tuple(sorted(pair))
        counts[key] = counts.get(key, 0) + times
    return counts


@mutant("count_pairs", "一个词里同一对只数一次", "一个词里出现几处就算几处", COUNT, caught_by="weights")
def once_per_word(words):
    counts = {}
    for symbols, frequency in words.items():
        for pair in dict.fromkeys(zip(symbols, symbols[1:])):
            counts[pair] = counts.get(pair, 0) + frequency
    return counts


@mutant("count_pairs", "重叠的也数", "aaa 里只合并得了一处：一串相同的符号按真能合并几处算", MERGE, caught_by="overlap",
        seen_in=("karpathy/minbpe/pull/72",))
def overlapping(words):
    counts = {}
    for symbols, frequency in words.items():
        for pair in zip(symbols, symbols[1:]):
            counts[pair] = counts.get(pair, 0) + frequency
    return counts


@mutant("count_pairs", "相同的符号一对也不数", "aa 可以合并，只是不能重叠", MERGE, caught_by="overlap")
def skips_doubles(words):
    return {pair: times for pair, times in count(words).items() if pair[0] != pair[1]}


@mutant("count_pairs", "只有一个符号的词会出错", "先确认有下一个符号；用 zip(symbols, symbols[1:]) 就不必操心", COUNT, caught_by="empty")
def needs_two(words):
    counts = {}
    for symbols, frequency in words.items():
        first = symbols[0], symbols[1]
        counts.setdefault(first, 0)
        for pair, times in count({symbols: frequency}).items():
            counts[pair] = counts.get(pair, 0) + times
    return counts


@mutant("count_pairs", "按次数排了序", "保持第一次见到的先后：并列时靠它决定", TIES, caught_by="order", seen_in="karpathy/minbpe/pull/90")
def sorted_by_count(words):
    return dict(Counter(count(words)).most_common())


@mutant("count_pairs", "把数过的词从 words 里取走了", "传进来的字典是调用者的：只读它", COUNT, caught_by="untouched")
def pops_words(words):
    counts = count(words)
    while words:
        words.popitem()
    return counts


# ---- count_pairs：其他正确写法 -------------------------------------------------------------------------------

@right("count_pairs", "Counter")
def with_counter(words):
    counts = Counter()
    for symbols, frequency in words.items():
        previous_used = False
        for pair in zip(symbols, symbols[1:]):
            previous_used = pair[0] == pair[1] and not previous_used
            if pair[0] != pair[1] or previous_used:
                counts[pair] += frequency
    return counts


@right("count_pairs", "按连续相同的段来数")
def by_runs(words):
    counts = {}
    for symbols, frequency in words.items():
        i = 0
        while i < len(symbols):
            j = i
            while j < len(symbols) and symbols[j] == symbols[i]:
                j += 1
            found = [((symbols[i],) * 2, (j - i) // 2)] if j - i > 1 else []
            found += [((symbols[i], symbols[j]), 1)] if j < len(symbols) else []
            for pair, times in found:
                counts[pair] = counts.get(pair, 0) + times * frequency
            i = j
    return counts


@right("count_pairs", "真的合并一次，看少了几个符号")
def by_merging(words):
    counts = {}
    for symbols, frequency in words.items():
        for pair in dict.fromkeys(zip(symbols, symbols[1:])):
            counts[pair] = counts.get(pair, 0) + frequency * (len(symbols) - len(merge(symbols, pair)))
    return counts


# ---- merge_pair：错误写法 -----------------------------------------------------------------------------------

@mutant("merge_pair", "只合并第一处", "每一处都要合并：走到末尾为止", MERGE, caught_by="values")
def first_only(symbols, pair):
    for i in range(len(symbols) - 1):
        if symbols[i:i + 2] == pair:
            return (*symbols[:i], pair[0] + pair[1], *symbols[i + 2:])
    return symbols


@mutant("merge_pair", "合并之后没有跳过第二个符号", "并成一个之后要跳过两个：i += 2", MERGE, caught_by="values")
def keeps_second(symbols, pair):
    out = []
    for i, symbol in enumerate(symbols):
        out.append(pair[0] + pair[1] if symbols[i:i + 2] == pair else symbol)
    return tuple(out)


@mutant("merge_pair", "丢掉了最后一个符号", "走到 len(symbols)，不是 len(symbols) - 1：最后一个单独的符号也要放入", MERGE, caught_by="values")
def drops_last(symbols, pair):
    out, i = [], 0
    while i < len(symbols) - 1:
        if symbols[i:i + 2] == pair:
            out.append(pair[0] + pair[1])
            i += 2
        else:
            out.append(symbols[i])
            i += 1
    return tuple(out)


@mutant("merge_pair", "放入了 pair 本身", "新符号是两段文字相连的一个字符串：pair[0] + pair[1]，不是一对", MERGE, caught_by="values")
def keeps_the_pair(symbols, pair):
    out, i = [], 0
    while i < len(symbols):
        found = symbols[i:i + 2] == pair
        out.append(pair if found else symbols[i])
        i += 2 if found else 1
    return tuple(out)


@mutant("merge_pair", "新符号里加了空格", "新符号就是两段文字直接相连", MERGE, caught_by="values")
def spaced(symbols, pair):
    return tuple(" ".join(pair) if s == pair[0] + pair[1] and s not in symbols else s for s in merge(symbols, pair))


@mutant("merge_pair", "结尾的一对没有合并", "最后两个符号也可以是 pair", MERGE, caught_by="values")
def not_at_the_end(symbols, pair):
    if symbols[-2:] == pair and len(symbols) >= 2:
        return (*merge(symbols[:-2], pair), *symbols[-2:])
    return merge(symbols, pair)


@mutant("merge_pair", "一边走一边删", "删掉一个之后序列变短，range 却还按原来的长度走；换成 while，或写进一个新列表", MERGE, caught_by="values")
def shrinks(symbols, pair):
    symbols = list(symbols)
    for i in range(len(symbols) - 1):
        if (symbols[i], symbols[i + 1]) == pair:
            symbols[i] += symbols.pop(i + 1)
    return tuple(symbols)


@mutant("merge_pair", "在结尾越界", "看下一个符号之前先确认它存在：i + 1 < len(symbols)", MERGE, caught_by="ends")
def runs_over(symbols, pair):
    out, i = [], 0
    while i < len(symbols):
        if symbols[i] == pair[0] and symbols[i + 1] == pair[1]:
            out.append(pair[0] + pair[1])
            i += 2
        else:
            out.append(symbols[i])
            i += 1
    return tuple(out)


@mutant("merge_pair", "从右往左合并", "从左到右：aaa 得到 aa、a，不是 a、aa", MERGE, caught_by="overlap")
def from_the_right(symbols, pair):
    return tuple(s[::-1] for s in merge(tuple(s[::-1] for s in reversed(symbols)), (pair[1][::-1], pair[0][::-1])))[::-1]


@mutant("merge_pair", "重叠地合并", "一个符号只能用一次：合并之后跳过两个", MERGE, caught_by="overlap")
def overlapping_merge(symbols, pair):
    places = {i for i in range(len(symbols) - 1) if symbols[i:i + 2] == pair}
    out = []
    for i, symbol in enumerate(symbols):
        if i in places:
            out.append(pair[0] + pair[1])
        elif i - 1 not in places or i + 1 < len(symbols) and i in places:
            out.append(symbol)
    return tuple(out)


@mutant("merge_pair", "两种次序都合并", "(a, b) 与 (b, a) 是不同的对", MERGE, caught_by="absent")
def either_order(symbols, pair):
    return merge(merge(symbols, pair), pair[::-1])


@mutant("merge_pair", "在拼起来的文字里替换", "xa 与 by 拼起来里也有 ab，可它们不是这一对：要逐个符号比", MERGE, caught_by="absent")
def replaces_text(symbols, pair):
    text, new = " ".join(symbols), pair[0] + pair[1]
    out = text.replace(" ".join(pair), new)
    return tuple(out.split(" ")) if out else ()


@mutant("merge_pair", "没有这一对时返回 None", "没有可合并的就原样返回", MERGE, caught_by="absent")
def none_without_match(symbols, pair):
    merged = merge(symbols, pair)
    return merged if merged != tuple(symbols) else None


@mutant("merge_pair", "返回列表", "它要当字典的键：返回元组", MERGE, caught_by="tuple")
def as_list(symbols, pair):
    return list(merge(symbols, pair))


# ---- merge_pair：其他正确写法 --------------------------------------------------------------------------------

@right("merge_pair", "边走边看上一个放入的")
def with_stack(symbols, pair):
    out = []
    fresh = False  # 上一个是不是刚并出来的
    for symbol in symbols:
        if out and not fresh and (out[-1], symbol) == pair:
            out[-1] = pair[0] + pair[1]
            fresh = True
        else:
            out.append(symbol)
            fresh = False
    return tuple(out)


@right("merge_pair", "正则表达式，符号之间用分隔符")
def with_regex(symbols, pair):
    if not symbols:
        return ()
    left, right_ = (re.escape(s) for s in pair)
    text = re.sub(f"(?<=\x00){left}\x00{right_}(?=\x00)", lambda m: pair[0] + pair[1], "\x00" + "\x00".join(symbols) + "\x00")
    return tuple(text[1:-1].split("\x00"))


@right("merge_pair", "递归")
def recursive(symbols, pair):
    if len(symbols) < 2:
        return tuple(symbols)
    if symbols[:2] == pair:
        return (pair[0] + pair[1], *recursive(symbols[2:], pair))
    return (symbols[0], *recursive(symbols[1:], pair))


# ---- train_bpe：错误写法 ------------------------------------------------------------------------------------

def train(words, num_merges, tie="first", *, pick=choose, tally=count, rewrite=apply, stop=0):
    """A trainer whose pieces the mutants exchange."""
    merges = []
    for _ in range(num_merges):
        counts = tally(words)
        if not counts or max(counts.values()) <= stop:
            break
        merges.append(pick(counts, tie))
        words = rewrite(words, merges[-1])
    return merges


@mutant("train_bpe", "只数了一次", "每合并一次都要重数：新符号会组成新的对", TRAIN, caught_by="document")
def counted_once(words, num_merges, tie="first"):
    counts = count(words)
    return sorted(counts, key=counts.get, reverse=True)[:num_merges]


@mutant("train_bpe", "没有按词频计数", "常见的词说话更有分量：每一对的次数乘词频", TRAIN, caught_by="corpus")
def train_unweighted(words, num_merges, tie="first"):
    return train(words, num_merges, tie, tally=lambda w: count({symbols: 1 for symbols in w}))


@mutant("train_bpe", "返回新符号而不是各对", "返回按先后排列的各对：切词时要知道谁与谁合并", TRAIN, caught_by="document")
def returns_symbols(words, num_merges, tie="first"):
    return [left + right_ for left, right_ in train(words, num_merges, tie)]


@mutant("train_bpe", "多合并了一次", "合并 num_merges 次，不是 num_merges + 1 次", TRAIN, caught_by="document")
def one_too_many(words, num_merges, tie="first"):
    return train(words, num_merges + 1, tie)


@mutant("train_bpe", "把 num_merges 当作词表大小", "num_merges 是合并的次数；词表大小等于初始符号数加合并次数", TRAIN, caught_by="document")
def as_vocab_size(words, num_merges, tie="first"):
    return train(words, max(0, num_merges - len({s for symbols in words for s in symbols})), tie)


@mutant("train_bpe", "跨词合并", "合并从不跨词", TRAIN, caught_by="document")
def train_across(words, num_merges, tie="first"):
    sequence = tuple(s for symbols, frequency in words.items() for _ in range(frequency) for s in symbols)
    return train({sequence: 1}, num_merges, tie)


@mutant("train_bpe", "数的时候忘了 </w>", "词尾标记也是一个符号：est 与 </w> 正是第 5 次合并", TRAIN, caught_by="document",
        seen_in="karpathy/minbpe/issues/93")
def forgets_end(words, num_merges, tie="first"):
    return train(words, num_merges, tie, tally=lambda w: {p: c for p, c in count(w).items() if p[1] != END})


@mutant("train_bpe", "重叠的也数", "一串相同的符号按真能合并几处算", MERGE, caught_by="overlap", seen_in="karpathy/minbpe/pull/72")
def train_overlapping(words, num_merges, tie="first"):
    return train(words, num_merges, tie, tally=overlapping)


@mutant("train_bpe", "并列时取后见到的", "tie=\"first\" 取先见到的：比较时用 >，不用 >=", TIES, caught_by="document",
        seen_in="huggingface/tokenizers/issues/1065")
def last_seen(words, num_merges, tie="first"):
    def pick(counts, tie):
        best = max(counts.values())
        tied = [pair for pair in counts if counts[pair] == best]
        return tied[-1] if tie == "first" else min(tied)
    return train(words, num_merges, tie, pick=pick)


@mutant("train_bpe", "并列时总取字典序最小的", "tie=\"first\" 取先见到的", TIES, caught_by="first")
def always_smallest(words, num_merges, tie="first"):
    return train(words, num_merges, "lexicographic")


@mutant("train_bpe", "忽略了参数 tie", "tie=\"lexicographic\" 时取字典序最小的", TIES, caught_by="lexicographic")
def ignores_tie(words, num_merges, tie="first"):
    return train(words, num_merges, "first")


@mutant("train_bpe", "取字典序最大的", "把次数和对放在一起取 max，并列时给出的是字典序最大的；要的是最小的", TIES, caught_by="lexicographic")
def largest(words, num_merges, tie="first"):
    def pick(counts, tie):
        return choose(counts, tie) if tie == "first" else max(counts, key=lambda pair: (counts[pair], pair))
    return train(words, num_merges, tie, pick=pick)


@mutant("train_bpe", "只剩一次的对就不合并了", "只要还有对就继续，直到 num_merges 次", TRAIN, caught_by="exhausted")
def minimum_two(words, num_merges, tie="first"):
    return train(words, num_merges, tie, stop=1)


@mutant("train_bpe", "没有对可合并时出错", "counts 为空时停下：max 不能作用在空的字典上", TRAIN, caught_by="exhausted")
def fails_when_exhausted(words, num_merges, tie="first"):
    merges = []
    for _ in range(num_merges):
        counts = count(words)
        merges.append(choose(counts, tie))
        words = apply(words, merges[-1])
    return merges


@mutant("train_bpe", "变得相同的词丢了词频", "字典推导会让后一个盖掉前一个：词频要相加", TRAIN, caught_by="joined")
def loses_joined(words, num_merges, tie="first"):
    return train(words, num_merges, tie, rewrite=lambda w, pair: {merge(symbols, pair): n for symbols, n in w.items()})


@mutant("train_bpe", "就地改了 words", "每次合并都建一个新的字典，不要改调用者的", TRAIN, caught_by="untouched")
def changes_words(words, num_merges, tie="first"):
    merges = train(words, num_merges, tie)
    for pair in merges:
        new = apply(words, pair)
        words.clear()
        words.update(new)
    return merges


# ---- train_bpe：其他正确写法 ---------------------------------------------------------------------------------

@right("train_bpe", "max 与 key")
def with_max(words, num_merges, tie="first"):
    merges = []
    while len(merges) < num_merges:
        counts = count(words)
        if not counts:
            break
        if tie == "first":
            pair = max(counts, key=counts.get)
        else:
            pair = min(counts, key=lambda p: (-counts[p], p))
        merges.append(pair)
        words = apply(words, pair)
    return merges


@right("train_bpe", "递归：合并一次，再学剩下的")
def train_recursive(words, num_merges, tie="first"):
    counts = count(words)
    if num_merges == 0 or not counts:
        return []
    pair = choose(counts, tie)
    return [pair, *train_recursive(apply(words, pair), num_merges - 1, tie)]


@right("train_bpe", "用列表保存 [符号, 词频]，就地改自己的副本")
def with_lists(words, num_merges, tie="first"):
    entries, merges = [[list(symbols), frequency] for symbols, frequency in words.items()], []
    for _ in range(num_merges):
        seen = {}
        for symbols, frequency in entries:
            for pair, times in count({tuple(symbols): frequency}).items():
                seen[pair] = seen.get(pair, 0) + times
        if not seen:
            return merges
        top = max(seen.values())
        tied = [p for p, c in seen.items() if c == top]
        pair = min(tied) if tie == "lexicographic" else tied[0]
        merges.append(pair)
        for entry in entries:
            entry[0] = list(merge(tuple(entry[0]), pair))
    return merges


# ---- encode_bpe：错误写法 -----------------------------------------------------------------------------------

@mutant("encode_bpe", "没有加 </w>", "训练时每个词以 </w> 结尾，切词时也要加上", ENCODE, caught_by="document")
def without_end(word, merges):
    return list(reduce(merge, merges, tuple(word)))


@mutant("encode_bpe", "每条规则只用了一处", "一条规则要用到词里的每一处", ENCODE, caught_by="everywhere")
def one_place(word, merges):
    return list(reduce(first_only, merges, (*word, END)))


@mutant("encode_bpe", "从左起取最长的一块", "次序是规则：按学得的先后合并，不是取词表里最长的", ENCODE, caught_by="order")
def longest_match(word, merges):
    pieces = {END, *word, *(left + right_ for left, right_ in merges)}
    text, out = word + END, []
    while text:
        piece = max((p for p in pieces if text.startswith(p)), key=len)
        out.append(piece)
        text = text[len(piece):]
    return out


@mutant("encode_bpe", "后学的先用", "学得最早的最先用", ENCODE, caught_by="order")
def latest_first(word, merges):
    symbols = (*word, END)
    while known := [pair for pair in zip(symbols, symbols[1:]) if pair in merges]:
        symbols = merge(symbols, max(known, key=merges.index))
    return list(symbols)


@mutant("encode_bpe", "从左到右见到就合并", "先看所有相邻对，挑学得最早的那一对", ENCODE, caught_by="order")
def leftmost_first(word, merges):
    symbols = (*word, END)
    while known := [i for i in range(len(symbols) - 1) if symbols[i:i + 2] in merges]:
        i = known[0]
        symbols = (*symbols[:i], symbols[i] + symbols[i + 1], *symbols[i + 2:])
    return list(symbols)


@mutant("encode_bpe", "规则倒过来用", "merges 按学得的先后排列，从头用起", ENCODE, caught_by="document")
def reversed_rules(word, merges):
    return list(reduce(merge, merges[::-1], (*word, END)))


@mutant("encode_bpe", "只合并了一次", "反复合并，直到没有学过的对", ENCODE, caught_by="document")
def single_step(word, merges):
    symbols = (*word, END)
    known = [pair for pair in zip(symbols, symbols[1:]) if pair in merges]
    return list(merge(symbols, min(known, key=merges.index)) if known else symbols)


@mutant("encode_bpe", "返回拼起来的字符串", "返回各个符号的列表", ENCODE, caught_by="document")
def joined(word, merges):
    return " ".join(reduce(merge, merges, (*word, END)))


@mutant("encode_bpe", "没见过的字符丢掉了", "没见过的字符保持单个，不能丢", ENCODE, caught_by="document")
def drops_unknown(word, merges):
    if not merges:
        return [*word, END]
    known = {END, *(s for left, right_ in merges for s in (left, right_))}
    return [s for s in reduce(merge, merges, (*word, END)) if s in known or len(s) > 1]


@mutant("encode_bpe", "用完的规则从 merges 里取走了", "下一个词还要用它们：只读 merges", ENCODE, caught_by="untouched")
def consumes_rules(word, merges):
    symbols = (*word, END)
    result = list(reduce(merge, merges, symbols))
    merges.clear()
    return result


# ---- encode_bpe：其他正确写法 --------------------------------------------------------------------------------

@right("encode_bpe", "按规则的先后各走一遍")
def one_pass(word, merges):
    return list(reduce(merge, merges, (*word, END)))


@right("encode_bpe", "名次表，反复取最早的")
def by_rank(word, merges):
    ranks = {pair: rank for rank, pair in enumerate(merges)}
    symbols = [*word, END]
    while True:
        best = min(range(len(symbols) - 1), key=lambda i: ranks.get((symbols[i], symbols[i + 1]), len(merges)), default=None)
        if best is None or (symbols[best], symbols[best + 1]) not in ranks:
            return symbols
        symbols[best:best + 2] = [symbols[best] + symbols[best + 1]]


@right("encode_bpe", "递归")
def encode_recursive(word, merges, symbols=None):
    symbols = (*word, END) if symbols is None else symbols
    known = [pair for pair in zip(symbols, symbols[1:]) if pair in merges]
    return encode_recursive(word, merges, merge(symbols, min(known, key=merges.index))) if known else list(symbols)


# ---- byte_encode：错误写法 ----------------------------------------------------------------------------------

def merge_numbers(ids, pair, new):
    out, i = [], 0
    while i < len(ids):
        both = tuple(ids[i:i + 2]) == tuple(pair)
        out.append(new if both else ids[i])
        i += 2 if both else 1
    return out


def apply_numbers(ids, merges, start=256):
    for k, pair in enumerate(merges):
        ids = merge_numbers(ids, pair, start + k)
    return ids


@mutant("byte_encode", "用字符的编号 ord", "ord 给的是 Unicode 编号，可以大过 255；要的是 UTF-8 的字节", BYTES, caught_by="bytes")
def code_points(text, merges):
    return apply_numbers([ord(c) for c in text], merges)


@mutant("byte_encode", "用 UTF-16 编码", "约定是 UTF-8：英文一个字节，汉字三个", BYTES, caught_by="bytes")
def utf16(text, merges):
    return apply_numbers(list(text.encode("utf-16-le")), merges)


@mutant("byte_encode", "非 ASCII 的字符丢掉了", "errors=\"ignore\" 会悄悄丢字；用 UTF-8 编码", BYTES, caught_by="bytes")
def ascii_only(text, merges):
    return apply_numbers(list(text.encode("ascii", errors="ignore")), merges)


@mutant("byte_encode", "按空白切开又丢了空白", "空格也是字节，一个都不能少", BYTES, caught_by="bytes",
        seen_in=("rasbt/LLMs-from-scratch/issues/944", "rasbt/LLMs-from-scratch/pull/975"))
def drops_spaces(text, merges):
    return apply_numbers(list("".join(text.split()).encode("utf-8")), merges)


@mutant("byte_encode", "去掉了首尾的空白", "开头的空格、结尾的换行也要编码", BYTES, caught_by="anything",
        seen_in="rasbt/LLMs-from-scratch/issues/944")
def strips(text, merges):
    return apply_numbers(list(text.strip().encode("utf-8")), merges)


@mutant("byte_encode", "一边走一边删", "删掉一个之后序列变短，range 却还按原来的长度走；换成 while，或写进一个新列表", BYTES, caught_by="merges")
def shrinks_numbers(text, merges):
    ids = list(text.encode("utf-8"))
    for k, pair in enumerate(merges):
        for i in range(len(ids) - 1):
            if (ids[i], ids[i + 1]) == pair:
                ids[i] = 256 + k
                del ids[i + 1]
    return ids


@mutant("byte_encode", "新编号从 255 数起", "0 到 255 是字节：第 k 条规则的编号是 256 + k", BYTES, caught_by="merges")
def starts_at_255(text, merges):
    return apply_numbers(list(text.encode("utf-8")), merges, start=255)


@mutant("byte_encode", "新编号从 257 数起", "第 k 条规则（从 0 数起）的编号是 256 + k", BYTES, caught_by="merges")
def starts_at_257(text, merges):
    return apply_numbers(list(text.encode("utf-8")), merges, start=257)


@mutant("byte_encode", "没有用合并规则", "还要按先后使用 merges", BYTES, caught_by="merges")
def ignores_merges(text, merges):
    return list(text.encode("utf-8"))


@mutant("byte_encode", "每条规则只用了一处", "一条规则要用到每一处", BYTES, caught_by="merges")
def one_place_only(text, merges):
    ids = list(text.encode("utf-8"))
    for k, pair in enumerate(merges):
        for i in range(len(ids) - 1):
            if tuple(ids[i:i + 2]) == tuple(pair):
                ids[i:i + 2] = [256 + k]
                break
    return ids


@mutant("byte_encode", "末尾加了词尾标记", "字节级 BPE 不需要 </w>：空格自己就是字节", BYTES, caught_by="bytes")
def adds_end(text, merges):
    return apply_numbers(list((text + END).encode("utf-8")), merges)


# ---- byte_encode：其他正确写法 -------------------------------------------------------------------------------

@right("byte_encode", "名次表，反复取最早的")
def numbers_by_rank(text, merges):
    ranks = {tuple(pair): k for k, pair in enumerate(merges)}
    ids = list(text.encode("utf-8"))
    while known := [pair for pair in zip(ids, ids[1:]) if pair in ranks]:
        pair = min(known, key=ranks.get)
        ids = merge_numbers(ids, pair, 256 + ranks[pair])
    return ids


@right("byte_encode", "在字节串里合并，最后查编号")
def through_bytes(text, merges):
    table = [bytes([i]) for i in range(256)]
    pieces = [bytes([b]) for b in text.encode("utf-8")]
    numbers = list(text.encode("utf-8"))
    for left, right_ in merges:
        table.append(table[left] + table[right_])
        i = 0
        while i < len(numbers) - 1:
            if (numbers[i], numbers[i + 1]) == (left, right_):
                numbers[i:i + 2] = [len(table) - 1]
                pieces[i:i + 2] = [table[-1]]
            i += 1
    return numbers


@right("byte_encode", "递归：用掉一条规则再继续")
def numbers_recursively(text, merges, ids=None, k=0):
    ids = list(text.encode("utf-8")) if ids is None else ids
    return ids if k == len(merges) else numbers_recursively(text, merges, merge_numbers(ids, merges[k], 256 + k), k + 1)


# ---- byte_decode：错误写法 ----------------------------------------------------------------------------------

def byte_table(merges):
    table = [bytes([i]) for i in range(256)]
    for left, right_ in merges:
        table.append(table[left] + table[right_])
    return table


def pieces(ids, merges):
    table = byte_table(merges)
    if any(not 0 <= i < len(table) for i in ids):
        raise IndexError("没有这个编号")
    return [table[i] for i in ids]


@mutant("byte_decode", "逐个编号解码", "一个汉字的字节可能分在几个编号里：先接成一串字节，再一次解码", BYTES, caught_by="bytes")
def one_by_one(ids, merges):
    return "".join(p.decode("utf-8", errors="replace") for p in pieces(ids, merges))


@mutant("byte_decode", "用 chr 把字节当字符", "字节不是字符的编号：先接成字节串，再按 UTF-8 解码", BYTES, caught_by="bytes")
def as_characters(ids, merges):
    return "".join(chr(b) for p in pieces(ids, merges) for b in p)


@mutant("byte_decode", "词元之间加了空格", "空格自己就是字节，接起来就好", BYTES, caught_by="bytes")
def with_spaces(ids, merges):
    return " ".join(p.decode("utf-8", errors="replace") for p in pieces(ids, merges))


@mutant("byte_decode", "去掉了首尾的空白", "开头的空格、结尾的换行也是内容", BYTES, caught_by="bytes", seen_in="rasbt/LLMs-from-scratch/issues/944")
def decode_strips(ids, merges):
    return b"".join(pieces(ids, merges)).decode("utf-8", errors="replace").strip()


@mutant("byte_decode", "只展开了一层", "规则里的编号可能也是合并出来的：一直展开到字节", BYTES, caught_by="merges")
def one_level(ids, merges):
    pieces(ids, merges)
    expanded = [j for i in ids for j in (merges[i - 256] if i >= 256 else (i,))]
    return bytes(j for j in expanded if j < 256).decode("utf-8", errors="replace")


@mutant("byte_decode", "编号错开了一位", "编号 256 + k 是第 k 条规则（从 0 数起）", BYTES, caught_by="merges")
def shifted(ids, merges):
    pieces(ids, merges)
    return b"".join(pieces([i - 1 if i > 256 else i for i in ids], merges)).decode("utf-8", errors="replace")


@mutant("byte_decode", "两段接反了", "第 k 条规则的左边在前，右边在后", BYTES, caught_by="merges")
def swapped(ids, merges):
    return b"".join(pieces(ids, [pair[::-1] for pair in merges])).decode("utf-8", errors="replace")


@mutant("byte_decode", "凑不成字的字节被丢掉了", "errors=\"ignore\" 会悄悄丢内容；用 errors=\"replace\"", BYTES, caught_by="broken")
def ignores_errors(ids, merges):
    return b"".join(pieces(ids, merges)).decode("utf-8", errors="ignore")


@mutant("byte_decode", "凑不成字时报错", "模型可能停在半个字上：用 errors=\"replace\" 给出 �", BYTES, caught_by="broken")
def strict(ids, merges):
    return b"".join(pieces(ids, merges)).decode("utf-8")


@mutant("byte_decode", "负的编号从末尾数起", "Python 的下标 -1 是最后一个；先查 0 <= i < len(table)", BYTES, caught_by="outside")
def negative_wraps(ids, merges):
    table = byte_table(merges)
    return b"".join(table[i] for i in ids).decode("utf-8", errors="replace")


@mutant("byte_decode", "没有的编号被跳过", "词表里没有的编号是调用错了：报错，不要悄悄丢掉", BYTES, caught_by="outside")
def skips_unknown(ids, merges):
    table = dict(enumerate(byte_table(merges)))
    return b"".join(table.get(i, b"") for i in ids).decode("utf-8", errors="replace")


# ---- byte_decode：其他正确写法 -------------------------------------------------------------------------------

@right("byte_decode", "字节表")
def with_table(ids, merges):
    return b"".join(pieces(ids, merges)).decode("utf-8", errors="replace")


@right("byte_decode", "倒着用规则，把编号换回两个")
def undo_merges(ids, merges):
    ids = list(ids)
    if any(i < 0 or i >= 256 + len(merges) for i in ids):
        raise ValueError("没有这个编号")
    for k in reversed(range(len(merges))):
        ids = [j for i in ids for j in (merges[k] if i == 256 + k else (i,))]
    return bytes(ids).decode("utf-8", errors="replace")


@right("byte_decode", "递归展开一个编号")
def expand(ids, merges):
    def of(i):
        if not 0 <= i < 256 + len(merges):
            raise KeyError(i)
        return bytes([i]) if i < 256 else of(merges[i - 256][0]) + of(merges[i - 256][1])
    return b"".join(map(of, ids)).decode("utf-8", errors="replace")
