"""What `lib` is timed against computes the same, and the arithmetic of the ratios is right; no peers needed."""

import numpy as np
import pytest

from benchmarks import plain_gpt2, textbook_bpe
from benchmarks.corpora import natural
from benchmarks.measure import Row, Times, take_turns
from lib.model import GPT, Config
from lib.tokenizer import GPT2_PATTERN, ByteBPE


def test_the_plain_forward_gives_the_models_logits():
    model = GPT(Config(vocab_size=37, context_length=11, d_model=24, n_layers=3, n_heads=4))
    ids = np.random.default_rng(0).integers(0, 37, 9)
    np.testing.assert_allclose(plain_gpt2.forward(ids, plain_gpt2.weights(model), 4), model(ids), atol=1e-5)
    assert plain_gpt2.forward(ids, plain_gpt2.weights(model), 4).dtype == np.float32


@pytest.mark.parametrize(("text", "merges"), [("low lower newest widest lowest low low newest", 6), ("吃葡萄不吐葡萄皮，不吃葡萄倒吐葡萄皮", 6), ("aaaa aaa aa", 3)])
def test_the_textbook_trainer_learns_the_same_merges(text, merges):
    learnt = textbook_bpe.in_bytes(textbook_bpe.train(text, 256 + merges, GPT2_PATTERN))
    assert len(learnt) == merges and learnt == ByteBPE.train(text, 256 + merges).merges


def test_a_ratio_is_the_median_of_the_rounds_ratios():
    times = Times({"ours": [1.0, 2.0, 9.0], "theirs": [2.0, 2.0, 3.0]})
    row = times.ratio("ours", "theirs", 0.9, "r")
    assert row.value == 1.0 and row.reached is False and row.seconds == {"ours": 2.0, "theirs": 2.0}
    assert times.ratio("theirs", "ours", 0.9, "r", least=True).reached is True
    # 6 units in 2 s against 4 units in 2 s
    assert times.share({"ours": 6, "theirs": 4}, "ours", "theirs", 1.4, "s").value == pytest.approx(1.5)
    assert Row("no target", 1.0, None).reached is None


def test_everyone_runs_once_a_round_and_only_the_run_is_timed():
    calls = []
    contestants = {"a": lambda: calls.append("a"), "b": (lambda: calls.append("prepare"), lambda: calls.append("b"))}
    times = take_turns(contestants, rounds=3, warm_up=1)
    assert [calls.count(name) for name in ("a", "b", "prepare")] == [4, 4, 4]
    assert all(calls[i - 1] == "prepare" for i, name in enumerate(calls) if name == "b")
    assert {name: len(seconds) for name, seconds in times.seconds.items()} == {"a": 3, "b": 3}


def test_numbers_in_names_are_ordered_as_numbers():
    assert sorted(["poet.tang.10000.json", "poet.tang.2000.json"], key=natural) == ["poet.tang.2000.json", "poet.tang.10000.json"]
