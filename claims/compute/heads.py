"""Several heads: shapes, the two-head example of document 001, and what one head can and can't do."""

import math

import numpy as np

from claims.judge import UNSET, Evidence
from claims.registry import computation
from lib.accounting import flops_table
from lib.attention import merge_heads, multi_head_attention, scaled_dot_product_attention, split_heads
from lib.model import Config

# The two-head example as printed: inputs (L712-714) and attention weights (L724-726).
X = np.array([[1, 0, 1, 0, 0.5, 0.5], [0, 2, 0, 2, 1, 0], [1, 1, 1, 1, 0, 1]])
WEIGHTS = np.array([[[0.3, 0.4, 0.3], [0.25, 0.5, 0.25], [0.3, 0.3, 0.4]], [[0.1, 0.1, 0.8], [0.4, 0.2, 0.4], [0.45, 0.1, 0.45]]])


def _weights(d, rng=None):
    if rng is None:
        return {f"W_{name}": np.eye(d) for name in "QKVO"}
    return {f"W_{name}": rng.normal(size=(d, d)) for name in "QKVO"}


@computation
def head_width(d, n_heads):
    """The width of each head after splitting d dimensions."""
    return split_heads(np.zeros((1, d)), n_heads).shape[-1]


@computation
def head_widths(models):
    """d / h of several models, and the common value if they agree."""
    widths = [d // h for d, h in models]
    return Evidence(widths, says=widths[0] if len(set(widths)) == 1 else widths)


@computation
def head_shape(step, n, d, n_heads):
    """The shape after each step of the table: projection, reshape, one head, concatenation, output projection."""
    rng = np.random.default_rng(0)
    x, params = rng.normal(size=(n, d)), _weights(d, rng)
    projected = x @ params["W_Q"]
    heads = split_heads(projected, n_heads)  # [h, n, d_h]; the document writes [n, h, d_h]
    joined = merge_heads(scaled_dot_product_attention(heads, heads, heads)[0])
    shapes = {"x": x, "projected": projected, "reshaped": projected.reshape(n, n_heads, -1), "head 0": heads[0], "head 1": heads[1]}
    if step == "joined and projected":
        return [list(joined.shape), list((joined @ params["W_O"]).shape)]
    return list(shapes[step].shape)


@computation
def blocks_side_by_side(n, d, n_heads):
    """Cutting X W into heads against projecting with each block of W on its own."""
    rng = np.random.default_rng(0)
    x, W, width = rng.normal(size=(n, d)), rng.normal(size=(d, d)), d // n_heads
    heads = split_heads(x @ W, n_heads)
    return all(np.allclose(heads[t], x @ W[:, t * width:(t + 1) * width]) for t in range(n_heads))


@computation
def score_tables(n, d, n_heads):
    """How many n × n tables a layer makes, with one key head for each query head and with a single one."""
    rng = np.random.default_rng(0)
    x, params = rng.normal(size=(n, d)), _weights(d, rng)
    tables = multi_head_attention(x, params, n_heads)[1].shape
    shared = params | {name: params[name][:, :d // n_heads] for name in ("W_K", "W_V")}
    grouped = multi_head_attention(x, shared, n_heads, 1)[1].shape
    return "h" if tables == grouped == (n_heads, n, n) else "不是 h"


def _flops(n, d, n_heads, output=True):
    """FLOPs of one attention layer's matrix products: projections, scores and weighted sums; without W_O if asked."""
    config = Config(vocab_size=1, context_length=n, d_model=d, n_layers=1, n_heads=n_heads)
    table = flops_table(config, n)
    return table["投影"] + table["分数"] - (0 if output else 2 * n * d * d)


@computation
def flops_ratio(n, d, n_heads):
    """Several heads against one head of full width, both with an output projection."""
    return _flops(n, d, n_heads) / _flops(n, d, 1)


@computation
def flops_ratio_without_output(n, d, n_heads):
    """The same when the single head has no output projection, as the sentence says; and when both have one."""
    ratio = _flops(n, d, n_heads) / _flops(n, d, 1, output=False)
    return Evidence(ratio, narrow=flops_ratio(n, d, n_heads), show={"more": ratio - 1})


@computation
def parameters_of_heads(d, n_heads):
    """Q, K and V weights of all heads together, and of one head of full width."""
    heads, one = n_heads * 3 * d * (d // n_heads), 3 * d * d
    if heads != one:
        raise ValueError(f"{n_heads} 个头共 {heads} 个参数，单个大头 {one} 个")
    return heads


@computation
def low_rank_queries(d, n_heads, head_dim, q_rank):
    """Weights for low-rank queries and one shared key-value vector, against three full projections."""
    queries, shared, full = d * q_rank + q_rank * n_heads * head_dim, d * head_dim, 3 * d * d
    return Evidence(queries + shared < full, show={"queries": queries, "shared": shared, "sum": queries + shared, "full": full})


@computation
def output_projection_shape():
    """The output projection takes the joined heads to d: the only shape that fits is d × d."""
    rng = np.random.default_rng(0)
    fitting = []
    for rows, columns in ((6, 6), (6, 3), (3, 6)):  # d = 6, two heads of width 3
        try:
            y, _ = multi_head_attention(X, _weights(6, rng) | {"W_O": np.ones((rows, columns))}, 2)
        except ValueError:
            continue
        if y.shape == X.shape:
            fitting.append((rows, columns))
    return ["d_model", "d_model"] if fitting == [(6, 6)] else fitting


@computation
def heads_see_every_dimension():
    """Does a head change when the input changes outside "its" dimensions? Projecting first, it does; cutting X first, never."""
    rng = np.random.default_rng(0)
    W_Q, W_K, W_V = rng.normal(size=(3, 6, 6))
    changed = X.copy()
    changed[:, 3:] += 1.0  # the half that the example gives to head 2

    def head_1(x):
        return scaled_dot_product_attention(*(split_heads(x @ W, 2)[0] for W in (W_Q, W_K, W_V)))[0]

    def cut_first(x):
        return scaled_dot_product_attention(*(x[:, :3] @ W[:3, :3] for W in (W_Q, W_K, W_V)))[0]

    projecting = not np.allclose(head_1(X), head_1(changed))
    cutting = not np.allclose(cut_first(X), cut_first(changed))
    return "project X (all d dims) then slice" if projecting and not cutting else "slice X then project"


@computation
def projects_before_splitting():
    """The same finding in the words of document 000."""
    return "project then split" if heads_see_every_dimension().startswith("project") else "split then project"


@computation
def mini_slice(head):
    """The columns of X that the example hands to one head."""
    return split_heads(X, 2)[head]


@computation
def mini_weights(head):
    """Without W_Q and W_K the printed weights can't be had; with identity projections of the slices they would be these."""
    part = split_heads(X, 2)[head]
    _, p = scaled_dot_product_attention(part, part, part)
    return Evidence(None, show={"identity": p, "rank": int(np.linalg.matrix_rank(part))})


@computation
def mini_weight(head, row, column):
    return WEIGHTS[head, row, column]


@computation
def mini_row_sums():
    return np.round(WEIGHTS.sum(-1).ravel(), 12)


@computation
def mini_shapes(step):
    """The shapes after each head and after joining the two."""
    heads = split_heads(X, 2)
    outputs, _ = scaled_dot_product_attention(heads, heads, heads)
    return [list(output.shape) for output in outputs] if step == "heads" else merge_heads(outputs).shape[-1]


@computation
def head_1_gap():
    """How far the printed weights of head 1 are from scores that the slice of X allows.

    Scores are log weights plus one free number a row. The slice obeys x₂ = x₀ + x₁/2, so columns of the scores must too,
    which fixes the free numbers; then the rows must obey it as well, and don't."""
    logs = np.log(WEIGHTS[0])
    free = 2 * (logs[:, 2] - logs[:, 0] - logs[:, 1] / 2)
    scores = logs + free[:, None]
    full = np.linalg.pinv(X)
    W_Q, W_K = full @ (math.sqrt(3) * logs), full  # six dimensions suffice: X has rank 3
    _, reached = scaled_dot_product_attention(X @ W_Q, X @ W_K, X)
    return Evidence(float(np.abs(scores[2] - scores[0] - scores[1] / 2).max()),
                    show={"reached": float(np.abs(reached - WEIGHTS[0]).max()), "slice_rank": int(np.linalg.matrix_rank(X[:, :3]))})


@computation
def one_head_one_pattern():
    """Two kinds of words in one head: one kind looks at the word before, the other at the first word."""
    n = 6
    kind = np.arange(n) % 2 == 0
    x = np.hstack([np.eye(n), kind[:, None]])
    W_Q = np.zeros((n + 1, n))
    W_Q[1:n, :] = 60 * np.eye(n)[:-1]  # position i asks for i − 1
    W_Q[n, 0] = 120  # the marked kind asks for the first word, louder
    _, p = scaled_dot_product_attention(x @ W_Q, x[:, :n], x, scale=1)
    first, before = p[kind, 0].min(), p[~kind, np.flatnonzero(~kind) - 1].min()
    both = first > 0.99 and before > 0.99
    one_distribution = np.allclose(p.sum(-1), 1)
    return Evidence(not both, narrow=True if one_distribution else UNSET, show={"first": first, "before": before})
