"""诊断与反馈的文字：学生的结果与哪一种已知的错误写法相同，写成学生读得懂、粘得出来的一段话。"""

import contextlib

import numpy as np

from grading.checks import Student, checks_of
from grading.mutants import mutants_of
from grading.plain import code, same


def explanation(student, aspect="result"):
    """The known wrong solution behind a failure: it shows what the student's function showed in every call of this
    check so far; among several, the one that agrees in most calls of all checks of the function.

    One True or False is weak evidence, so there the agreement must be complete."""
    check, (*earlier, failed) = student.check, student.calls
    candidates = [m for m in mutants_of(check.assignment, check.function)
                  if _agree(m, failed, aspect) and all(_agree(m, call, "result") for call in earlier)]
    weak = isinstance(failed.seen.result, (bool, np.bool_))
    if len(candidates) < (1 if weak else 2):
        return candidates[0] if candidates else None
    record = _behaviour(check, student.function)
    scores = [sum(_agree(m, call, "result") and _agree(m, call, "after") for call in record) for m in candidates]
    best = max(scores)
    return None if weak and best < len(record) else candidates[scores.index(best)]


_last_behaviour = (None, None, [])


def _behaviour(check, function):
    """Every call that the checks of this function make, without judging; kept for the function seen last."""
    global _last_behaviour
    name = check.assignment, check.function
    if _last_behaviour[0] is not function or _last_behaviour[1] != name:
        record = []
        for other in checks_of(check.assignment).values():
            if other.function == check.function:
                student = Student(other, function, judge=False)
                with contextlib.suppress(TypeError, ValueError, IndexError, KeyError):  # no result to take apart
                    other.body(student, other.rng())
                record += student.calls
        _last_behaviour = (function, name, record)
    return _last_behaviour[2]


def _agree(mutant, call, aspect):
    seen, known = call.seen, call.shown_by(mutant.body)
    if seen.error is not None or known.error is not None:
        return (type(seen.error).__name__, str(seen.error)) == (type(known.error).__name__, str(known.error))
    if aspect == "after":
        return same(list(known.after), list(seen.after))
    return seen.alien == known.alien and same(known.result, seen.result)


def report(outcome, found, expected, got, mutant):
    check = outcome.check
    lines = [f"【{check.function} · {check.name}】{check.claim}", f"    不符：{found}",
             f"    诊断：{mutant.message}" if mutant else f"    提示：{check.hint}，见 {check.section}",
             *(_played if outcome.call.by else _called_with)(check.function, outcome)]
    if expected is not None:
        lines += [f"    期望：{code(expected, 6)}", f"    得到：{code(got, 6)}"]
    return "\n".join(lines)


def _called_with(name, outcome):
    """The call as lines to paste."""
    arguments = [code(a) for a in outcome.args] + [f"{key}={code(a)}" for key, a in outcome.kwargs.items()]
    joined = ", ".join(arguments)
    if len(joined) <= 88 and not any("  # " in a for a in arguments):
        return [f"    调用：{name}({joined})"]
    return [f"    调用：{name}(", *(f"        {_with_comma(a)}" for a in arguments), "    )"]


def _played(name, outcome):
    """The uses of an object as lines to paste."""
    init, steps = outcome.args
    start = f"        a = {name}({', '.join(map(code, init))})"
    lines = ["    依次：", start]
    for method, *args in steps:
        joined = ", ".join(map(code, args))
        lines.append(start if method == "new" else f"        {'len(a)' if method == 'len' else f'a.{method}({joined})'}")
    return lines


def _with_comma(argument):
    source, mark, comment = argument.partition("  # ")
    return f"{source},{mark}{comment}"
