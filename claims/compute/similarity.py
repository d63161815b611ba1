"""Embeddings: table sizes, cosines and distances, what normalising changes, and the size of the score matrix."""

import math

import numpy as np

from claims.judge import UNSET, Evidence
from claims.registry import computation
from lib.attention import multi_head_attention, scaled_dot_product_attention
from lib.embedding import analogy, cosine_similarity, embed, euclidean_distance, nearest, normalize, one_hot

WORDS = {"苹果": [0.8, 0.2, 0.1], "香蕉": [0.7, 0.3, 0.1], "飞机": [0.1, 0.8, 0.8]}  # L236-238


@computation
def cosine(a, b):
    return round(float(cosine_similarity(a, b)), 14)


@computation
def cosines(pairs):
    return [cosine(a, b) for a, b in pairs]


@computation
def distance(a, b):
    return float(euclidean_distance(a, b))


@computation
def norm(a):
    return math.hypot(*a)


@computation
def norms(vectors):
    return [norm(a) for a in vectors]


@computation
def missing_vectors(toy=None):
    """No vectors are given; where the document has a toy example for the same words, what that gives."""
    return Evidence(cosine(*(WORDS[word] for word in toy)) if toy else None)


@computation
def table_shape(vocabulary, d):
    """Looking up is multiplying a one-hot row with the table: V rows of d numbers, no other shape works."""
    rng = np.random.default_rng(0)
    sizes = {vocabulary: 7, d: 3}
    table, ids = rng.normal(size=(sizes[vocabulary], sizes[d])), np.array([0, 6, 2])
    same = np.array_equal(one_hot(ids, 7) @ table, embed(table, ids))
    return [vocabulary, d] if same and embed(table, ids).shape == (3, 3) else None


@computation
def cosine_range():
    """The largest and smallest cosine among parallel, opposite and random vectors."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 20_000, 3))
    b[0], b[1] = a[0], -a[1]
    values = cosine_similarity(a, b)
    return [round(float(values.min()), 12), round(float(values.max()), 12)]


@computation
def similarity_cost():
    """Multiplications in a dot product and in a distance, counted on numbers that count: both double with d."""

    class Counted(float):
        made = 0

        def __mul__(self, other):
            Counted.made += 1
            return Counted(float(self) * float(other))

        def __add__(self, other):
            return Counted(float(self) + float(other))

        def __sub__(self, other):
            return Counted(float(self) - float(other))

    def cost(f, d):
        Counted.made = 0
        f([Counted(1)] * d, [Counted(2)] * d)
        return Counted.made

    def cos(a, b):
        dots = [sum((x * y for x, y in zip(u, v)), Counted(0)) for u, v in ((a, b), (a, a), (b, b))]
        return dots[0] / math.sqrt(dots[1] * dots[2])

    def dist(a, b):
        return math.sqrt(sum(((x - y) * (x - y) for x, y in zip(a, b)), Counted(0)))

    linear = [1.9 < cost(f, 2000) / cost(f, 1000) < 2.1 for f in (cos, dist)]
    return "O(d)" if all(linear) else "不是 O(d)"


@computation
def rankings_agree():
    """After scaling to length 1: is d² = 2 − 2cos, and do both measures order a thousand vectors alike?"""
    rng = np.random.default_rng(0)
    table, query = normalize(rng.normal(size=(1000, 16))), normalize(rng.normal(size=16))
    identity = np.allclose(euclidean_distance(table, query) ** 2, 2 - 2 * cosine_similarity(table, query))
    order = [nearest(table, query, 1000, metric=metric) for metric in ("cosine", "euclidean")]
    return bool(identity and np.array_equal(*order))


@computation
def measures_agree():
    """Both measures on the three toy words: is banana nearer to apple than the plane is?"""
    apple, banana, plane = WORDS.values()
    by_cosine = cosine_similarity(apple, banana) > cosine_similarity(apple, plane)
    by_distance = euclidean_distance(apple, banana) < euclidean_distance(apple, plane)
    return bool(by_cosine and by_distance)


@computation
def queen():
    """king − man + woman in a hand-made space: the nearest word of all, and the nearest when the three inputs are left out."""
    names = ["king", "queen", "man", "woman", "child", "apple"]
    royal, male, person = np.eye(3)
    table = np.stack([2 * royal + 0.5 * male + person, 2 * royal - 0.5 * male + person, 0.4 * male + person, -0.4 * male + person, person, 3 * male - person])
    king, man, woman = (names.index(word) for word in ("king", "man", "woman"))
    # Real vectors put the offsets only roughly parallel: the step from king stays short, and king itself stays nearest.
    table[woman] = table[man] - 0.3 * male
    of_all = names[int(nearest(table, table[king] - table[man] + table[woman], 1)[0])]
    without = names[int(np.ravel(analogy(table, king, man, woman))[0])]
    return Evidence(f"{without}（须排除三个输入词）" if of_all == "king" else without, says=of_all, narrow=without, show={"nearest": of_all})


@computation
def score_matrix_megabytes(n, d, bytes_per_value, weights_printed):
    """MiB of one n × n score matrix at this width, by making it; and of a d × d matrix, which the other rows print."""
    q = np.zeros((n, 1), np.float32)
    scores = scaled_dot_product_attention(q, q, q)[1]
    if scores.itemsize != bytes_per_value:
        raise ValueError(f"分数矩阵每个数 {scores.itemsize} 字节")
    weights = d * d * bytes_per_value / 2**20
    return Evidence(scores.nbytes / 2**20, other=weights if weights_printed else UNSET, show={"weights": weights})


@computation
def score_matrix_is_n_by_n():
    """The shape of what attention keeps between scores and output, for several lengths and widths."""
    rng = np.random.default_rng(0)
    shapes = set()
    for n, d in ((5, 8), (7, 8), (5, 16)):
        x, params = rng.normal(size=(n, d)), {f"W_{name}": np.eye(d) for name in "QKVO"}
        shapes.add((n, d, multi_head_attention(x, params, 1)[1].shape[-2:]))
    return "n×n" if all(shape == (n, n) for n, _, shape in shapes) else "d×d" if all(shape == (d, d) for _, d, shape in shapes) else "其他"


@computation
def score_matrix_at(n, bytes_per_value):
    """Bytes of one n × n matrix at several precisions, and the unit in which one would say it."""
    sizes = [float(n) ** 2 * b for b in bytes_per_value]
    unit = next(name for factor, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1, "B")) if min(sizes) >= factor)
    return Evidence(sizes, says=unit)
