"""权重文件：把别人发布的张量放进本书的参数布局（见 lib.model），以及反过来写回去。

一个文件夹有 config.json 和 model.safetensors；大模型把后者切成几片，由 model.safetensors.index.json 指路。
各家的差别只在名字和方向：GPT-2 的矩阵已是行向量写法 [进, 出]，并把 W_Q、W_K、W_V 并排存成一个 c_attn；
Llama（PyTorch 的 nn.Linear）存的是 [出, 进]，用时转置。GGUF 又把 q、k 的行重排过，读进来时要还原。
不认识的设置、缺少或多出的张量、不对的形状都当场报错：装错的模型照样能跑，只是胡说。
"""
import json
import os
from dataclasses import asdict
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, deserialize
from safetensors.numpy import save_file

from lib._tree import leaves  # 嵌套参数里的每个（路径, 数组）

__all__ = ["read_folder", "read_gguf", "assemble", "write_folder"]

OWN = "token-journey"  # 与 GPT-2、Llama 都不同的设置（例如 2017 年的配方）用本书自己的布局保存
ACTIVATION_NAMES = {"gelu_new": "gelu", "gelu_pytorch_tanh": "gelu", "gelu": "gelu_exact", "relu": "relu",
                    "silu": "silu", "swish": "silu"}
IGNORED = (".attn.bias", ".attn.masked_bias", ".rotary_emb.inv_freq")  # 旧版 transformers 存下的常数，不是参数


def read_folder(folder):
    """读一个文件夹，返回（布局名, Config 的字段, {张量名: 数组}）。

    错误：没有文件时 FileNotFoundError；不认识的结构、设置不支持、文件不完整时 ValueError。
    来源：transformers 库的 config.json 字段；safetensors 的文件格式。
    """
    folder = Path(folder)
    settings = _read_json(folder / "config.json")
    kind = settings.get("model_type")
    readers = {"gpt2": _gpt2_fields, "llama": _llama_fields, "mistral": _llama_fields, OWN: lambda s: s["config"]}
    if kind not in readers:
        raise ValueError(f"config.json 的 model_type 是 {kind!r}；能读的是 {'、'.join(readers)}")
    try:
        fields = readers[kind](settings)
    except KeyError as error:
        raise ValueError(f"config.json 缺少 {error.args[0]}，无法确定模型的设置") from error
    return kind, fields, _read_tensors(folder)


def _gpt2_fields(s):
    """GPT-2 的 config.json（s）→ Config 的字段。"""
    _expect(s, scale_attn_weights=True, scale_attn_by_inverse_layer_idx=False, add_cross_attention=False)
    return dict(vocab_size=s["vocab_size"], context_length=s["n_positions"], d_model=s["n_embd"], n_layers=s["n_layer"],
                n_heads=s["n_head"], d_ff=s.get("n_inner"), activation=_activation(s.get("activation_function", "gelu_new")),
                norm_eps=s.get("layer_norm_epsilon", 1e-5), tie_embeddings=s.get("tie_word_embeddings", True))


def _llama_fields(s):
    """Llama、Mistral 的 config.json（s）→ Config 的字段。"""
    _expect(s, hidden_act="silu", attention_bias=False, mlp_bias=False)
    rope = s.get("rope_parameters") or s.get("rope_scaling") or {}
    if rope.get("rope_type", rope.get("type", "default")) != "default":
        raise ValueError(f"config.json 的旋转位置编码带有缩放 {rope}，本书没有实现，照读会得到错的 logits")
    return dict(vocab_size=s["vocab_size"], context_length=s["max_position_embeddings"], d_model=s["hidden_size"],
                n_layers=s["num_hidden_layers"], n_heads=s["num_attention_heads"],
                n_kv_heads=s.get("num_key_value_heads"), d_ff=s["intermediate_size"], head_dim=s.get("head_dim"),
                norm="rms", norm_eps=s.get("rms_norm_eps", 1e-6), position="rotary", activation="swiglu", bias=False,
                rope_base=rope.get("rope_theta", s.get("rope_theta", 10000.0)), window=s.get("sliding_window"),
                tie_embeddings=s.get("tie_word_embeddings", False))


def _layout(kind, config):
    """布局表：每行是（文件里的名字, 本书的路径, 要不要转置）；几条路径表示它们在文件里左右并排。"""
    if kind == OWN:
        return
    gpt2 = kind == "gpt2"
    yield ("transformer.wte.weight" if gpt2 else "model.embed_tokens.weight"), ["wte"], False
    if gpt2:
        yield "transformer.wpe.weight", ["wpe"], False
    for i in range(config.n_layers):
        yield from _gpt2_block(i) if gpt2 else _llama_block(i)
    yield ("transformer.ln_f.weight" if gpt2 else "model.norm.weight"), ["norm_f.gain"], False
    if gpt2:
        yield "transformer.ln_f.bias", ["norm_f.bias"], False
    if not config.tie_embeddings:
        yield "lm_head.weight", ["lm_head"], True


def _gpt2_block(i):
    for theirs, ours in (("ln_1", "norm_1"), ("ln_2", "norm_2")):
        yield f"transformer.h.{i}.{theirs}.weight", [f"blocks.{i}.{ours}.gain"], False
        yield f"transformer.h.{i}.{theirs}.bias", [f"blocks.{i}.{ours}.bias"], False
    for theirs, part, names in (("attn.c_attn", "attention", "QKV"), ("attn.c_proj", "attention", "O"),
                                ("mlp.c_fc", "ffn", "1"), ("mlp.c_proj", "ffn", "2")):
        yield f"transformer.h.{i}.{theirs}.weight", [f"blocks.{i}.{part}.W_{name}" for name in names], False
        yield f"transformer.h.{i}.{theirs}.bias", [f"blocks.{i}.{part}.b_{name}" for name in names], False


def _llama_block(i):
    yield f"model.layers.{i}.input_layernorm.weight", [f"blocks.{i}.norm_1.gain"], False
    yield f"model.layers.{i}.post_attention_layernorm.weight", [f"blocks.{i}.norm_2.gain"], False
    for name in "QKVO":
        yield f"model.layers.{i}.self_attn.{name.lower()}_proj.weight", [f"blocks.{i}.attention.W_{name}"], True
    for name in ("gate", "up", "down"):
        yield f"model.layers.{i}.mlp.{name}_proj.weight", [f"blocks.{i}.ffn.W_{name}"], True


def assemble(kind, tensors, config, shapes, dtype):
    """按布局把张量放进与 shapes 同构的嵌套字典；有任何缺少、多出或形状不对，用一个 ValueError 一次说全。"""
    bare = {_strip(name): array for name, array in tensors.items() if not name.endswith(IGNORED)}
    # 本书自己的布局没有表：文件里的名字就是路径
    rows = list(_layout(kind, config)) or [(path, [path], False) for path, _ in leaves(shapes)]
    wanted, arrays, problems = dict(leaves(shapes)), {}, []
    for name, paths, transpose in rows:  # shape 是这个张量在文件里应有的形状：几条路径的宽度相加
        widths = [wanted[path][-1] for path in paths]
        shape = (*wanted[paths[0]][:-1], sum(widths))
        shape = shape[::-1] if transpose else shape
        array = bare.pop(_strip(name), None)
        if array is None or array.shape != shape:
            found = "文件里没有" if array is None else f"文件里是 {array.shape}"
            problems.append(f"{name} 应是 {shape}，{found}")
            continue
        array = array.T if transpose else array
        parts = np.split(array, np.cumsum(widths)[:-1], axis=-1)
        arrays |= {path: part.astype(dtype) for path, part in zip(paths, parts)}
    if config.tie_embeddings and "wte" in arrays and "lm_head.weight" in bare:  # 绑定的输出层有时也存一份
        if not np.array_equal(bare.pop("lm_head.weight").astype(dtype), arrays["wte"]):
            problems.append("设置说输出层与嵌入表共用，文件里的 lm_head.weight 却与嵌入表不同")
    problems += [f"{name} {array.shape} 不属于这个模型" for name, array in bare.items()]
    if problems:
        raise ValueError(f"权重与设置不符，共 {len(problems)} 处：" + "；".join(problems[:8]))
    return _rebuild(shapes, arrays)


def read_gguf(path):
    """读 Llama 结构的 GGUF，返回与 read_folder 相同的三项；量化的权重还原成 float32。

    错误：没有 gguf 包时 ImportError；不是 Llama 结构、旋转编码带缩放时 ValueError。
    来源：gguf 包；名字对照 Llama 的 safetensors。
    """
    try:
        import gguf
    except ImportError as error:
        raise ImportError("读 GGUF 需要 gguf 包：pip install gguf") from error
    reader = gguf.GGUFReader(path)
    get = lambda key, default=None: reader.fields[key].contents() if key in reader.fields else default
    if get("general.architecture") != "llama" or get("llama.rope.scaling.type", "none") != "none":
        raise ValueError(f"只能读没有缩放旋转编码的 llama 结构的 GGUF，收到 {get('general.architecture')!r}、"
                         f"rope.scaling.type={get('llama.rope.scaling.type', 'none')!r}")
    tensors = {_gguf_name(t.name): gguf.quants.dequantize(t.data, t.tensor_type) for t in reader.tensors}
    heads, d_model = get("llama.attention.head_count"), get("llama.embedding_length")
    fields = dict(vocab_size=len(tensors["model.embed_tokens.weight"]), context_length=get("llama.context_length"),
                  d_model=d_model, n_layers=get("llama.block_count"), n_heads=heads,
                  n_kv_heads=get("llama.attention.head_count_kv", heads), d_ff=get("llama.feed_forward_length"),
                  head_dim=get("llama.attention.key_length"), norm="rms", position="rotary", activation="swiglu",
                  norm_eps=get("llama.attention.layer_norm_rms_epsilon"), bias=False,
                  rope_base=get("llama.rope.freq_base", 10000.0), tie_embeddings="lm_head.weight" not in tensors)
    for name, array in tensors.items():
        if name.endswith(("q_proj.weight", "k_proj.weight")):
            tensors[name] = _unpermute(array, heads if "q_proj" in name else fields["n_kv_heads"])
    return "llama", fields, tensors


def _gguf_name(name):
    """GGUF 的张量名 → Llama 文件夹里的张量名；不认识的部分原样留下，由 assemble 报错。"""
    parts = {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm", "attn_q": "self_attn.q_proj",
             "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
             "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
    top = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
    stem = name.removesuffix(".weight")
    if stem.startswith("blk."):
        _, i, part = stem.split(".", 2)
        return f"model.layers.{i}.{parts.get(part, part)}.weight"
    return f"{top.get(stem, stem)}.weight"


def _unpermute(weight, n_heads):
    """GGUF 让旋转的一对落在相邻两行 (2i, 2i+1)；还原成 rotary(layout="half") 要的 (i, i + d_head/2)。"""
    out, into = weight.shape
    return weight.reshape(n_heads, out // n_heads // 2, 2, into).swapaxes(1, 2).reshape(out, into)


def write_folder(folder, config, params):
    """写 config.json 和 model.safetensors。先写到旁边的新文件再改名：中途断电也不会毁掉旧的。"""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    kind, settings = _settings(config)
    arrays = dict(leaves(params))
    tensors = {}
    for name, paths, transpose in _layout(kind, config) if kind != OWN else [(path, [path], False) for path in arrays]:
        array = np.concatenate([arrays[path] for path in paths], axis=-1)
        tensors[name] = np.ascontiguousarray(array.T if transpose else array)
    temporary = folder / "model.safetensors.new"
    save_file(tensors, temporary, metadata={"format": "pt"})  # transformers 要求写明这一项
    os.replace(temporary, folder / "model.safetensors")
    temporary = folder / "config.json.new"
    temporary.write_text(json.dumps(settings, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    os.replace(temporary, folder / "config.json")


def _settings(config):
    """config.json 的内容：先试 GPT-2，再试 Llama；读回来得到同样的 Config 才算数，否则用本书自己的布局。"""
    c = config
    # 倒着建反查表：一个名字对应几个写法时，ACTIVATION_NAMES 里靠前的留下
    gpt2 = dict(model_type="gpt2", architectures=["GPT2LMHeadModel"], vocab_size=c.vocab_size,
                n_positions=c.context_length, n_embd=c.d_model, n_layer=c.n_layers, n_head=c.n_heads, n_inner=c.d_ff,
                activation_function={ours: theirs for theirs, ours in reversed(ACTIVATION_NAMES.items())}.get(c.activation),
                layer_norm_epsilon=c.norm_eps, tie_word_embeddings=c.tie_embeddings)
    llama = dict(model_type="mistral" if c.window else "llama", vocab_size=c.vocab_size, hidden_size=c.d_model,
                 architectures=["MistralForCausalLM" if c.window else "LlamaForCausalLM"], hidden_act="silu",
                 max_position_embeddings=c.context_length, num_hidden_layers=c.n_layers, num_attention_heads=c.n_heads,
                 num_key_value_heads=c.kv_heads, intermediate_size=c.ffn_width, head_dim=c.d_head,
                 rms_norm_eps=c.norm_eps, rope_theta=c.rope_base, sliding_window=c.window,
                 tie_word_embeddings=c.tie_embeddings)
    for settings, reader in ((gpt2, _gpt2_fields), (llama, _llama_fields)):
        try:
            same = _resolved(type(c)(**reader(settings))) == _resolved(c)
        except ValueError:
            same = False
        if same:
            return settings["model_type"], settings
    return OWN, {"model_type": OWN, "config": asdict(c)}


def _resolved(config):
    """全部设置，其中留空的宽度换成推出的值：这样才能比较两个 Config 是不是同一个模型。"""
    return asdict(config) | dict(n_kv_heads=config.kv_heads, d_ff=config.ffn_width, head_dim=config.d_head)


def _read_tensors(folder):
    """全部（分片的）safetensors 文件里的张量：{张量名: 数组}。"""
    index = folder / "model.safetensors.index.json"
    if index.exists():
        files = sorted(set(_read_json(index)["weight_map"].values()))
    else:
        files = ["model.safetensors"]
    tensors = {}
    for name in files:
        try:
            raw = deserialize((folder / name).read_bytes())
        except FileNotFoundError:
            raise FileNotFoundError(f"文件夹 {folder} 里没有 {name}；本书只读 safetensors（.bin 里的 pickle 会执行任意代码）") from None
        except SafetensorError as error:
            raise ValueError(f"{folder / name} 不是完整的 safetensors 文件（{error}）；可能没有下载完") from error
        tensors |= {key: _to_array(key, value) for key, value in raw}
    return tensors


def _to_array(name, value):
    """deserialize 给出的一项（字节、形状、类型）→ 数组。"""
    kinds = {"F64": np.float64, "F32": np.float32, "F16": np.float16}
    if value["dtype"] == "BF16":  # NumPy 没有 bfloat16：它就是 float32 的前 16 位，后面补 0
        array = (np.frombuffer(value["data"], np.uint16).astype(np.uint32) << 16).view(np.float32)
    elif value["dtype"] in kinds:
        array = np.frombuffer(value["data"], kinds[value["dtype"]])
    elif name.endswith(IGNORED):
        array = np.empty(0)  # 反正不是参数，不必读得懂
    else:
        raise ValueError(f"张量 {name} 的类型是 {value['dtype']}，能读的是 BF16、{'、'.join(kinds)}")
    return array.reshape(value["shape"] if array.size else 0)


def _read_json(path):
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileNotFoundError(f"没有 {path}；应是一个含 config.json 和 model.safetensors 的文件夹") from None
    except ValueError as error:
        raise ValueError(f"{path} 不是合法的 JSON：{error}") from error


def _expect(settings, **required):
    """这些设置没写明可以，写明了就必须是本书实现的那个值。"""
    for name, value in required.items():
        if settings.get(name, value) != value:
            raise ValueError(f"config.json 的 {name}={settings[name]!r}，本书的实现只有 {value!r}，照读会得到错的 logits")


def _activation(name):
    if name not in ACTIVATION_NAMES:
        raise ValueError(f"config.json 的激活函数是 {name!r}；能读的是 {'、'.join(ACTIVATION_NAMES)}")
    return ACTIVATION_NAMES[name]


def _strip(name):
    """去掉开头的 transformer. 或 model.：同一个张量，有的文件带、有的不带。"""
    return name.removeprefix("transformer.").removeprefix("model.")


def _rebuild(tree, arrays, path=""):
    """leaves 的逆：按 tree 的布局，把「路径 → 数组」放回嵌套字典。"""
    if isinstance(tree, dict):
        return {key: _rebuild(value, arrays, f"{path}.{key}" if path else key) for key, value in tree.items()}
    if isinstance(tree, list):
        return [_rebuild(value, arrays, f"{path}.{i}") for i, value in enumerate(tree)]
    return arrays[path]
