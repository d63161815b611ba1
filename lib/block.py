"""Transformer 的一层：注意力子层和前馈子层，各包一层残差和归一化。

config 只要有这些属性就行（lib.model 的 Config 都有）：
    n_heads, n_kv_heads            查询头数、键值头数
    norm, norm_eps, norm_position  "layer" / "rms"，eps，"pre" / "post"
    position, rope_base            "rotary" 时在注意力里旋转 q、k；其余位置编码在进入第一层之前已经加好
    activation, window             前馈的激活函数；滑动窗口（None = 不限）
params 是一层的参数：
    {"norm_1": {"gain", "bias"}, "attention": {"W_Q", "W_K", "W_V", "W_O", "b_Q", …},
     "norm_2": {"gain", "bias"}, "ffn": {"W_1", "b_1", "W_2", "b_2"} 或 {"W_gate", "W_up", "W_down"}}
"""
import numpy as np

from lib.attention import multi_head_attention
from lib.feedforward import feed_forward, swiglu_feed_forward
from lib.normalization import apply_norm
from lib.position import rotary

__all__ = ["residual", "post_ln", "pre_ln", "transformer_block"]


def residual(x, f):
    """残差连接 x + f(x)：子层只学要改动多少；f 恒为 0 时原样通过。

    形状：x [..., n, d], f 函数 -> [..., n, d]
    错误：f(x) 的形状与 x 不同时 ValueError（广播会悄悄给出错的结果）。
    来源：《Deep Residual Learning for Image Recognition》式 (1)。
    """
    return _add(x, f(x))


def post_ln(x, f, norm):
    """2017 年原版：先加残差，再归一化，norm(x + f(x))。残差流每层都被归一一次。

    形状：x [..., n, d], f 函数, norm 函数 -> [..., n, d]
    错误：同 residual。
    来源：《Attention Is All You Need》3.1。
    """
    return norm(_add(x, f(x)))


def pre_ln(x, f, norm):
    """GPT-2 起的写法：子层看归一化后的 x，残差加的是原来的 x，x + f(norm(x))。

    最常见的错是写成 h = norm(x); h + f(h)：原来的 x 丢了，梯度的直路也断了。

    形状：x [..., n, d], f 函数, norm 函数 -> [..., n, d]
    错误：同 residual。
    来源：《On Layer Normalization in the Transformer Architecture》图 1。
    """
    return _add(x, f(norm(x)))


def transformer_block(x, params, config, mask=None, cache=None, *, is_causal=False, record=None):
    """一层：注意力让词元互相看，前馈让每个词元自己想；两个子层都按 config.norm_position 包好。

    mask 是布尔（True = 可以看）或加到得分上的 0 / -inf；is_causal=True 由注意力自己加因果掩码，不必传 mask；
    cache 是这一层的键值缓存，给了它就只算新词元，没有另给 mask 时一定是因果的。三样都没有时，词元互相都看得见。
    record 是一个空字典时，留下注意力权重 "weights"、两个子层的输出 "attention" 和 "ffn"。

    形状：x [..., n, d], params 参数, config 设置 -> [..., n, d]
    错误：参数缺少或形状不对时 ValueError。
    来源：《Attention Is All You Need》3.1；《Language Models are Unsupervised Multitask Learners》2.3。
    """
    # wrap(x, 子层, 归一化) 是 pre_ln 或 post_ln
    wrap = {"pre": pre_ln, "post": post_ln}[config.norm_position]

    def attend(h):
        y, weights = multi_head_attention(
            h, params["attention"], config.n_heads, config.n_kv_heads, mask, cache=cache, rotate=_rotation(config),
            is_causal=is_causal, window=config.window, need_weights=record is not None)  # 不要权重时注意力更快
        return _keep(record, y, weights=weights, attention=y)

    def think(h):
        ffn = params["ffn"]
        y = swiglu_feed_forward(h, ffn) if config.activation == "swiglu" else feed_forward(h, ffn, config.activation)
        return _keep(record, y, ffn=y)

    def norm(name):
        return lambda h: apply_norm(h, params[name], config.norm, config.norm_eps)

    x = wrap(x, attend, norm("norm_1"))
    return wrap(x, think, norm("norm_2"))


def _add(x, y):
    """x + y，不许广播。"""
    if np.shape(x) != np.shape(y):
        raise ValueError(f"残差的两路形状应相同：x {np.shape(x)}，f 给出 {np.shape(y)}")
    return np.add(x, y)


def _rotation(config):
    """给注意力的旋转：收到头 [..., n, d_head] 和第一个词元的位置；不用 RoPE 时是 None。"""
    if config.position != "rotary":
        return None
    return lambda heads, start: rotary(heads, np.arange(start, start + heads.shape[-2]), config.rope_base)


def _keep(record, y, **arrays):
    """把沿途的数组记进 record（None 就不记），原样返回 y。"""
    if record is not None:
        record.update(arrays)
    return y
