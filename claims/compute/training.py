"""Training: the loss of one prediction and what a gradient says."""

import math

import numpy as np

from claims.judge import Evidence
from claims.registry import computation
from lib.functional import cross_entropy, softmax


@computation
def loss_of_probability(p):
    """Cross-entropy of a right answer that got probability p."""
    logits = np.log([p, 1 - p])
    loss = float(cross_entropy(logits, 0))
    if not math.isclose(loss, -math.log(p)):
        raise AssertionError("交叉熵与 -ln p 不一致")
    return loss


@computation
def gradient_ranks_usefulness():
    """Move each logit a little against its gradient: the larger the gradient, the more the loss falls."""
    rng = np.random.default_rng(0)
    z, target, step = rng.normal(size=8), 3, 1e-4
    gradient = softmax(z) - np.eye(8)[target]
    fall = [float(cross_entropy(z, target) - cross_entropy(z - step * g * np.eye(8)[i], target)) for i, g in enumerate(gradient)]
    return Evidence(bool(np.array_equal(np.argsort(fall), np.argsort(np.abs(gradient)))))
