"""ex01-tokenizer 的隐藏检查。参考用最直白的办法重数、重切；语料有文档里的那一份，也有随机的小语料。"""

from grading.checks import check

COUNT, MERGE, TRAIN, TIES, ENCODE, BYTES = "1.2", "1.3", "1.4", "1.5", "1.6", "1.7"
END = "</w>"
DOCUMENT = {(*"low", END): 5, (*"lower", END): 2, (*"newest", END): 3, (*"widest", END): 3}


# ---- 参考 ------------------------------------------------------------------------------------------------

def count_pairs(words):
    counts = {}
    for symbols, frequency in words.items():
        place = 0
        used = set()  # 一串相同的符号里，已经被前一对用掉的位置
        for place, pair in enumerate(zip(symbols, symbols[1:])):
            if pair[0] == pair[1] and place in used:
                continue
            counts[pair] = counts.get(pair, 0) + frequency
            if pair[0] == pair[1]:
                used.add(place + 1)
    return counts


def merge_pair(symbols, pair):
    out = list(symbols)
    place = 0
    while place < len(out) - 1:
        if (out[place], out[place + 1]) == tuple(pair):
            out[place:place + 2] = [pair[0] + pair[1]]
        place += 1
    return tuple(out)


def train(words, num_merges, tie="first"):
    merges = []
    for _ in range(num_merges):
        counts = count_pairs(words)
        if not counts:
            break
        best = max(counts.values())
        tied = [pair for pair in counts if counts[pair] == best]
        merges.append(tied[0] if tie == "first" else min(tied))
        merged = {}
        for symbols, frequency in words.items():
            key = merge_pair(symbols, merges[-1])
            merged[key] = merged.get(key, 0) + frequency
        words = merged
    return merges


def encode(symbols, merges):
    """Both readings of "in the order of learning" agree on the words that the checks use (see `words_for`)."""
    for pair in merges:
        symbols = merge_pair(symbols, pair)
    return list(symbols)


def encode_earliest(symbols, merges):
    while known := [pair for pair in zip(symbols, symbols[1:]) if pair in merges]:
        symbols = merge_pair(symbols, min(known, key=merges.index))
    return list(symbols)


def corpus(rng, letters="abc", size=5, steps=4):
    """Random words on which no step of the training is a tie: ties have checks of their own."""
    while True:
        words = {}
        while len(words) < size:
            word = "".join(rng.choice(list(letters), rng.integers(2, 6)))
            words[*word, END] = int(rng.integers(1, 30))
        if train(words, steps) == train(words, steps, "lexicographic") == train(dict(reversed(words.items())), steps):
            return words


def words_for(rng, merges, letters, number=6):
    """Words on which it makes no difference whether each merge is applied once in order or the earliest is sought anew."""
    found = []
    while len(found) < number:
        word = "".join(rng.choice(list(letters), rng.integers(1, 8)))
        if encode((*word, END), merges) == encode_earliest((*word, END), merges):
            found.append(word)
    return found


def byte_merges(text, number):
    """Merges of byte numbers learned from a text: the k-th makes the id 256 + k."""
    sequence, merges = tuple(text.encode("utf-8")), []
    for k in range(number):
        pairs = list(zip(sequence, sequence[1:]))
        best = max(pairs, key=lambda pair: (pairs.count(pair), -pair[0], -pair[1]))
        merges.append(best)
        sequence = merge_ids(sequence, best, 256 + k)
    return merges


def merge_ids(sequence, pair, new):
    out, place = [], 0
    while place < len(sequence):
        both = tuple(sequence[place:place + 2]) == tuple(pair)
        out.append(new if both else sequence[place])
        place += 2 if both else 1
    return tuple(out)


def byte_encode(text, merges):
    ids = tuple(text.encode("utf-8"))
    for k, pair in enumerate(merges):
        ids = merge_ids(ids, pair, 256 + k)
    return list(ids)


# ---- count_pairs -----------------------------------------------------------------------------------------

@check("count_pairs", "document", section=COUNT, claim="每个词的每一对相邻符号，按词频累加",
       hint="对每个词走一遍 zip(symbols, symbols[1:])，次数加上这个词的词频")
def count_document(student, rng):
    student(DOCUMENT).equals(count_pairs(DOCUMENT))


@check("count_pairs", "weights", section=COUNT, claim="同一对在几个词里、在一个词里几处，次数都加在一起",
       hint="counts[pair] = counts.get(pair, 0) + 词频")
def count_weights(student, rng):
    words = {("a", "b", "c", "a", "b"): int(rng.integers(2, 9)), ("a", "b"): int(rng.integers(2, 9)), ("b", "a"): 1}
    student(words).equals(count_pairs(words))
    words = corpus(rng, "abcdefg", 4)
    words = {key: value for key, value in words.items() if all(x != y for x, y in zip(key, key[1:]))} or {("a", "b"): 2}
    student(words).equals(count_pairs(words))


@check("count_pairs", "overlap", section=MERGE, claim="一串相同的符号按真能合并几处算：aaa 里 (a, a) 是 1 次，aaaaa 里是 2 次",
       hint="数到一对相同的符号后，下一对若还是它，就跳过一次：中间那个符号已经用掉了")
def count_overlap(student, rng):
    for length in (3, 4, 5):
        student({("a",) * length: 1}).equals({("a", "a"): length // 2})
    words = {("a", "a", "a", "b", "a", "a"): 3, ("b", "b", "b", "b", "a"): 2}
    student(words).equals(count_pairs(words))


@check("count_pairs", "empty", section=COUNT, claim="只有一个符号的词没有对；没有词时返回空字典",
       hint="空的循环自然给出空的结果，不需要特别处理")
def count_empty(student, rng):
    student({}).equals({})
    student({("a",): 4, ("b",): 1}).equals({})


@check("count_pairs", "order", section=TIES, claim="结果按第一次见到的先后排列：并列时“先见到的优先”靠它",
       hint="普通的 dict 就按放入的先后排列；不要再排序")
def count_order(student, rng):
    words = corpus(rng)
    expected = list(count_pairs(words))
    student(words).satisfies(lambda counts: list(counts) == expected, f"各对的先后应为 {expected}")


@check("count_pairs", "untouched", section=COUNT, claim="传进来的 words 不被改动", hint="不要对 words 做 pop、del 或赋值")
def count_untouched(student, rng):
    student(corpus(rng)).keeps_arguments()


# ---- merge_pair ------------------------------------------------------------------------------------------

@check("merge_pair", "values", section=MERGE, claim="每一处 pair 都并成一个符号，其余的原样留下",
       hint="从左到右走：这两个正好是 pair 就放入它们的连接、跳过两个，否则放入一个")
def merge_values(student, rng):
    student(("l", "o", "w", END), ("l", "o")).equals(("lo", "w", END))
    student(("n", "e", "w", "e", "s", "t", "e", "s"), ("e", "s")).equals(("n", "e", "w", "es", "t", "es"))
    student(("lo", "w", "lo", "w", "e"), ("lo", "w")).equals(("low", "low", "e"))


@check("merge_pair", "ends", section=MERGE, claim="pair 在开头、在结尾、正好是整个词，都能合并；结尾只剩一半时不动",
       hint="看下一个符号之前先确认它存在：i + 1 < len(symbols)")
def merge_ends(student, rng):
    student(("a", "b", "c"), ("b", "c")).equals(("a", "bc"))
    student(("b", "c"), ("b", "c")).equals(("bc",))
    student(("b", "c", "b"), ("b", "c")).equals(("bc", "b"))


@check("merge_pair", "overlap", section=MERGE, claim="一串相同的符号从左到右、不重叠地合并：aaaaa → aa aa a",
       hint="合并之后跳过两个符号，不回头")
def merge_overlap(student, rng):
    for length in (2, 3, 5):
        symbols = ("a",) * length
        student(symbols, ("a", "a")).equals(("aa",) * (length // 2) + ("a",) * (length % 2))


@check("merge_pair", "absent", section=MERGE, claim="没有这一对（次序相反的也不算）时原样返回；空的和一个符号的也是",
       hint="(a, b) 与 (b, a) 是不同的对；要比符号，不要比拼起来的文字")
def merge_absent(student, rng):
    student(("b", "a", "b"), ("a", "a")).equals(("b", "a", "b"))
    student(("b", "a"), ("a", "b")).equals(("b", "a"))
    student(("xa", "by"), ("a", "b")).equals(("xa", "by"))
    student((), ("a", "b")).equals(())
    student(("a",), ("a", "a")).equals(("a",))


@check("merge_pair", "tuple", section=MERGE, claim="返回元组：它要当字典的键", hint="最后 return tuple(结果)")
def merge_tuple(student, rng):
    student(("a", "b", "c"), ("a", "b")).satisfies(lambda result: type(result) is tuple, "应返回元组")


# ---- train_bpe -------------------------------------------------------------------------------------------

@check("train_bpe", "document", section=TRAIN, claim="文档的语料：第 5 次合并 est 与 </w>，第 6 次 low 与 </w>",
       hint="每合并一次都要在合并后的词上从头重数")
def train_document(student, rng):
    for number in (1, 4, 6):
        student(DOCUMENT, number).equals(train(DOCUMENT, number))


@check("train_bpe", "overlap", section=MERGE, claim="一串相同的符号按真能合并几处算：aaa 里 (a, a) 是 1 次",
       hint="重叠的也数，就会高估这种对")
def train_overlap(student, rng):
    words = {("b", "c"): 4, ("a", "a", "a"): 3}
    student(words, 1).equals(train(words, 1))


@check("train_bpe", "corpus", section=TRAIN, claim="任意语料：每次都合并此刻最常见的一对，按词频计",
       hint="数、选、合并，再数；返回的是按先后排列的各对")
def train_corpus(student, rng):
    words = {("a", "b"): 1, ("c", "d"): 5, ("a", "b", "e"): 2}
    student(words, 1).equals(train(words, 1))
    for letters in ("abcd", "ab"):
        words = corpus(rng, letters)
        student(words, 4).equals(train(words, 4))


@check("train_bpe", "first", section=TIES, claim="次数并列时，tie=\"first\" 取先见到的一对",
       hint="max(counts, key=counts.get) 在并列时给出字典里最先的一个")
def train_first(student, rng):
    words = {("b", "c", "d"): 2, ("a", "b", "e"): 2}
    student(words, 4).equals(train(words, 4))
    words = {("d", "c", "b", "a"): 3}
    student(words, 3, tie="first").equals(train(words, 3))


@check("train_bpe", "lexicographic", section=TIES, claim="tie=\"lexicographic\" 取并列各对中字典序最小的",
       hint="先找最大的次数，再在达到它的各对里取 min")
def train_lexicographic(student, rng):
    words = {("d", "c", "b", "a"): 3, ("b", "c"): 3}
    student(words, 3, tie="lexicographic").equals(train(words, 3, "lexicographic"))
    student(DOCUMENT, 15, tie="lexicographic").equals(train(DOCUMENT, 15, "lexicographic"))


@check("train_bpe", "exhausted", section=TRAIN, claim="再没有可合并的对时停下，不报错；要 0 次就返回空列表",
       hint="counts 为空时 break：max 不能作用在空的字典上")
def train_exhausted(student, rng):
    student(DOCUMENT, 100).equals(train(DOCUMENT, 100))
    student(DOCUMENT, 0).equals([])
    student({("a",): 3}, 5).equals([])
    student({("a", "b", "c"): 1}, 5).equals([("a", "b"), ("ab", "c")])


@check("train_bpe", "joined", section=TRAIN, claim="合并后两个词变得一样时，词频要相加",
       hint="新字典里 merged[key] = merged.get(key, 0) + 词频；字典推导会让后一个盖掉前一个")
def train_joined(student, rng):
    words = {("a", "b", "c"): 5, ("ab", "c"): 2, ("d", "e"): 4}
    student(words, 3).equals(train(words, 3))


@check("train_bpe", "untouched", section=TRAIN, claim="传进来的 words 不被改动", hint="每次合并都建一个新的字典")
def train_untouched(student, rng):
    student(corpus(rng), 3).keeps_arguments()


# ---- encode_bpe ------------------------------------------------------------------------------------------

@check("encode_bpe", "document", section=ENCODE, claim="没见过的 lowest：学了 6 次合并之后切成 low 与 est</w>",
       hint="先拆成字符、末尾加 </w>，再按学得的先后合并")
def encode_document(student, rng):
    for number in (0, 1, 4, 6):
        student("lowest", train(DOCUMENT, number)).equals(encode((*"lowest", END), train(DOCUMENT, number)))


@check("encode_bpe", "order", section=ENCODE, claim="次序是规则：先学的先用，不是取最长的一块，也不是从左到右见到就并",
       hint="在此刻所有相邻对里，挑在 merges 中排得最前的那一对")
def encode_order(student, rng):
    student("abcd", [("b", "c"), ("a", "b"), ("c", "d"), ("ab", "cd")]).equals(["a", "bc", "d", END])
    student("abab", [("b", "a"), ("a", "b")]).equals(["a", "ba", "b", END])
    student("dcd", [("d", "c"), ("c", "d")]).equals(["dc", "d", END])
    student("aba", [("b", "a"), ("a", "ba"), ("a", "b")]).equals(["aba", END])


@check("encode_bpe", "everywhere", section=ENCODE, claim="一条规则用到词里的每一处", hint="合并之后接着往后看，不要停在第一处")
def encode_everywhere(student, rng):
    student("abcab", [("a", "b")]).equals(["ab", "c", "ab", END])
    student("aaaaa", [("a", "a"), ("aa", "aa")]).equals(["aaaa", "a", END])


@check("encode_bpe", "corpus", section=ENCODE, claim="任意语料学来的规则，任意的词", hint="每条规则都用到词里的每一处")
def encode_corpus(student, rng):
    for letters in ("abc", "ab"):
        merges = train(corpus(rng, letters, 6), 6)
        for word in words_for(rng, merges, letters + "x"):
            student(word, merges).equals(encode((*word, END), merges))


@check("encode_bpe", "edge", section=ENCODE, claim="没见过的字符保持单个；空词只有 </w>；没有规则时就是一个个字符",
       hint="不在 merges 里的对不合并，别的什么也不用做")
def encode_edge(student, rng):
    student("xyz", train(DOCUMENT, 6)).equals(["x", "y", "z", END])
    student("", train(DOCUMENT, 6)).equals([END])
    student("我爱你", []).equals(["我", "爱", "你", END])


@check("encode_bpe", "untouched", section=ENCODE, claim="传进来的 merges 不被改动", hint="不要对 merges 做 pop 或 remove")
def encode_untouched(student, rng):
    student("lowest", train(DOCUMENT, 6)).keeps_arguments()


# ---- byte_encode 与 byte_decode ---------------------------------------------------------------------------

SAMPLES = ("low lower", "子曰：学而时习之", "🍓 中文  两个空格\n", " 开头有空格", "")


@check("byte_encode", "bytes", section=BYTES, claim="没有合并时，编号就是 UTF-8 的字节：汉字三个，表情四个",
       hint="list(text.encode(\"utf-8\"))")
def byte_encode_bytes(student, rng):
    for text in ("aé中🍓", "ab  c"):
        student(text, []).equals(list(text.encode("utf-8")))


@check("byte_encode", "merges", section=BYTES, claim="第 k 条规则（从 0 数起）把一对编号并成 256 + k，按先后用到每一处",
       hint="规则里的编号可以是前面合并出来的（≥ 256）")
def byte_encode_merges(student, rng):
    text = "low lower lowest 学而时习之 学而不思"
    for number in (1, 5, 12):
        merges = byte_merges(text, number)
        for sample in (text, "lowlow 学而", "aaa"):
            student(sample, merges).equals(byte_encode(sample, merges))
    student("aaaaa", [(97, 97), (256, 97)]).equals([256, 256 + 1])


@check("byte_encode", "anything", section=BYTES, claim="任何文字都能编码：空串、表情、换行、连续的空格",
       hint="不要 split、strip，也不要假设每个字符一个字节")
def byte_encode_anything(student, rng):
    merges = byte_merges("低 lower 低低 lower", 4)
    for text in SAMPLES:
        student(text, merges).equals(byte_encode(text, merges))


@check("byte_decode", "bytes", section=BYTES, claim="先把所有编号展开成字节、接在一起，再一次解码",
       hint="一个汉字的三个字节可能分在几个编号里，逐个编号解码会得到 �")
def byte_decode_bytes(student, rng):
    for text in SAMPLES:
        student(list(text.encode("utf-8")), []).equals(text)


@check("byte_decode", "merges", section=BYTES, claim="编号 256 + k 展开成第 k 条规则的两个编号，一层层展开到字节",
       hint="table = [bytes([i]) for i in range(256)]，再依次接上每条规则的两段字节")
def byte_decode_merges(student, rng):
    text = "low lower lowest 学而时习之 学而不思"
    merges = byte_merges(text, 12)
    for sample in (text, "lowlow 学而", *SAMPLES):
        student(byte_encode(sample, merges), merges).equals(sample)
    student([257], [(97, 98), (256, 256)]).equals("abab")


@check("byte_decode", "broken", section=BYTES, claim="凑不成字的字节解成 �，不报错，也不悄悄丢掉",
       hint="bytes.decode(\"utf-8\", errors=\"replace\")")
def byte_decode_broken(student, rng):
    data = "学而".encode()[:4]
    student(list(data), []).equals(data.decode("utf-8", errors="replace"))


@check("byte_decode", "outside", section=BYTES, claim="词表里没有的编号报错，负数也是",
       hint="列表的下标 -1 是最后一个：先查 0 <= i < len(table)")
def byte_decode_outside(student, rng):
    merges = byte_merges("low lower", 2)
    student([97, 258], merges).raises(IndexError, KeyError, ValueError)
    student([97, -1], merges).raises(IndexError, KeyError, ValueError)
