"""ex09-model 的隐藏检查。参数逐个形状相加；前向一次一个句子、一个头、一个位置地算。"""

import math

import numpy as np

from grading.checks import check, small

BUILD, COUNT, FLOPS, EXPERTS = "9.1", "9.3", "9.5", "9.6"
GPT2 = dict(vocab_size=50257, context_length=1024, d_model=768, n_layers=12, n_heads=12, n_kv_heads=12, d_ff=3072, norm="layer",
            position="learned", activation="gelu", bias=True, tie_embeddings=True)
LLAMA = dict(vocab_size=32000, context_length=2048, d_model=4096, n_layers=32, n_heads=32, n_kv_heads=32, d_ff=11008, norm="rms",
             position="rotary", activation="swiglu", bias=False, tie_embeddings=False)


# ---- 参考 ------------------------------------------------------------------------------------------------

def shapes(config):
    """Every array of the model, as (part, shape)."""
    d, w = config["d_model"], config["d_model"] // config["n_heads"]
    q, kv, f = config["n_heads"] * w, config["n_kv_heads"] * w, config["d_ff"]
    yield "embedding", (config["vocab_size"], d)
    if config["position"] == "learned":
        yield "embedding", (config["context_length"], d)
    for layer in range(config["n_layers"] + 1):
        for _ in range(2 if layer < config["n_layers"] else 1):
            yield "norm", (d,)
            if config["norm"] == "layer":
                yield "norm", (d,)
        if layer < config["n_layers"]:
            attention = [(d, q), (d, kv), (d, kv), (q, d)]
            ffn = [(d, f), (d, f), (f, d)] if config["activation"] == "swiglu" else [(d, f), (f, d)]
            for part, matrices in (("attention", attention), ("ffn", ffn)):
                for shape in matrices:
                    yield part, shape
                    if config["bias"]:
                        yield part, shape[1:]
    if not config["tie_embeddings"]:
        yield "head", (d, config["vocab_size"])


def count(config):
    table = dict.fromkeys(("embedding", "attention", "ffn", "norm", "head"), 0)
    for part, shape in shapes(config):
        table[part] += math.prod(shape)
    return table | {"total": sum(table.values())}


def tiny(rng, **changes):
    """A configuration in which no two sizes are equal."""
    w, heads = int(rng.integers(3, 6)), 4
    return GPT2 | dict(vocab_size=int(rng.integers(60, 90)), context_length=int(rng.integers(20, 40)), d_model=heads * w, n_layers=3,
                       n_heads=heads, n_kv_heads=heads, d_ff=int(rng.integers(41, 59))) | changes


def normalized(row, p):
    mean = math.fsum(row) / len(row)
    root = math.sqrt(math.fsum((v - mean) ** 2 for v in row) / len(row) + 1e-5)
    return np.array([(v - mean) / root for v in row]) * p["gain"] + p["bias"]


def forward(ids, params, h):
    x = np.array([params["wte"][i] + params["wpe"][place] for place, i in enumerate(ids)])
    for block in params["blocks"]:
        x = x + attend(np.array([normalized(row, block["norm_1"]) for row in x]), block["attention"], h)
        hidden = [normalized(row, block["norm_2"]) @ block["ffn"]["W_1"] + block["ffn"]["b_1"] for row in x]
        gelu = lambda v: 0.5 * v * (1 + math.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v**3)))
        x = x + np.array([[gelu(v) for v in row] for row in hidden]) @ block["ffn"]["W_2"] + block["ffn"]["b_2"]
    return np.array([normalized(row, params["norm_f"]) for row in x]) @ params["wte"].T


def attend(x, p, h):
    w, output = x.shape[1] // h, np.zeros_like(x)
    q, k, v = (x @ p[f"W_{name}"] + p[f"b_{name}"] for name in "QKV")
    for t in range(h):
        own = slice(t * w, (t + 1) * w)
        for i in range(len(x)):
            scores = [float(q[i, own] @ k[j, own]) / math.sqrt(w) for j in range(i + 1)]
            powers = [math.exp(s - max(scores)) for s in scores]
            output[i, own] = sum(power * v[j, own] for j, power in enumerate(powers)) / math.fsum(powers)
    return output @ p["W_O"] + p["b_O"]


def model(rng, layers=2, vocab=5, d=4, context=6, width=3):
    """Parameters in which no gain is 1 and no bias 0."""
    def norm():
        return {"gain": small(rng, d, scale=0.3, around=1.5), "bias": small(rng, d, scale=0.3, around=0.4)}

    def block():
        attention = {f"W_{n}": small(rng, d, d, scale=0.7) for n in "QKVO"} | {f"b_{n}": small(rng, d, scale=0.3, around=0.2) for n in "QKVO"}
        ffn = {"W_1": small(rng, d, width, scale=0.7), "b_1": small(rng, width, scale=0.3, around=0.2),
               "W_2": small(rng, width, d, scale=0.7), "b_2": small(rng, d, scale=0.3, around=0.2)}
        return {"norm_1": norm(), "attention": attention, "norm_2": norm(), "ffn": ffn}

    return {"wte": small(rng, vocab, d), "wpe": small(rng, context, d), "blocks": [block() for _ in range(layers)], "norm_f": norm()}


# ---- count_parameters ------------------------------------------------------------------------------------

@check("count_parameters", "gpt2", section=COUNT, claim="GPT-2 small 恰好 124,439,808 个：嵌入、注意力、前馈、归一化各是多少",
       hint="逐项列出每个矩阵与偏置的形状，乘以层数；归一化每层两个，出口还有一个")
def count_gpt2(student, rng):
    student(GPT2).equals(count(GPT2))


@check("count_parameters", "sizes", section=COUNT, claim="对任意的设置都成立：各个大小都不相同时也对", hint="d_ff 不一定是 4d；从 config 里取每一个数")
def count_sizes(student, rng):
    config = tiny(rng)
    student(config).equals(count(config))


@check("count_parameters", "tied", section=COUNT, claim="输出层与嵌入共享时不另算；不共享时再加 d × V",
       hint="tie_embeddings=True 时 head 是 0")
def count_tied(student, rng):
    config = tiny(rng, tie_embeddings=False)
    student(config).equals(count(config))


@check("count_parameters", "no-bias", section=COUNT, claim="bias=False 时线性层没有偏置；LayerNorm 自己的偏置不受它影响",
       hint="bias 管的是线性层；norm 是 layer 还是 rms 决定归一化有没有偏置")
def count_no_bias(student, rng):
    config = tiny(rng, bias=False)
    student(config).equals(count(config))


@check("count_parameters", "llama", section=COUNT, claim="LLaMA-7B 恰好 6,738,415,616 个：没有位置表，RMSNorm 没有偏置，SwiGLU 有三个矩阵",
       hint="position 为 rotary 时没有 wpe；norm 为 rms 时只有增益；activation 为 swiglu 时前馈是三个矩阵")
def count_llama(student, rng):
    student(LLAMA).equals(count(LLAMA))


@check("count_parameters", "grouped", section=COUNT, claim="键值头少于查询头时，W_K、W_V 窄一些", hint="W_K、W_V 是 d × (n_kv_heads × d_head)，偏置也一样窄")
def count_grouped(student, rng):
    for config in (tiny(rng, n_kv_heads=2), LLAMA | dict(vocab_size=128256, d_ff=14336, n_kv_heads=8)):
        student(config).equals(count(config))


# ---- layer_flops -----------------------------------------------------------------------------------------

@check("layer_flops", "gpt2", section=FLOPS, claim="三部分：投影 8nd²，得分与取值 4n²d，前馈 4n·d·d_ff；一次乘加算 2",
       hint="[a, b] 乘 [b, c] 是 2abc 个 FLOPs；数一数一层里有哪几次乘法")
def flops_gpt2(student, rng):
    student(1024, 768, 3072).equals((8 * 1024 * 768**2, 4 * 1024**2 * 768, 4 * 1024 * 768 * 3072))


@check("layer_flops", "sizes", section=FLOPS, claim="n、d、d_ff 互不相同时也对", hint="d_ff 不一定是 4d")
def flops_sizes(student, rng):
    n, d, f = (int(v) for v in rng.permutation([11, 13, 17]))
    student(n, d, f).equals((8 * n * d * d, 4 * n * n * d, 4 * n * d * f))


@check("layer_flops", "growth", section=FLOPS, claim="n 加倍：投影与前馈加倍，得分变四倍；n = 6d（d_ff = 4d）时得分与其余相等",
       hint="只有得分与取值随 n² 增长")
def flops_growth(student, rng):
    d = int(rng.integers(5, 9))
    student(6 * d, d, 4 * d).satisfies(lambda parts: parts[0] + parts[2] == parts[1], "n = 6d 时投影与前馈之和应等于得分与取值")
    student(1, d, 3).equals((8 * d * d, 4 * d, 12 * d))


@check("layer_flops", "integers", section=FLOPS, claim="结果是三个整数", hint="只有乘法，不要除，也不要换算成 GFLOPs")
def flops_integers(student, rng):
    student(3, 4, 5).satisfies(lambda parts: len(parts) == 3 and all(type(p) is int for p in parts), "应返回三个 int")


# ---- moe_parameters --------------------------------------------------------------------------------------

def moe(d, e, n, active, shared=0):
    expert, router = 3 * d * e, d * n
    return expert * (n + shared) + router, expert * (active + shared) + router


@check("moe_parameters", "chapter", section=EXPERTS, claim="8 个专家挑 2 个外加 1 个共享：总 55,808，每个词元用到 18,944",
       hint="每个专家是 SwiGLU 的三个矩阵；路由器是 d × 专家数")
def moe_chapter(student, rng):
    student(64, 32, 8, 2, 1).equals((55808, 18944))


@check("moe_parameters", "sizes", section=EXPERTS, claim="任意的大小都对；没有共享专家时 n_shared 是 0",
       hint="总数数全部专家，激活数只数挑中的和共享的；路由器两边都在")
def moe_sizes(student, rng):
    d, e, n, active, shared = (int(v) for v in (*rng.permutation([7, 11, 13]), 3, 2))
    student(d, e, n, active, shared).equals(moe(d, e, n, active, shared))
    student(d, e, n, active).equals(moe(d, e, n, active))


@check("moe_parameters", "dense", section=EXPERTS, claim="全部挑中时两个数相等", hint="n_active = n_experts 时没有闲着的专家")
def moe_dense(student, rng):
    student(5, 7, 3, 3, 1).equals(moe(5, 7, 3, 3, 1))


@check("moe_parameters", "too-many", section=EXPERTS, claim="挑的比有的还多时报 ValueError", hint="n_active > n_experts 时 raise ValueError")
def moe_too_many(student, rng):
    student(5, 7, 3, 4).raises(ValueError)


# ---- gpt_forward -----------------------------------------------------------------------------------------

@check("gpt_forward", "no-layer", section=BUILD, claim="零层时：查嵌入、加位置、归一化、乘嵌入表的转置",
       hint="wte[ids] + wpe[:n]，过 norm_f，再乘 wte.T")
def forward_no_layer(student, rng):
    params, ids = model(rng, layers=0), rng.integers(0, 5, 3)
    student(ids, params, 2).equals(forward(ids, params, 2))


@check("gpt_forward", "layers", section=BUILD, claim="每层两步：x 加上注意力（先过 norm_1），再加上前馈（先过 norm_2）；各层依次",
       hint="Pre-LN：子层看归一化之后的数，残差加没有归一化的数")
def forward_layers(student, rng):
    for layers in (1, 2):
        params, ids = model(rng, layers=layers), rng.integers(0, 5, 4)
        student(ids, params, 2).equals(forward(ids, params, 2))


@check("gpt_forward", "causal", section=BUILD, claim="前面的 logits 与后面的词元无关", hint="注意力要加因果掩码：np.tri(n, dtype=bool)")
def forward_causal(student, rng):
    params, ids = model(rng), rng.integers(0, 5, 5)
    whole = student(ids, params, 2).value
    student(ids[:3], params, 2).equals(np.array(whole)[:3])


@check("gpt_forward", "batch", section=BUILD, claim="ids 前面有批的轴时，每句与单独算相同", hint="位置加在最后两轴上，自动广播；n 是 ids.shape[-1]")
def forward_batch(student, rng):
    params, ids = model(rng), rng.integers(0, 5, (2, 3))
    alone = [student(row, params, 2).value for row in ids]
    student(ids, params, 2).equals(np.array(alone))


@check("gpt_forward", "too-long", section=BUILD, claim="超过上下文长度时报 ValueError，不悄悄给出错的结果；正好用满时照算",
       hint="n > len(params[\"wpe\"]) 时 raise ValueError")
def forward_too_long(student, rng):
    params = model(rng, layers=1)
    full = rng.integers(0, 5, len(params["wpe"]))
    student(full, params, 2).satisfies(lambda r: np.shape(r)[:1] == full.shape, "正好用满上下文时应照算，给出每个位置的 logits")
    student(rng.integers(0, 5, len(full) + 1), params, 2).raises(ValueError)


@check("gpt_forward", "outside", section=BUILD, claim="词表之外的编号报 IndexError，负数也是", hint="NumPy 的下标 -1 是最后一行：先查 ids 的最小值")
def forward_outside(student, rng):
    params = model(rng, layers=1)
    student(np.array([0, len(params["wte"])]), params, 2).raises(IndexError)
    student(np.array([0, -1]), params, 2).raises(IndexError)


@check("gpt_forward", "untouched", section=BUILD, claim="ids 与参数都不被改动", hint="x += … 之前先确认 x 是新建的数组")
def forward_untouched(student, rng):
    params = model(rng, layers=1)
    student(rng.integers(0, 5, 3), params, 2).keeps_arguments()
