"""一个 GPT：同一个 Config 从 2017 年的配方走到 GPT-2，再走到 Llama，只是换几个设置。

参数放在嵌套字典里（行向量写法，W: [进, 出]），方括号里的项只在对应设置下存在。
V = vocab_size，d = d_model，h = n_heads，kv = 键值头数（n_kv_heads，缺省等于 h）：

    {"wte": [V, d],                                       词元嵌入表
     ["wpe": [context_length, d]],                        position="learned"
     "blocks": [{                                         共 n_layers 个
         "norm_1": {"gain": [d], ["bias": [d]]},          bias 只在 norm="layer" 且 bias=True
         "attention": {"W_Q": [d, h*d_head], "W_K": [d, kv*d_head], "W_V": [d, kv*d_head], "W_O": [h*d_head, d],
                       ["b_Q", "b_K", "b_V", "b_O"]},     bias=True
         "norm_2": {"gain": [d], ["bias": [d]]},
         "ffn": {"W_1": [d, d_ff], ["b_1"], "W_2": [d_ff, d], ["b_2"]}                 activation 不是 "swiglu"
            或  {"W_gate": [d, d_ff], "W_up": [d, d_ff], "W_down": [d_ff, d], ["b_gate", "b_up", "b_down"]},
     }, …],
     ["norm_f": {"gain": [d], ["bias": [d]]}],            norm_position="pre"：残差流没有归一过，出口补一次
     ["lm_head": [d, V]]}                                 tie_embeddings=False；否则输出层就是 wte 的转置
"""
import math
from dataclasses import dataclass

import numpy as np

from lib._checks import as_count, as_ids  # 入口检查：正整数、0…n-1 的编号；不合格就报错
from lib._tree import leaves  # 嵌套参数里的每个（路径, 数组）
from lib.block import transformer_block
from lib.embedding import embed
from lib.feedforward import ACTIVATIONS
from lib.functional import linear
from lib.normalization import apply_norm
from lib.position import sinusoidal_encoding

__all__ = ["Config", "PRESETS", "parameter_shapes", "pack", "GPT"]

CHOICES = {"norm": ("layer", "rms"), "norm_position": ("pre", "post"),
           "position": ("learned", "sinusoidal", "rotary", "none"), "activation": (*ACTIVATIONS, "swiglu")}


@dataclass(frozen=True)
class Config:
    """模型的全部设置；不合理的组合在建立时就报错。默认值是 GPT-2 的写法。

    留空（None）的宽度由别的设置推出，推出的值在 kv_heads、ffn_width、d_head 里；这样用 dataclasses.replace
    改动 d_model 或 n_heads 时，它们会跟着变。
    """

    vocab_size: int
    context_length: int
    d_model: int
    n_layers: int
    n_heads: int
    n_kv_heads: int | None = None  # None = n_heads；更小是 GQA（几个查询头共用一个键值头），1 是 MQA
    d_ff: int | None = None  # None = 4·d_model，swiglu 是 8/3·d_model（三个矩阵的参数恰好等于两个 4 倍的）
    norm: str = "layer"  # "layer" / "rms"
    norm_position: str = "pre"  # "pre" / "post"
    position: str = "learned"  # "learned" / "sinusoidal" / "rotary" / "none"
    activation: str = "gelu"  # "relu" / "gelu"（tanh 近似，GPT-2）/ "gelu_exact" / "silu" / "swiglu"
    bias: bool = True
    tie_embeddings: bool = True  # 输出层与嵌入表共用一份参数
    window: int | None = None  # 滑动窗口：每个词元只看最近 window 个（含自己）
    head_dim: int | None = None  # None = d_model / n_heads
    norm_eps: float = 1e-5
    rope_base: float = 10000.0
    scale_embeddings: bool = False  # 2017 年原版把词嵌入乘以 √d，再加正弦编码

    def __post_init__(self):
        for name in ("vocab_size", "context_length", "d_model", "n_layers", "n_heads"):
            as_count(getattr(self, name), name)
        for name in ("n_kv_heads", "d_ff", "window", "head_dim"):
            if getattr(self, name) is not None:
                as_count(getattr(self, name), name)
        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices:
                raise ValueError(f"{name} 应是 {'、'.join(choices)} 之一，收到 {getattr(self, name)!r}")
        if self.head_dim is None and self.d_model % self.n_heads:
            raise ValueError(f"d_model={self.d_model} 应能被 n_heads={self.n_heads} 整除；否则请另给 head_dim")
        if self.n_heads % self.kv_heads:
            raise ValueError(f"n_heads={self.n_heads} 应能被 n_kv_heads={self.kv_heads} 整除")
        if self.position == "rotary" and self.d_head % 2 or self.position == "sinusoidal" and self.d_model % 2:
            raise ValueError(f'position="{self.position}" 要求宽度是偶数：d_model={self.d_model}，d_head={self.d_head}')

    @property
    def kv_heads(self):
        return self.n_heads if self.n_kv_heads is None else self.n_kv_heads

    @property
    def d_head(self):
        return self.d_model // self.n_heads if self.head_dim is None else self.head_dim

    @property
    def ffn_width(self):
        default = 8 * self.d_model // 3 if self.activation == "swiglu" else 4 * self.d_model
        return default if self.d_ff is None else self.d_ff


_LLAMA = dict(norm="rms", position="rotary", activation="swiglu", bias=False, tie_embeddings=False)

# 位置参数依次是 vocab_size, context_length, d_model, n_layers, n_heads, n_kv_heads, d_ff。
# 只是设置，不含权重；建立大模型前先看 lib.accounting 数出的参数量
PRESETS = {
    # 2017 年的配方，只取解码器那一半（没有编码器和交叉注意力）
    "transformer-2017": Config(37000, 512, 512, 6, 8, norm_position="post", position="sinusoidal", activation="relu",
                               scale_embeddings=True),
    "gpt2": Config(50257, 1024, 768, 12, 12),
    "gpt2-medium": Config(50257, 1024, 1024, 24, 16),
    "gpt2-large": Config(50257, 1024, 1280, 36, 20),
    "gpt2-xl": Config(50257, 1024, 1600, 48, 25),
    "gpt3": Config(50257, 2048, 12288, 96, 96),
    "llama-7b": Config(32000, 2048, 4096, 32, 32, d_ff=11008, norm_eps=1e-6, **_LLAMA),
    "llama2-70b": Config(32000, 4096, 8192, 80, 64, 8, 28672, **_LLAMA),
    "llama3-8b": Config(128256, 8192, 4096, 32, 32, 8, 14336, rope_base=500000.0, **_LLAMA),
    "mistral-7b": Config(32000, 32768, 4096, 32, 32, 8, 14336, window=4096, **_LLAMA),
    "smollm2-135m": Config(49152, 8192, 576, 30, 9, 3, 1536, rope_base=100000.0, **_LLAMA | {"tie_embeddings": True}),
    "char-gpt": Config(128, 64, 128, 4, 4),
}


def parameter_shapes(config):
    """与 GPT(config).params 同样布局的嵌套字典，值是形状；布局只在这里写一次。"""
    # q、kv 是全部查询头、全部键值头接起来的宽度
    d, d_ff, q, kv = config.d_model, config.ffn_width, config.n_heads * config.d_head, config.kv_heads * config.d_head

    def layer(**weights):  # W_名字: (进, 出)，需要时配一个偏置 b_名字: (出,)
        shapes = {f"W_{name}": shape for name, shape in weights.items()}
        return shapes | {f"b_{name}": shape[1:] for name, shape in weights.items() if config.bias}

    def norm():
        return {"gain": (d,)} | ({"bias": (d,)} if config.norm == "layer" and config.bias else {})

    if config.activation == "swiglu":
        ffn = dict(gate=(d, d_ff), up=(d, d_ff), down=(d_ff, d))
    else:
        ffn = {"1": (d, d_ff), "2": (d_ff, d)}
    shapes = {"wte": (config.vocab_size, d)}
    if config.position == "learned":
        shapes["wpe"] = (config.context_length, d)
    shapes["blocks"] = [{"norm_1": norm(), "attention": layer(Q=(d, q), K=(d, kv), V=(d, kv), O=(q, d)),
                         "norm_2": norm(), "ffn": layer(**ffn)} for _ in range(config.n_layers)]
    if config.norm_position == "pre":
        shapes["norm_f"] = norm()
    if not config.tie_embeddings:
        shapes["lm_head"] = (d, config.vocab_size)
    return shapes


def pack(params):
    """同样的参数，换成逐个生成最快的存法；数值和形状都不变。读进来的权重已经这样存；
    随机初始化的没有，因为那是要拿去训练的。

    生成一个词元要把全部权重从内存读一遍，快慢只看读得顺不顺：每个矩阵让较长的一轴连续；
    W_Q、W_K、W_V 并排放进一个大矩阵，各是它的一段视图，注意力便能一次乘完。
    """
    if isinstance(params, list):
        return [pack(value) for value in params]
    if not isinstance(params, dict):
        return np.asarray(params, order="F" if params.ndim == 2 and params.shape[0] > params.shape[1] else "C")
    packed = {name: pack(value) for name, value in params.items()}
    if "W_Q" in packed:
        matrices = [packed[f"W_{name}"] for name in "QKV"]
        ends = np.cumsum([W.shape[1] for W in matrices])[:-1]
        packed["W_Q"], packed["W_K"], packed["W_V"] = np.split(np.concatenate(matrices, axis=1), ends, axis=1)
    return packed


class GPT:
    """模型 = 设置 + 参数；调用它就是一次前向：model(ids) -> logits。

    params 按模块开头的布局给出，直接使用、不复制，精度也随它；不给就按 GPT-2 的办法随机初始化
    （rng 缺省是 numpy.random.default_rng(0)，dtype 只管这时的精度）。
    """

    def __init__(self, config, params=None, rng=None, dtype=np.float32):
        self.config = config
        if params is None:
            params = _initialize(config, np.random.default_rng(0) if rng is None else rng, np.dtype(dtype))
        _check_params(params, parameter_shapes(config))
        self.params = params
        if config.position == "sinusoidal":  # 固定的表，不是参数
            self._sinusoid = sinusoidal_encoding(config.context_length, config.d_model).astype(self.dtype)

    @property
    def dtype(self):
        return self.params["wte"].dtype

    @property
    def num_parameters(self):
        """参数总数；绑定的输出层与嵌入表是同一份，只数一次。"""
        return sum(array.size for _, array in leaves(self.params))

    def __call__(self, ids, cache=None, *, last_only=False, record=None):
        """每个位置对下一个词元的得分。给了 cache 就接在已有的词元之后，只算新的位置。

        last_only=True 只算最后一个位置的 logits：生成时别的位置用不上，而词表那次乘法很大。
        cache 是 lib.generation 的 KVCache。
        record 是一个空字典时留下沿途的数组："embedding"、"blocks"（每层一个字典）、"final"、"logits"。

        形状：ids 整数 [..., n] -> [..., n, vocab_size]（n <= context_length）
        错误：编号不在词表内时 IndexError；总长超过 context_length 时 ValueError。
        """
        config, params = self.config, self.params
        start = 0 if cache is None else self._check_cache(cache)
        x = self._embed(ids, start)
        _keep(record, embedding=x, blocks=[])
        for i, block in enumerate(params["blocks"]):
            trace = None if record is None else {}
            x = transformer_block(x, block, config, cache=None if cache is None else cache.layers[i],
                                  is_causal=True, record=trace)
            if record is not None:
                record["blocks"].append(trace | {"output": x})
        if last_only:
            x = x[..., -1:, :]
        if "norm_f" in params:
            x = apply_norm(x, params["norm_f"], config.norm, config.norm_eps)
        logits = linear(x, params["wte"].T if config.tie_embeddings else params["lm_head"])
        _keep(record, final=x, logits=logits)
        return logits

    def _check_cache(self, cache):
        """缓存与模型对得上就返回已存的词元数，否则报错。"""
        lengths, n_layers = [layer.length for layer in cache.layers], self.config.n_layers
        if len(lengths) != n_layers:
            raise ValueError(f"缓存有 {len(lengths)} 层，模型有 {n_layers} 层；请用 KVCache(model.config)")
        if min(lengths) != max(lengths):
            raise ValueError(f"缓存各层的词元数不同（{min(lengths)}…{max(lengths)}）：上一次前向中途停下了；请先 cache.reset()")
        return lengths[0]

    def _embed(self, ids, start):
        """查词元嵌入表，再加上从 start 起的位置编码（RoPE 不在这里，在注意力里）。"""
        config = self.config
        ids = as_ids(ids, "ids", config.vocab_size)
        if ids.ndim == 0 or ids.size == 0:
            raise ValueError(f"ids 应是 [..., n] 且至少有一个词元，收到形状 {ids.shape}")
        stop = start + ids.shape[-1]
        if stop > config.context_length:
            raise ValueError(f"序列共 {stop} 个词元（其中缓存里 {start} 个），超过 context_length={config.context_length}；"
                             "请截短，或用 lib.generation.generate，它会自动让出旧词元")
        x = embed(self.params["wte"], ids)
        if config.scale_embeddings:
            x *= math.sqrt(config.d_model)  # 查表已经复制了一份，可以就地乘
        if config.position == "learned":
            x += self.params["wpe"][start:stop]
        elif config.position == "sinusoidal":
            x += self._sinusoid[start:stop]
        return x

    @classmethod
    def from_pretrained(cls, folder, dtype=np.float32):
        """读 Hugging Face 布局的文件夹：config.json 和 model.safetensors（可分片），GPT-2 或 Llama。不联网。"""
        from lib.checkpoint import read_folder  # 用到时才导入：只有读写文件需要 safetensors
        return cls._from_tensors(*read_folder(folder), dtype)

    @classmethod
    def from_gguf(cls, path, dtype=np.float32):
        """读 Llama 结构的 GGUF 文件（需要 gguf 包）；量化的权重在这里还原成浮点数。"""
        from lib.checkpoint import read_gguf
        return cls._from_tensors(*read_gguf(path), dtype)

    @classmethod
    def _from_tensors(cls, kind, fields, tensors, dtype):
        from lib.checkpoint import assemble
        config = Config(**fields)
        return cls(config, pack(assemble(kind, tensors, config, parameter_shapes(config), np.dtype(dtype))))

    def save(self, folder):
        """写成 from_pretrained 读得回的文件夹；设置与 GPT-2 或 Llama 相同时，transformers 也读得了。"""
        from lib.checkpoint import write_folder
        write_folder(folder, self.config, self.params)


def _initialize(config, rng, dtype):
    """GPT-2 的初始化：权重 N(0, 0.02²)，偏置 0，增益 1；写回残差流的矩阵再除以 √(2L)（L 层，每层写回两次），免得残差流越加越大。

    来源：《Language Models are Unsupervised Multitask Learners》2.3。
    """
    if not isinstance(rng, np.random.Generator):
        raise TypeError(f"rng 应是 numpy.random.default_rng(种子)，收到 {type(rng).__name__}")
    into_residual = {"W_O", "W_2", "W_down"}

    def build(name, shape):
        if isinstance(shape, dict):
            return {key: build(key, value) for key, value in shape.items()}
        if isinstance(shape, list):
            return [build(name, value) for value in shape]
        if len(shape) == 1:
            return np.full(shape, 1 if name == "gain" else 0, dtype)
        scale = 0.02 / math.sqrt(2 * config.n_layers) if name in into_residual else 0.02
        # standard_normal 只会生成 float32 和 float64；别的精度先用 float32，最后再换
        array = rng.standard_normal(shape, dtype=np.float64 if dtype == np.float64 else np.float32)
        array *= scale
        return array.astype(dtype, copy=False)

    return build("params", parameter_shapes(config))


def _check_params(params, shapes):
    """params 的布局、形状和精度与设置相符，否则把不符之处一次说全。"""
    expected = dict(leaves(shapes))
    arrays = dict(leaves(params))
    problems = [f"缺少 {name} {shape}" for name, shape in expected.items() if name not in arrays]
    problems += [f"多出 {name}" for name in arrays if name not in expected]
    problems += [f"{name} 应是 {expected[name]}，收到 {np.shape(array)}" for name, array in arrays.items()
                 if name in expected and np.shape(array) != expected[name]]
    kinds = sorted({str(getattr(array, "dtype", type(array).__name__)) for array in arrays.values()})
    if not problems and (len(kinds) > 1 or not kinds[0].startswith("float")):
        problems = [f"参数应都是同一种浮点数组，收到 {'、'.join(kinds)}"]
    if problems:
        raise ValueError(f"params 与 config 不符，共 {len(problems)} 处：" + "；".join(problems[:8]))


def _keep(record, **arrays):
    """把沿途的数组记进 record；None 就不记。"""
    if record is not None:
        record.update(arrays)
