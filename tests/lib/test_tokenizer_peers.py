"""Live: whole vocabularies against tiktoken, training and encoding against Hugging Face, SmolLM2's tokenizer."""
import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lib.tokenizer import GPT2_PATTERN, ByteBPE
from tests.lib.test_tokenizer import GOLDEN, IDS, KNOWN, mixed

pytestmark = pytest.mark.peers
any_valid_text = st.text(st.characters(exclude_categories=["Cs"]))


@pytest.fixture(scope="module", params=KNOWN)
def whole(request):
    """(tiktoken's encoding, ours) over one whole vocabulary."""
    from tests.lib.golden import make_tokenizer
    if not make_tokenizer.VOCABULARIES.is_dir():
        pytest.skip("需要整份词表：make vocabularies")
    name = request.param
    return make_tokenizer.encoding(name), ByteBPE.from_tiktoken(make_tokenizer.VOCABULARIES / f"{name}.tiktoken")


def test_the_same_special_tokens_and_size(whole):
    theirs, ours = whole
    assert ours.vocab_size == theirs.n_vocab and ours.special_tokens == theirs._special_tokens


@settings(deadline=None, max_examples=1000)
@given(text=any_valid_text | mixed)
@example(text="a" * 3000)
@example(text=" " * 3000)
@example(text="\n" * 1000 + "中" * 1000)
def test_any_text_gets_the_ids_of_tiktoken(whole, text):
    theirs, ours = whole
    assert ours.encode(text) == theirs.encode_ordinary(text)
    assert ours.encode(text, "all") == theirs.encode(text, allowed_special="all")
    assert ours.decode(ours.encode(text)) == text


def test_every_kind_of_character_is_cut_alike(whole):
    """All assigned characters (of the large uniform blocks every 97th), each beside letters, digits, signs, spaces."""
    theirs, ours = whole
    wrong = []
    for code in range(0x110000):
        char = chr(code)
        category = unicodedata.category(char)
        uniform = category in ("Cn", "Co") or 0x3400 <= code < 0xA000 or 0xAC00 <= code < 0xD7A4 or code > 0x17000
        if category == "Cs" or (uniform and code % 97):
            continue
        text = f"a{char}b1{char}2!{char}? {char} {char}{char}\n{char}A'{char}"
        if ours.encode(text) != theirs.encode_ordinary(text):
            wrong.append(hex(code))
    assert not wrong


@pytest.mark.parametrize("name", KNOWN)
def test_golden_ids_are_what_tiktoken_gives_now(name):
    from tests.lib.golden import make_tokenizer
    if not make_tokenizer.VOCABULARIES.is_dir():
        pytest.skip("需要整份词表：make vocabularies")
    assert make_tokenizer.tiktoken_ids(name) == IDS[name]
    assert make_tokenizer.excerpt(name) == (GOLDEN / f"{name}.tiktoken").read_bytes()


def test_golden_ids_are_what_hugging_face_gives_now(tmp_path):
    from tests.lib.golden import make_tokenizer
    tokenizer = make_tokenizer.hugging_face()
    assert make_tokenizer.hugging_face_ids(tokenizer) == IDS["hugging_face"]
    tokenizer.model.save(str(tmp_path))
    for name in ("vocab.json", "merges.txt"):
        assert (tmp_path / name).read_text(encoding="utf-8") == (GOLDEN / name).read_text(encoding="utf-8")


@settings(deadline=None, max_examples=30)
@given(text=st.lists(st.sampled_from("the cat sat on a mat with 12 hats 天 地 玄 黄 low lower".split()), min_size=3).map(" ".join))
def test_training_keeps_the_frequencies_of_hugging_face(text):
    """The two break ties differently; the count of every merge, and so what the merges save, is the same without ties:
    compared through the number of tokens that the training text is cut into after each vocabulary size."""
    import tokenizers
    ours = ByteBPE.train(text, 270)
    theirs = tokenizers.Tokenizer(tokenizers.models.BPE())
    theirs.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    theirs.train_from_iterator([text], tokenizers.trainers.BpeTrainer(vocab_size=257, initial_alphabet=alphabet, show_progress=False))
    first = ByteBPE.train(text, 257)
    assert len(first.encode(text)) == len(theirs.encode(text).ids), "the first merge saves the most that any merge can"
    assert len(ours.encode(text)) <= len(first.encode(text))


def test_tokenizer_of_a_real_model(root):
    """SmolLM2's own pipeline, built from Hugging Face's parts: single digits first, then GPT-2's pattern.
    (transformers' GGUF reader leaves the digits out.)"""
    weights = root / "data" / "smollm2" / "SmolLM2-135M-Instruct.Q4_1.gguf"
    if not weights.exists():
        pytest.skip("需要真实的预训练模型：make real-model")
    from gguf import GGUFReader
    from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers
    fields = GGUFReader(weights).fields
    tokens, kinds, merges = (fields[f"tokenizer.ggml.{name}"].contents() for name in ("tokens", "token_type", "merges"))
    theirs = Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, [tuple(line.split(" ")) for line in merges]))
    theirs.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(True), pre_tokenizers.ByteLevel(add_prefix_space=False)])
    theirs.add_special_tokens([AddedToken(token, normalized=False) for token, kind in zip(tokens, kinds) if kind == 3])
    ours = ByteBPE.from_gguf(weights)
    for text in [*IDS["texts"], "  12  a 3.14", "x1 y22  z333", " ½ ①②  Ⅷ", "<|im_start|>user\nHi 5<|im_end|>\n"]:
        assert ours.encode(text, "all") == theirs.encode(text).ids, text
    with pytest.raises(ValueError, match="词表里没有字节"):
        ours.encode("a\x04")  # a control character that its training text never held


def test_gguf_that_is_no_byte_level_bpe(root):
    with pytest.raises(ValueError, match="只读字节级 BPE"):
        ByteBPE.from_gguf(root / "tests/lib/golden/llama.gguf")


def test_pattern_is_tiktokens_own():
    """Ours is theirs with \\Z for $ (in Python $ also matches before a last line break)."""
    from tiktoken_ext import openai_public
    assert GPT2_PATTERN.replace(r"\Z", "$") == openai_public.r50k_pat_str
