"""隐藏测试的接口：检查一条性质，用小输入说清楚错在哪里。

A hidden region of a source notebook holds one line per group of checks,

    from grading.checks import verify
    verify("ex04-attention", "softmax", "axis rank dtype", softmax)

and the checks live in `solutions/ex04-attention/checks.py`, which is never released:

    @check("softmax", "axis", section="4.4", claim="只沿 axis 归一，其余轴互不相干", hint="…")
    def softmax_axis(student, rng):
        x = small(rng, 2, 3, 4)
        student(x, axis=1).equals(reference_softmax(x, 1))

`student(...)` calls the function once and gives an Outcome; every method of it that is not satisfied raises a
CheckFailure whose text is written for the student: the property, a call to paste, expected, got, and (when a known
wrong solution of `grading/mutants` gives the same result on the same input) the misconception and its section.
The text holds no line of test code, so feedback may show all of it.

The function may live in another process. Such a proxy derives from RemoteFunction; nothing else about a function is
used than calling it. Inputs are drawn from a seed that a teacher can set privately (see `course_seed`).
"""

import functools
import hashlib
import importlib.util
import os
import re
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from grading.plain import Callback, NotPlain, WrongKind, code, copied, difference

__all__ = ["Callback", "CheckFailure", "RemoteFunction", "Outcome", "check", "checks_of", "course_seed", "run", "small",
           "verify"]

ROOT = Path(__file__).resolve().parent.parent
PUBLISHED_SEED = "token-journey"
NO_SUCH_RESULT = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)  # from taking a wrong result apart
SEED_FILE = ROOT / ".grading-seed"  # ignored by git: a teacher's private seed, one line


class CheckFailure(AssertionError):
    """A property does not hold; the text is the feedback."""

    def __init__(self, text, mutant=None, unwritten=False, cause=None):
        super().__init__(text)
        self.mutant, self.unwritten, self.cause = mutant, unwritten, cause

    @property
    def headline(self):
        return str(self).split("\n", 1)[0]


class RemoteFunction:
    """Base class for a student's function that lives in another process."""

    def invoke(self, args, kwargs):
        """Call it there with copies. Return (result, args, kwargs), the arguments as they are after the call.

        An exception on the other side is raised here as the builtin type of the same name.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class Check:
    assignment: str
    function: str
    name: str
    claim: str
    hint: str
    section: str
    body: object

    def rng(self):
        """Its own stream: adding or reordering checks never changes the inputs of another one."""
        key = f"{course_seed()}/{self.assignment}/{self.function}/{self.name}"
        return np.random.default_rng(int.from_bytes(hashlib.sha256(key.encode()).digest()[:8]))


@functools.cache
def course_seed():
    """What all inputs are drawn from: $GRADING_SEED, else the file .grading-seed, else the published default."""
    if private := os.environ.get("GRADING_SEED"):
        return private
    return SEED_FILE.read_text("utf-8").strip() if SEED_FILE.exists() else PUBLISHED_SEED


_registering = []  # the assignment whose checks.py is being loaded, and its registry


def check(function, name, *, section, claim, hint):
    """Register a check. `claim` states the property, `hint` helps when no known mistake explains the result."""

    def register(body):
        assignment, registry = _registering[-1]
        if (function, name) in registry:
            raise ValueError(f"{assignment}: check {function}/{name} is registered twice")
        registry[function, name] = Check(assignment, function, name, claim, hint, section, body)
        return body

    return register


@functools.cache
def checks_of(assignment):
    """All checks of an assignment in the order of the file: {(function, name): Check}."""
    path = ROOT / "solutions" / assignment / "checks.py"
    spec = importlib.util.spec_from_file_location(f"checks_{re.sub(r'[^0-9a-z]', '_', assignment)}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    _registering.append((assignment, {}))
    try:
        spec.loader.exec_module(module)
        return _registering[-1][1]
    finally:
        _registering.pop()


def verify(assignment, function_name, names, function):
    """Run the named checks (separated by blanks) and report all that fail in one CheckFailure."""
    registry, failures = checks_of(assignment), []
    for name in names.split():
        try:
            run(registry[function_name, name], function)
        except CheckFailure as failure:
            failures.append(failure)
    if failures and all(f.unwritten for f in failures) and len(failures) == len(names.split()):
        raise CheckFailure(f"{function_name} 还没有写（NotImplementedError）", unwritten=True) from None
    if failures:
        raise CheckFailure(_joined(failures)) from None


def _joined(failures):
    """All reports; what explains several failures is spelled out once."""
    texts, known = [], set()
    for failure in failures:
        same = "诊断：原因同上" if failure.mutant else f"不符：原因同上（{failure.cause}）"
        texts.append(f"{failure.headline}\n    {same}" if failure.cause in known else str(failure))
        known |= {failure.cause} - {None}
    return "\n\n".join(texts)


def run(check, function, diagnose=True):
    """Run one check on one function; a failure is explained by a known mistake if one shows the same."""
    student = Student(check, function, diagnose=diagnose)
    try:
        check.body(student, check.rng())
    except NO_SUCH_RESULT:
        if not student.calls:
            raise  # the check itself is broken
        outcome = Outcome(student)  # it took apart what the function returned
        outcome.fail(outcome._nothing() or "返回值的结构不对，检查无法继续", shown=True)


def small(rng, *shape, digits=1, scale=1.0, around=0.0):
    """A generic array whose numbers are short enough to be read in a message and pasted without loss."""
    numbers = np.round(scale * rng.standard_normal(shape), digits) + around
    return np.round(numbers, 12) + 0.0  # a sum of two short numbers is short again: 0.3, not 0.30000000000000004


class Student:
    """The function under test as a check sees it: call it, get an Outcome. Keeps a record of its calls."""

    def __init__(self, check, function, judge=True, diagnose=True):
        self.check, self.function, self.judge, self.diagnose = check, function, judge, diagnose
        self.calls = []

    def __call__(self, *args, **kwargs):
        args, kwargs = copied(args), copied(kwargs)
        self.calls.append(Call(self.function, args, kwargs))
        return Outcome(self)

    def plays(self, init, *steps):
        """For a class: make an object and use it, one step after the other; the result is the list of what they gave.

        A step is (method, *arguments); ("len",) asks for len(object), ("new",) goes on with a second object, ("first",) with
        the first one again.
        """
        init, steps = copied(init), copied(steps)
        self.calls.append(Call(self.function, (init, steps), {}, play))
        return Outcome(self)


def play(make, init, steps):
    """What `Student.plays` does, for a class here or in another process."""
    thing = first = _called(make, init)
    results = []
    for name, *args in steps:
        if name in ("new", "first"):
            thing = _called(make, init) if name == "new" else first
            results.append(None)
        else:
            results.append(len(thing) if name == "len" else _called(getattr(thing, name), args))
    return results


def _called(function, args):
    return function.invoke(args, {})[0] if isinstance(function, RemoteFunction) else function(*args)


@dataclass(frozen=True)
class Observation:
    """What one call showed: a plain result or an error, and the arguments afterwards."""

    result: object = None
    error: Exception | None = None
    after: tuple = ((), {})
    alien: str = ""  # the type of a result that is not plain data


class Call:
    """One use of a function with fixed arguments, and what it showed."""

    def __init__(self, function, args, kwargs, by=None):
        self.args, self.kwargs, self.by = args, kwargs, by
        self.seen = self.shown_by(function)

    def shown_by(self, function):
        """What another function shows on the same arguments."""
        return observe(functools.partial(self.by, function) if self.by else function, self.args, self.kwargs)


def observe(function, args, kwargs):
    """Call with copies and look at nothing but plain data."""
    args, kwargs = copied(args), copied(kwargs)
    try:
        # A warning is no mistake, and nbgrader would take all points off for a line on stderr.
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            if isinstance(function, RemoteFunction):
                result, args, kwargs = function.invoke(args, kwargs)
            else:
                result = function(*args, **kwargs)
    except Exception as error:
        return Observation(error=error, after=(args, kwargs))
    try:
        return Observation(result=copied(result), after=(copied(args), copied(kwargs)))
    except NotPlain as alien:
        return Observation(after=(args, kwargs), alien=getattr(result, "__name__", str(alien)))


class Outcome:
    """One call of the student's function, with the questions a check may ask about it."""

    def __init__(self, student):
        self.student, self.check = student, student.check
        self.call = student.calls[-1]
        self.args, self.kwargs, self.seen = self.call.args, self.call.kwargs, self.call.seen

    @property
    def value(self):
        """What was returned, for a property that relates two calls."""
        self._returned()
        return copied(self.seen.result)

    def equals(self, expected, rtol=1e-9, atol=1e-9, of=None):
        """The result, or what `of` takes from it, is `expected`: same structure and shape, numbers within the tolerance."""
        expected, got = copied(expected), self.value
        got = of(got) if of and self.student.judge else got
        if found := difference(expected, got, rtol, atol):
            self.fail(found, expected, got)
        return self

    def has_dtype(self, dtype):
        """The result, or each array of a tuple, has this dtype."""
        self._returned()
        if self.seen.error is not None or self.seen.alien:
            return self  # only where nothing is judged
        results = self.seen.result if isinstance(self.seen.result, (tuple, list)) else [self.seen.result]
        for result in results:
            if not isinstance(result, (np.ndarray, np.generic)):
                self.fail(WrongKind(" NumPy 数组", result, "用 np.array(…) 包起来，或从头就用数组运算"))
            elif result.dtype != dtype:
                self.fail(f"dtype 应为 {np.dtype(dtype)}，得到 {result.dtype}")
        return self

    def keeps_arguments(self):
        """The call leaves its arguments as they were."""
        self._returned()
        before = [*self.args, *self.kwargs.values()]
        after = [*self.seen.after[0], *self.seen.after[1].values()]
        for place, (old, new) in enumerate(zip(before, after, strict=True)):
            if not isinstance(old, Callback) and (found := difference(old, new, 0.0, 0.0)):
                self.fail(f"调用之后第 {place + 1} 个参数变了：{found}", aspect="after")
        return self

    def raises(self, *kinds):
        """The call is refused with one of these exceptions."""
        names = " 或 ".join(kind.__name__ for kind in kinds)
        if self.seen.error is None:
            self.fail(f"应拒绝这样的输入并抛出 {names}，却返回了结果", shown=True)
        if isinstance(self.seen.error, NotImplementedError):
            self.fail(_error(self.seen.error))
        if not isinstance(self.seen.error, kinds):
            self.fail(f"应抛出 {names}，却抛出 {_named(self.seen.error)}")
        return self

    def satisfies(self, holds, otherwise):
        """A property of the plain result that no single expected value expresses."""
        self._returned()
        try:
            held = bool(holds(self.seen.result))
        except NO_SUCH_RESULT:
            held = False  # a result of the wrong form doesn't have the property
        if not held:
            self.fail(self._nothing() or otherwise, shown=True)
        return self

    def _nothing(self):
        """What to say if nothing was returned at all."""
        nothing = self.seen.result is None and self.seen.error is None and not self.seen.alien
        return WrongKind("一个结果", None, "") if nothing else None

    def _returned(self):
        if self.seen.alien:
            self.fail(f"返回值只能由数、字符串、NumPy 数组和它们的容器组成，得到 {self.seen.alien}")
        if self.seen.error is not None:
            self.fail(_error(self.seen.error))

    def fail(self, found, expected=None, got=None, aspect="result", shown=False):
        """Raise the feedback: `found` says what doesn't hold, and a known mistake is named if one explains it.

        `shown` adds the result itself where there is nothing to expect in its place.
        """
        from grading.diagnosis import explanation, report  # it runs checks itself

        if self.student.judge:
            mutant = explanation(self.student, aspect) if self.student.diagnose else None
            unwritten = isinstance(self.seen.error, NotImplementedError)
            cause = mutant.name if mutant else self._cause(found)
            text = report(self, found, expected, got, mutant)
            if shown and not self.seen.alien:
                text += f"\n    得到：{code(self.seen.result, 6)}"
            raise CheckFailure(text, mutant, unwritten, cause) from None

    def _cause(self, found):
        """What other checks may have failed for as well, in a few words."""
        if self.seen.error is not None:
            return f"{type(self.seen.error).__name__}：{str(self.seen.error)[:60]}"
        return "返回值的类型或次序不对" if isinstance(found, WrongKind) or self.seen.alien else None


def _error(error):
    if isinstance(error, NotImplementedError):
        return "这个函数还没有写（NotImplementedError）"
    return f"运行时抛出 {_named(error)}"


def _named(error):
    text = str(error)[:300]
    return type(error).__name__ + (f"：{text}" if text else "")
