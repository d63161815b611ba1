"""Make the golden values: what PyTorch and transformers give for fixed inputs.

    python -m tests.lib.golden.make_golden        (in an environment with the `peers` extra)

writes beside this file torch.npz (functions, float64), four folders of tiny models exactly as transformers saves them,
a GGUF file as llama.cpp lays it out, and PROVENANCE.json. The tests marked `peers` derive everything again.
"""
import json
import platform
from pathlib import Path

import gguf
import numpy as np
import torch
import torch.nn.functional as F
import transformers
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
)

HERE = Path(__file__).parent
VOCABULARY, CONTEXT, LENGTH, NEW = 61, 48, 20, 12
_COMMON = dict(vocab_size=VOCABULARY, bos_token_id=None, eos_token_id=None, pad_token_id=None)
_LLAMA = _COMMON | dict(hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4,
                        num_key_value_heads=2, max_position_embeddings=CONTEXT, attn_implementation="eager")
MODELS = {
    "gpt2": lambda: GPT2LMHeadModel(GPT2Config(n_positions=CONTEXT, n_embd=16, n_layer=2, n_head=4, **_COMMON)),
    "llama": lambda: LlamaForCausalLM(LlamaConfig(**_LLAMA)),
    "llama_tied_bf16": lambda: LlamaForCausalLM(LlamaConfig(tie_word_embeddings=True, rope_theta=500000.0, head_dim=6, **_LLAMA)),
    "mistral": lambda: MistralForCausalLM(MistralConfig(sliding_window=5, **_LLAMA)),
}


def torch_values():
    """Inputs and outputs of the functions that lib names after PyTorch's, in float64."""
    rng = np.random.default_rng(2024)
    x = torch.tensor(np.concatenate([rng.normal(size=(4, 9)) * 4, [[-1000, -90, -1e-3, 0, 1e-3, 1, 20, 90, 1000]]]))
    gain, bias, mean, variance = (torch.tensor(rng.normal(size=9)) for _ in range(4))
    variance = variance.abs() + 0.1
    targets = torch.tensor([0, 8, 3, -100, 6])
    y = {"x": x, "gain": gain, "bias": bias, "mean": mean, "variance": variance, "targets": targets,
         "softmax": F.softmax(x, -1), "softmax_0": F.softmax(x, 0), "log_softmax": F.log_softmax(x, -1),
         "cross_entropy": F.cross_entropy(x, targets), "relu": F.relu(x), "sigmoid": torch.sigmoid(x), "silu": F.silu(x),
         "gelu": F.gelu(x), "gelu_tanh": F.gelu(x, approximate="tanh"),
         "layer_norm": F.layer_norm(x, (9,), gain, bias, 1e-5), "rms_norm": F.rms_norm(x, (9,), gain, 1e-6),
         "batch_norm": F.batch_norm(x, None, None, gain, bias, training=True),
         "batch_norm_running": F.batch_norm(x, mean, variance, gain, bias, training=False)}
    return {name: tensor.numpy() for name, tensor in (y | attention_values(rng)).items()}


def attention_values(rng):
    q, k, v = (torch.tensor(rng.normal(size=(2, h, 7, 8))) for h in (6, 3, 3))
    soft = torch.tensor(rng.normal(size=(7, 7)))
    mha = torch.nn.MultiheadAttention(12, 3, bias=True, batch_first=True, dtype=torch.float64)
    with torch.no_grad():
        for p in mha.parameters():
            p.copy_(torch.tensor(rng.normal(size=tuple(p.shape))))
        x = torch.tensor(rng.normal(size=(2, 5, 12)))
        ahead = torch.ones(5, 5, dtype=torch.bool).triu(1)
        output, weights = mha(x, x, x, attn_mask=ahead, average_attn_weights=False)
    return {"q": q, "k": k, "v": v, "soft_mask": soft,
            "sdpa_causal_gqa": F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True),
            "sdpa_soft": F.scaled_dot_product_attention(q, k, v, attn_mask=soft, scale=0.3, enable_gqa=True),
            "mha_x": x, "mha_in": mha.in_proj_weight.detach(), "mha_in_bias": mha.in_proj_bias.detach(),
            "mha_out": mha.out_proj.weight.detach(), "mha_out_bias": mha.out_proj.bias.detach(),
            "mha_output": output, "mha_weights": weights}


def build(name):
    """A model with weights large enough that every part matters."""
    generator = torch.Generator().manual_seed(11)
    model = MODELS[name]().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.3)
        for parameter_name, parameter in model.named_parameters():
            if "norm" in parameter_name or "ln_" in parameter_name:
                parameter += 1
            if name.endswith("bf16"):  # the parameters alone: the rotary frequencies stay float32
                parameter.copy_(parameter.to(torch.bfloat16))
    return model


def model_values(model):
    """ids of two sequences, their logits, and the greedy continuation of the first one."""
    ids = np.random.default_rng(5).integers(0, VOCABULARY, (2, LENGTH))
    with torch.no_grad():
        logits = model(torch.tensor(ids)).logits.numpy()
        first = torch.tensor(ids[:1])  # with its mask: otherwise token 0 would count as padding
        greedy = model.generate(first, attention_mask=torch.ones_like(first), max_new_tokens=NEW, do_sample=False)[0].numpy()
    return {"ids": ids, "logits": logits, "greedy": greedy}


def write_gguf(model, path, kind=gguf.GGMLQuantizationType.F32):
    """The model as llama.cpp's converter lays it out: rows of q and k permuted so that rotary pairs are neighbours."""
    c, writer = model.config, gguf.GGUFWriter(path, "llama")
    writer.add_context_length(c.max_position_embeddings)
    writer.add_embedding_length(c.hidden_size)
    writer.add_block_count(c.num_hidden_layers)
    writer.add_feed_forward_length(c.intermediate_size)
    writer.add_head_count(c.num_attention_heads)
    writer.add_head_count_kv(c.num_key_value_heads)
    writer.add_rope_freq_base(c.rope_parameters["rope_theta"])
    writer.add_layer_norm_rms_eps(c.rms_norm_eps)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, c.num_hidden_layers)
    for name, tensor in model.state_dict().items():
        array = tensor.float().numpy()
        for part, heads in (("q_proj", c.num_attention_heads), ("k_proj", c.num_key_value_heads)):
            if part in name:
                out, into = array.shape
                array = array.reshape(heads, 2, out // heads // 2, into).swapaxes(1, 2).reshape(out, into)
        stem, suffix = name.rsplit(".", 1)
        target = f"{names.get_name(stem)}.{suffix}"
        if kind != gguf.GGMLQuantizationType.F32 and array.ndim == 2:
            writer.add_tensor(target, gguf.quants.quantize(array, kind), raw_dtype=kind)
        else:
            writer.add_tensor(target, np.ascontiguousarray(array))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    np.savez_compressed(HERE / "torch.npz", **torch_values())
    expected = {}
    for name in MODELS:
        model = build(name)
        shard = {"max_shard_size": "12KB"} if name == "llama" else {}
        expected |= {f"{name}.{key}": value for key, value in model_values(model).items()}
        (model.to(torch.bfloat16) if name.endswith("bf16") else model).save_pretrained(HERE / name, **shard)
        (HERE / name / "generation_config.json").unlink(missing_ok=True)
    write_gguf(build("llama"), HERE / "llama.gguf")
    np.savez_compressed(HERE / "models.npz", **expected)
    for path in HERE.rglob("*.safetensors"):
        path.chmod(0o644)  # safetensors writes files that only their owner may read
    provenance = {"made by": "python -m tests.lib.golden.make_golden", "python": platform.python_version(),
                  "numpy": np.__version__, "torch": torch.__version__, "transformers": transformers.__version__,
                  "what": "weights and inputs are random with fixed seeds; nothing is downloaded"}
    (HERE / "PROVENANCE.json").write_text(json.dumps(provenance, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
