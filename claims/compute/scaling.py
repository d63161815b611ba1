"""Why divide by √d: variances exactly, saturation by experiment, and what W_Q and W_K can express."""

import math
from fractions import Fraction

import numpy as np

from claims.judge import UNSET, Evidence
from claims.registry import computation
from lib.attention import scaled_dot_product_attention


def sign_variance(d):
    """The exact variance of q·k for independent ±1 entries (mean 0, variance 1): a sum over the binomial distribution."""
    return sum(Fraction(math.comb(d, ups), 2**d) * (2 * ups - d) ** 2 for ups in range(d + 1))


@computation
def score_shape(n):
    """The shape of Q Kᵀ for n positions, at several head widths."""
    shapes = {scaled_dot_product_attention(np.ones((n, d)), np.ones((n, d)), np.ones((n, d)))[1].shape for d in (1, 4, 64)}
    [shape] = shapes
    return list(shape)


@computation
def dot_variance(d, divided_by="1"):
    """The variance of q·k, of q·k/√d or of q·k/d, exactly."""
    divisor = {"1": 1, "sqrt(d)": d, "d": d * d}[divided_by]  # a factor 1/c divides a variance by c²
    return float(sign_variance(d) / divisor)


@computation
def normal_product_variance():
    """Var(q k) of two independent standard normal numbers, by quadrature."""
    x, w = np.polynomial.hermite_e.hermegauss(20)
    square = (w * x * x).sum() / w.sum()  # E[q²]
    return round(square * square, 12)


@computation
def uniform_dot_variance(d):
    """The variance of q·k when every entry is uniform on [−1, 1]."""
    x, w = np.polynomial.legendre.leggauss(4)
    square = (w * x * x).sum() / w.sum()
    return d * square * square


def _spread(d, factor=1.0, entry_scale=1.0, n=16, seed=0):
    """Mean largest weight of random queries over n random keys."""
    rng = np.random.default_rng(seed)
    q, k = rng.normal(scale=entry_scale, size=(2, 100, n, d))
    _, p = scaled_dot_product_attention(q[:, :1], k, k, scale=factor)
    return float(p.max(-1).mean())


@computation
def scaling_is_indispensable():
    """Does only the factor 1/√d keep wide heads from saturating? Smaller entries do the same without it."""
    d = 1024
    plain, scaled, small = _spread(d), _spread(d, 1 / math.sqrt(d)), _spread(d, entry_scale=d**-0.25)
    saturates, absorbed = plain > 0.9, abs(small - scaled) < 1e-6
    return Evidence(bool(saturates and not absorbed), narrow=bool(saturates), show={"plain": plain, "scaled": scaled, "small": small})


@computation
def second_projection_needed():
    """With d_h = d, is there a score matrix that W_Q = I can't give? And does sharing one matrix lose any?"""
    rng = np.random.default_rng(0)
    X, A = rng.normal(size=(6, 5)), rng.normal(size=(5, 5))
    scores = X @ A @ X.T
    without = np.allclose((X @ np.eye(5)) @ (X @ A.T).T, scores, rtol=0, atol=1e-12)
    shared = X @ A @ A.T @ X.T  # one matrix for both sides
    asymmetric = np.abs(shared - shared.T).max() < 1e-12 < np.abs(scores - scores.T).max()
    return Evidence(not without, narrow=bool(asymmetric))


@computation
def shared_projection_is_symmetric():
    """One weight for Q and K: symmetric scores, none negative on the diagonal, no negative eigenvalue."""
    rng = np.random.default_rng(0)
    X, W = rng.normal(size=(6, 5)), rng.normal(size=(5, 4))
    S = (X @ W) @ (X @ W).T
    symmetric = np.allclose(S, S.T) and (np.diag(S) >= 0).all() and np.linalg.eigvalsh(S).min() > -1e-9
    return Evidence("对称半正定" if symmetric else "不对称", says="symmetric" if symmetric else "asymmetric")


@computation
def sharing_wastes_a_matrix(d, d_head):
    """Sharing stores one matrix less, so nothing is wasted; what is lost is that scores can be asymmetric."""
    separate, shared = 2 * d * d_head, d * d_head
    loses = shared_projection_is_symmetric().says == "symmetric"
    return Evidence(shared > separate, narrow=True if loses else UNSET, show={"separate": separate, "shared": shared})
