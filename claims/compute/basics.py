"""Arithmetic that many claims share: a product, a norm, a count, a shape."""

import math

import numpy as np

from claims.judge import Evidence
from claims.registry import computation


@computation
def dot(a, b):
    """Σ aᵢ bᵢ, rounded to 12 digits: the documents' factors are decimal fractions."""
    return round(math.fsum(x * y for x, y in zip(a, b, strict=True)), 12)


@computation
def product(factors):
    return math.prod(factors)


@computation
def power(base, exponent):
    return base**exponent


@computation
def total(values):
    return math.fsum(values) if any(isinstance(value, float) for value in values) else sum(values)


@computation
def count(items):
    """How many items the document lists."""
    return len(items)


@computation
def extremes(values):
    return [min(values), max(values)]


@computation
def shape_of(rows):
    return list(np.shape(rows))


@computation
def matmul_shape(left, right):
    """The shape of a product of two matrices of these shapes, by multiplying them."""
    return list((np.ones(left) @ np.ones(right)).shape)


@computation
def weight_shape(d_in, d_out, convention):
    """Which way round the weight of a linear map must lie: by trying both in `x @ W` ("row") or `W @ x` ("column")."""
    sizes = {d_in: 6, d_out: 4}
    x = np.ones(sizes[d_in])
    fitting = []
    for shape in ([d_in, d_out], [d_out, d_in]):
        W = np.ones([sizes[name] for name in shape])
        try:
            y = x @ W if convention == "row" else W @ x
        except ValueError:  # the inner dimensions don't meet: this orientation isn't the one
            continue
        if y.shape == (sizes[d_out],):
            fitting.append(shape)
    [shape] = fitting
    return Evidence(shape)


@computation
def inner_shape(left, product):
    """The shape of the second factor of a matrix product, from the first factor and the result; multiplied to check."""
    shape = [left[1], product[1]]
    if list((np.ones(left) @ np.ones(shape)).shape) != product:
        raise ValueError(f"{left} 乘不出 {product}")
    return shape
