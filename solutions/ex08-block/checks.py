"""ex08-block 的隐藏检查。参考值逐个数算出；子层和归一化由检查自己给，彼此都不相同。"""

import math

import numpy as np

from grading.checks import Callback, check, small

LN, BN, RMS, ORDER = "8.3", "8.4", "8.5", "8.6"
COARSE = 1e-3  # eps 的影响小于它：只看思路的检查不追究 eps 写在哪里


# ---- 参考 ------------------------------------------------------------------------------------------------

def layer_norm_row(row, gain, bias, eps):
    mean = math.fsum(row) / len(row)
    variance = math.fsum((value - mean) ** 2 for value in row) / len(row)
    return [(value - mean) / math.sqrt(variance + eps) * g + b for value, g, b in zip(row, gain, bias)]


def rms_norm_row(row, gain, eps):
    root = math.sqrt(math.fsum(value * value for value in row) / len(row) + eps)
    return [value / root * g for value, g in zip(row, gain)]


def by_rows(function, x, *rest):
    return np.array([function(row.tolist(), *rest) for row in x.reshape(-1, x.shape[-1])]).reshape(x.shape)


def layer_norm(x, gain=None, bias=None, eps=1e-5):
    d = x.shape[-1]
    return by_rows(layer_norm_row, x, np.ones(d) if gain is None else gain, np.zeros(d) if bias is None else bias, eps)


def rms_norm(x, gain=None, eps=1e-6):
    return by_rows(rms_norm_row, x, np.ones(x.shape[-1]) if gain is None else gain, eps)


def batch_norm(x, gain=None, bias=None, eps=1e-5, running=None):
    columns = []
    for j, column in enumerate(x.reshape(-1, x.shape[-1]).T.tolist()):
        if running is None:
            column = layer_norm_row(column, [1.0] * len(column), [0.0] * len(column), eps)
        else:
            column = [(value - running[0][j]) / math.sqrt(running[1][j] + eps) for value in column]
        g, b = 1.0 if gain is None else gain[j], 0.0 if bias is None else bias[j]
        columns.append([value * g + b for value in column])
    return np.array(columns).T.reshape(x.shape)


def spread(rng, *shape):
    """Numbers that differ clearly within every row and every column, so that ε is negligible."""
    return small(rng, *shape, scale=0.4, around=np.arange(math.prod(shape)).reshape(shape) * 3 % 7)


def vectors(rng, d):
    """A gain and a bias that differ from 1 and 0 in every place."""
    return np.round(small(rng, d) + np.where(rng.random(d) < 0.5, 3.0, -3.0), 1), small(rng, d, around=5.0)


# ---- layer_norm ------------------------------------------------------------------------------------------

@check("layer_norm", "values", section=LN, claim="一行减去自己的均值，除以自己的标准差（方差除以 d，不是 d − 1）",
       hint="先 x − μ，再除以 √(σ² + ε)；σ² 是离差平方的平均")
def layer_norm_values(student, rng):
    for d in (3, 5):
        x = spread(rng, d)
        student(x).equals(layer_norm(x), atol=COARSE)


@check("layer_norm", "rows", section=LN, claim="每个位置只用自己的 d 个数，与别的位置、别的句子无关",
       hint="均值和方差都沿最后一轴，keepdims=True")
def layer_norm_rows(student, rng):
    for shape in ((3, 4), (2, 3, 4)):
        x = spread(rng, *shape)
        student(x).equals(layer_norm(x), atol=COARSE)


@check("layer_norm", "affine", section=LN, claim="归一之后先乘增益 gain，再加偏置 bias；没给就是 1 和 0",
       hint="次序是 (归一的结果) × gain + bias")
def layer_norm_affine(student, rng):
    x, (gain, bias) = spread(rng, 2, 4), vectors(rng, 4)
    student(x, gain=gain, bias=bias).equals(layer_norm(x, gain, bias), atol=0.02)
    student(x, gain=gain).equals(layer_norm(x, gain), atol=0.02)
    student(x, bias=bias).equals(layer_norm(x, bias=bias), atol=0.02)


@check("layer_norm", "shift", section=LN, claim="各数都加同一个数，输出不变",
       hint="减去均值之后，加上去的数应当完全消失")
def layer_norm_shift(student, rng):
    x = spread(rng, 4)
    alone = student(x).value
    for shift in (1.0, 100.0):
        student(np.round(x + shift, 1)).equals(alone, atol=1e-6)


@check("layer_norm", "eps", section=LN, claim="ε 加在方差上、根号里面，大小由参数 eps 给",
       hint="除以 np.sqrt(方差 + eps)，不是 np.sqrt(方差) + eps")
def layer_norm_eps(student, rng):
    x = small(rng, 4)
    for eps in (0.5, 2.0):
        student(x, eps=eps).equals(layer_norm(x, eps=eps))
    x = small(rng, 4, digits=4, scale=0.001)
    student(x).equals(layer_norm(x))


@check("layer_norm", "constant", section=LN, claim="一行全相等时归一的结果是 0（不是 nan），于是输出等于 bias",
       hint="方差为 0 时全靠 ε：没有它就是 0 / 0")
def layer_norm_constant(student, rng):
    x, (gain, bias) = np.full(4, float(rng.integers(1, 9))), vectors(rng, 4)
    student(x).equals(np.zeros(4))
    student(x, gain=gain, bias=bias).equals(bias)


@check("layer_norm", "offset", section=LN, claim="均值很大而方差很小时也算得准",
       hint="先减均值再平方；“平方的平均 − 平均的平方”会在相减时丢掉所有有效数字")
def layer_norm_offset(student, rng):
    x = small(rng, 4) + 1e8
    student(x).equals(layer_norm(x), atol=1e-4)


@check("layer_norm", "shapes", section=LN, claim="gain、bias 的形状不是 [d] 时报 ValueError，不悄悄广播",
       hint="比较 gain.shape 与 x.shape[-1:]")
def layer_norm_shapes(student, rng):
    x = small(rng, 3, 4)
    student(x, gain=np.ones(1)).raises(ValueError)
    student(x, bias=np.zeros((3, 1))).raises(ValueError)


@check("layer_norm", "dtype", section=LN, claim="float32 进，float32 出；整数当作 float64",
       hint="不要让 float64 的常数数组参与运算；整数先换成浮点数")
def layer_norm_dtype(student, rng):
    student(small(rng, 4).astype(np.float32)).has_dtype(np.float32)
    student(np.array([1, 2, 4])).has_dtype(np.float64)


@check("layer_norm", "untouched", section=LN, claim="x、gain、bias 都不被改动", hint="x -= … 会改到调用者的数组；写成 x = x - …")
def layer_norm_untouched(student, rng):
    gain, bias = vectors(rng, 4)
    student(small(rng, 2, 4), gain=gain, bias=bias).keeps_arguments()


# ---- rms_norm --------------------------------------------------------------------------------------------

@check("rms_norm", "values", section=RMS, claim="不减均值，只除以均方根：各数平方的平均再开方",
       hint="√(mean(x²))；它不是标准差，除非均值恰好是 0")
def rms_norm_values(student, rng):
    for d in (3, 5):
        x = small(rng, d, around=1.0)
        student(x).equals(rms_norm(x), atol=COARSE)


@check("rms_norm", "rows", section=RMS, claim="每个位置只用自己的 d 个数", hint="平均沿最后一轴，keepdims=True")
def rms_norm_rows(student, rng):
    for shape in ((3, 4), (2, 3, 4)):
        x = small(rng, *shape, around=1.0)
        student(x).equals(rms_norm(x), atol=COARSE)


@check("rms_norm", "gain", section=RMS, claim="归一之后乘增益 gain；没给就是 1", hint="(x / 均方根) × gain，没有偏置")
def rms_norm_gain(student, rng):
    x, (gain, _) = small(rng, 2, 4), vectors(rng, 4)
    student(x, gain=gain).equals(rms_norm(x, gain), atol=0.02)


@check("rms_norm", "scale", section=RMS, claim="各数都乘同一个正数，输出不变；乘 −1，输出变号",
       hint="分子分母同时放大，比值不变")
def rms_norm_scale(student, rng):
    x = small(rng, 4, around=1.0)
    alone = student(x).value
    student(np.round(100 * x, 1)).equals(alone, atol=1e-5)
    student(-x).equals(np.negative(alone))


@check("rms_norm", "eps", section=RMS, claim="ε 加在平方的平均上、根号里面，大小由参数 eps 给",
       hint="除以 np.sqrt(平方的平均 + eps)")
def rms_norm_eps(student, rng):
    x = small(rng, 4)
    for eps in (0.5, 2.0):
        student(x, eps=eps).equals(rms_norm(x, eps=eps))
    x = small(rng, 4, digits=4, scale=0.001)
    student(x).equals(rms_norm(x))


@check("rms_norm", "zero", section=RMS, claim="全 0 的一行得到全 0，不是 nan", hint="均方根为 0 时全靠 ε")
def rms_norm_zero(student, rng):
    n = int(rng.integers(2, 6))
    student(np.zeros(n)).equals(np.zeros(n))


@check("rms_norm", "dtype", section=RMS, claim="float32 进，float32 出；整数当作 float64", hint="整数先换成浮点数")
def rms_norm_dtype(student, rng):
    student(small(rng, 4).astype(np.float32)).has_dtype(np.float32)
    student(np.array([1, 2, 4])).has_dtype(np.float64)


@check("rms_norm", "untouched", section=RMS, claim="x 和 gain 都不被改动", hint="x /= … 会改到调用者的数组")
def rms_norm_untouched(student, rng):
    student(small(rng, 2, 4), gain=vectors(rng, 4)[0]).keeps_arguments()


# ---- batch_norm ------------------------------------------------------------------------------------------

@check("batch_norm", "columns", section=BN, claim="同一个特征跨所有行归一：每一列均值 0、标准差 1",
       hint="与 LayerNorm 方向相反：统计量沿行的那一轴，每列一个")
def batch_norm_columns(student, rng):
    x = spread(rng, 5, 3)
    student(x).equals(batch_norm(x), atol=COARSE)


@check("batch_norm", "leading", section=BN, claim="除最后一轴外的所有轴都算作“行”，合在一起统计",
       hint="axis=tuple(range(x.ndim - 1))")
def batch_norm_leading(student, rng):
    x = spread(rng, 2, 3, 4)
    student(x).equals(batch_norm(x), atol=COARSE)


@check("batch_norm", "affine", section=BN, claim="每个特征有自己的增益和偏置：先乘后加", hint="gain、bias 沿最后一轴广播")
def batch_norm_affine(student, rng):
    x, (gain, bias) = spread(rng, 5, 3), vectors(rng, 3)
    student(x, gain=gain, bias=bias).equals(batch_norm(x, gain, bias), atol=0.02)


@check("batch_norm", "running", section=BN, claim="给了 running 就用它的均值和方差，不再看这一批",
       hint="running 是训练时记下的均值和方差（不是标准差），每个特征一个")
def batch_norm_running(student, rng):
    x, running = small(rng, 4, 3), (small(rng, 3), np.round(np.abs(small(rng, 3)) + 0.5, 1))
    student(x, running=running).equals(batch_norm(x, running=running), atol=COARSE)


@check("batch_norm", "alone", section=BN, claim="用 running 时，一行单独算与混在一批里算，结果相同",
       hint="推理时一个样本的结果不应取决于和谁同批")
def batch_norm_alone(student, rng):
    x, running = small(rng, 4, 3), (small(rng, 3), np.round(np.abs(small(rng, 3)) + 0.5, 1))
    together = student(x, running=running).value
    student(x[1:2], running=running).equals(np.array(together)[1:2])


@check("batch_norm", "eps", section=BN, claim="ε 加在方差上、根号里面", hint="除以 np.sqrt(方差 + eps)，running 的方差也一样")
def batch_norm_eps(student, rng):
    x, running = small(rng, 5, 3), (small(rng, 3), np.round(np.abs(small(rng, 3)) + 0.5, 1))
    student(x, eps=0.5).equals(batch_norm(x, eps=0.5))
    student(x, eps=0.5, running=running).equals(batch_norm(x, eps=0.5, running=running))


@check("batch_norm", "one-row", section=BN, claim="没有 running 而只有一行时报 ValueError：一行减去自己的均值总是 0",
       hint="行数是最后一轴之外各轴的乘积：x.size // x.shape[-1]")
def batch_norm_one_row(student, rng):
    student(small(rng, 1, 3)).raises(ValueError)


@check("batch_norm", "untouched", section=BN, claim="x、gain、bias 与 running 都不被改动",
       hint="这里不更新 running：它只在推理时被读取")
def batch_norm_untouched(student, rng):
    gain, bias = vectors(rng, 3)
    student(small(rng, 4, 3), gain=gain, bias=bias).keeps_arguments()
    student(small(rng, 4, 3), running=(small(rng, 3), np.round(np.abs(small(rng, 3)) + 0.5, 1))).keeps_arguments()


# ---- pre_ln_block 与 post_ln_block --------------------------------------------------------------------------

NOTHING = Callback("lambda x: np.zeros_like(x)")


def layers(rng):
    """Two sub-layers and two norms, all different: attention mixes the three positions, the norms differ in their gain."""
    attention = Callback("lambda x: np.tanh(M @ x @ A)", M=small(rng, 3, 3), A=small(rng, 4, 4))
    feed_forward = Callback("lambda x: np.maximum(x @ B, 0)", B=small(rng, 4, 4))
    norms = [Callback("lambda x: g * x / np.sqrt((x * x).mean(-1, keepdims=True) + 0.1)", g=small(rng, 4, around=2.0)) for _ in range(2)]
    return attention, feed_forward, *norms


def pre(x, attention, feed_forward, norm_1, norm_2):
    h = x + attention(norm_1(x))
    return h + feed_forward(norm_2(h))


def post(x, attention, feed_forward, norm_1, norm_2):
    h = norm_1(x + attention(x))
    return norm_2(h + feed_forward(h))


def block_checks(name, block, identity, texts):
    """Both blocks are asked the same questions; `texts` holds claim and hint of each."""

    def register(check_name):
        claim, hint = texts[check_name]
        return check(name, check_name, section=ORDER, claim=claim, hint=hint)

    @register("identity")
    def nothing_inside(student, rng):
        x, (_, _, norm_1, norm_2) = small(rng, 3, 4), layers(rng)
        student(x, NOTHING, NOTHING, norm_1, norm_2).equals(identity(x, norm_1, norm_2))

    @register("attention")
    def only_attention(student, rng):
        x, (attention, _, norm_1, norm_2) = small(rng, 3, 4), layers(rng)
        student(x, attention, NOTHING, norm_1, norm_2).equals(block(x, attention, NOTHING, norm_1, norm_2))

    @register("feed-forward")
    def only_feed_forward(student, rng):
        x, (_, feed_forward, norm_1, norm_2) = small(rng, 3, 4), layers(rng)
        student(x, NOTHING, feed_forward, norm_1, norm_2).equals(block(x, NOTHING, feed_forward, norm_1, norm_2))

    @register("both")
    def both_sublayers(student, rng):
        x, parts = small(rng, 3, 4), layers(rng)
        student(x, *parts).equals(block(x, *parts))

    @register("batch")
    def leading_axes(student, rng):
        x, parts = small(rng, 2, 3, 4), layers(rng)
        alone = [student(sentence, *parts).value for sentence in x]
        student(x, *parts).equals(np.array(alone))

    @register("untouched")
    def keeps_input(student, rng):
        student(small(rng, 3, 4), *layers(rng)).keeps_arguments()


block_checks("pre_ln_block", pre, lambda x, norm_1, norm_2: x, {
    "identity": ("两个子层都输出 0 时，Pre-LN 的一层原样返回 x", "残差加的是原来的 x，主干上没有归一化"),
    "attention": ("只有注意力时：x + attention(norm_1(x))", "子层看归一化之后的 x，加到没有归一化的 x 上"),
    "feed-forward": ("只有前馈时：x + feed_forward(norm_2(x))", "第二个子层用 norm_2，做法与第一个完全一样"),
    "both": ("先注意力，后前馈；前馈读的、加的都是注意力之后的 h", "h = x + attention(norm_1(x))；再对 h 做一遍"),
    "batch": ("前面多一个批的轴时，每个句子与单独算相同", "只用加法和给你的函数，就不必管有几个轴"),
    "untouched": ("传进来的 x 不被改动", "x += … 会改到调用者的数组；写成 h = x + …"),
})
block_checks("post_ln_block", post, lambda x, norm_1, norm_2: norm_2(norm_1(x)), {
    "identity": ("两个子层都输出 0 时，Post-LN 的一层是 norm_2(norm_1(x))", "每个子层加完残差再归一一次，主干上有两次归一化"),
    "attention": ("只有注意力时：h = norm_1(x + attention(x))，再过 norm_2", "子层看原来的 x；加完之后才归一化"),
    "feed-forward": ("只有前馈时：h = norm_1(x)，再 norm_2(h + feed_forward(h))", "第二个子层读的和加的都是 h"),
    "both": ("先注意力，后前馈；前馈读的、加的都是归一化之后的 h", "h = norm_1(x + attention(x))；再对 h 做一遍"),
    "batch": ("前面多一个批的轴时，每个句子与单独算相同", "只用加法和给你的函数，就不必管有几个轴"),
    "untouched": ("传进来的 x 不被改动", "x += … 会改到调用者的数组；写成 h = x + …"),
})
