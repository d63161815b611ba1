"""ex09-model 的错误写法与其他正确写法。"""

import math

import numpy as np

from grading.mutants import mutant, right

BUILD, COUNT, FLOPS, EXPERTS = "9.1", "9.3", "9.5", "9.6"


# ---- count_parameters：零件 --------------------------------------------------------------------------------

def parts(config):
    """The right counts, part by part, from which the mutants take something away."""
    d, f, L, V = config["d_model"], config["d_ff"], config["n_layers"], config["vocab_size"]
    kv = d // config["n_heads"] * config["n_kv_heads"]
    gated, bias = config["activation"] == "swiglu", config["bias"]
    return {
        "embedding": V * d + (config["context_length"] * d if config["position"] == "learned" else 0),
        "attention": L * (2 * d * d + 2 * d * kv + (2 * d + 2 * kv if bias else 0)),
        "ffn": L * ((3 if gated else 2) * d * f + ((2 * f if gated else f) + d if bias else 0)),
        "norm": (2 * L + 1) * d * (2 if config["norm"] == "layer" else 1),
        "head": 0 if config["tie_embeddings"] else d * V,
    }


def total(table):
    return table | {"total": sum(table.values())}


# ---- count_parameters：错误写法 ------------------------------------------------------------------------------

@mutant("count_parameters", "输出层总是另算一份", "共享时输出层就是嵌入表的转置，不另有参数", COUNT, caught_by="gpt2", seen_in="KellerJordan/modded-nanogpt/issues/26")
def always_untied(config):
    return total(parts(config) | {"head": config["d_model"] * config["vocab_size"]})


@mutant("count_parameters", "漏了位置表", "可学习的位置表有 context_length × d 个", COUNT, caught_by="gpt2")
def without_positions(config):
    return total(parts(config) | {"embedding": config["vocab_size"] * config["d_model"]})


@mutant("count_parameters", "漏了嵌入表", "嵌入也是参数：GPT-2 small 里占三成", COUNT, caught_by="gpt2",
        seen_in=("TransformerLensOrg/TransformerLens/issues/903", "TransformerLensOrg/TransformerLens/issues/448"))
def without_embedding(config):
    return total(parts(config) | {"embedding": 0})


@mutant("count_parameters", "漏了线性层的偏置", "bias=True 时每个矩阵还有一个偏置，长度是它的列数", COUNT, caught_by="gpt2")
def without_biases(config):
    return total(parts(config | {"bias": False}))


@mutant("count_parameters", "漏了最后一个归一化", "出口还有一个：一共 2L + 1 个", COUNT, caught_by="gpt2", seen_in="google-deepmind/ai-foundations/issues/37")
def without_final_norm(config):
    table = parts(config)
    return total(table | {"norm": table["norm"] * 2 * config["n_layers"] // (2 * config["n_layers"] + 1)})


@mutant("count_parameters", "每层只数了一个归一化", "每层两个：注意力之前与前馈之前", COUNT, caught_by="gpt2", seen_in="google-deepmind/ai-foundations/issues/37")
def one_norm(config):
    table = parts(config)
    return total(table | {"norm": table["norm"] * (config["n_layers"] + 1) // (2 * config["n_layers"] + 1)})


@mutant("count_parameters", "归一化没有偏置", "LayerNorm 有增益和偏置各 d 个", COUNT, caught_by="gpt2", seen_in="google-deepmind/ai-foundations/issues/37")
def norm_without_bias(config):
    return total(parts(config | {"norm": "rms"}))


@mutant("count_parameters", "漏了 W_O", "注意力有四个矩阵：W_Q、W_K、W_V、W_O", COUNT, caught_by="gpt2")
def without_output_matrix(config):
    table, d = parts(config), config["d_model"]
    return total(table | {"attention": table["attention"] - config["n_layers"] * (d * d + (d if config["bias"] else 0))})


@mutant("count_parameters", "只数了一层", "每层都有自己的一套：乘以层数", COUNT, caught_by="gpt2")
def one_layer(config):
    table, L = parts(config), config["n_layers"]
    return total(table | {"attention": table["attention"] // L, "ffn": table["ffn"] // L})


@mutant("count_parameters", "每个头的投影只有 (d/h)²", "每个头看全部 d 维：W_Q 是完整的 d × d", COUNT, caught_by="gpt2", seen_in="karpathy/nanoGPT/issues/629")
def block_diagonal(config):
    table, d, h = parts(config), config["d_model"], config["n_heads"]
    return total(table | {"attention": table["attention"] - config["n_layers"] * 3 * (d * d - h * (d // h) ** 2)})


@mutant("count_parameters", "合计里漏了归一化", "合计要加上每一部分", COUNT, caught_by="gpt2")
def total_without_norm(config):
    table = parts(config)
    return table | {"total": sum(table.values()) - table["norm"]}


@mutant("count_parameters", "漏了合计", "六个键都要有：最后一个是 total，其余五项之和", COUNT, caught_by="gpt2")
def without_total(config):
    return parts(config)


@mutant("count_parameters", "只返回了合计", "返回各部分的字典，合计放在 total", COUNT, caught_by="gpt2")
def only_total(config):
    return sum(parts(config).values())


@mutant("count_parameters", "前馈宽度总当作 4d", "d_ff 由 config 给：Llama 就不是 4d", COUNT, caught_by="sizes")
def always_four(config):
    return total(parts(config | {"d_ff": 4 * config["d_model"]}))


@mutant("count_parameters", "输出层从不另算", "tie_embeddings=False 时输出层另有 d × V 个", COUNT, caught_by="tied")
def always_tied(config):
    return total(parts(config | {"tie_embeddings": True}))


@mutant("count_parameters", "bias=False 时连归一化的偏置也去掉了", "bias 管的是线性层；LayerNorm 的偏置由 norm 决定", COUNT, caught_by="no-bias")
def bias_rules_norm(config):
    return total(parts(config) | ({} if config["bias"] else {"norm": (2 * config["n_layers"] + 1) * config["d_model"]}))


@mutant("count_parameters", "旋转位置也数了位置表", "旋转位置编码没有参数", COUNT, caught_by="llama")
def rotary_table(config):
    return total(parts(config | {"position": "learned"}))


@mutant("count_parameters", "SwiGLU 只数了两个矩阵", "SwiGLU 有三个：门、上、下", COUNT, caught_by="llama")
def two_matrices(config):
    return total(parts(config | {"activation": "gelu"}))


@mutant("count_parameters", "RMSNorm 也数了偏置", "RMSNorm 只有增益", COUNT, caught_by="llama")
def rms_with_bias(config):
    return total(parts(config | {"norm": "layer"}))


@mutant("count_parameters", "没有理会键值头数", "W_K、W_V 的宽度是 n_kv_heads × d_head", COUNT, caught_by="grouped")
def all_heads(config):
    return total(parts(config | {"n_kv_heads": config["n_heads"]}))


# ---- count_parameters：其他正确写法 ----------------------------------------------------------------------------

@right("count_parameters", "公式")
def by_formula(config):
    return total(parts(config))


@right("count_parameters", "真的列出每个形状")
def by_shapes(config):
    d, w = config["d_model"], config["d_model"] // config["n_heads"]
    kv, f = config["n_kv_heads"] * w, config["d_ff"]
    linear = lambda *shapes: [s for shape in shapes for s in ([shape, shape[1:]] if config["bias"] else [shape])]
    norm = [(d,)] * (2 if config["norm"] == "layer" else 1)
    up = [(d, f)] * (2 if config["activation"] == "swiglu" else 1)
    lists = {
        "embedding": [(config["vocab_size"], d)] + [(config["context_length"], d)] * (config["position"] == "learned"),
        "attention": linear((d, d), (d, kv), (d, kv), (d, d)) * config["n_layers"],
        "ffn": linear(*up, (f, d)) * config["n_layers"],
        "norm": norm * (2 * config["n_layers"] + 1),
        "head": [] if config["tie_embeddings"] else [(d, config["vocab_size"])],
    }
    return total({name: sum(math.prod(s) for s in shapes) for name, shapes in lists.items()})


@right("count_parameters", "逐层累加")
def layer_by_layer(config):
    table = dict.fromkeys(("embedding", "attention", "ffn", "norm", "head"), 0)
    d, per_norm = config["d_model"], config["d_model"] * (2 if config["norm"] == "layer" else 1)
    kv = d * config["n_kv_heads"] // config["n_heads"]

    def add(part, rows, columns):
        table[part] += rows * columns + (columns if config["bias"] else 0)

    table["embedding"] += config["vocab_size"] * d
    if config["position"] == "learned":
        table["embedding"] += config["context_length"] * d
    for _ in range(config["n_layers"]):
        for columns in (d, kv, kv, d):
            add("attention", d, columns)
        for _ in range(2 if config["activation"] == "swiglu" else 1):
            add("ffn", d, config["d_ff"])
        add("ffn", config["d_ff"], d)
        table["norm"] += 2 * per_norm
    table["norm"] += per_norm
    if not config["tie_embeddings"]:
        table["head"] += d * config["vocab_size"]
    return total(table)


# ---- layer_flops：错误写法 ----------------------------------------------------------------------------------

@mutant("layer_flops", "一次乘加算 1", "一次乘加是一次乘、一次加：算 2 FLOPs", FLOPS, caught_by="gpt2")
def half(n, d, d_ff):
    return 4 * n * d * d, 2 * n * n * d, 2 * n * d * d_ff


@mutant("layer_flops", "漏了 W_O", "投影有四次：Q、K、V 与输出，每次 2nd²", FLOPS, caught_by="gpt2")
def three_projections(n, d, d_ff):
    return 6 * n * d * d, 4 * n * n * d, 4 * n * d * d_ff


@mutant("layer_flops", "只数了得分，漏了取值", "q kᵀ 与 权重 × v 各 2n²d", FLOPS, caught_by="gpt2")
def scores_only(n, d, d_ff):
    return 8 * n * d * d, 2 * n * n * d, 4 * n * d * d_ff


@mutant("layer_flops", "前馈只数了一个矩阵", "前馈有两次乘法：升维与降维", FLOPS, caught_by="gpt2")
def one_matrix(n, d, d_ff):
    return 8 * n * d * d, 4 * n * n * d, 2 * n * d * d_ff


@mutant("layer_flops", "因果掩码省了一半", "普通实现照样算出全部 n² 个得分；这里按完整的算", FLOPS, caught_by="gpt2")
def masked_half(n, d, d_ff):
    return 8 * n * d * d, 2 * n * (n + 1) * d, 4 * n * d * d_ff


@mutant("layer_flops", "只返回了合计", "返回三部分：投影、得分与取值、前馈", FLOPS, caught_by="gpt2")
def only_sum(n, d, d_ff):
    return 8 * n * d * d + 4 * n * n * d + 4 * n * d * d_ff


@mutant("layer_flops", "次序不对", "依次是投影、得分与取值、前馈", FLOPS, caught_by="gpt2")
def reordered(n, d, d_ff):
    return 4 * n * n * d, 8 * n * d * d, 4 * n * d * d_ff


@mutant("layer_flops", "投影也随 n² 增长", "投影是每个词元各算各的：随 n 线性增长", FLOPS, caught_by="gpt2")
def quadratic_projection(n, d, d_ff):
    return 8 * n * n * d, 4 * n * n * d, 4 * n * d * d_ff


@mutant("layer_flops", "前馈宽度总当作 4d", "前馈是 4n·d·d_ff，d_ff 由参数给", FLOPS, caught_by="sizes")
def four_times(n, d, d_ff):
    return 8 * n * d * d, 4 * n * n * d, 16 * n * d * d


@mutant("layer_flops", "换算成了 GFLOPs", "要的是个数，不换算", FLOPS, caught_by="gpt2")
def giga(n, d, d_ff):
    return tuple(v / 1e9 for v in (8 * n * d * d, 4 * n * n * d, 4 * n * d * d_ff))


# ---- layer_flops：其他正确写法 --------------------------------------------------------------------------------

@right("layer_flops", "公式")
def flops_formula(n, d, d_ff):
    return 8 * n * d**2, 4 * n**2 * d, 4 * n * d * d_ff


@right("layer_flops", "一次次矩阵乘法相加")
def by_products(n, d, d_ff):
    cost = lambda a, b, c: 2 * a * b * c
    return sum(cost(n, d, d) for _ in "QKVO"), cost(n, d, n) + cost(n, n, d), cost(n, d, d_ff) + cost(n, d_ff, d)


@right("layer_flops", "数每个输出元素的乘加")
def by_elements(n, d, d_ff):
    products = [(4 * n * d, d), (n * n, d), (n * d, n), (n * d_ff, d), (n * d, d_ff)]
    a, b, c, e, f = (2 * count * depth for count, depth in products)
    return a, b + c, e + f


# ---- moe_parameters：错误写法 --------------------------------------------------------------------------------

def refuse(n_experts, n_active):
    if n_active > n_experts:
        raise ValueError("挑的比有的还多")


@mutant("moe_parameters", "漏了路由器", "路由器是 d × 专家数的矩阵，两边都要算", EXPERTS, caught_by="chapter")
def without_router(d_model, d_expert, n_experts, n_active, n_shared=0):
    refuse(n_experts, n_active)
    e = 3 * d_model * d_expert
    return e * (n_experts + n_shared), e * (n_active + n_shared)


@mutant("moe_parameters", "激活数里漏了路由器", "每个词元都要过路由器", EXPERTS, caught_by="chapter")
def router_in_total_only(d_model, d_expert, n_experts, n_active, n_shared=0):
    refuse(n_experts, n_active)
    e, r = 3 * d_model * d_expert, d_model * n_experts
    return e * (n_experts + n_shared) + r, e * (n_active + n_shared)


@mutant("moe_parameters", "每个专家只数了两个矩阵", "专家是 SwiGLU：三个矩阵", EXPERTS, caught_by="chapter")
def two_matrix_experts(d_model, d_expert, n_experts, n_active, n_shared=0):
    refuse(n_experts, n_active)
    e, r = 2 * d_model * d_expert, d_model * n_experts
    return e * (n_experts + n_shared) + r, e * (n_active + n_shared) + r


@mutant("moe_parameters", "激活数里漏了共享专家", "共享专家每个词元都用到", EXPERTS, caught_by="chapter")
def shared_inactive(d_model, d_expert, n_experts, n_active, n_shared=0):
    refuse(n_experts, n_active)
    e, r = 3 * d_model * d_expert, d_model * n_experts
    return e * (n_experts + n_shared) + r, e * n_active + r


@mutant("moe_parameters", "共享专家算在 n_experts 之内", "共享专家在路由的专家之外另有", EXPERTS, caught_by="chapter")
def shared_inside(d_model, d_expert, n_experts, n_active, n_shared=0):
    refuse(n_experts, n_active)
    e, r = 3 * d_model * d_expert, d_model * n_experts
    return e * n_experts + r, e * (n_active + n_shared) + r


@mutant("moe_parameters", "按比例估计激活数", "路由器与共享专家不按比例：逐项数", EXPERTS, caught_by="chapter")
def proportional(d_model, d_expert, n_experts, n_active, n_shared=0):
    refuse(n_experts, n_active)
    whole = 3 * d_model * d_expert * (n_experts + n_shared) + d_model * n_experts
    return whole, whole * n_active // n_experts


@mutant("moe_parameters", "路由器也算给了共享专家", "路由器只给要挑的专家打分：d × n_experts", EXPERTS, caught_by="chapter")
def router_for_shared(d_model, d_expert, n_experts, n_active, n_shared=0):
    refuse(n_experts, n_active)
    e, r = 3 * d_model * d_expert, d_model * (n_experts + n_shared)
    return e * (n_experts + n_shared) + r, e * (n_active + n_shared) + r


@mutant("moe_parameters", "两个数的次序反了", "先总数，后激活数", EXPERTS, caught_by="chapter")
def swapped(d_model, d_expert, n_experts, n_active, n_shared=0):
    refuse(n_experts, n_active)
    e, r = 3 * d_model * d_expert, d_model * n_experts
    return e * (n_active + n_shared) + r, e * (n_experts + n_shared) + r


@mutant("moe_parameters", "总数只数了激活的", "显存要装下全部专家", EXPERTS, caught_by="chapter")
def active_twice(d_model, d_expert, n_experts, n_active, n_shared=0):
    refuse(n_experts, n_active)
    active = 3 * d_model * d_expert * (n_active + n_shared) + d_model * n_experts
    return active, active


@mutant("moe_parameters", "挑的比有的还多也照算", "那是调用错了：报 ValueError", EXPERTS, caught_by="too-many")
def no_limit(d_model, d_expert, n_experts, n_active, n_shared=0):
    e, r = 3 * d_model * d_expert, d_model * n_experts
    return e * (n_experts + n_shared) + r, e * (n_active + n_shared) + r


# ---- moe_parameters：其他正确写法 ------------------------------------------------------------------------------

@right("moe_parameters", "公式")
def moe_formula(d_model, d_expert, n_experts, n_active, n_shared=0):
    refuse(n_experts, n_active)
    e, r = 3 * d_model * d_expert, d_model * n_experts
    return e * (n_experts + n_shared) + r, e * (n_active + n_shared) + r


@right("moe_parameters", "总数减去闲着的")
def minus_idle(d_model, d_expert, n_experts, n_active, n_shared=0):
    if not 0 <= n_active <= n_experts:
        raise ValueError(f"从 {n_experts} 个专家里挑不出 {n_active} 个")
    whole = d_model * n_experts + (n_experts + n_shared) * 3 * d_model * d_expert
    return whole, whole - (n_experts - n_active) * 3 * d_model * d_expert


@right("moe_parameters", "列出每个矩阵")
def moe_shapes(d_model, d_expert, n_experts, n_active, n_shared=0):
    refuse(n_experts, n_active)
    expert = [(d_model, d_expert), (d_model, d_expert), (d_expert, d_model)]
    size = lambda experts: sum(math.prod(s) for s in [(d_model, n_experts), *expert * experts])
    return size(n_experts + n_shared), size(n_active + n_shared)


# ---- gpt_forward：零件与错误写法 -------------------------------------------------------------------------------

def norm(x, p):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5) * p["gain"] + p["bias"]


def attention(x, p, h, mask):
    q, k, v = ((x @ p[f"W_{n}"] + p[f"b_{n}"]).reshape(*x.shape[:-1], h, -1).swapaxes(-2, -3) for n in "QKV")
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    scores = scores if mask is None else np.where(mask, scores, -np.inf)
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    heads = (powers / powers.sum(-1, keepdims=True) @ v).swapaxes(-2, -3)
    return heads.reshape(x.shape) @ p["W_O"] + p["b_O"]


def ffn(x, p):
    hidden = x @ p["W_1"] + p["b_1"]
    return 0.5 * hidden * (1 + np.tanh(math.sqrt(2 / math.pi) * (hidden + 0.044715 * hidden**3))) @ p["W_2"] + p["b_2"]


def refused(ids, params):
    if ids.shape[-1] > len(params["wpe"]):
        raise ValueError("太长")
    if ids.min() < 0 or ids.max() >= len(params["wte"]):
        raise IndexError("没有这个编号")


def block(x, p, h, mask):
    x = x + attention(norm(x, p["norm_1"]), p["attention"], h, mask)
    return x + ffn(norm(x, p["norm_2"]), p["ffn"])


def run(ids, params, h, *, embed=None, layer=block, layers=lambda blocks: blocks, mask=lambda n: np.tri(n, dtype=bool),
        final=norm, head=lambda x, params: x @ params["wte"].T, check=refused):
    """A right forward pass whose pieces the mutants replace."""
    check(ids, params)
    n = ids.shape[-1]
    x = embed(ids, params) if embed else params["wte"][ids] + params["wpe"][:n]
    for p in layers(params["blocks"]):
        x = layer(x, p, h, mask(n))
    return head(final(x, params["norm_f"]), params)


@mutant("gpt_forward", "没有加位置", "嵌入之后要加 wpe 的前 n 行", BUILD, caught_by="no-layer")
def no_positions(ids, params, n_heads):
    return run(ids, params, n_heads, embed=lambda ids, p: p["wte"][ids])


@mutant("gpt_forward", "位置从 1 数起", "第 0 个词元用 wpe 的第 0 行", BUILD, caught_by="no-layer")
def positions_from_one(ids, params, n_heads):
    shift = lambda ids, p: p["wte"][ids] + np.roll(p["wpe"], -1, axis=0)[:ids.shape[-1]]
    return run(ids, params, n_heads, embed=shift)


@mutant("gpt_forward", "用编号去查位置", "位置是词元排第几，不是它的编号：wpe[:n]", BUILD, caught_by="no-layer")
def position_by_id(ids, params, n_heads):
    return run(ids, params, n_heads, embed=lambda ids, p: p["wte"][ids] + p["wpe"][ids])


@mutant("gpt_forward", "漏了最后的归一化", "所有层之后还有一次 norm_f", BUILD, caught_by="no-layer")
def no_final_norm(ids, params, n_heads):
    return run(ids, params, n_heads, final=lambda x, p: x)


@mutant("gpt_forward", "返回概率", "要的是 logits：不做 softmax", BUILD, caught_by="no-layer")
def probabilities(ids, params, n_heads):
    def head(x, p):
        e = np.exp((logits := x @ p["wte"].T) - logits.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)
    return run(ids, params, n_heads, head=head)


@mutant("gpt_forward", "只返回最后一个位置", "返回每个位置的 logits：[n, V]", BUILD, caught_by="no-layer")
def last_only(ids, params, n_heads):
    return run(ids, params, n_heads)[..., -1, :]


@mutant("gpt_forward", "没有乘嵌入表", "归一化之后还要乘 wte 的转置，变成词表里每个词元的得分", BUILD, caught_by="no-layer")
def hidden_states(ids, params, n_heads):
    return run(ids, params, n_heads, head=lambda x, p: x)


@mutant("gpt_forward", "嵌入乘了 √d", "GPT-2 不缩放嵌入（2017 年的原版才缩放）", BUILD, caught_by="no-layer")
def scaled_embedding(ids, params, n_heads):
    scale = lambda ids, p: p["wte"][ids] * math.sqrt(p["wte"].shape[1]) + p["wpe"][:ids.shape[-1]]
    return run(ids, params, n_heads, embed=scale)


@mutant("gpt_forward", "写成了 Post-LN", "GPT-2 是 Pre-LN：子层之前归一化", BUILD, caught_by="layers", seen_in="harvardnlp/annotated-transformer/issues/13")
def post_ln(ids, params, n_heads):
    def layer(x, p, h, mask):
        x = norm(x + attention(x, p["attention"], h, mask), p["norm_1"])
        return norm(x + ffn(x, p["ffn"]), p["norm_2"])
    return run(ids, params, n_heads, layer=layer)


@mutant("gpt_forward", "归一化盖掉了残差", "残差加的是没有归一化的 x", BUILD, caught_by="layers", seen_in="datawhalechina/happy-llm/issues/21")
def overwritten(ids, params, n_heads):
    def layer(x, p, h, mask):
        x = norm(x, p["norm_1"])
        x = x + attention(x, p["attention"], h, mask)
        x = norm(x, p["norm_2"])
        return x + ffn(x, p["ffn"])
    return run(ids, params, n_heads, layer=layer)


@mutant("gpt_forward", "没有残差", "每个子层的输出要加到 x 上", BUILD, caught_by="layers")
def no_residual(ids, params, n_heads):
    def layer(x, p, h, mask):
        return ffn(norm(attention(norm(x, p["norm_1"]), p["attention"], h, mask), p["norm_2"]), p["ffn"])
    return run(ids, params, n_heads, layer=layer)


@mutant("gpt_forward", "两处都用 norm_1", "前馈之前用 norm_2", BUILD, caught_by="layers")
def same_norm(ids, params, n_heads):
    return run(ids, params, n_heads, layer=lambda x, p, h, mask: block(x, p | {"norm_2": p["norm_1"]}, h, mask))


@mutant("gpt_forward", "漏了前馈", "每层有两个子层：注意力与前馈", BUILD, caught_by="layers")
def no_ffn(ids, params, n_heads):
    return run(ids, params, n_heads, layer=lambda x, p, h, mask: x + attention(norm(x, p["norm_1"]), p["attention"], h, mask))


@mutant("gpt_forward", "先前馈后注意力", "次序是先注意力，再前馈", BUILD, caught_by="layers")
def wrong_order(ids, params, n_heads):
    def layer(x, p, h, mask):
        x = x + ffn(norm(x, p["norm_2"]), p["ffn"])
        return x + attention(norm(x, p["norm_1"]), p["attention"], h, mask)
    return run(ids, params, n_heads, layer=layer)


@mutant("gpt_forward", "每层都用第 0 层的参数", "各层有自己的参数：for block in params[\"blocks\"]", BUILD, caught_by="layers")
def shared_layer(ids, params, n_heads):
    return run(ids, params, n_heads, layers=lambda blocks: blocks[:1] * len(blocks))


@mutant("gpt_forward", "层的次序反了", "从第 0 层开始", BUILD, caught_by="layers")
def reversed_layers(ids, params, n_heads):
    return run(ids, params, n_heads, layers=lambda blocks: blocks[::-1])


@mutant("gpt_forward", "没有因果掩码", "每个位置只能看自己和之前：注意力要加掩码", BUILD, caught_by="layers")
def no_mask(ids, params, n_heads):
    return run(ids, params, n_heads, mask=lambda n: None)


@mutant("gpt_forward", "因果掩码反了", "下三角是“可以看”：第 i 行的前 i + 1 个是 True，用 np.tri，不是 np.triu", BUILD, caught_by="layers")
def upper_mask(ids, params, n_heads):
    return run(ids, params, n_heads, mask=lambda n: np.tri(n, dtype=bool).T)


@mutant("gpt_forward", "头数写死成 1", "n_heads 由参数给，交给注意力", BUILD, caught_by="layers")
def one_head(ids, params, n_heads):
    return run(ids, params, 1)


@mutant("gpt_forward", "用 len(ids) 当长度", "有批的轴时 len 是句数：长度是 ids.shape[-1]", BUILD, caught_by="batch")
def length_of_batch(ids, params, n_heads):
    refused(ids, params)
    n = len(ids)
    x = params["wte"][ids] + params["wpe"][:n]
    for p in params["blocks"]:
        x = block(x, p, n_heads, np.tri(n, dtype=bool))
    return norm(x, params["norm_f"]) @ params["wte"].T


@mutant("gpt_forward", "正好用满上下文也不许", "n 等于位置表的行数是允许的：大于它才报 ValueError", BUILD, caught_by="too-long")
def refuses_full_length(ids, params, n_heads):
    if ids.shape[-1] == len(params["wpe"]):
        raise ValueError("太长")
    return run(ids, params, n_heads)


@mutant("gpt_forward", "太长时位置绕回开头", "绕回去的位置是错的：报 ValueError", BUILD, caught_by="too-long")
def positions_wrap(ids, params, n_heads):
    def check(ids, p):
        refused(ids[..., :len(p["wpe"])], p)
    wrap = lambda ids, p: p["wte"][ids] + p["wpe"][np.arange(ids.shape[-1]) % len(p["wpe"])]
    return run(ids, params, n_heads, embed=wrap, check=check)


@mutant("gpt_forward", "负的编号从末尾数起", "NumPy 的下标 -1 是最后一行；先查编号，报 IndexError", BUILD, caught_by="outside")
def negative_ids(ids, params, n_heads):
    def check(ids, p):
        if ids.shape[-1] > len(p["wpe"]):
            raise ValueError("太长")
    return run(ids, params, n_heads, check=check)


@mutant("gpt_forward", "就地把位置加进了嵌入表", "wte 是调用者的：先查出来再加", BUILD, caught_by="untouched")
def adds_in_place(ids, params, n_heads):
    result = run(ids, params, n_heads)
    params["wte"][ids.ravel()[0]] += params["wpe"][0]
    return result


# ---- gpt_forward：其他正确写法 ---------------------------------------------------------------------------------

@right("gpt_forward", "零件串起来")
def plain(ids, params, n_heads):
    return run(ids, params, n_heads)


@right("gpt_forward", "逐句递归，独热乘嵌入表")
def one_sentence(ids, params, n_heads):
    if ids.ndim > 1:
        return np.stack([one_sentence(row, params, n_heads) for row in ids])
    refused(ids, params)
    one_hot = np.eye(len(params["wte"]))[ids]
    x = one_hot @ params["wte"] + np.eye(len(ids), len(params["wpe"])) @ params["wpe"]
    for p in params["blocks"]:
        x = block(x, p, n_heads, np.arange(len(ids))[:, None] >= np.arange(len(ids)))
    return np.einsum("nd,vd->nv", norm(x, params["norm_f"]), params["wte"])


@right("gpt_forward", "reduce 折过各层")
def folded(ids, params, n_heads):
    from functools import reduce

    n = ids.shape[-1]
    if n > params["wpe"].shape[0]:
        raise ValueError(f"{n} 个词元超过了上下文长度")
    x = np.take(params["wte"], ids, axis=0, mode="raise") if ids.min() >= 0 else [][0]
    mask = np.triu(np.ones((n, n)), 1) == 0
    x = reduce(lambda x, p: block(x, p, n_heads, mask), params["blocks"], x + params["wpe"][:n])
    return norm(x, params["norm_f"]) @ params["wte"].T
