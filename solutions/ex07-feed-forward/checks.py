"""ex07-feed-forward 的隐藏检查。参考值由这里逐个数算出，不用 lib，也不用学生那种整块数组的写法。"""

import math

import numpy as np

from grading.checks import Callback, check, small

GELU, FFN, SWIGLU, WIDTH = "7.3", "7.1", "7.4", "7.4"


# ---- 参考 ------------------------------------------------------------------------------------------------

def gelu(v):
    return 0.5 * v * (1 + math.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v * v * v)))


def silu(v):
    return v / (1 + math.exp(-v)) if v > -700 else 0.0


def product(row, matrix):
    return [math.fsum(v * w for v, w in zip(row, column)) for column in zip(*matrix)]


def per_position(x, function):
    """Every position by itself, one row at a time."""
    rows = [function(row) for row in x.reshape(-1, x.shape[-1]).tolist()]
    return np.array(rows).reshape(*x.shape[:-1], -1)


def two_layers(x, p, activate):
    def one(row):
        hidden = [v + b for v, b in zip(product(row, p["W_1"].tolist()), p["b_1"].tolist())]
        hidden = activate(np.array(hidden)).tolist()
        return [v + b for v, b in zip(product(hidden, p["W_2"].tolist()), p["b_2"].tolist())]
    return per_position(x, one)


def gated(x, p):
    def one(row):
        gate, up = (product(row, p[name].tolist()) for name in ("W_gate", "W_up"))
        return product([silu(g) * u for g, u in zip(gate, up)], p["W_down"].tolist())
    return per_position(x, one)


ACTIVATION = Callback("lambda z: np.where(z > 0, z, 0.1 * z * z)")  # nobody's default


def parameters(rng, d=3, d_ff=5, out=3):
    return {"W_1": small(rng, d, d_ff), "b_1": small(rng, d_ff), "W_2": small(rng, d_ff, out), "b_2": small(rng, out)}


def gated_parameters(rng, d=3, d_ff=5):
    return {"W_gate": small(rng, d, d_ff), "W_up": small(rng, d, d_ff), "W_down": small(rng, d_ff, d)}


# ---- gelu ------------------------------------------------------------------------------------------------

@check("gelu", "values", section=GELU, claim="0.5·x·(1 + tanh(√(2/π)·(x + 0.044715·x³)))，逐个元素",
       hint="照公式写，注意每个系数：0.5、1 +、√(2/π)、0.044715、三次方")
def gelu_values(student, rng):
    x = small(rng, 5, scale=2.0)
    student(x).equals(np.array([gelu(v) for v in x.tolist()]))


@check("gelu", "shape", section=GELU, claim="什么形状进，什么形状出", hint="逐元素的运算对任何形状都成立，不要循环一维")
def gelu_shape(student, rng):
    x = small(rng, 2, 3, 4)
    student(x).equals(np.array([gelu(v) for v in x.ravel().tolist()]).reshape(x.shape))


@check("gelu", "limits", section=GELU, claim="很大的正数原样通过，很大的负数趋于 0，没有 nan",
       hint="tanh 自己不会溢出；用 e 的幂去拼 tanh 就会")
def gelu_limits(student, rng):
    student(np.array([50.0, -50.0, 1000.0, -1000.0])).equals(np.array([50.0, 0.0, 1000.0, 0.0]), atol=1e-12)


@check("gelu", "dtype", section=GELU, claim="float32 进，float32 出", hint="np.sqrt(2 / np.pi) 是 float64 的标量，会把数组提升；用 math.sqrt")
def gelu_dtype(student, rng):
    x = small(rng, 4).astype(np.float32)
    student(x).has_dtype(np.float32).equals(np.array([gelu(v) for v in x.tolist()]), rtol=1e-5, atol=1e-6)


@check("gelu", "untouched", section=GELU, claim="传进来的数组不变", hint="x *= … 会改掉调用者的数组")
def gelu_untouched(student, rng):
    student(small(rng, 3)).keeps_arguments()


# ---- feed_forward ----------------------------------------------------------------------------------------

@check("feed_forward", "values", section=FFN, claim="x 乘 W_1 加 b_1，过激活，再乘 W_2 加 b_2：先升维，过激活，再降回来",
       hint="次序是：乘 W_1、加 b_1、激活、乘 W_2、加 b_2；激活只在中间")
def ffn_values(student, rng):
    x, p = small(rng, 2, 3), parameters(rng)
    student(x, p, ACTIVATION).equals(two_layers(x, p, ACTIVATION))


@check("feed_forward", "positions", section=FFN, claim="每个位置单独算：单独算一个位置，与放在句子里算相同；前面的轴各管各的",
       hint="x @ W 只动最后一轴；不要对位置求和、求平均或归一")
def ffn_positions(student, rng):
    x, p = small(rng, 2, 4, 3), parameters(rng)
    student(x, p, ACTIVATION).equals(two_layers(x, p, ACTIVATION))
    student(x[0, 2], p, ACTIVATION).equals(two_layers(x[0, 2], p, ACTIVATION))


@check("feed_forward", "widths", section=FFN, claim="进、中间、出三个宽度可以都不同", hint="不要写死 4·d，也不要转置权重：W_1 是 [进, 中间]")
def ffn_widths(student, rng):
    x, p = small(rng, 3, 2), parameters(rng, 2, 7, 4)
    student(x, p, ACTIVATION).equals(two_layers(x, p, ACTIVATION))


@check("feed_forward", "dtype", section=FFN, claim="float32 进，float32 出", hint="不要混进 float64 的数组")
def ffn_dtype(student, rng):
    p = {name: value.astype(np.float32) for name, value in parameters(rng).items()}
    student(small(rng, 2, 3).astype(np.float32), p, Callback("lambda z: np.maximum(z, 0)")).has_dtype(np.float32)


@check("feed_forward", "untouched", section=FFN, claim="x 与参数都不变", hint="x += … 会改掉调用者的数组")
def ffn_untouched(student, rng):
    student(small(rng, 2, 3), parameters(rng), ACTIVATION).keeps_arguments()


# ---- swiglu_feed_forward ---------------------------------------------------------------------------------

@check("swiglu_feed_forward", "values", section=SWIGLU, claim="(SiLU(x W_gate) ⊙ x W_up) W_down：门与候选逐元素相乘，再投回去",
       hint="SiLU(z) = z / (1 + e^(−z))，只作用在门那一路；⊙ 是逐元素乘，不是矩阵乘")
def swiglu_values(student, rng):
    x, p = small(rng, 2, 3), gated_parameters(rng)
    student(x, p).equals(gated(x, p))


@check("swiglu_feed_forward", "positions", section=SWIGLU, claim="每个位置单独算，前面的轴各管各的", hint="x @ W 只动最后一轴")
def swiglu_positions(student, rng):
    x, p = small(rng, 2, 4, 3), gated_parameters(rng, 3, 2)
    student(x, p).equals(gated(x, p))


@check("swiglu_feed_forward", "large", section=SWIGLU, claim="门的得分很大或很小时没有 nan",
       hint="z / (1 + e^(−z)) 在 z 很负时分母是 inf，商是 0，没有问题；z·e^z/(1 + e^z) 会得 inf/inf")
def swiglu_large(student, rng):
    p = {"W_gate": np.array([[1000.0, -1000.0]]), "W_up": np.array([[1.0, 1.0]]), "W_down": np.array([[1.0], [1.0]])}
    student(np.array([[1.0]]), p).equals(np.array([[1000.0]]))


@check("swiglu_feed_forward", "dtype", section=SWIGLU, claim="float32 进，float32 出", hint="不要混进 float64 的数组")
def swiglu_dtype(student, rng):
    p = {name: value.astype(np.float32) for name, value in gated_parameters(rng).items()}
    student(small(rng, 2, 3).astype(np.float32), p).has_dtype(np.float32)


@check("swiglu_feed_forward", "untouched", section=SWIGLU, claim="x 与参数都不变", hint="就地运算只能用在自己刚建的数组上")
def swiglu_untouched(student, rng):
    student(small(rng, 2, 3), gated_parameters(rng)).keeps_arguments()


# ---- matched_hidden --------------------------------------------------------------------------------------

@check("matched_hidden", "plain", section=WIDTH, claim="不带门时是 4d", hint="两个矩阵共 2·d·d_ff，预算是 8d²")
def width_plain(student, rng):
    for d in (512, 768):
        student(d, False).equals(4 * d)


@check("matched_hidden", "gated", section=WIDTH, claim="带门时三个矩阵共 3·d·d_ff，要与 8d² 相当：8d/3 向上取整",
       hint="8 * d / 3 往往不是整数：用 math.ceil，或 -(-8 * d // 3)")
def width_gated(student, rng):
    for d in (6, 512, 4096):
        student(d, True).equals(-(-8 * d // 3))


@check("matched_hidden", "multiple", section=WIDTH, claim="给了 multiple 就再向上取到它的倍数", hint="-(-宽度 // multiple) * multiple")
def width_multiple(student, rng):
    for d, multiple in ((512, 128), (4096, 256), (6, 8)):
        student(d, True, multiple).equals(-(-8 * d // (3 * multiple)) * multiple)


@check("matched_hidden", "whole", section=WIDTH, claim="返回整数", hint="/ 给出浮点数，// 给出整数")
def width_whole(student, rng):
    student(12, True).satisfies(lambda r: isinstance(r, (int, np.integer)) and not isinstance(r, bool), "应返回整数")
