"""记账：参数量、计算量、键值缓存的字节数，全部由设置直接算出，不必建立模型。

config 是 lib.model 的 Config（或任何有同名属性的对象）；n、L、V、d 是词元数、层数、词表大小、d_model，
q、kv 是全部查询头、全部键值头接起来的宽度。计算量只数矩阵乘法，一次乘加算 2 FLOPs。
"""
from dataclasses import dataclass

from lib._checks import as_count  # 入口检查：不小于 1（或给定下限）的整数，不合格就报错

__all__ = ["parameter_table", "count_parameters", "flops_table", "forward_flops", "kv_cache_bytes", "moe_parameters",
           "Row", "Published", "MODELS"]


@dataclass(frozen=True)
class Row:
    """参数表的一行：part 是所属部分，copies 是份数（每层一份，或几个归一化）。"""

    part: str
    name: str
    shape: tuple
    copies: int

    @property
    def count(self):
        """这一行的参数总数：一份的大小 × 份数。"""
        size = self.copies
        for width in self.shape:
            size *= width
        return size


def parameter_table(config):
    """逐项列出参数，每项一个 Row；part 是 "嵌入"、"注意力"、"前馈"、"归一化"、"输出" 之一。

    绑定的输出层与嵌入表是同一份参数，不再列出。
    """
    d, L, V = config.d_model, config.n_layers, config.vocab_size
    q, kv, d_ff = config.n_heads * config.d_head, config.kv_heads * config.d_head, config.ffn_width
    rows = [Row("嵌入", "wte", (V, d), 1)]
    if config.position == "learned":
        rows.append(Row("嵌入", "wpe", (config.context_length, d), 1))
    weights = [("注意力", "Q", (d, q)), ("注意力", "K", (d, kv)), ("注意力", "V", (d, kv)), ("注意力", "O", (q, d))]
    if config.activation == "swiglu":
        weights += [("前馈", "gate", (d, d_ff)), ("前馈", "up", (d, d_ff)), ("前馈", "down", (d_ff, d))]
    else:
        weights += [("前馈", "1", (d, d_ff)), ("前馈", "2", (d_ff, d))]
    for part, name, shape in weights:
        rows.append(Row(part, f"W_{name}", shape, L))
        if config.bias:
            rows.append(Row(part, f"b_{name}", shape[1:], L))
    norms = 2 * L + (config.norm_position == "pre")  # 每层两个；Pre-LN 在出口再补一个
    rows.append(Row("归一化", "gain", (d,), norms))
    if config.norm == "layer" and config.bias:
        rows.append(Row("归一化", "bias", (d,), norms))
    if not config.tie_embeddings:
        rows.append(Row("输出", "lm_head", (d, V), 1))
    return rows


def count_parameters(config):
    """参数总数，等于 GPT(config) 分配的元素个数。"""
    return sum(row.count for row in parameter_table(config))


def flops_table(config, n):
    """一次前向处理 n 个词元的矩阵乘法 FLOPs，按部分列出。

    "分数" 是 q kᵀ 和 权重 @ v，按完整的 n×n 计（不跳过被掩码的一半）；只有它随 n² 增长。
    """
    n, d, L = as_count(n, "n"), config.d_model, config.n_layers
    q, kv = config.n_heads * config.d_head, config.kv_heads * config.d_head
    # [n, a] 乘 [a, b] 是 2·n·a·b FLOPs。投影有 Q、O（宽 q）和 K、V（宽 kv）；分数有两次 2·n·n·q
    matrices = 3 if config.activation == "swiglu" else 2
    return {"投影": L * 2 * n * d * (2 * q + 2 * kv), "分数": L * 4 * n * n * q,
            "前馈": L * 2 * n * d * config.ffn_width * matrices, "输出": 2 * n * d * config.vocab_size}


def forward_flops(config, n):
    """一次前向处理 n 个词元的矩阵乘法 FLOPs 总数；粗略是 2 × 参数量 × n，再加上随 n² 增长的注意力分数。"""
    return sum(flops_table(config, n).values())


def kv_cache_bytes(config, n_tokens, batch=1, bytes_per_value=2):
    """键值缓存的字节数：2（K 和 V）× 层数 × batch × 词元数 × 键值头数 × d_head × 每个数的字节数。

    config 可以是 Config，也可以是三个数 (n_layers, n_kv_heads, d_head) 或以它们为键的字典。
    有滑动窗口时，窗口之外的词元不必留。bytes_per_value 缺省 2，即 float16 / bfloat16。

    错误：给的不是三个数、个数不是正整数（n_tokens 可以是 0）时报错。
    """
    names, window = ("n_layers", "n_kv_heads", "d_head"), None
    if hasattr(config, "kv_heads"):
        numbers, window = (config.n_layers, config.kv_heads, config.d_head), config.window
    else:
        numbers = [config.get(name) for name in names] if isinstance(config, dict) else config
    if len(numbers) != 3 or None in numbers:
        raise ValueError(f"应给 Config，或三个数 {', '.join(names)}，收到 {config}")
    layers, heads, width = (as_count(number, name) for number, name in zip(numbers, names))
    n_tokens = as_count(n_tokens, "n_tokens", 0)
    kept = n_tokens if window is None else min(n_tokens, window)
    return 2 * layers * as_count(batch, "batch") * kept * heads * width * as_count(bytes_per_value, "bytes_per_value")


def moe_parameters(d_model, d_expert, n_experts, n_active, n_shared=0, n_layers=1, gated=True):
    """混合专家（MoE）前馈的参数，返回（总数, 每个词元用到的）。

    每层有 n_experts 个专家，每个专家是中间宽度为 d_expert 的前馈网络；路由器（d_model × n_experts）
    给每个词元挑 n_active 个；n_shared 个共享专家总是用到。
    gated=True 时每个专家是三个矩阵（SwiGLU），否则两个。计算量随用到的参数走，显存要装下总数。

    错误：个数不是正整数（n_shared 可以是 0）、n_active 多于 n_experts 时报错。
    """
    values = dict(d_model=d_model, d_expert=d_expert, n_experts=n_experts, n_active=n_active, n_layers=n_layers)
    for name, value in values.items():
        as_count(value, name)
    if n_active > n_experts:
        raise ValueError(f"n_active={n_active} 不能多于 n_experts={n_experts}")
    expert = (3 if gated else 2) * d_model * d_expert
    always = as_count(n_shared, "n_shared", 0) * expert + d_model * n_experts
    return n_layers * (n_experts * expert + always), n_layers * (n_active * expert + always)


@dataclass(frozen=True)
class Published:
    """一个公开模型的公布数字；parameters 是公布的总数，active 是每个词元用到的（稠密模型两者相同）。"""

    year: int
    n_layers: int
    d_model: int
    n_heads: int
    n_kv_heads: int
    vocab_size: int
    parameters: float
    active: float
    source: str


_GPT2, _LLAMA = "openai/gpt-2 的 hparams", "发布时的 params.json / config.json"
_REPORTED = "官方公布的数字，未独立核实"

# 稠密模型的参数量可以由 lib.model.PRESETS 精确数出；MoE 的总数只取官方公布的近似值
MODELS = {
    "GPT-2 Small": Published(2019, 12, 768, 12, 12, 50257, 124_439_808, 124_439_808, _GPT2),
    "GPT-2 XL": Published(2019, 48, 1600, 25, 25, 50257, 1_557_611_200, 1_557_611_200, _GPT2),
    "GPT-3": Published(2020, 96, 12288, 96, 96, 50257, 175e9, 175e9, "arXiv:2005.14165 表 2.1"),
    "LLaMA-7B": Published(2023, 32, 4096, 32, 32, 32000, 6_738_415_616, 6_738_415_616, _LLAMA),
    "Llama 2 70B": Published(2023, 80, 8192, 64, 8, 32000, 68_976_648_192, 68_976_648_192, _LLAMA),
    "Llama 3 8B": Published(2024, 32, 4096, 32, 8, 128256, 8_030_261_248, 8_030_261_248, _LLAMA),
    "DeepSeek-V3": Published(2024, 61, 7168, 128, 128, 129280, 671e9, 37e9, "arXiv:2412.19437；transformers 的配置类"),
    "Llama 4 Scout": Published(2025, 48, 5120, 40, 8, 202048, 109e9, 17e9, "transformers 的配置类；总数取官方公布"),
    "DeepSeek V4 Flash": Published(2026, 43, 4096, 64, 1, 129280, 284e9, 13e9, "transformers 的配置类；总数取官方公布"),
    "DeepSeek V4 Pro": Published(2026, 61, 7168, 128, 1, 129280, 1.6e12, 49e9, _REPORTED),
}
