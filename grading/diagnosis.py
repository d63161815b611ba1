"""诊断与反馈的文字：学生的结果与哪一种已知的错误写法相同，写成学生读得懂、粘得出来的一段话。"""

import contextlib
import functools
import re

import numpy as np

from grading.checks import NO_SUCH_RESULT, CheckFailure, Student, checks_of, course_seed, run
from grading.mutants import mutants_of
from grading.plain import WrongKind, code, same, told_apart

# What to do about an error that says more than the check's own hint: (beginning of `Name: text` as a pattern, advice).
ADVICE = [
    (r"UnboundLocalError:", "这个变量在赋值之前就用了：给它赋值的循环或 if 也许一次也没有进去"),
    (r"NameError: .*name 'np'", "在这个单元开头写 import numpy as np"),
    (r"NameError:", "这个名字没有定义：看看拼写，或定义它的单元有没有运行成功"),
    (r"TimeoutError:", "循环停不下来：看它的条件会不会变成假，每一圈有没有前进一步"),
    (r"RecursionError:", "函数一直在调用自己：先写好不再调用的情形"),
    (r"ModuleNotFoundError:", "评分的环境里只有 Python 自带的库和 NumPy"),
    (r"TypeError: .*(positional|keyword) argument", "函数的参数要与约定一致：名字、次序、默认值"),
    (r"(Attribute|Type)Error: .*'NoneType' object", "有一步得到的是 None：它调用的函数忘了 return？"),
]


def explanation(student, aspect="result"):
    """The known wrong solution behind a failure: it shows what the student's function showed in every call of this
    check so far, and fails it too; among several, the one that agrees in most calls of all checks of the function.

    One True or False is weak evidence, so there the agreement must be complete. Objects of a class that share what they
    keep show something else each time, so there it is this that must agree."""
    check, (*earlier, failed) = student.check, student.calls
    if failed.by and not _repeats(student.function, failed):
        return next((m for m in mutants_of(check.assignment, check.function) if not _repeats(m.body, failed)), None)
    candidates = [m for m in mutants_of(check.assignment, check.function)
                  if _agree(m, failed, aspect) and all(_agree(m, call, "result") for call in earlier)
                  and _fails(check, m, course_seed())]
    weak = isinstance(failed.seen.result, (bool, np.bool_))
    if len(candidates) < (1 if weak else 2):
        return candidates[0] if candidates else None
    record = _behaviour(check, student.function)
    scores = [_score(m, record) for m in candidates]
    best = max(scores)
    return None if weak and best[1] < len(record) else candidates[scores.index(best)]


@functools.cache
def _fails(check, mutant, seed):
    """Whether the check finds fault with this mistake; with another `seed` its inputs are others."""
    try:
        run(check, mutant.body, diagnose=False)
    except CheckFailure:
        return True
    return False


def _score(mutant, record):
    """In how many calls the results agree, and in how many the arguments afterwards do too."""
    results = [call for call in record if _agree(mutant, call, "result")]
    return len(results), sum(_agree(mutant, call, "after") for call in results)


def _repeats(function, call):
    """Whether two new objects show the same if they are used alike."""
    return _alike(call.shown_by(function), call.shown_by(function))


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
                with contextlib.suppress(*NO_SUCH_RESULT):  # no result to take apart
                    other.body(student, other.rng())
                record += student.calls
        _last_behaviour = (function, name, record)
    return _last_behaviour[2]


def _agree(mutant, call, aspect):
    return _alike(call.seen, call.shown_by(mutant.body), aspect)


def _alike(seen, known, aspect="result"):
    if seen.error is not None or known.error is not None:
        return (type(seen.error).__name__, str(seen.error)) == (type(known.error).__name__, str(known.error))
    if aspect == "after":
        return same(list(known.after), list(seen.after))
    return seen.alien == known.alien and same(known.result, seen.result)


def report(outcome, found, expected, got, mutant):
    check = outcome.check
    lines = [f"【{check.function} · {check.name}】{check.claim}", f"    不符：{found}",
             f"    诊断：{mutant.message}" if mutant else f"    提示：{_advice(outcome, found)}",
             *(_played if outcome.call.by else _called_with)(check.function, outcome)]
    if expected is not None:
        lines += [f"    {word}：{text}" for word, text in zip(("期望", "得到"), told_apart(expected, got))]
    return "\n".join(lines)


def _advice(outcome, found):
    """What to do: about the error or the type if that is all that is wrong, else the hint of the check."""
    if isinstance(found, WrongKind):
        return found.advice
    if (error := outcome.seen.error) is not None:
        for pattern, advice in ADVICE:
            if re.match(pattern, f"{type(error).__name__}: {error}", re.S):
                return advice
    return f"{outcome.check.hint}，见 {outcome.check.section}"


def _called_with(name, outcome):
    """The call as lines to paste."""
    arguments = [code(a) for a in outcome.args] + [f"{key}={code(a)}" for key, a in outcome.kwargs.items()]
    joined = ", ".join(arguments)
    if len(joined) <= 88 and not any("  # " in a for a in arguments):
        return [f"    调用：{name}({joined})"]
    return [f"    调用：{name}(", *(f"        {_with_comma(a)}" for a in arguments), "    )"]


def _played(name, outcome):
    """The uses of one or two objects as lines to paste."""
    init, steps = outcome.args
    it, new = "a", f"{name}({', '.join(map(code, init))})"
    lines = ["依次：", f"    a = {new}"]
    for method, *args in steps:
        if method in ("new", "first"):
            it = "b" if method == "new" else "a"
        if method == "new":
            lines.append(f"    b = {new}")
        elif method != "first":
            lines.append(f"    len({it})" if method == "len" else f"    {it}.{method}({', '.join(map(code, args))})")
    return [f"    {line}" for line in lines]


def _with_comma(argument):
    source, mark, comment = argument.partition("  # ")
    return f"{source},{mark}{comment}"
