"""One table of wrong calls: which error each gets, and what its message must say.

Every message is Chinese and says what arrived and what was expected; where the fix isn't plain, what to do.
"""
import json
import re

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from lib import accounting, attention, block, embedding, feedforward, functional, normalization, position, sampling
from lib.generation import KVCache, generate, stream
from lib.model import GPT, Config

x = np.ones((3, 4))
nan, inf = np.nan, np.inf
config = Config(11, 6, 8, 2, 4)
MHA = {f"W_{c}": np.ones((4, 4)) for c in "QKVO"}
FFN = {"W_1": np.ones((4, 6)), "W_2": np.ones((6, 4))}


def model():
    return GPT(config)


def full_cache():
    cache = KVCache(config)
    model()([1, 2, 3, 4], cache=cache)
    return cache


def interrupted_cache():
    cache = full_cache()
    cache.layers[0].append(*np.ones((2, 4, 1, 2), np.float32))
    return cache


CALLS = [
    # lib.functional
    ("softmax of text", lambda: functional.softmax(["a"]), TypeError, "x", "实数", "<U1"),
    ("softmax of complex", lambda: functional.softmax([1j]), TypeError, "complex128"),
    ("softmax of a ragged list", lambda: functional.softmax([[1, 2], [3]]), ValueError, "长短不一", "补齐"),
    ("softmax of nothing", lambda: functional.softmax(np.ones((3, 0))), ValueError, "长度为 0", "(3, 0)"),
    ("softmax along a missing axis", lambda: functional.softmax(x, 2), ValueError, "第 2 轴", "(3, 4)"),
    ("softmax of a number", lambda: functional.softmax(3.0), ValueError, "没有第 -1 轴"),
    ("log_softmax of nothing", lambda: functional.log_softmax([]), ValueError, "长度为 0"),
    ("cross entropy, shapes", lambda: functional.cross_entropy(x, [0, 1]), ValueError, "(3, 4)", "(3,)", "(2,)"),
    ("cross entropy, one-hot targets", lambda: functional.cross_entropy(x, np.eye(3, 4)), ValueError, "少最后一轴"),
    ("cross entropy, class too large", lambda: functional.cross_entropy(x, [0, 1, 4]), IndexError, "4", "0…3"),
    ("cross entropy, negative class", lambda: functional.cross_entropy(x, [0, 1, -1]), IndexError, "-1", "0…3"),
    ("cross entropy, float classes", lambda: functional.cross_entropy(x, [0.0, 1, 2]), TypeError, "整数", "float64"),
    ("cross entropy, all ignored", lambda: functional.cross_entropy(x, [-100] * 3), ValueError, "ignore_index=-100"),
    ("cross entropy, reduction", lambda: functional.cross_entropy(x, [0] * 3, reduction="avg"), ValueError, "avg", "mean"),
    ("linear, widths", lambda: functional.linear(x, np.ones((3, 4))), ValueError, "(3, 4)", "行数"),
    ("linear, bias", lambda: functional.linear(x, np.ones((4, 2)), np.ones(3)), ValueError, "(2,)", "(3,)"),
    ("linear, bias that would broadcast", lambda: functional.linear(x, np.ones((4, 2)), np.ones(1)), ValueError, "(1,)"),
    ("gelu, unknown form", lambda: functional.gelu(x, "sigmoid"), ValueError, "sigmoid", "tanh"),
    # lib.attention
    ("causal mask, n_k < n_q", lambda: attention.causal_mask(4, 3), ValueError, "n_k=3", "n_q=4"),
    ("causal mask of nothing", lambda: attention.causal_mask(0), ValueError, "n_q", "0"),
    ("causal mask, float size", lambda: attention.causal_mask(3.0), TypeError, "整数", "3.0"),
    ("causal mask, boolean size", lambda: attention.causal_mask(True), TypeError, "bool"),
    ("window of nothing", lambda: attention.sliding_window_mask(3, 0), ValueError, "window", "0"),
    ("attention, q and k widths", lambda: attention.scaled_dot_product_attention(x, np.ones((3, 5)), x), ValueError,
     "d_head", "(3, 4)", "(3, 5)"),
    ("attention, k and v lengths", lambda: attention.scaled_dot_product_attention(x, x, np.ones((2, 4))), ValueError,
     "n_k", "(2, 4)"),
    ("attention, no keys", lambda: attention.scaled_dot_product_attention(x, x[:0], x[:0]), ValueError, "不为 0", "(0, 4)"),
    ("attention, vectors", lambda: attention.scaled_dot_product_attention(x[0], x, x), ValueError, "两个轴", "(4,)"),
    ("attention, batches", lambda: attention.scaled_dot_product_attention(
        np.ones((2, 3, 4)), np.ones((5, 3, 4)), np.ones((5, 3, 4))), ValueError, "广播", "(5, 3, 4)"),
    ("attention, mask shape", lambda: attention.scaled_dot_product_attention(x, x, x, np.ones((2, 3), bool)), ValueError,
     "mask", "(3, 3)", "(2, 3)"),
    ("attention, 0/1 mask", lambda: attention.scaled_dot_product_attention(x, x, x, np.tri(3, dtype=int)), TypeError,
     "int64", "astype(bool)"),
    ("attention, 0.0/1.0 mask", lambda: attention.scaled_dot_product_attention(x, x, x, np.tri(3)), ValueError,
     "加到得分上", "astype(bool)"),
    ("attention, nan mask", lambda: attention.scaled_dot_product_attention(x, x, x, np.full((3, 3), nan)), ValueError,
     "nan", "0 * -inf"),
    ("causal attention, n_k < n_q", lambda: attention.causal_attention(x, x[:2], x[:2]), ValueError, "n_k=2", "n_q=3"),
    ("causal attention, window", lambda: attention.causal_attention(x, x, x, window=0), ValueError, "window"),
    ("causal attention, block", lambda: attention.causal_attention(x, x, x, block=0), ValueError, "block"),
    ("causal attention, heads", lambda: attention.causal_attention(np.ones((3, 2, 4)), np.ones((2, 2, 4)),
                                                                   np.ones((2, 2, 4))), ValueError, "3 个头", "2 个头"),
    ("split heads, width", lambda: attention.split_heads(x, 3), ValueError, "n_heads=3", "(3, 4)"),
    ("split heads, vector", lambda: attention.split_heads(x[0], 2), ValueError, "(4,)"),
    ("merge heads, axes", lambda: attention.merge_heads(x), ValueError, "n_heads", "(3, 4)"),
    ("repeat kv, none", lambda: attention.repeat_kv(x[None], 0), ValueError, "groups", "0"),
    ("repeat kv, axes", lambda: attention.repeat_kv(x, 2), ValueError, "n_kv_heads", "(3, 4)"),
    ("multi-head, missing weight", lambda: attention.multi_head_attention(
        x, {k: v for k, v in MHA.items() if k != "W_K"}, 2), ValueError, "缺少 W_K", "W_Q"),
    ("multi-head, kv heads", lambda: attention.multi_head_attention(x, MHA, 4, 3), ValueError, "n_heads=4", "n_kv_heads=3"),
    ("multi-head, width", lambda: attention.multi_head_attention(np.ones((3, 5)), MHA, 2), ValueError, "(3, 5)", "(4, 4)"),
    # lib.normalization
    ("layer norm, gain", lambda: normalization.layer_norm(x, np.ones(3)), ValueError, "gain", "(4,)", "(3,)"),
    ("layer norm, bias", lambda: normalization.layer_norm(x, None, np.ones((3, 4))), ValueError, "bias", "(3, 4)"),
    ("layer norm, constant row without eps", lambda: normalization.layer_norm(x, eps=0), ValueError, "eps", "1e-5"),
    ("layer norm, negative eps", lambda: normalization.layer_norm(x, eps=-1), ValueError, "eps", "-1"),
    ("layer norm, empty", lambda: normalization.layer_norm(np.ones((2, 0))), ValueError, "(2, 0)"),
    ("layer norm of a number", lambda: normalization.layer_norm(3.0), ValueError, "()"),
    ("rms norm, zero row without eps", lambda: normalization.rms_norm(x * 0, eps=0), ValueError, "eps"),
    ("batch norm, one row", lambda: normalization.batch_norm(x[:1]), ValueError, "只有一行", "running"),
    ("batch norm, running", lambda: normalization.batch_norm(x, running=(np.ones(4), -np.ones(4))), ValueError, "方差", "-1"),
    ("batch norm, running shape", lambda: normalization.batch_norm(x, running=(np.ones(3), np.ones(4))), ValueError, "均值"),
    ("norm by an unknown name", lambda: normalization.apply_norm(x, {}, "batch", 1e-5), ValueError, "batch"),
    # lib.feedforward
    ("ffn, missing weight", lambda: feedforward.feed_forward(x, {"W_1": x}, "relu"), ValueError, "W_2"),
    ("ffn, activation", lambda: feedforward.feed_forward(x, FFN, "tanh"), ValueError, "tanh", "relu"),
    ("ffn, width", lambda: feedforward.feed_forward(np.ones((3, 5)), FFN, "relu"), ValueError, "(3, 5)", "(4, 6)"),
    ("swiglu, missing weights", lambda: feedforward.swiglu_feed_forward(x, FFN), ValueError, "W_gate", "W_up", "W_down"),
    ("swiglu, widths", lambda: feedforward.swiglu_feed_forward(
        x, {"W_gate": np.ones((4, 6)), "W_up": np.ones((4, 1)), "W_down": np.ones((6, 4))}), ValueError, "(4, 6)", "(4, 1)"),
    # lib.embedding
    ("embed, id too large", lambda: embedding.embed(x, [0, 3]), IndexError, "3", "0…2"),
    ("embed, negative id", lambda: embedding.embed(x, [-1]), IndexError, "-1", "0…2"),
    ("embed, float ids", lambda: embedding.embed(x, [1.0]), TypeError, "float64"),
    ("embed, boolean ids", lambda: embedding.embed(x, [True]), TypeError, "bool"),
    ("embed, table", lambda: embedding.embed(x[0], [0]), ValueError, "[V, d]", "(4,)"),
    ("one hot, id too large", lambda: embedding.one_hot([5], 5), IndexError, "5", "0…4"),
    ("normalize zero", lambda: embedding.normalize([[1, 0], [0, 0]]), ValueError, "零向量"),
    ("cosine of zero", lambda: embedding.cosine_similarity([0, 0], [1, 2]), ValueError, "零向量"),
    ("cosine, lengths", lambda: embedding.cosine_similarity([1, 2], [1, 2, 3]), ValueError, "(2,)", "(3,)"),
    ("cosine, length that would broadcast", lambda: embedding.cosine_similarity([1, 2], [1]), ValueError, "(1,)"),
    ("distance, batches", lambda: embedding.euclidean_distance(np.ones((2, 4)), x), ValueError, "广播", "(2, 4)"),
    ("nearest, k", lambda: embedding.nearest(x, x[0], 4), ValueError, "k=4", "3 行"),
    ("nearest, k after exclusion", lambda: embedding.nearest(x, x[0], 3, exclude=[1]), ValueError, "只剩 2 行"),
    ("nearest, metric", lambda: embedding.nearest(x, x[0], 1, "dot"), ValueError, "dot", "euclidean"),
    ("nearest, query", lambda: embedding.nearest(x, [1, 2], 1), ValueError, "(4,)", "(2,)"),
    ("nearest, zero query", lambda: embedding.nearest(x, np.zeros(4), 1), ValueError, "零向量"),
    ("analogy, id", lambda: embedding.analogy(np.eye(5), 0, 1, 5), IndexError, "5", "0…4"),
    # lib.position
    ("sinusoid, odd d", lambda: position.sinusoidal_encoding(3, 5), ValueError, "偶数", "5"),
    ("sinusoid, no position", lambda: position.sinusoidal_encoding(0, 4), ValueError, "n", "0"),
    ("sinusoid, base", lambda: position.sinusoidal_encoding(3, 4, base=0), ValueError, "base", "0"),
    ("shift, odd d", lambda: position.shift_matrix(1, 3), ValueError, "偶数", "3"),
    ("rotary, odd d", lambda: position.rotary(np.ones((2, 3)), [0, 1]), ValueError, "偶数", "3"),
    ("rotary, positions", lambda: position.rotary(x, [0, 1]), ValueError, "(3, 4)", "(2,)"),
    ("rotary, layout", lambda: position.rotary(x, [0, 1, 2], layout="neox"), ValueError, "neox", "interleaved"),
    ("rotary, vector", lambda: position.rotary(x[0], [0]), ValueError, "(4,)"),
    # lib.block
    ("residual, shapes", lambda: block.residual(x, lambda x: x[:1]), ValueError, "(3, 4)", "(1, 4)"),
    ("pre-LN, shapes", lambda: block.pre_ln(x, lambda x: x.sum(-1, keepdims=True), np.tanh), ValueError, "(3, 1)"),
    # lib.sampling
    ("greedy, nan", lambda: sampling.greedy([1, nan]), ValueError, "nan"),
    ("greedy, nothing left", lambda: sampling.greedy([-inf, -inf]), ValueError, "-inf"),
    ("greedy, empty", lambda: sampling.greedy([]), ValueError, "(0,)"),
    ("temperature, negative", lambda: sampling.apply_temperature(x, -1), ValueError, "T", "-1"),
    ("temperature, nan", lambda: sampling.apply_temperature(x, nan), ValueError, "nan"),
    ("top-k, zero", lambda: sampling.top_k_filter(x, 0), ValueError, "k", "0"),
    ("top-k, float", lambda: sampling.top_k_filter(x, 2.0), TypeError, "2.0"),
    ("top-p, zero", lambda: sampling.top_p_filter(x, 0), ValueError, "(0, 1]", "0"),
    ("top-p, above one", lambda: sampling.top_p_filter(x, 1.1), ValueError, "(0, 1]", "1.1"),
    ("top-p, nan", lambda: sampling.top_p_filter(x, nan), ValueError, "nan"),
    ("sample without rng", lambda: sampling.sample(x, None), TypeError, "default_rng", "NoneType"),
    ("sample with a seed", lambda: sampling.sample(x, 0), TypeError, "default_rng", "int"),
    # lib.model
    ("config, heads", lambda: Config(11, 6, 8, 2, 3), ValueError, "d_model=8", "n_heads=3", "head_dim"),
    ("config, kv heads", lambda: Config(11, 6, 8, 2, 4, n_kv_heads=3), ValueError, "n_kv_heads=3"),
    ("config, zero layers", lambda: Config(11, 6, 8, 0, 4), ValueError, "n_layers", "0"),
    ("config, float width", lambda: Config(11, 6, 8.0, 2, 4), TypeError, "d_model", "8.0"),
    ("config, norm", lambda: Config(11, 6, 8, 2, 4, norm="batch"), ValueError, "batch", "layer"),
    ("config, position", lambda: Config(11, 6, 8, 2, 4, position="alibi"), ValueError, "alibi", "rotary"),
    ("config, odd head with rotary", lambda: Config(11, 6, 12, 2, 4, position="rotary"), ValueError, "偶数", "d_head=3"),
    ("config, odd width with sinusoid", lambda: Config(11, 6, 9, 2, 3, position="sinusoidal"), ValueError, "d_model=9"),
    ("config, window", lambda: Config(11, 6, 8, 2, 4, window=0), ValueError, "window"),
    ("model, id", lambda: model()([1, 11]), IndexError, "11", "0…10"),
    ("model, no ids", lambda: model()([]), ValueError, "至少有一个词元"),
    ("model, one number", lambda: model()(3), ValueError, "()"),
    ("model, context overflow", lambda: model()(range(7)), ValueError, "7 个词元", "context_length=6", "generate"),
    ("model, overflow through the cache", lambda: model()([1, 2, 3], cache=full_cache()), ValueError, "缓存里 4 个"),
    ("model, seed instead of rng", lambda: GPT(config, rng=0), TypeError, "default_rng", "int"),
    ("model, missing parameter", lambda: GPT(config, {"wte": np.ones((11, 8))}), ValueError, "缺少", "wpe"),
    ("model, parameters of another shape", lambda: GPT(Config(11, 6, 12, 2, 4), model().params), ValueError,
     "wte", "(11, 12)", "(11, 8)"),
    ("model, parameter too many", lambda: GPT(config, model().params | {"lm_head": x}), ValueError, "多出 lm_head"),
    ("model, mixed precision", lambda: GPT(config, model().params | {"wte": np.ones((11, 8))}), ValueError, "float32", "float64"),
    ("model, integer parameter", lambda: GPT(config, model().params | {"wte": np.ones((11, 8), int)}), ValueError, "int64"),
    # lib.generation
    ("generate, no prompt", lambda: generate(model(), [], 3), ValueError, "至少一个词元"),
    ("generate, a batch", lambda: generate(model(), [[1, 2]], 3), ValueError, "(1, 2)", "一维"),
    ("generate, negative count", lambda: generate(model(), [1], -1), ValueError, "max_new_tokens", "-1"),
    ("generate, id", lambda: generate(model(), [11], 1), IndexError, "11"),
    ("generate without rng", lambda: generate(model(), [1], 1), TypeError, "rng"),
    ("stream reports at once", lambda: stream(model(), [], 3), ValueError, "至少一个词元"),
    ("cache, batch", lambda: model()([[1], [2]], cache=KVCache(config)), ValueError, "batch=1", "batch=序列数"),
    ("cache, single into batch", lambda: model()([1], cache=KVCache(config, 2)), ValueError, "batch=2"),
    ("cache, precision", lambda: model()([1], cache=KVCache(config, dtype=np.float64)), TypeError, "float64", "float32"),
    ("cache, other model", lambda: model()([1], cache=KVCache(Config(11, 6, 8, 2, 2))), ValueError, "d_head=4"),
    ("cache, layers", lambda: model()([1], cache=KVCache(Config(11, 6, 8, 3, 4))), ValueError, "3 层", "2 层"),
    ("cache, interrupted halfway", lambda: model()([1], cache=interrupted_cache()), ValueError, "4…5", "中途停下", "reset"),
    ("cache, no batch", lambda: KVCache(config, 0), ValueError, "batch"),
    ("cache, truncate", lambda: full_cache().truncate(5), ValueError, "0…4", "5"),
    # lib.accounting
    ("cache bytes, two numbers", lambda: accounting.kv_cache_bytes((48, 8), 10), ValueError, "三个数"),
    ("cache bytes, negative", lambda: accounting.kv_cache_bytes(config, -1), ValueError, "n_tokens"),
    ("flops of nothing", lambda: accounting.forward_flops(config, 0), ValueError, "n"),
    ("moe, more active than there are", lambda: accounting.moe_parameters(8, 8, 4, 5), ValueError, "n_active=5", "n_experts=4"),
]


@pytest.mark.parametrize("call, error, fragments", [pytest.param(c, e, f, id=name) for name, c, e, *f in CALLS])
def test_wrong_calls_are_explained(call, error, fragments):
    with pytest.raises(error) as caught:
        call()
    message = str(caught.value)
    assert type(caught.value) is error
    assert re.search("[\u4e00-\u9fff]", message), f"not in Chinese: {message}"
    for fragment in fragments:
        assert fragment in message, f"{fragment!r} is not in: {message}"


# Folders of weights

@pytest.fixture
def folder(tmp_path):
    model().save(tmp_path)
    return tmp_path


def edit_config(folder, **changes):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | changes), encoding="utf-8")


def edit_tensors(folder, change):
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors")


FOLDERS = [
    ("no folder", lambda f: (f / "config.json").unlink(), FileNotFoundError, "config.json"),
    ("no weights", lambda f: (f / "model.safetensors").unlink(), FileNotFoundError, "model.safetensors", "pickle"),
    ("cut off", lambda f: (f / "model.safetensors").write_bytes((f / "model.safetensors").read_bytes()[:-9]), ValueError,
     "不是完整的 safetensors"),
    ("not safetensors", lambda f: (f / "model.safetensors").write_bytes(b"hello"), ValueError, "safetensors"),
    ("broken json", lambda f: (f / "config.json").write_text("{"), ValueError, "JSON"),
    ("missing shard", lambda f: (f / "model.safetensors.index.json").write_text(
        json.dumps({"weight_map": {"a": "model-00001-of-00002.safetensors"}})), FileNotFoundError, "model-00001-of-00002"),
    ("other architecture", lambda f: edit_config(f, model_type="bert"), ValueError, "bert", "gpt2"),
    ("missing setting", lambda f: edit_config(f, model_type="llama"), ValueError, "缺少", "max_position_embeddings"),
    ("other activation", lambda f: edit_config(f, activation_function="gelu_fast"), ValueError, "gelu_fast"),
    ("unsupported scaling", lambda f: edit_config(f, scale_attn_by_inverse_layer_idx=True), ValueError, "inverse_layer_idx"),
    ("missing tensor", lambda f: edit_tensors(f, lambda t: t.pop("transformer.h.1.mlp.c_fc.weight")), ValueError,
     "h.1.mlp.c_fc.weight", "没有", "(8, 32)"),
    ("transposed tensor", lambda f: edit_tensors(f, lambda t: t.update(
        {"transformer.h.0.mlp.c_fc.weight": np.ones((32, 8), np.float32)})), ValueError, "h.0.mlp.c_fc", "(8, 32)", "(32, 8)"),
    ("foreign tensor", lambda f: edit_tensors(f, lambda t: t.update(
        {"transformer.h.0.attn.q_norm": np.ones(8, np.float32)})), ValueError, "h.0.attn.q_norm", "不属于"),
    ("integer weights", lambda f: edit_tensors(f, lambda t: t.update(
        {"transformer.wpe.weight": np.ones((6, 8), np.int8)})), ValueError, "wpe", "I8"),
    ("output that isn't tied", lambda f: edit_tensors(f, lambda t: t.update(
        {"lm_head.weight": np.ones((11, 8), np.float32)})), ValueError, "lm_head", "共用"),
    ("several at once", lambda f: edit_tensors(f, lambda t: [t.pop(f"transformer.h.0.ln_1.{k}") for k in ("weight", "bias")]),
     ValueError, "共 2 处", "h.0.ln_1.weight", "h.0.ln_1.bias"),
]


@pytest.mark.parametrize("damage, error, fragments", [pytest.param(d, e, f, id=name) for name, d, e, *f in FOLDERS])
def test_broken_folders_are_explained(folder, damage, error, fragments):
    GPT.from_pretrained(folder)
    damage(folder)
    with pytest.raises(error) as caught:
        GPT.from_pretrained(folder)
    message = str(caught.value)
    assert re.search("[\u4e00-\u9fff]", message)
    for fragment in fragments:
        assert fragment in message, f"{fragment!r} is not in: {message}"


@pytest.mark.parametrize("settings, fragments", [
    (dict(rope_scaling={"rope_type": "llama3", "factor": 8}), ["llama3", "缩放"]), (dict(attention_bias=True), ["attention_bias"]),
    (dict(hidden_act="gelu"), ["hidden_act", "gelu"])])
def test_llama_settings_that_would_give_other_logits_are_refused(tmp_path, settings, fragments):
    GPT(Config(11, 6, 8, 2, 4, norm="rms", position="rotary", activation="swiglu", bias=False)).save(tmp_path)
    GPT.from_pretrained(tmp_path)
    edit_config(tmp_path, **settings)
    with pytest.raises(ValueError) as caught:
        GPT.from_pretrained(tmp_path)
    assert all(fragment in str(caught.value) for fragment in fragments)


def test_tied_output_may_be_stored_too_and_old_buffers_are_ignored(folder):
    def add(tensors):
        tensors["lm_head.weight"] = tensors["transformer.wte.weight"]
        tensors["transformer.h.0.attn.bias"] = np.tri(6, dtype=bool)[None, None]
    before = GPT.from_pretrained(folder)([1, 2])
    edit_tensors(folder, add)
    assert np.array_equal(GPT.from_pretrained(folder)([1, 2]), before)
    edit_tensors(folder, lambda t: [t.update({k.removeprefix("transformer."): t.pop(k)}) for k in list(t)])  # GPT2Model alone
    assert np.array_equal(GPT.from_pretrained(folder)([1, 2]), before)
