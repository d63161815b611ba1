"""The judge alone: a case of every verdict, on made-up claims, and the edges of each rule."""

import math

import pytest

from claims.judge import VERDICTS, Evidence, agree, judge

CASES = {
    "holds": [
        (0.84, Evidence(0.8438), dict(tol=0.005)),
        ([1, 2], Evidence([1.0, 2.0]), dict(tol=0)),
        ("M", Evidence("M"), {}),
        (5.0, Evidence(5.5), dict(tol=0.5)),  # exactly at the tolerance
        ([64, 128], Evidence([64, 128, 256]), dict(compare="subset")),
        ([4, 8], Evidence([4, 6]), dict(compare="within")),
        (1_000_000, Evidence(1_048_576), dict(compare="at_least")),
        ("上文", Evidence([0.1, 0.9], says="上文"), {}),
        (0.84, Evidence(0.8438, narrow=0.1, other=0.84), dict(tol=0.005, against="别处")),
    ],
    "rounding": [
        (0.12, Evidence(0.1142), dict(tol=0.005)),
        (0.842, Evidence(0.841471), dict(tol=0.0005)),
        (1.0, Evidence(0.999), dict(tol=0.0005)),  # exactly one unit
        (6.218, Evidence(6.2232, rounded=6.218), dict(tol=0.0005)),  # far off, but through rounded steps
        (0.12, Evidence(0.1142), dict(tol=0.005, against="别处")),
    ],
    "wrong": [
        (192, Evidence(96), dict(tol=0)),
        (64, Evidence(4.0), dict(tol=0.5)),
        (0.99, Evidence(0.9802, other=99 / 100), dict(tol=0.005)),  # within a unit, yet another quantity
        (True, Evidence(False), {}),
        ("Anthropic", Evidence("Geva 等"), {}),
        ([1, 2, 3], Evidence([1, 2]), dict(tol=1)),
        ([0, 1], Evidence([-0.28, math.inf]), dict(compare="within")),
        (["VGG"], Evidence(["ResNet"]), dict(compare="subset")),
    ],
    "inconsistent": [
        (0.0, Evidence(0.889), dict(tol=1e-9, against="给定的 X")),
        (4, Evidence(6), dict(against="L1063")),
        (2 / 3, Evidence(0.455, narrow=2 / 3), dict(against="L115")),  # a contradiction outweighs a lenient reading
    ],
    "misleading": [
        (2 / 3, Evidence(0.455, narrow=2 / 3), {}),
        (True, Evidence(False, narrow=True), {}),
        (2, Evidence([2, 4], says=4, narrow=2), {}),
    ],
    "unreproducible": [
        (None, Evidence(97.0), {}),
        ([1, 0, 2], Evidence([1, 0, 2]), dict(missing="W_Q")),
    ],
    "unverifiable": [
        (True, Evidence(None), {}),
        (True, Evidence(None), dict(against="别处")),
    ],
}


@pytest.mark.parametrize("verdict, case", [(verdict, case) for verdict, cases in CASES.items() for case in cases])
def test_each_verdict(verdict, case):
    claimed, evidence, options = case
    assert judge(claimed, evidence, **options) == verdict


def test_every_verdict_has_a_case():
    assert CASES.keys() == VERDICTS.keys()


@pytest.mark.parametrize("verdict", ["wrong", "inconsistent", "misleading"])
def test_what_is_off_by_more_than_a_unit_is_never_rounding(verdict):
    for claimed, evidence, options in CASES[verdict]:
        assert judge(claimed, evidence, **options) != "rounding"


@pytest.mark.parametrize("claimed, found, tol, expected", [
    (0.3, 0.1 + 0.2, 0, True),
    (1, 1 + 1e-9, 0, False),
    (True, 1, None, False),  # a yes is not a number
    (1, True, 5, False),
    ("1", 1, None, False),
    (math.inf, math.inf, 0, True),
    (math.inf, 1e308, 1e300, False),
    ([[1], [2]], [[1], [2.5]], 0.4, False),
    ([[1], [2]], [[1], [2.5]], 0.5, True),
    ({"a": 1}, {"a": 1.0}, 0, True),
    ({"a": 1}, {"b": 1}, 0, False),
    ([], None, None, False),
])
def test_agreement(claimed, found, tol, expected):
    assert agree(claimed, found, tol) is expected
