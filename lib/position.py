"""位置编码：注意力本身看不见顺序，位置要另外告诉它。

正弦编码加在词嵌入上；旋转位置编码（RoPE）在注意力里旋转 q 和 k，使它们的点积只取决于相对距离。
两者用同一组频率：第 i 对维度每走一个位置转 ω_i = base^(-2i/d) 弧度，波长从 2π 到约 2π·base。
"""
import numpy as np

from lib._checks import as_count, as_float  # 入口检查：正整数、实数数组；不合格就报错

__all__ = ["sinusoidal_encoding", "shift_matrix", "rotary"]


def sinusoidal_encoding(n, d, base=10000.0):
    """前 n 个位置的正弦编码：第 2i 维是 sin(pos·ω_i)，第 2i+1 维是 cos(pos·ω_i)，交错排列。

    形状：n 整数, d 整数 -> [n, d]（d % 2 == 0）
    错误：d 是奇数（sin 和 cos 要成对）、n 或 d 不是正整数、base 不大于 0 时报错。
    来源：《Attention Is All You Need》3.5。
    """
    angles = np.arange(as_count(n, "n"))[:, None] * _frequencies(d, base)
    encoding = np.empty((n, d))
    encoding[:, 0::2], encoding[:, 1::2] = np.sin(angles), np.cos(angles)
    return encoding


def shift_matrix(offset, d, base=10000.0):
    """把任何位置的正弦编码移动 offset 步的矩阵：PE[p] @ M = PE[p + offset]，M 与 p 无关（PE[p] 是位置 p 的编码，一个行向量）。

    每对维度是一次旋转：sin(a+b) = sin a cos b + cos a sin b，cos(a+b) = cos a cos b - sin a sin b。

    形状：offset 标量, d 整数 -> [d, d]（d % 2 == 0）
    错误：d 是奇数或不是正整数、base 不大于 0 时报错。offset 可以为负：移动 -offset 的矩阵是它的逆。
    来源：《Attention Is All You Need》3.5。
    """
    angles = offset * _frequencies(d, base)
    even, odd = np.arange(0, d, 2), np.arange(1, d, 2)
    M = np.zeros((d, d))
    M[even, even] = M[odd, odd] = np.cos(angles)
    M[odd, even], M[even, odd] = np.sin(angles), -np.sin(angles)
    return M


def rotary(x, positions, base=10000.0, layout="half"):
    """旋转位置编码：把 x 的每对维度转过 位置·ω_i 的角度；长度不变，q·k 只取决于位置之差。位置为负就是反着转。

    layout="interleaved" 是论文的排法，第 2i 和 2i+1 维成对；"half" 把第 i 维和第 i + d/2 维配成一对，
    transformers 库里的 Llama 权重用它。两种排法只差一次维度重排，但权重是哪种就必须用哪种。

    形状：x [..., n, d], positions 整数 [n] -> [..., n, d]（d % 2 == 0）
    错误：d 是奇数、positions 不是 [n]、layout 不认识时 ValueError。
    来源：《RoFormer》式 (34)。
    """
    x, positions = as_float(x, "x"), as_float(positions, "positions")
    d = x.shape[-1] if x.ndim else 0
    if x.ndim < 2 or positions.shape[-1:] != x.shape[-2:-1] or positions.ndim >= x.ndim:
        raise ValueError(f"x 应是 [..., n, d]，positions 应是 [n]（可带批）：收到 x {x.shape}、positions {positions.shape}")
    angles = positions[..., None] * _frequencies(d, base)  # 在 float64 里算角度：位置大时 float32 会差出几个千分之一
    cos, sin = np.cos(angles).astype(x.dtype), np.sin(angles).astype(x.dtype)
    if layout not in ("half", "interleaved"):
        raise ValueError(f'layout 应是 "half" 或 "interleaved"，收到 {layout!r}')
    # 每对维度的前一个和后一个，写成切片
    first = np.s_[..., : d // 2] if layout == "half" else np.s_[..., 0::2]
    second = np.s_[..., d // 2 :] if layout == "half" else np.s_[..., 1::2]
    y = np.empty_like(x)
    # 每一对 (a, b) 在平面上转过角度 θ：(a cos θ - b sin θ, a sin θ + b cos θ)
    y[first] = x[first] * cos - x[second] * sin
    y[second] = x[first] * sin + x[second] * cos
    return y


def _frequencies(d, base):
    """每对维度每个位置转过的弧度 ω_i = base^(-2i/d)。"""
    if as_count(d, "d", 2) % 2:
        raise ValueError(f"d 应是偶数（每个频率占一对维度），收到 {d}")
    if not base > 0:
        raise ValueError(f"base 应大于 0，收到 {base}")
    return float(base) ** (-np.arange(0, d, 2) / d)
