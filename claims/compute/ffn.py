"""The feed-forward network: activations, what it adds to attention, keys and values, widths and parameter shares."""

import math

import numpy as np

from claims.compute.networks import attention_layer
from claims.judge import UNSET, Evidence
from claims.registry import computation
from lib.accounting import count_parameters, parameter_table
from lib.attention import scaled_dot_product_attention
from lib.feedforward import feed_forward, swiglu_feed_forward
from lib.functional import gelu, relu, sigmoid, silu
from lib.model import PRESETS


@computation
def relu_of(values):
    return relu(np.array(values, float))


@computation
def silu_parts(x):
    """The gate σ(x) and the product x σ(x)."""
    return [float(sigmoid(float(x))), float(silu(float(x)))]


@computation
def silu_decays():
    """SiLU and GELU left of zero: not cut off, back towards zero, with one minimum in between."""
    x = np.linspace(-12, 0, 12_001)
    y = silu(x)
    lowest = int(y.argmin())
    decays = (y[1:-1] < 0).all() and (np.diff(y[:lowest + 1]) <= 0).all() and (np.diff(y[lowest:]) >= 0).all() and abs(y[0]) < 1e-3
    return Evidence(bool(decays), show={"at": x[lowest], "lowest": y[lowest], "gelu": gelu(x).min()})


@computation
def gate_range():
    """The range of SiLU over a wide interval, beside that of the sigmoid."""
    x = np.concatenate([np.linspace(-30, 30, 600_001), [1e6]])
    y = silu(x)
    top = math.inf if y[-1] == x[-1] else float(y.max())  # it follows x: no upper bound
    return Evidence([float(y.min()), top], show={"at": x[y.argmin()], "lowest": y.min(), "sigmoid": [float(sigmoid(x).min()), float(sigmoid(x).max())]})


@computation
def gelu_approximations():
    """The largest errors of the tanh form and of x σ(1.702 x); the exact form takes one call of erf."""
    x = np.linspace(-8, 8, 400_001)
    exact = gelu(x)
    errors = [float(np.abs(gelu(x, approximate="tanh") - exact).max()), float(np.abs(x * sigmoid(1.702 * x) - exact).max())]
    erf = np.array([0.5 * v * (1 + math.erf(v / math.sqrt(2))) for v in x[::4000]])
    exact_at_hand = np.allclose(exact[::4000], erf, atol=1e-12)
    claim = "tanh 或 1.702 近似（公式缺失）"
    return Evidence(errors, says="精确的 Φ 直接可算" if exact_at_hand else claim, narrow=claim if max(errors) < 0.05 else UNSET,
                    show={"tanh": errors[0], "sigmoid": errors[1]})


@computation
def swiglu_is_elementwise():
    """An elementwise σ acts on every number alone and needs no weights; SwiGLU's output mixes all inputs."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=6)
    params = {name: rng.normal(size=(6, 6)) for name in ("W_gate", "W_up", "W_down")}
    nudged = x + np.eye(6)[0]
    touched = lambda f: int((np.abs(f(nudged) - f(x)) > 1e-12).sum())
    elementwise = touched(lambda v: swiglu_feed_forward(v, params)) == 1
    claim = "SwiGLU 是逐元素 σ"
    return Evidence(claim if elementwise else "SwiGLU 是三矩阵门控单元", narrow=claim if touched(gelu) == 1 else UNSET)


@computation
def swiglu_depth():
    """Matrices in all, and on the way from input to output: those that run side by side count once.

    Far from zero SiLU is the identity, so the output grows with as high a power of x as there are branches that meet."""
    params = {name: np.eye(4) for name in ("W_gate", "W_up", "W_down")}
    x = np.full(4, 60.0)
    branches = round(math.log2(swiglu_feed_forward(2 * x, params)[0] / swiglu_feed_forward(x, params)[0]))
    return Evidence(len(params) - branches + 1, narrow=len(params))


@computation
def swiglu_operations():
    """What has to be done: three projections and one product between them."""
    rng = np.random.default_rng(0)
    x, (W_gate, W_up, W_down) = rng.normal(size=5), rng.normal(size=(3, 5, 5))
    steps, value = [], {}
    for name, operation in (("gate", lambda: silu(x @ W_gate)), ("up", lambda: x @ W_up), ("product", lambda: value["gate"] * value["up"]),
                            ("down", lambda: value["product"] @ W_down)):
        value[name] = operation()
        steps.append(name)
    if not np.allclose(value["down"], swiglu_feed_forward(x, {"W_gate": W_gate, "W_up": W_up, "W_down": W_down})):
        raise AssertionError("四步与 swiglu_feed_forward 不一致")
    return len(steps)


@computation
def positions_are_independent():
    """Permuting the positions permutes the outputs; changing one leaves the others alone."""
    rng = np.random.default_rng(0)
    params = {"W_1": rng.normal(size=(6, 24)), "W_2": rng.normal(size=(24, 6))}
    x, order = rng.normal(size=(5, 6)), rng.permutation(5)
    changed = x.copy()
    changed[2] += 1
    y, z = feed_forward(x, params, "relu"), feed_forward(changed, params, "relu")
    permutes = np.allclose(feed_forward(x[order], params, "relu"), y[order])
    return bool(permutes and np.allclose(np.delete(y, 2, 0), np.delete(z, 2, 0)))


@computation
def attention_is_linear():
    """Is attention linear in its input? With given weights it is linear in V; the weights themselves depend on x."""
    rng = np.random.default_rng(0)
    x, p = rng.normal(size=(5, 8)), rng.dirichlet(np.ones(5), size=5)
    layer = attention_layer(rng, 8)
    whole = np.allclose(layer(2 * x), 2 * layer(x), rtol=1e-3)
    given = np.allclose(p @ (2 * x), 2 * (p @ x))
    return Evidence(bool(whole), narrow=bool(given))


@computation
def stacked_attention_is_linear(layers):
    """A stack of attention layers alone: does it double when its input doubles?"""
    rng = np.random.default_rng(0)
    x, stack = rng.normal(size=(5, 8)), [attention_layer(rng, 8, scale=1.0) for _ in range(layers)]

    def through(y):
        for layer in stack:
            y = layer(y)
        return y

    ratio = np.linalg.norm(through(2 * x) - 2 * through(x)) / np.linalg.norm(2 * through(x))
    return Evidence(bool(ratio < 1e-6), show={"off": ratio})


@computation
def widths_shape(widths):
    """The widths through the layer: narrow in the middle (hourglass) or wide (spindle)?"""
    left, middle, right = widths
    return Evidence("沙漏" if middle < min(left, right) else "纺锤（中间宽）", narrow="沙漏" if left < middle > right and left == right else UNSET)


@computation
def relu_dies():
    """A unit that is negative for some inputs still learns from the others; only one that is negative for all is dead."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 6))
    w = rng.normal(size=6)
    gradient = lambda bias: np.abs(((x @ w + bias) > 0) @ x).max()
    some_negative = ((x @ w) < 0).any() and gradient(0.0) == 0
    dead = ((x @ w - 100) < 0).all() and gradient(-100.0) == 0
    return Evidence(bool(some_negative), narrow=bool(dead), show={"share": float(((x @ w) < 0).mean())})


@computation
def nonnegative_inputs_keep_units_positive():
    """Pixels are not negative; are the weighted sums that ReLU sees? With weights of both signs, about half are."""
    rng = np.random.default_rng(0)
    pixels = rng.uniform(size=(200, 50))
    mixed, positive = (pixels @ rng.normal(size=(50, 100)) < 0).mean(), (pixels @ rng.uniform(size=(50, 100)) < 0).mean()
    return Evidence(bool(mixed == 0), narrow=bool(positive == 0), show={"negative": float(mixed)})


@computation
def memory_layout(matrix):
    """With x W₁ and W₂ as the document sizes them: which rows or columns are the keys and the values of one hidden unit?"""
    rng = np.random.default_rng(0)
    x, W_1, W_2, unit = rng.normal(size=4), rng.normal(size=(4, 16)), rng.normal(size=(16, 4)), 5
    if matrix == "W₁":
        key = {"列": W_1[:, unit], "行": W_1[unit % 4]}
        [line] = [name for name, vector in key.items() if len(vector) == 4 and np.isclose(x @ vector, (x @ W_1)[unit])]
        return Evidence(f"W₁:[d,d_ff] 时键是{line}", says=f"W₁ 的{line}=键")
    hidden = np.zeros(16)
    hidden[unit] = 1.0  # one unit active: what it writes is its value
    written = feed_forward(hidden, {"W_1": np.eye(16), "W_2": W_2}, "relu")
    line = "行" if np.allclose(written, W_2[unit]) else "列"
    return Evidence(f"W₂:[d_ff,d] 时值是{line}", says=f"W₂ 的{line}=值")


@computation
def facts_need_feed_forward():
    """Three facts stored in embeddings and one attention head alone, no feed-forward anywhere, and recalled."""
    facts = {"法国": "巴黎", "日本": "东京", "埃及": "开罗"}
    words = [*facts, *facts.values(), "首都"]
    table = 8 * np.eye(len(words))
    W_V = np.zeros((len(words), len(words)))
    for country, capital in facts.items():
        W_V[words.index(country), words.index(capital)] = 1.0
    W_K = np.eye(len(words))
    W_Q = np.zeros_like(W_K)
    W_Q[words.index("首都"), [words.index(c) for c in facts]] = 1.0  # "首都" looks for a country
    recalled = {}
    for country in facts:
        x = table[[words.index(country), words.index("首都")]]
        output, _ = scaled_dot_product_attention(x @ W_Q, x @ W_K, x @ W_V)
        recalled[country] = words[int((output[-1] @ table.T).argmax())]
    return recalled != facts


@computation
def facts_beyond_feed_forward():
    """The same construction read as a caution: knowledge need not be in the feed-forward layers alone."""
    return not facts_need_feed_forward()


@computation
def parameter_coefficient(part):
    """Parameters of one layer's part in units of d², without biases; the same at every d."""
    size = {"ffn": lambda d: d * 4 * d + 4 * d * d, "attention": lambda d: 4 * d * d}[part]
    coefficients = {size(d) / d**2 for d in (8, 512, 12288)}
    [coefficient] = coefficients
    return coefficient


@computation
def layer_share():
    """The feed-forward share of one layer's weights."""
    ffn, attention = parameter_coefficient("ffn"), parameter_coefficient("attention")
    return ffn / (ffn + attention)


def part_of_model(part, config):
    """The share of a part's matrices (biases left out) or, for the embeddings, of its tables."""
    rows = [row for row in parameter_table(config) if row.part == part and len(row.shape) > 1]
    return sum(row.count for row in rows) / count_parameters(config)


@computation
def ffn_share_of_model(model, layer_reading=False):
    """The feed-forward share of a whole model; one layer's share is the reading in which two thirds is right."""
    share = part_of_model("前馈", PRESETS[model])
    return Evidence(share, narrow=layer_share() if layer_reading else UNSET, show={"embedding": part_of_model("嵌入", PRESETS[model])})


@computation
def share_of_model(part, model):
    return Evidence(part_of_model(part, PRESETS[model]))


@computation
def part_is_small(part, model):
    """Is this part small? Its share, beside that of attention."""
    share, attention = (part_of_model(name, PRESETS[model]) for name in (part, "注意力"))
    return Evidence(share, says="不大" if share < attention / 2 else "比注意力还大" if share > attention else "不小", show={"attention": attention})


@computation
def gated_width(d, used):
    """The width at which three matrices hold as many numbers as two of 4d, and what the printed width comes from."""
    matched = 8 / 3 * d
    llama = math.ceil(int(1.3 * int(2 / 3 * 4 * d)) / 1024) * 1024  # Llama 3 8B: ffn_dim_multiplier 1.3, multiple of 1024
    return Evidence(matched, other=llama, show={"more": 3 * d * used / (2 * d * 4 * d) - 1, "int": int(2 / 3 * 4 * d), "times": int(1.3 * int(2 / 3 * 4 * d))})


@computation
def gated_parameter_ratio(d, width):
    """Parameters of a gated feed-forward of this width against the plain one of 4d."""
    return Evidence(3 * d * width / (2 * d * 4 * d), show={"matched": round(3 * d * (8 * d / 3) / (2 * d * 4 * d), 12)})


@computation
def expansion(d_ff, d):
    return d_ff / d


@computation
def expansions(models):
    """d_ff / d, model by model; the smallest and the largest in another list."""
    ratios = [d_ff / d for d_ff, d in models]
    return Evidence(ratios, says=ratios[0] if len(set(ratios)) == 1 else [min(ratios), max(ratios)])


@computation
def expansion_range(models):
    ratios = [d_ff / d for d_ff, d in models]
    return [min(ratios), max(ratios)]
