"""`lib` against stored values of PyTorch and transformers (golden/make_golden.py), and live against them (`peers`)."""
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from lib import attention, functional, normalization
from lib.generation import KVCache, generate
from lib.model import GPT

GOLDEN = Path(__file__).parent / "golden"
CLOSE = dict(rtol=1e-12, atol=1e-13)  # float64 on both sides
LOGITS = dict(rtol=0, atol=2e-4)  # float32 on both sides
MODELS = ["gpt2", "llama", "llama_tied_bf16", "mistral"]


@pytest.fixture(scope="module")
def torch_values():
    return dict(np.load(GOLDEN / "torch.npz"))


@pytest.fixture(scope="module")
def model_values():
    return dict(np.load(GOLDEN / "models.npz"))


def check_functions(t):
    x, gain, bias = t["x"], t["gain"], t["bias"]
    ours = {
        "softmax": functional.softmax(x), "softmax_0": functional.softmax(x, 0), "log_softmax": functional.log_softmax(x),
        "cross_entropy": functional.cross_entropy(x, t["targets"]), "relu": functional.relu(x), "sigmoid": functional.sigmoid(x),
        "silu": functional.silu(x), "gelu": functional.gelu(x), "gelu_tanh": functional.gelu(x, "tanh"),
        "layer_norm": normalization.layer_norm(x, gain, bias), "rms_norm": normalization.rms_norm(x, gain),
        "batch_norm": normalization.batch_norm(x, gain, bias),
        "batch_norm_running": normalization.batch_norm(x, gain, bias, running=(t["mean"], t["variance"])),
    }
    for name, value in ours.items():
        np.testing.assert_allclose(value, t[name], **CLOSE, err_msg=name)


def check_attention(t):
    q, k, v = t["q"], attention.repeat_kv(t["k"], 2), attention.repeat_kv(t["v"], 2)
    causal = attention.scaled_dot_product_attention(q, k, v, attention.causal_mask(7))[0]
    np.testing.assert_allclose(causal, t["sdpa_causal_gqa"], **CLOSE)
    np.testing.assert_allclose(attention.causal_attention(q, t["k"], t["v"], block=3), t["sdpa_causal_gqa"], **CLOSE)
    soft = attention.scaled_dot_product_attention(q, k, v, t["soft_mask"], scale=0.3)[0]
    np.testing.assert_allclose(soft, t["sdpa_soft"], **CLOSE)
    params = {f"W_{c}": W.T for c, W in zip("QKV", np.split(t["mha_in"], 3))} | {"W_O": t["mha_out"].T}
    params |= {f"b_{c}": b for c, b in zip("QKV", np.split(t["mha_in_bias"], 3))} | {"b_O": t["mha_out_bias"]}
    output, weights = attention.multi_head_attention(t["mha_x"], params, 3, mask=attention.causal_mask(5))
    np.testing.assert_allclose(output, t["mha_output"], **CLOSE)
    np.testing.assert_allclose(weights, t["mha_weights"], **CLOSE)


def check_model(model, ids, logits, greedy):
    np.testing.assert_allclose(model(ids), logits, **LOGITS)
    assert model(ids).dtype == np.float32
    cache = KVCache(model.config, batch=2)
    cached = np.concatenate([model(ids[:, a:b], cache=cache) for a, b in ((0, 7), (7, 8), (8, 20))], axis=1)
    np.testing.assert_allclose(cached, logits, **LOGITS)
    new = len(greedy) - ids.shape[1]
    for use_cache in (True, False):
        assert generate(model, ids[0], new, temperature=0, use_cache=use_cache) == greedy.tolist()


def test_functions_equal_pytorch(torch_values):
    check_functions(torch_values)


def test_attention_equals_pytorch(torch_values):
    check_attention(torch_values)


@pytest.mark.parametrize("name", MODELS)
def test_folders_written_by_transformers(name, model_values):
    values = [model_values[f"{name}.{part}"] for part in ("ids", "logits", "greedy")]
    assert len(set(values[2].tolist())) > 5, "the greedy text says something"
    check_model(GPT.from_pretrained(GOLDEN / name), *values)


@pytest.mark.parametrize("name", MODELS)
def test_saving_keeps_the_layout_of_hugging_face(name, model_values, tmp_path):
    GPT.from_pretrained(GOLDEN / name).save(tmp_path)
    theirs, ours = (json.loads((folder / "config.json").read_text(encoding="utf-8")) for folder in (GOLDEN / name, tmp_path))
    assert ours["model_type"] == theirs["model_type"]
    check_model(GPT.from_pretrained(tmp_path), *(model_values[f"{name}.{part}"] for part in ("ids", "logits", "greedy")))


def test_gguf_without_its_package_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(ImportError, match="pip install gguf"):
        GPT.from_gguf(GOLDEN / "llama.gguf")


def test_provenance_is_recorded():
    provenance = json.loads((GOLDEN / "PROVENANCE.json").read_text(encoding="utf-8"))
    assert {"made by", "numpy", "torch", "transformers"} <= set(provenance)


# Live

@pytest.mark.peers
def test_golden_values_are_what_pytorch_gives_now(torch_values):
    from tests.lib.golden.make_golden import torch_values as derive
    derived = derive()
    assert derived.keys() == torch_values.keys()
    for name, value in derived.items():
        np.testing.assert_allclose(value, torch_values[name], rtol=1e-12, atol=1e-13, err_msg=name)
    check_functions(derived)
    check_attention(derived)


@pytest.mark.peers
@pytest.mark.parametrize("name", MODELS)
def test_live_models(name, model_values, tmp_path):
    from tests.lib.golden import make_golden
    theirs = make_golden.build(name)
    derived = make_golden.model_values(theirs)
    np.testing.assert_allclose(derived["logits"], model_values[f"{name}.logits"], atol=1e-5)
    theirs.save_pretrained(tmp_path / "theirs", max_shard_size="15KB")
    ours = GPT.from_pretrained(tmp_path / "theirs")
    check_model(ours, **derived)
    ours.save(tmp_path / "ours")
    back = type(theirs).from_pretrained(tmp_path / "ours").eval()
    np.testing.assert_allclose(make_golden.model_values(back)["logits"], derived["logits"], atol=2e-5)


@pytest.mark.peers
@pytest.mark.parametrize("quantized", [False, True])
def test_gguf_undoes_the_permutation_and_the_quantization(quantized, model_values, tmp_path):
    import gguf
    import torch

    from tests.lib.golden import make_golden
    if not quantized:
        check_model(GPT.from_gguf(GOLDEN / "llama.gguf"), *(model_values[f"llama.{p}"] for p in ("ids", "logits", "greedy")))
        return
    theirs = make_golden.MODELS["llama"]
    config = theirs().config
    config.hidden_size, config.intermediate_size, config.head_dim = 64, 96, 16  # Q8_0 works in blocks of 32
    model = make_golden.LlamaForCausalLM(config).eval()
    kind = gguf.GGMLQuantizationType.Q8_0
    make_golden.write_gguf(model, tmp_path / "model.gguf", kind)
    with torch.no_grad():  # give transformers the rounded weights too
        for parameter in model.parameters():
            if parameter.ndim == 2:
                rounded = gguf.quants.dequantize(gguf.quants.quantize(parameter.numpy(), kind), kind)
                parameter.copy_(torch.tensor(rounded))
    check_model(GPT.from_gguf(tmp_path / "model.gguf"), **make_golden.model_values(model))


@pytest.mark.peers
def test_gpt2_small_has_the_size_of_transformers():
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    from lib.accounting import count_parameters
    from lib.model import PRESETS
    with torch.device("meta"):
        assert GPT2LMHeadModel(GPT2Config()).num_parameters() == count_parameters(PRESETS["gpt2"]) == 124_439_808


@pytest.mark.peers
def test_a_real_pretrained_model_equals_transformers(root):
    """SmolLM2-135M-Instruct, quantised to 4 bits in its GGUF file: dequantised here and there, the same logits."""
    weights = root / "data" / "smollm2" / "SmolLM2-135M-Instruct.Q4_1.gguf"
    if not weights.exists():
        pytest.skip("需要真实的预训练模型：make real-model")
    import torch
    from transformers import AutoModelForCausalLM

    from lib.tokenizer import ByteBPE
    model, tokenizer = GPT.from_gguf(weights), ByteBPE.from_gguf(weights)
    ids = tokenizer.encode("The capital of France is")
    assert tokenizer.decode(generate(model, ids, 1, temperature=0)[len(ids):]) == " Paris"
    theirs = AutoModelForCausalLM.from_pretrained(weights.parent, gguf_file=weights.name, dtype=torch.float32).eval()
    long = tokenizer.encode("The old clock in the hall struck nine. Anna closed the book and walked to the window. " * 3)
    with torch.no_grad():
        for prompt in (ids, long):
            expected = theirs(torch.tensor([prompt])).logits[0].numpy()
            assert np.abs(expected).max() > 20
            np.testing.assert_allclose(model(prompt), expected, **LOGITS)
