"""The interactive page computes what `lib` computes: the very scripts of the page, run in Node, against `lib`."""

import base64
import json
import math
import subprocess
from pathlib import Path

import numpy as np
import pytest

from book import node
from book.journey import model as journey
from lib import attention, sampling
from lib.accounting import count_parameters, forward_flops
from lib.block import post_ln, pre_ln
from lib.feedforward import ACTIVATIONS
from lib.functional import cross_entropy, linear, softmax
from lib.generation import generate, window_start
from lib.normalization import layer_norm
from lib.position import rotary

SCRIPT = Path(__file__).with_name("interactive.cjs")
TOLERANCE = 1e-5
NAMES = list(journey.configurations())
SETTINGS = [{"scale": s, "mask": m, "position": p} for s in (True, False) for m in (True, False) for p in (True, False)]


def ask(calls):
    """Answers of the page's scripts to a list of calls."""
    prepared = json.dumps(calls, default=lambda x: x.tolist()).replace("-Infinity", '"-inf"')
    done = subprocess.run([node.executable(), SCRIPT], input=prepared, capture_output=True, text=True, encoding="utf-8")
    assert not done.returncode, done.stderr
    return json.loads(done.stdout, object_hook=row)


def row(value):
    return np.frombuffer(base64.b64decode(value["f64"])) if "f64" in value else value


def array(value):
    """What came back, as float64: "-inf" is minus infinity."""
    return np.array([float(x) if isinstance(x, str) else x for x in value], dtype=float)


@pytest.fixture(scope="module")
def shipped():
    return journey.load()


def sentences(tokenizer, count, seed):
    """Random pieces of poems, of the Analects, of English and of bytes nobody trained on, cut to the model's window."""
    rng = np.random.default_rng(seed)
    root = Path(__file__).resolve().parents[2] / "chapters" / "stored"
    texts = [(root / name).read_text(encoding="utf-8") for name in ("tang-poems.txt", "lunyu.txt", "sonnets.txt")] + ["🍓 é ｗ\u3000\t9.11  人工智能\n" * 40]
    for _ in range(count):
        text = texts[rng.integers(len(texts))]
        start = rng.integers(len(text) - 40)
        ids = tokenizer.encode(text[start : start + rng.integers(1, 40)])[: journey.CONFIG.context_length]
        yield [int(i) for i in ids]


# ---------------------------------------------------------------- the reference: lib's own parts, with the page's switches


def reference(model, ids, scale, mask, position):
    """Every array of one forward pass by `lib`'s functions; with all switches on it is `model(ids)` itself."""
    config, params = model.config, model.params
    t = {"embedding": params["wte"][ids], "blocks": []}
    x = t["embedding"]
    if config.position == "learned" and position:
        x = x + params["wpe"][: len(ids)]
    t["input"] = x
    wrap = {"pre": pre_ln, "post": post_ln}[config.norm_position]
    for p in params["blocks"]:
        trace = {}

        def attend(h, p=p["attention"], trace=trace):
            q, k, v = (attention.split_heads(linear(h, p[f"W_{name}"], p[f"b_{name}"]), config.n_heads) for name in "QKV")
            if config.position == "rotary" and position:
                q, k = (rotary(x, np.arange(len(ids)), config.rope_base) for x in (q, k))
            output, weights = attention.scaled_dot_product_attention(
                q, k, v, mask=attention.causal_mask(len(ids)) if mask else None, scale=None if scale else 1
            )
            trace.update(q=q, k=k, v=v, scores=q @ k.swapaxes(-1, -2), weights=weights, concat=attention.merge_heads(output))
            trace["attention"] = linear(trace["concat"], p["W_O"], p["b_O"])
            return trace["attention"]

        def think(h, p=p["ffn"], trace=trace):
            trace["hidden"] = linear(h, p["W_1"], p["b_1"])
            trace["activated"] = ACTIVATIONS[config.activation](trace["hidden"])
            trace["ffn"] = linear(trace["activated"], p["W_2"], p["b_2"])
            return trace["ffn"]

        def norm(name, p=p):
            return lambda h: layer_norm(h, p[name]["gain"], p[name]["bias"], config.norm_eps)

        x = trace["middle"] = wrap(x, attend, norm("norm_1"))
        x = trace["output"] = wrap(x, think, norm("norm_2"))
        t["blocks"].append(trace)
    if config.norm_position == "pre":
        x = layer_norm(x, params["norm_f"]["gain"], params["norm_f"]["bias"], config.norm_eps)
    t["final"], t["logits"] = x, x @ params["wte"].T
    return t


def heads(block, name):
    return array([head[name] for head in block["heads"]])


def split(rows):
    return attention.split_heads(array(rows), journey.CONFIG.n_heads)


@pytest.mark.parametrize("name", NAMES)
def test_every_array_equals_lib_for_every_switch(shipped, name):
    tokenizer, models = shipped
    model = models[name]
    cases = [(ids, settings) for n, settings in enumerate(SETTINGS) for ids in sentences(tokenizer, 2, n)]
    for (ids, settings), page in zip(cases, ask([["forward", name, ids, settings] for ids, settings in cases])):
        expected = reference(model, ids, **settings)
        close = lambda value, wanted: np.testing.assert_allclose(array(value), wanted, rtol=0, atol=TOLERANCE)  # noqa: B023
        for key in ("embedding", "input", "final", "logits"):
            close(page[key], expected[key])
        for got, wanted in zip(page["blocks"], expected["blocks"], strict=True):
            close(split(got["qUsed"]), wanted["q"])
            close(split(got["kUsed"]), wanted["k"])
            close(split(got["vUsed"]), wanted["v"])
            for key in ("concat", "attention", "hidden", "activated", "ffn", "output"):
                close(got[key], wanted[key])
            close(got["attentionOut"], wanted["middle"])
            close(heads(got, "scores"), wanted["scores"])
            close(heads(got, "weights"), wanted["weights"])
        if len(ids) > 1:
            assert page["loss"] == pytest.approx(float(cross_entropy(expected["logits"][:-1], np.array(ids[1:]))), abs=TOLERANCE)


@pytest.mark.parametrize("name", NAMES)
def test_with_every_switch_on_it_is_the_model(shipped, name):
    """The reference above is not a model of its own."""
    tokenizer, models = shipped
    for ids in sentences(tokenizer, 4, 9):
        np.testing.assert_allclose(reference(models[name], ids, True, True, True)["logits"], models[name](np.array(ids)), atol=1e-10)


def test_the_switches_change_something(shipped):
    tokenizer, _ = shipped
    ids = tokenizer.encode("白日依山尽，黄河入海流。")
    for name in NAMES:
        answers = ask([["forward", name, ids, settings] for settings in SETTINGS])
        different = {tuple(np.round(array(a["logits"])[-2], 6)) for a in answers}
        assert len(different) == (len(SETTINGS) // 2 if name.endswith("none") else len(SETTINGS))


# ---------------------------------------------------------------- tokens and bytes

TEXTS = ["床前明月光，", "Hello, world! it's  9.11\n\n x ", "🍓🍓", "\u3000全角\u00a0空格", "é e\u0301 ｗ", "a\r\nb\t\t",
         "'ll 're 's", "人工智能 AI，2026 年。", "\ufeff头", " ", "鿿㐀𠀀"]  # fmt: skip


def test_tokens_equal_libs(shipped):
    tokenizer, _ = shipped
    rng = np.random.default_rng(3)
    alphabet = [chr(c) for c in range(32, 127)] + list("床前明月光疑是地上霜，。！\u3000\u2003\n\t\r🍓é龘\u0085\u200b")
    texts = TEXTS + ["".join(rng.choice(alphabet, rng.integers(1, 60))) for _ in range(200)]
    for text, ids in zip(texts, ask([["encode", text] for text in texts]), strict=True):
        assert ids == tokenizer.encode(text), text


def test_no_replacement_character_is_ever_shown(shipped):
    """Every token of the vocabulary, alone, after every beginning of a character, and in random sequences."""
    tokenizer, _ = shipped
    size = journey.CONFIG.vocab_size
    rng = np.random.default_rng(4)
    beginnings = [[], tokenizer.encode("床"), [0xE6], [0xE6, 0x9C], [0xF0, 0x9F]]
    sequences = [rng.integers(size, size=12).tolist() for _ in range(200)]
    answers = ask([["candidate", i, before] for i in range(size) for before in beginnings]
                  + [["labels", ids] for ids in sequences] + [["textOf", ids] for ids in sequences])  # fmt: skip
    labels, texts = answers[size * len(beginnings) :][:200], answers[-200:]
    said = [*answers[: size * len(beginnings)], *(label[key] for row in labels for label in row for key in ("short", "long")), *texts]
    assert all(said) and not [text for text in said if "\ufffd" in text]
    for ids, row in zip(sequences, labels):
        assert [label["bytes"] for label in row] == [list(piece) for piece in tokenizer.token_bytes(ids)]


def test_a_byte_that_completes_a_character_says_so():
    moon = list("月".encode())
    assert "月" in ask([["candidate", moon[2], moon[:2]]])[0]
    assert ask([["textOf", moon]]) == ["月"]
    assert [label["short"] for label in ask([["labels", moon]])[0]] == ["月¹", "月²", "月³"]


# ---------------------------------------------------------------- sampling

SAMPLING = [(T, k, p) for T in (0, 0.3, 1, 2.5) for k in (None, 1, 3, 50) for p in (None, 0.05, 0.5, 0.9)]


def lib_filtered(logits, T, k, p):
    z = sampling.apply_temperature(logits, T)
    if T == 0:
        return z
    z = z if k is None else sampling.top_k_filter(z, k)
    return z if p is None else sampling.top_p_filter(z, p)


def test_sampling_equals_lib():
    rng = np.random.default_rng(5)
    cases = [(T, k, p, z) for T, k, p in SAMPLING for z in (rng.normal(size=60) * 3, rng.integers(0, 4, 60).astype(float))]
    calls = [["numerics", "filtered", z, {"T": T, "k": k, "p": p}] for T, k, p, z in cases]
    for (T, k, p, z), got in zip(cases, ask(calls)):
        np.testing.assert_allclose(array(got), lib_filtered(z, T, k, p), rtol=0, atol=1e-12, err_msg=f"T={T} k={k} p={p}")


def test_draws_fall_as_often_as_they_should():
    p = softmax(np.array([2.0, 1, 0, -1, -np.inf]))
    us = ask([["uniforms", 7, 4000]])[0]
    assert min(us) >= 0 and max(us) < 1
    draws = np.array(ask([["numerics", "draw", p, u] for u in us]))
    assert [int((u >= np.cumsum(p)).sum()) for u in us] == draws.tolist(), "the place of u in the cumulative sum"
    observed, expected = np.bincount(draws, minlength=5)[:4], 4000 * p[:4]
    assert ((observed - expected) ** 2 / expected).sum() < 16.3, "chi-square, 3 degrees of freedom, p = 0.001"
    assert 4 not in draws


# ---------------------------------------------------------------- generation, cache, counted work


@pytest.mark.parametrize("name", NAMES)
def test_a_cache_gives_the_same_logits_however_the_text_is_cut(shipped, name):
    tokenizer, models = shipped
    ids = tokenizer.encode("红豆生南国，春来发几枝。愿君多采撷")[:16]
    cuts = [[len(ids)], [1] * len(ids), [4, len(ids) - 4], [3, 3, 1, len(ids) - 7]]
    for settings in ({"scale": True, "mask": True, "position": True}, {"scale": False, "mask": True, "position": False}):
        for logits in ask([["pieces", name, ids, cut, settings] for cut in cuts]):
            np.testing.assert_allclose(array(logits), reference(models[name], ids, **settings)["logits"], rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("name", NAMES)
def test_greedy_generation_equals_lib_past_the_window(shipped, name):
    tokenizer, models = shipped
    prompt = tokenizer.encode("春眠不觉晓")
    count = 2 * journey.CONFIG.context_length
    expected = generate(models[name], prompt, count, temperature=0)
    for steps in ask([["generate", name, prompt, count, {"sampling": {"T": 0}, "useCache": use}] for use in (True, False)]):
        assert steps[-1]["ids"] == expected


def test_drawn_generation_follows_the_numbers_given(shipped):
    """Token by token: the page's choice is where u falls in lib's cumulative probabilities."""
    tokenizer, models = shipped
    prompt, us = tokenizer.encode("白日"), np.random.default_rng(6).random(20).tolist()
    steps = ask([["generate", "pre-rotary", prompt, 20, {"sampling": {"T": 1.3, "k": 40, "p": 0.9}, "us": us}]])[0]
    for u, step in zip(us, steps):
        logits = models["pre-rotary"](np.array(step["ids"][:-1]))[-1]
        p = softmax(lib_filtered(logits, 1.3, 40, 0.9))
        assert step["id"] == int((u >= p.cumsum() / p.sum()).sum())
        assert step["probability"] == pytest.approx(p[step["id"]], abs=TOLERANCE)


def test_counted_work_is_libs_accounting(shipped):
    config = journey.CONFIG
    for n, page in zip((1, 7, 40), ask([["forward", "pre-learned", list(range(n)), SETTINGS[0]] for n in (1, 7, 40)])):
        assert 2 * page["multiplications"] == forward_flops(config, n)
    prompt, count = list(range(5)), 6
    cached, plain = ask([["generate", "pre-learned", prompt, count, {"sampling": {"T": 0}, "useCache": use}] for use in (True, False)])
    assert [s["processed"] for s in plain] == [5, 6, 7, 8, 9, 10]
    assert [s["processed"] for s in cached] == [5, 1, 1, 1, 1, 1]
    head = config.d_model * config.vocab_size  # the output layer is asked for the last row alone
    for step, n in zip(plain, range(5, 11)):
        assert 2 * step["multiplications"] == forward_flops(config, n) - 2 * (n - 1) * head
    for step, n in list(zip(cached, range(5, 11)))[1:]:
        attention_of_old = 2 * 2 * config.n_layers * config.d_model * (n - 1)
        assert 2 * step["multiplications"] == forward_flops(config, 1) + attention_of_old


def test_the_window_rule_is_libs():
    cases = [(n, context) for context in (1, 2, 7, 40) for n in range(1, 120, 3)]
    assert ask([["windowStart", n, context] for n, context in cases]) == [window_start(n, context) for n, context in cases]


# ---------------------------------------------------------------- the shipped file


def test_weights_are_small_and_say_what_they_are(shipped):
    _, models = shipped
    data = journey.read()
    assert journey.WEIGHTS.stat().st_size < 600_000
    assert data["facts"]["parameters"] == {name: count_parameters(config) for name, config in journey.configurations().items()}
    assert set(data["models"]) == set(NAMES) == set(data["facts"]["held_out_loss"])


def test_whole_page_is_small():
    root = Path(__file__).resolve().parents[2]
    files = [p for folder in ("journey", "explorers") for p in (root / "book" / folder).glob("*") if p.suffix in (".js", ".css")]
    assert sum(p.stat().st_size for p in files) + (root / "chapters/journey.md").stat().st_size < 1_500_000


def test_stated_losses_are_the_models_own(shipped):
    """Trained, not random: the loss that the page states is what `lib` measures on the poems kept from training."""
    from book.journey import train
    from lib.training import evaluate

    tokenizer, models = shipped
    unseen = np.array(tokenizer.encode("\n".join(train.POEMS.read_text(encoding="utf-8").splitlines()[::20])))
    stated = journey.read()["facts"]["held_out_loss"]
    for name in ("pre-learned", "post-none"):
        assert evaluate(models[name], unseen) == pytest.approx(stated[name], abs=1e-3)
    assert max(stated.values()) < math.log(journey.CONFIG.vocab_size) - 1.5


def test_rounding_to_8_bits_comes_back_exactly():
    W = np.random.default_rng(0).normal(size=(5, 7)).astype(np.float32)
    back = journey.dequantize(journey.quantize(W))
    assert np.abs(back - W).max() <= np.abs(W).max() / 127 / 2 * 1.01
    np.testing.assert_array_equal(journey.dequantize(journey.quantize(back.astype(np.float32))).astype(np.float32), back.astype(np.float32))
