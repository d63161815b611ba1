"""ex07-feed-forward 的错误写法与其他正确写法。"""

import math

import numpy as np

from grading.mutants import mutant, right

GELU, FFN, SWIGLU, WIDTH = "7.3", "7.1", "7.4", "7.4"
C = math.sqrt(2 / math.pi)
SW = "swiglu_feed_forward"


# ---- gelu：错误写法 ----------------------------------------------------------------------------------------

@mutant("gelu", "用了 sigmoid 近似", "那是另一个近似 x·sigmoid(1.702x)，误差大四十倍；这里要 tanh 的那个", GELU, caught_by="values")
def by_sigmoid(x):
    return x / (1 + np.exp(-1.702 * np.clip(x, -300, None)))


@mutant("gelu", "用了精确的 Φ", "精确式与 tanh 近似最多差 4.7e-4；这里要近似式，它与 GPT-2 的权重配套", GELU, caught_by="values")
def exact(x):
    phi = np.array([0.5 * (1 + math.erf(v / math.sqrt(2))) for v in np.ravel(x).tolist()]).reshape(np.shape(x))
    return (x * phi).astype(x.dtype)


@mutant("gelu", "写成了 ReLU", "GELU 是平滑的，负数那一侧不是 0", GELU, caught_by="values")
def as_relu(x):
    return np.maximum(x, 0)


@mutant("gelu", "写成了 SiLU", "SiLU 用 sigmoid，GELU 用标准正态的累积概率", GELU, caught_by="values")
def as_silu(x):
    return x / (1 + np.exp(-np.clip(x, -300, None)))


@mutant("gelu", "漏了 0.5", "前面还有一个 0.5：x 很大时结果应是 x，不是 2x", GELU, caught_by="values")
def without_half(x):
    return x * (1 + np.tanh(C * (x + 0.044715 * x * x * x)))


@mutant("gelu", "漏了 1 +", "括号里是 1 + tanh(…)：tanh 在 −1 与 1 之间，加 1 再乘 0.5 才在 0 与 1 之间", GELU, caught_by="values")
def without_one(x):
    return 0.5 * x * np.tanh(C * (x + 0.044715 * x * x * x))


@mutant("gelu", "漏了三次项", "x + 0.044715·x³ 少了后一项，误差大几十倍", GELU, caught_by="values")
def without_cube(x):
    return 0.5 * x * (1 + np.tanh(C * x))


@mutant("gelu", "0.044715 写成了 0.44715", "小数点之后先有一个 0：0.044715", GELU, caught_by="values")
def ten_times(x):
    return 0.5 * x * (1 + np.tanh(C * (x + 0.44715 * x * x * x)))


@mutant("gelu", "三次方写成了平方", "是 x³；平方让正负两边不对称", GELU, caught_by="values")
def squared(x):
    return 0.5 * x * (1 + np.tanh(C * (x + 0.044715 * x * x)))


@mutant("gelu", "√(2/π) 写成了 2/π", "系数是 √(2/π) ≈ 0.798", GELU, caught_by="values")
def without_root(x):
    return 0.5 * x * (1 + np.tanh(2 / math.pi * (x + 0.044715 * x * x * x)))


@mutant("gelu", "√(2/π) 写成了 √(2π)", "系数是 √(2/π)，除号不能丢", GELU, caught_by="values")
def root_of_product(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 * math.pi) * (x + 0.044715 * x * x * x)))


@mutant("gelu", "外面没有乘 x", "是 x 乘上那个 0 到 1 之间的数", GELU, caught_by="values")
def without_x(x):
    return 0.5 * (1 + np.tanh(C * (x + 0.044715 * x * x * x)))


@mutant("gelu", "把数组摊平了", "逐元素的运算不改形状", GELU, caught_by="shape")
def flat(x):
    return good_gelu(np.ravel(x))


@mutant("gelu", "用 e 的幂拼 tanh，溢出了", "e 的 1000 次方是 inf，inf/inf 是 nan；用 np.tanh", GELU, caught_by="limits")
def overflowing_tanh(x):
    u = C * (x + 0.044715 * x * x * x)
    return 0.5 * x * (1 + (np.exp(u) - np.exp(-u)) / (np.exp(u) + np.exp(-u)))


@mutant("gelu", "提升成了 float64", "np.sqrt(2 / np.pi) 是 float64 的标量，会提升整个数组；用 math.sqrt", GELU, caught_by="dtype", seen_in="jaymody/picoGPT/issues/16")
def promoted(x):
    return good_gelu(x.astype(np.float64))


@mutant("gelu", "就地乘了", "x *= … 改掉了调用者的数组", GELU, caught_by="untouched")
def in_place(x):
    result = good_gelu(x)
    x *= 0.5
    return result


@right("gelu", "照公式")
def good_gelu(x):
    return 0.5 * x * (1 + np.tanh(C * (x + 0.044715 * (x * x * x))))


@right("gelu", "写成 x 乘 sigmoid")
def as_gate(x):
    with np.errstate(over="ignore"):
        return x / (1 + np.exp(-2 * C * (x + 0.044715 * x * x * x)))


@right("gelu", "提出公因子")
def factored(x):
    u = x * (C + C * 0.044715 * np.square(x))
    return x * (np.tanh(u) + 1) / 2


# ---- feed_forward：错误写法 --------------------------------------------------------------------------------

@mutant("feed_forward", "没有激活", "没有激活函数，两个矩阵合成一个，连异或都做不了（7.2）", FFN, caught_by="values")
def linear_only(x, params, activation):
    return (x @ params["W_1"] + params["b_1"]) @ params["W_2"] + params["b_2"]


@mutant("feed_forward", "激活放在了最后", "激活在中间：升维之后、降维之前；输出不过激活", FFN, caught_by="values")
def activated_last(x, params, activation):
    return activation((x @ params["W_1"] + params["b_1"]) @ params["W_2"] + params["b_2"])


@mutant("feed_forward", "激活了两次", "输出不过激活，它要加到残差上", FFN, caught_by="values")
def activated_twice(x, params, activation):
    return activation(activation(x @ params["W_1"] + params["b_1"]) @ params["W_2"] + params["b_2"])


@mutant("feed_forward", "先激活输入", "激活的是升维之后的中间层", FFN, caught_by="values")
def activated_first(x, params, activation):
    return (activation(x) @ params["W_1"] + params["b_1"]) @ params["W_2"] + params["b_2"]


@mutant("feed_forward", "漏了 b_1", "激活之前要加 b_1", FFN, caught_by="values")
def without_b1(x, params, activation):
    return activation(x @ params["W_1"]) @ params["W_2"] + params["b_2"]


@mutant("feed_forward", "漏了 b_2", "最后要加 b_2", FFN, caught_by="values")
def without_b2(x, params, activation):
    return activation(x @ params["W_1"] + params["b_1"]) @ params["W_2"]


@mutant("feed_forward", "b_1 加在激活之后", "先加偏置，再激活：偏置决定在哪里拐弯", FFN, caught_by="values")
def bias_after(x, params, activation):
    return (activation(x @ params["W_1"]) + params["b_1"]) @ params["W_2"] + params["b_2"]


@mutant("feed_forward", "用了 ReLU 而不是传进来的激活", "激活函数是参数：用 activation(…)", FFN, caught_by="values")
def own_relu(x, params, activation):
    return np.maximum(x @ params["W_1"] + params["b_1"], 0) @ params["W_2"] + params["b_2"]


@mutant("feed_forward", "顺手加了残差", "残差在 FFN 外面加（第 8 章），这里只算 F(x)", FFN, caught_by="values")
def with_residual(x, params, activation):
    y = good_ffn(x, params, activation)
    return y + x if y.shape == x.shape else y


@mutant("feed_forward", "把各位置混在了一起", "FFN 不让位置之间通信：每个位置只看自己", FFN, caught_by="values")
def mixes_positions(x, params, activation):
    if x.ndim > 1:
        x = x - x.mean(-2, keepdims=True)
    return good_ffn(x, params, activation)


@mutant("feed_forward", "把批与位置摊成一行没有还原", "x @ W 对任意几个轴都成立，不必摊平", FFN, caught_by="positions")
def not_restored(x, params, activation):
    return good_ffn(x.reshape(-1, x.shape[-1]), params, activation)


@mutant("feed_forward", "输出截成了与输入同宽", "输出的宽度由 W_2 的列数决定", FFN, caught_by="widths")
def same_width(x, params, activation):
    return good_ffn(x, params, activation)[..., : x.shape[-1]]


@mutant("feed_forward", "提升成了 float64", "float32 进 float32 出", FFN, caught_by="dtype")
def ffn_promoted(x, params, activation):
    return good_ffn(x, params, activation).astype(np.float64)


@mutant("feed_forward", "就地改了参数", "先建新数组，再就地运算", FFN, caught_by="untouched")
def changes_bias(x, params, activation):
    y = good_ffn(x, params, activation)
    params["b_2"] += 0.5
    return y


@right("feed_forward", "整块相乘")
def good_ffn(x, params, activation):
    return activation(x @ params["W_1"] + params["b_1"]) @ params["W_2"] + params["b_2"]


@right("feed_forward", "einsum")
def with_einsum(x, params, activation):
    hidden = activation(np.einsum("...i,ij->...j", x, params["W_1"]) + params["b_1"])
    return np.einsum("...i,ij->...j", hidden, params["W_2"]) + params["b_2"]


@right("feed_forward", "一个神经元一个神经元地加")
def neuron_by_neuron(x, params, activation):
    out = np.broadcast_to(params["b_2"], (*x.shape[:-1], params["W_2"].shape[1])).copy()
    for k in range(params["W_1"].shape[1]):
        out += activation(x @ params["W_1"][:, k] + params["b_1"][k])[..., None] * params["W_2"][k]
    return out


# ---- swiglu_feed_forward：错误写法 -------------------------------------------------------------------------

def silu(z):
    with np.errstate(over="ignore"):
        return z / (1 + np.exp(-z))


@mutant(SW, "门与候选对调了", "SiLU 作用在 W_gate 那一路", SWIGLU, caught_by="values")
def swapped(x, params):
    return (silu(x @ params["W_up"]) * (x @ params["W_gate"])) @ params["W_down"]


@mutant(SW, "门用了 sigmoid", "那是最早的 GLU；SwiGLU 的门是 SiLU，可以是负的，也可以大于 1", SWIGLU, caught_by="values")
def sigmoid_gate(x, params):
    with np.errstate(over="ignore"):
        return (1 / (1 + np.exp(-(x @ params["W_gate"]))) * (x @ params["W_up"])) @ params["W_down"]


@mutant(SW, "相加而不是相乘", "门是逐元素地乘：0 表示关上", SWIGLU, caught_by="values")
def added(x, params):
    return (silu(x @ params["W_gate"]) + x @ params["W_up"]) @ params["W_down"]


@mutant(SW, "两路都过了 SiLU", "候选那一路不过激活", SWIGLU, caught_by="values")
def both_activated(x, params):
    return (silu(x @ params["W_gate"]) * silu(x @ params["W_up"])) @ params["W_down"]


@mutant(SW, "先相乘再激活", "先对门做 SiLU，再相乘", SWIGLU, caught_by="values")
def activated_product(x, params):
    return silu((x @ params["W_gate"]) * (x @ params["W_up"])) @ params["W_down"]


@mutant(SW, "门没有激活", "门要过 SiLU；否则只是两个线性函数之积", SWIGLU, caught_by="values")
def bilinear(x, params):
    return ((x @ params["W_gate"]) * (x @ params["W_up"])) @ params["W_down"]


@mutant(SW, "漏了候选那一路", "少了 W_up：那就只是两层的 FFN", SWIGLU, caught_by="values")
def only_gate(x, params):
    return silu(x @ params["W_gate"]) @ params["W_down"]


@mutant(SW, "用了 GELU", "SwiGLU 用 SiLU；用 GELU 的叫 GEGLU", SWIGLU, caught_by="values")
def with_gelu(x, params):
    return (good_gelu(x @ params["W_gate"]) * (x @ params["W_up"])) @ params["W_down"]


@mutant(SW, "用了 ReLU", "SwiGLU 用 SiLU；用 ReLU 的叫 ReGLU", SWIGLU, caught_by="values")
def with_relu(x, params):
    return (np.maximum(x @ params["W_gate"], 0) * (x @ params["W_up"])) @ params["W_down"]


@mutant(SW, "激活了输出", "投回去之后不过激活", SWIGLU, caught_by="values")
def activated_output(x, params):
    return silu(good_swiglu(x, params))


@mutant(SW, "顺手加了残差", "残差在前馈网络外面加（第 8 章），这里只算 F(x)", SWIGLU, caught_by="values")
def swiglu_with_residual(x, params):
    result = (silu(x @ params["W_gate"]) * (x @ params["W_up"])) @ params["W_down"]
    return result + x if result.shape == x.shape else result


@mutant(SW, "前面的轴被摊平了", "x @ W 对任意几个轴都成立", SWIGLU, caught_by="positions")
def flattened(x, params):
    return good_swiglu(x.reshape(-1, x.shape[-1]), params)


@mutant(SW, "SiLU 写成 z·e^z/(1 + e^z)，溢出了", "z 很大时是 inf/inf；写成 z / (1 + e^(−z))", SWIGLU, caught_by="large")
def overflowing_silu(x, params):
    z = x @ params["W_gate"]
    return (z * np.exp(z) / (1 + np.exp(z)) * (x @ params["W_up"])) @ params["W_down"]


@mutant(SW, "提升成了 float64", "float32 进 float32 出", SWIGLU, caught_by="dtype")
def swiglu_promoted(x, params):
    return good_swiglu(x, params).astype(np.float64)


@mutant(SW, "就地改了输入", "就地运算只能用在自己刚建的数组上", SWIGLU, caught_by="untouched")
def swiglu_in_place(x, params):
    y = good_swiglu(x, params)
    x *= 2
    return y


@right(SW, "照公式")
def good_swiglu(x, params):
    return (silu(x @ params["W_gate"]) * (x @ params["W_up"])) @ params["W_down"]


@right(SW, "两路并排一次乘完再切开")
def fused(x, params):
    both = x @ np.concatenate([params["W_gate"], params["W_up"]], axis=1)
    gate, up = np.split(both, 2, axis=-1)
    return np.einsum("...k,kd->...d", silu(gate) * up, params["W_down"])


@right(SW, "用 tanh 写 sigmoid")
def tanh_silu(x, params):
    z = x @ params["W_gate"]
    return (z * (0.5 + 0.5 * np.tanh(z / 2)) * (x @ params["W_up"])) @ params["W_down"]


# ---- matched_hidden：错误写法 ------------------------------------------------------------------------------

def up_to(width, multiple):
    return -(-width // multiple) * multiple


@mutant("matched_hidden", "不带门时也用 8/3", "两个矩阵时是 4d", WIDTH, caught_by="plain")
def always_gated(d, gated, multiple=1):
    return up_to(-(-8 * d // 3), multiple)


@mutant("matched_hidden", "不带门时是 2d", "预算是 8d²，两个矩阵共 2·d·d_ff，所以是 4d", WIDTH, caught_by="plain")
def twice(d, gated, multiple=1):
    return up_to(-(-8 * d // 3) if gated else 2 * d, multiple)


@mutant("matched_hidden", "带门时还是 4d", "三个矩阵的 4d 会多出一半参数", WIDTH, caught_by="gated")
def always_four(d, gated, multiple=1):
    return up_to(4 * d, multiple)


@mutant("matched_hidden", "带门时取 3.5d", "3.5 倍是 Llama 3 8B 的选择，参数多出约 31%；相当的是 8/3", WIDTH, caught_by="gated")
def llama_three(d, gated, multiple=1):
    return up_to(7 * d // 2 if gated else 4 * d, multiple)


@mutant("matched_hidden", "带门时取 2d", "三个矩阵共 3·d·d_ff = 8d²，d_ff 是 8d/3", WIDTH, caught_by="gated")
def two_thirds_of_three(d, gated, multiple=1):
    return up_to(2 * d if gated else 4 * d, multiple)


@mutant("matched_hidden", "向下取整", "不足一个也要进上去：向上取整", WIDTH, caught_by="gated")
def floored(d, gated, multiple=1):
    return up_to(8 * d // 3 if gated else 4 * d, multiple)


@mutant("matched_hidden", "忽略了 multiple", "再取到 multiple 的倍数", WIDTH, caught_by="multiple")
def no_multiple(d, gated, multiple=1):
    return -(-8 * d // 3) if gated else 4 * d


@mutant("matched_hidden", "向下取到倍数", "向上取：-(-宽度 // multiple) * multiple", WIDTH, caught_by="multiple")
def down_to_multiple(d, gated, multiple=1):
    return (-(-8 * d // 3) if gated else 4 * d) // multiple * multiple


@mutant("matched_hidden", "已经是倍数还要再进一格", "正好是倍数时不动", WIDTH, caught_by="gated")
def always_one_more(d, gated, multiple=1):
    width = -(-8 * d // 3) if gated else 4 * d
    return width if not gated else (width // multiple + 1) * multiple


@mutant("matched_hidden", "返回了浮点数", "宽度是整数：用 // 或 math.ceil", WIDTH, caught_by="plain")
def as_float(d, gated, multiple=1):
    return float(good_width(d, gated, multiple))


@right("matched_hidden", "向上取整除法")
def good_width(d, gated, multiple=1):
    return up_to(-(-8 * d // 3) if gated else 4 * d, multiple)


@right("matched_hidden", "math.ceil")
def with_ceil(d, gated, multiple=1):
    width = 8 * d / (3 if gated else 2)
    return math.ceil(math.ceil(width) / multiple) * multiple


@right("matched_hidden", "从预算出发逐个试")
def by_search(d, gated, multiple=1):
    matrices = 3 if gated else 2
    width = multiple
    while matrices * d * width < 8 * d * d:
        width += multiple
    return width
