"""The 我爱你 example of document 001: what its numbers imply for one another, and which can't exist together."""

import math

import numpy as np

from claims.compute.scores import weights
from claims.judge import Evidence
from claims.registry import computation
from lib.attention import causal_mask, scaled_dot_product_attention

# As printed: the inputs (L446-450), the keys used in the dot products (L507-509), the values (L602), the scores (L626-628).
X = np.array([[1, 0, 1, 0], [0, 2, 0, 2], [1, 1, 1, 1]], float)
K = np.array([[0, 1, 1], [1, 2, 1], [1, 0, 1]], float)
V = np.array([[1, 2, 3], [2, 8, 0], [2, 6, 3]], float)
Q0 = np.array([1, 0, 2], float)
SCORES = np.array([[2, 3, 3], [2, 4, 4], [1, 2, 3]], float)


def residual(inputs, outputs):
    """The largest error of the best linear map from `inputs` to `outputs`; zero if one exists."""
    W = np.linalg.lstsq(inputs, outputs, rcond=None)[0]
    return float(np.abs(inputs @ W - outputs).max())


def follow_input(rows):
    """The rows as x₂ = x₀ + x₁/2 forces them, whatever the weights are."""
    return np.vstack([rows[:2], rows[0] + rows[1] / 2])


@computation
def one_projection(name):
    """Is the printed row of Q, K or V determined by X? Another W gives another row, so nothing can be computed."""
    row = {"Q": Q0, "K": K[0], "V": V[0]}[name]
    fit = np.outer(X[0], row) / (X[0] @ X[0])  # one of the many W with x₀ W = the printed row
    free = X[0] @ np.random.default_rng(0).normal(size=(4, 3))
    return Evidence(None if np.allclose(X[0] @ fit, row) and not np.allclose(free, row) else row, show={"free": free})


@computation
def key_residual():
    """min over W of max |X W − K|, and the same for V, for which a weight exists."""
    return Evidence(residual(X, K), show={"values": residual(X, V)})


@computation
def implied_keys():
    """The keys with the third row as the input relation forces it."""
    return follow_input(K)


@computation
def implied_values():
    """V as X can give it, from the best W_V."""
    W = np.linalg.lstsq(X, V, rcond=None)[0]
    return Evidence(np.round(X @ W, 9), show={"residual": residual(X, V)})


@computation
def implied_queries():
    """The only Q that the printed keys and scores allow, beside the Q that X allows."""
    Q = np.round(SCORES @ np.linalg.inv(K.T), 9) + 0.0
    return Evidence(Q, says=follow_input(Q), show={"needed": follow_input(Q)[2], "det": round(float(np.linalg.det(K)), 9)})


@computation
def score_matrix_rank():
    """Determinant and rank of the printed scores, and the rank that X allows them."""
    det, rank, allowed = round(float(np.linalg.det(SCORES)), 9), int(np.linalg.matrix_rank(SCORES)), int(np.linalg.matrix_rank(X))
    columns = follow_input(SCORES.T).T
    return Evidence([det, rank, allowed], says=follow_input(columns), show={"row": follow_input(SCORES)[2]})


@computation
def output_terms(printed):
    """The printed weights times the values, term by term."""
    return np.round(np.array(printed)[:, None] * V, 12)


@computation
def output_0(printed):
    """The first output with exact weights; with the printed ones; and scaled as the document's own formula says."""
    exact = weights(SCORES[0]) @ V
    return Evidence(exact, rounded=np.array(printed) @ V, show={"scaled": weights(SCORES[0], math.sqrt(3)) @ V})


@computation
def context_of_output_0():
    """Where the first output gets its content: from earlier words, or from later ones; and with the causal mask."""
    p = weights(SCORES[0])
    later = p[1:].sum()
    _, masked = scaled_dot_product_attention(Q0[None], K, V, mask=causal_mask(3)[:1], scale=1)
    return Evidence("全句（含下文）；因果掩码下 = V₀" if later > 0 and (masked @ V == V[0]).all() else "上文",
                    says="下文" if later > 0 else "上文", show={"later": later})


@computation
def row_prefers_later(row):
    """"后面最多": are the largest scores of this row later words only?"""
    best = np.flatnonzero(SCORES[row] == SCORES[row].max())
    return Evidence(bool((best > row).all()), narrow=bool((best > row).any()), show={"best": best})


@computation
def last_row_prefers_itself():
    """"你" scores itself highest; does standing last make a word do so? Over random queries and keys, how often."""
    rng = np.random.default_rng(0)
    q, k = rng.normal(size=(2, 2000, 3, 8))
    last = np.einsum("bd,bnd->bn", q[:, -1], k)
    often = float((last.argmax(-1) == 2).mean())
    return Evidence(often > 0.9, narrow=bool(SCORES[2].argmax() == 2), show={"often": often})
