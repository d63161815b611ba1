"""已知的错误写法（诊断表）与另一些正确写法，每个作业一个模块。

A mutant is a wrong solution that people write. It serves three times: the tests ask that the hidden checks catch it,
the checks use it to name the misconception behind a student's result, and the appendix shows it to readers. A right
solution of another style keeps the checks from dictating one. Modules are named after the assignment
(`ex04_attention` for `ex04-attention`) and hold plain functions:

    @mutant("softmax", "对整个数组归一", "应只沿 axis 求和并保留该轴（keepdims=True）", "4.4", caught_by="axis")
    def whole_array(x, axis=-1): ...

    @right("softmax", "逐行循环")
    def row_by_row(x, axis=-1): ...

Order matters where two mutants agree on an input: the first one names the mistake.
"""

import importlib
from dataclasses import dataclass
from functools import cache

_registering = []


@dataclass(frozen=True)
class Mutant:
    function: str
    name: str  # what was done instead, as it stands between “”
    remedy: str
    section: str
    caught_by: str  # name of the check that must catch it
    seen_in: tuple  # public threads that report it
    body: object

    @property
    def message(self):
        return f"结果与“{self.name}”完全一致：{self.remedy}，见 {self.section}"


@dataclass(frozen=True)
class Right:
    function: str
    style: str
    body: object


def mutant(function, name, remedy, section, *, caught_by, seen_in=()):
    """Register a wrong solution of `function`."""

    def register(body):
        threads = (seen_in,) if isinstance(seen_in, str) else tuple(seen_in)
        _registering[-1].append(Mutant(function, name, remedy, section, caught_by, threads, body))
        return body

    return register


def right(function, style):
    """Register a right solution of another style."""

    def register(body):
        _registering[-1].append(Right(function, style, body))
        return body

    return register


@cache
def solutions_of(assignment):
    """Everything that the module of this assignment registers, in its order; nothing if there is no module."""
    name = f"grading.mutants.{assignment.replace('-', '_')}"
    if importlib.util.find_spec(name) is None:
        return ()
    _registering.append([])
    try:
        importlib.import_module(name)
        return tuple(_registering[-1])
    finally:
        _registering.pop()


def mutants_of(assignment, function=None):
    return [s for s in solutions_of(assignment) if isinstance(s, Mutant) and function in (None, s.function)]


def rights_of(assignment, function=None):
    return [s for s in solutions_of(assignment) if isinstance(s, Right) and function in (None, s.function)]
