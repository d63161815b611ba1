"""Softmax and the shop example of document 000: scores, weights and what they can carry."""

import math

import numpy as np

from claims.judge import UNSET, Evidence
from claims.registry import computation
from lib.functional import softmax as lib_softmax

# The three tags of the shop: height from, to; weight from, to.
TAGS = {"S": (155, 165, 45, 55), "M": (165, 175, 55, 65), "L": (175, 185, 65, 75)}


def weights(scores, divide_by=1.0):
    return lib_softmax(np.asarray(scores, float) / divide_by)


def jacobian(p):
    """∂p/∂scores of softmax: diag(p) − p pᵀ."""
    p = np.asarray(p, float)
    return np.diag(p) - np.outer(p, p)


@computation
def size_label(height, weight):
    """The tag whose half-open intervals hold the customer."""
    [label] = [name for name, (h0, h1, w0, w1) in TAGS.items() if h0 <= height < h1 and w0 <= weight < w1]
    return label


@computation
def size_table(start, step):
    """The three rows as an even grid: each interval is `step` wide and starts where the one before ends."""
    h, w = start
    return [[h + step * i, h + step * (i + 1), w + step * i, w + step * (i + 1)] for i in range(3)]


@computation
def size_tag(label):
    return list(TAGS[label])


@computation
def nearer_tag(customer):
    """How far the customer is from the centres of S and L, in height and in weight."""
    height, weight = customer
    centre = {name: ((h0 + h1) / 2, (w0 + w1) / 2) for name, (h0, h1, w0, w1) in TAGS.items()}
    gaps = [abs(height - centre["S"][0]), abs(centre["L"][0] - height), abs(weight - centre["S"][1]), abs(centre["L"][1] - weight)]
    to_s, to_l = math.hypot(gaps[0], gaps[2]), math.hypot(gaps[1], gaps[3])
    says = "S 与 L 等距" if to_s == to_l else "L 比 S 更接近" if to_l < to_s else "S 比 L 更接近"
    return Evidence([says, *gaps], says=says)


@computation
def softmax(scores, divide_by_root_of=1, items=None, unit=1, other_scores=None):
    """Softmax of one row. `items` picks entries, `unit=100` gives percent; `other_scores` names the row a wrong one comes from."""
    scores = [-math.inf if s == "-inf" else s for s in scores]
    p = weights(scores, math.sqrt(divide_by_root_of)) * unit
    if isinstance(items, int):
        return p[items]
    picked = p if items is None else p[items]
    return Evidence(picked, other=weights(other_scores) if other_scores else UNSET)


@computation
def softmax_origin(scores, example):
    """A printed row that belongs to other scores: the value is right for `scores`, the text stands beside `example`."""
    return Evidence(weights(scores), says=weights(example))


@computation
def softmax_properties():
    """Signs and row sums over scores of every size and sign."""
    rng = np.random.default_rng(0)
    p = lib_softmax(rng.normal(scale=20, size=(1000, 7)))
    proper = (p >= 0).all() and np.allclose(p.sum(-1), 1, rtol=0, atol=1e-12)
    return Evidence("非负且行和为 1" if proper else "不总是概率", show={"smallest": p.min()})


@computation
def direct(scores):
    """The scores divided by their sum."""
    return [s / sum(scores) for s in scores]


@computation
def sum_of_scores(scores):
    """The denominator of the direct normalisation."""
    return sum(scores)


@computation
def exponentials(exponents):
    return [math.exp(x) for x in exponents]


@computation
def sum_of_exponentials(exponents):
    return math.fsum(math.exp(x) for x in exponents)


@computation
def printed_power(printed_e, exponent):
    """The printed equation taken at its word; not rounding e gives what the document writes."""
    return Evidence(printed_e**exponent, rounded=math.exp(exponent))


@computation
def row_sums(scores):
    return [round(float(weights(row).sum()), 14) for row in scores]


@computation
def softmax_amplifies(close, examples):
    """Is softmax always sharper than dividing by the sum? On the document's examples, and on two close scores."""
    sharper = all(weights(row).max() > max(direct(row)) for row in examples)
    p = weights(close)
    statement = "softmax 总比直接归一化更尖"
    return Evidence(p, says=statement if sharper and p.max() > max(direct(close)) else "有时反而更平",
                    narrow=statement if sharper else UNSET, show={"direct": direct(close)})


@computation
def exponential_is_its_derivative():
    """(eʰ − e⁻ʰ) / 2h at several points, against eˣ itself."""
    x, h = np.linspace(-3, 3, 13), 1e-5
    slope = (np.exp(x + h) - np.exp(x - h)) / (2 * h)
    return bool(np.allclose(slope, np.exp(x), rtol=1e-9))


@computation
def softmax_gradient(scores, soft_scores, divide_by_root_of):
    """The largest entry of the softmax Jacobian at saturated scores, and at soft or rescaled ones for comparison."""
    largest = [np.abs(jacobian(weights(s, root))).max() for s, root in ((scores, 1), (soft_scores, 1), (scores, math.sqrt(divide_by_root_of)))]
    return Evidence(largest[0], show={"soft": largest[1], "scaled": largest[2]})


@computation
def winner_takes_all_helps(scores):
    """Can training still move a row that is nearly one-hot? Compares the gradient there with that of a soft row."""
    sharp, soft = (np.abs(jacobian(weights(s))).max() for s in (scores, np.zeros(len(scores))))
    return Evidence(bool(sharp > 0.1 * soft), show={"sharp": sharp, "soft": soft})
