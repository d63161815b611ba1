"""Training: AdamW against a scalar oracle and PyTorch, a run that is killed and goes on, a loss that isn't finite."""
import json
import math
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from lib.functional import cross_entropy
from lib.model import GPT, Config
from lib.training import (
    AdamW,
    evaluate,
    gradient_norm,
    leaves,
    load_checkpoint,
    random_batch,
    save_checkpoint,
    train,
    warmup_cosine,
)

CONFIG = Config(11, 8, 8, 1, 2, d_ff=16)
DATA = np.random.default_rng(3).integers(0, 11, 400)


def oracle(p, gradients, lr, b1, b2, eps, decay):
    """One number through AdamW, written from the paper."""
    m = v = 0.0
    for t, g in enumerate(gradients, 1):
        p -= lr * decay * p
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
        p -= lr * (m / (1 - b1**t)) / (math.sqrt(v / (1 - b2**t)) + eps)
    return p


def test_adamw_number_by_number():
    rng = np.random.default_rng(0)
    start, steps = rng.standard_normal((3, 5)), rng.standard_normal((4, 3, 5))
    params, optimizer = {"a": [{"W": start.copy()}]}, AdamW(0.1, (0.8, 0.95), 1e-3, 0.2)
    for g in steps:
        optimizer.step(params, {"a": [{"W": g.copy()}]})
    for i in np.ndindex(3, 5):
        assert params["a"][0]["W"][i] == pytest.approx(oracle(start[i], steps[(slice(None), *i)], 0.1, 0.8, 0.95, 1e-3, 0.2), rel=1e-12)


def test_adamw_works_in_place_in_blocks_in_any_layout():
    rng = np.random.default_rng(1)
    big, g = rng.standard_normal((300, 400)), rng.standard_normal((300, 400))
    arrays = {"C": big.copy(), "F": np.asfortranarray(big), "vector": big[0].copy(), "number": np.array(0.5)}
    grads = {"C": g, "F": g, "vector": g[0], "number": np.array(2.0)}
    kept = {name: (array, grads[name].copy()) for name, array in arrays.items()}
    optimizer = AdamW(0.01)
    for _ in range(3):
        optimizer.step(arrays, grads)
    np.testing.assert_array_equal(arrays["C"], arrays["F"])
    np.testing.assert_array_equal(arrays["C"][0], arrays["vector"])
    assert all(arrays[name] is array and (grads[name] == before).all() for name, (array, before) in kept.items())
    assert arrays["number"] == pytest.approx(oracle(0.5, [2.0] * 3, 0.01, 0.9, 0.999, 1e-8, 0.01), rel=1e-12)


def test_adamw_keeps_float32():
    params = {"W": np.ones((4, 4), np.float32)}
    AdamW().step(params, {"W": np.ones((4, 4), np.float32)})
    assert params["W"].dtype == np.float32
    assert params["W"][0, 0] == pytest.approx(1 - 1e-5 - 1e-3, abs=1e-6)


def test_batches_are_shifted_by_one_and_reach_both_ends():
    data = np.arange(10)
    ids, targets = random_batch(data, 400, 4, np.random.default_rng(0))
    assert ids.shape == targets.shape == (400, 4) and (targets == ids + 1).all()
    assert set(ids[:, 0]) == set(range(6)), "every start that leaves room for the last target"


def test_evaluation_is_the_mean_over_every_window():
    model = GPT(CONFIG)
    windows = [(DATA[i : i + 8], DATA[i + 1 : i + 9]) for i in range(0, 392, 8)]
    expected = np.mean([cross_entropy(model(ids), targets) for ids, targets in windows])
    assert evaluate(model, DATA, batch_size=7) == pytest.approx(expected, rel=1e-6)
    assert evaluate(model, DATA, batch_size=1000) == pytest.approx(expected, rel=1e-6)


def test_learning_rate_plan():
    rate = warmup_cosine(100, 1.0, warmup=10, final=0.1)
    assert [rate(s) for s in (0, 4, 9)] == [0.1, 0.5, 1.0]
    assert rate(10) == 1.0 and rate(55) == pytest.approx(0.55) and rate(100) == pytest.approx(0.1) == rate(500)
    assert all(rate(s) >= rate(s + 1) for s in range(10, 100))


def run(model=None, **changes):
    model = model or GPT(CONFIG)
    arguments = dict(steps=12, batch_size=4, rng=np.random.default_rng(5), progress=False, validation=DATA[:100], evaluate_every=5)
    return model, train(model, DATA, **arguments | changes)


def test_it_learns():
    text = np.tile(np.arange(11), 40)
    model = GPT(CONFIG)
    history = train(model, text, steps=150, batch_size=8, rng=np.random.default_rng(0), optimizer=AdamW(1e-2), progress=False)
    assert history["loss"][0] > 2.2 and history["loss"][-1] < 0.1
    assert evaluate(model, text) < 0.1


def test_history():
    _, history = run()
    assert len(history["loss"]) == 12 and [step for step, _ in history["validation"]] == [5, 10, 12]


def same(a, b):
    return all(np.array_equal(x, y) for (_, x), (_, y) in zip(leaves(a.params), leaves(b.params), strict=True))


@pytest.mark.parametrize("schedule", [None, warmup_cosine(12, 3e-3, 3)])
def test_going_on_gives_the_same_numbers(schedule, tmp_path):
    straight, expected = run(schedule=schedule)
    file = tmp_path / "run.npz"
    first, _ = run(steps=7, schedule=schedule, checkpoint=file, validation=None)
    assert not same(first, straight)
    # Going on starts from a fresh model and a fresh generator: everything comes from the file.
    second, history = run(schedule=schedule, checkpoint=file)
    assert same(second, straight) and history["loss"] == expected["loss"]
    again, history = run(schedule=schedule, checkpoint=file)
    assert same(again, straight) and history["loss"] == expected["loss"], "nothing left to do"


SCRIPT = """
import sys
import numpy as np
from lib.model import GPT, Config
from lib.training import train
data = np.random.default_rng(3).integers(0, 11, 400)
train(GPT(Config(11, 8, 8, 1, 2, d_ff=16)), data, steps=400, batch_size=4, rng=np.random.default_rng(5), checkpoint=sys.argv[1], checkpoint_every=1, progress=False)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="此系统没有 SIGKILL")
def test_killed_at_any_moment_and_resumed(tmp_path, root):
    """A run that saves at every step is killed without warning several times; each time it goes on from a whole file."""
    file = tmp_path / "run.npz"
    rng, done = np.random.default_rng(), -1
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    kills = 0
    while kills < 3:
        process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(file)], cwd=root, env=environment)
        deadline = time.monotonic() + 60
        while steps_saved(file) <= done and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.005)
        time.sleep(rng.uniform(0, 0.02))  # any moment, also in the middle of writing
        finished = process.poll() is not None
        process.kill()
        process.wait()
        now = steps_saved(file)
        assert now > done, "the file is whole and further than before"
        done, kills = now, kills + 1
        if finished:
            break
    straight = GPT(CONFIG)
    train(straight, DATA, steps=done + 5, batch_size=4, rng=np.random.default_rng(5), progress=False)
    resumed = GPT(CONFIG)
    train(resumed, DATA, steps=done + 5, batch_size=4, rng=np.random.default_rng(5), checkpoint=file, progress=False)
    assert same(resumed, straight)


def steps_saved(file):
    """Reads the whole file: a torn one would raise."""
    if not file.exists():
        return -1
    with np.load(file) as arrays:
        return json.loads(str(dict(arrays)["state"]))["steps"]


def test_a_half_written_file_never_replaces_a_whole_one(tmp_path, monkeypatch):
    file = tmp_path / "run.npz"
    run(steps=3, checkpoint=file)
    before = file.read_bytes()

    def die(handle, **arrays):
        handle.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez", die)
    with pytest.raises(KeyboardInterrupt):
        run(steps=6, checkpoint=file)
    assert file.read_bytes() == before


def test_a_checkpoint_of_other_settings_is_refused(tmp_path):
    file = tmp_path / "run.npz"
    run(steps=3, checkpoint=file)
    with pytest.raises(ValueError, match="batch_size 不同"):
        run(batch_size=5, checkpoint=file)
    with pytest.raises(ValueError, match="config 不同"):
        run(model=GPT(Config(11, 8, 8, 2, 2, d_ff=16)), checkpoint=file)
    with pytest.raises(ValueError, match="data 不同"):
        train(GPT(CONFIG), DATA[::-1], steps=5, batch_size=4, rng=np.random.default_rng(5), checkpoint=file, progress=False)


def test_a_broken_checkpoint_is_named(tmp_path):
    file = tmp_path / "run.npz"
    run(steps=3, checkpoint=file)
    file.write_bytes(file.read_bytes()[:2000])
    with pytest.raises(ValueError, match="不是完整的检查点"):
        run(checkpoint=file)


def test_saving_and_loading_by_hand(tmp_path):
    model, optimizer, rng = GPT(CONFIG), AdamW(), np.random.default_rng(1)
    optimizer.step(model.params, model.params)
    save_checkpoint(tmp_path / "a.npz", model, optimizer, rng, {"loss": [1.5], "validation": [(1, 2.5)]}, {})
    other, other_optimizer, other_rng = GPT(CONFIG, rng=np.random.default_rng(9)), AdamW(), np.random.default_rng(2)
    history = load_checkpoint(tmp_path / "a.npz", other, other_optimizer, other_rng)
    assert history == {"loss": [1.5], "validation": [(1, 2.5)]} and same(model, other)
    assert other_optimizer.steps == 1 and other_rng.random() == rng.random()


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_loss_that_is_not_finite_stops_before_any_harm(value):
    model = GPT(CONFIG)
    model.params["wte"][3] = value
    before = [array.copy() for _, array in leaves(model.params)]
    with np.errstate(all="ignore"), pytest.raises(FloatingPointError, match="第 1 步.*参数停在第 0 步"):
        run(model)
    assert all(np.array_equal(a, b, equal_nan=True) for a, (_, b) in zip(before, leaves(model.params)))


def test_clipping_shortens_to_the_limit():
    from lib.training import _clip
    grads = {"a": np.array([3.0, 0.0]), "b": [np.array([4.0])]}
    assert gradient_norm(grads) == 5
    _clip(grads, 1.0, 0, 0.0)
    assert gradient_norm(grads) == pytest.approx(1) and grads["a"][0] == pytest.approx(0.6)
    _clip(grads, 1.5, 0, 0.0)
    assert gradient_norm(grads) == pytest.approx(1), "what is short enough stays"


@pytest.mark.peers
@pytest.mark.parametrize("arguments", [{}, dict(lr=0.01, betas=(0.8, 0.95), eps=1e-6, weight_decay=0.3), dict(weight_decay=0)])
def test_steps_equal_pytorch(arguments):
    import torch

    from tests.lib import torch_gpt
    rng = np.random.default_rng(0)
    model = GPT(CONFIG, dtype=np.float64)
    params = torch_gpt.tensors(model.params)
    theirs, ours = torch.optim.AdamW(list(torch_gpt.flat(params)), **{"lr": 1e-3} | arguments), AdamW(**arguments)
    for _ in range(5):
        for p in torch_gpt.flat(params):
            p.grad = torch.tensor(rng.standard_normal(p.shape))
        ours.step(model.params, torch_gpt.gradients(params))
        theirs.step()
        for a, b in zip(torch_gpt.flat(model.params), torch_gpt.flat(params), strict=True):
            np.testing.assert_allclose(a, b.detach().numpy(), rtol=1e-12, atol=1e-15)


@pytest.mark.peers
def test_twenty_steps_of_training_equal_pytorch():
    import torch

    from tests.lib import torch_gpt
    model, rng = GPT(CONFIG, dtype=np.float64), np.random.default_rng(5)
    params = torch_gpt.tensors(model.params)
    history = train(model, DATA, steps=20, batch_size=4, rng=np.random.default_rng(5), optimizer=AdamW(1e-2), clip=None, progress=False)
    optimizer = torch.optim.AdamW(list(torch_gpt.flat(params)), lr=1e-2)
    for step in range(20):
        ids, targets = random_batch(DATA, 4, 8, rng)
        loss = torch_gpt.loss(ids, targets, params, CONFIG)
        assert history["loss"][step] == pytest.approx(loss.item(), rel=1e-10)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
