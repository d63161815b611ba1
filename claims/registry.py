"""The recomputations by name. A record names one and gives it the document's own numbers as arguments."""

import importlib
import json
import pkgutil
from functools import cache

import numpy as np

from claims.judge import Evidence

_COMPUTATIONS = {}


def computation(function):
    """Register a recomputation under its name. It returns a plain value or an `Evidence`."""
    name = function.__name__
    if name in _COMPUTATIONS:
        raise ValueError(f"重算函数重名：{name}")
    _COMPUTATIONS[name] = function
    return function


@cache
def computations():
    """Name -> function, for every module of `claims.compute`."""
    package = importlib.import_module("claims.compute")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"claims.compute.{module.name}")
    return dict(_COMPUTATIONS)


def compute(name, args=None):
    """Run one recomputation and return its `Evidence` in plain Python values."""
    return _run(name, json.dumps(args or {}))


@cache  # the computations are pure and seeded: the same arguments give the same evidence
def _run(name, args):
    if name not in computations():
        raise LookupError(f"没有名为 {name} 的重算函数")
    found = computations()[name](**json.loads(args))
    if not isinstance(found, Evidence):
        return Evidence(plain(found))
    fields = {key: plain(value) for key, value in vars(found).items()}
    return Evidence(**fields)


def plain(value):
    """NumPy values and tuples as numbers and lists, so that a record, the judge and JSON see the same thing."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value
