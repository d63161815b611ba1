"""A notebook is run as it stands: answers in the student's kernel, tests on the trusted side, plain data between them."""

import numpy as np
import pytest

from grading.assignment import grade_id, is_test
from grading.execution import execute, score
from grading.rebuild import rebuild, source_as_submission
from grading.sandbox import Limits

QUICK = Limits(cell_seconds=3, call_seconds=2, total_seconds=30)


def run(toy, notebook, sandbox=True, limits=QUICK, **how):
    rebuilt = rebuild(source_as_submission(notebook), toy.assignment)
    return execute(rebuilt.notebook, toy.assignment, sandbox, limits=limits, **how)


def points(execution):
    return {t.grade_id: t.score for t in execution.tests}


FULL = {"softmax-value": 3, "softmax-axis": 2, "counter-add": 2, "apply-callback": 2, "apply-partial": 1}
places = pytest.mark.parametrize("sandbox", [pytest.param(True, marks=pytest.mark.sandbox), False], ids=["sandbox", "home"])


@places
def test_the_reference_gets_all_points_and_the_release_none(toy, sandbox):
    assert points(run(toy, toy.released_reference, sandbox)) == FULL
    nothing = run(toy, toy.released, sandbox)
    assert nothing.score == 0 and nothing.max_score == 10
    assert "还没有写" in nothing.tests[0].message


@places
def test_each_mistake_costs_its_own_points(toy, sandbox):
    wrong = run(toy, toy.notebook({
        "softmax": "def softmax(x, axis=-1):\n    e = np.exp(x)\n    x *= 0\n    return e / e.sum(-1, keepdims=True)",
        "apply": "def twice(f, x):\n    return f(x)"}), sandbox)
    assert points(wrong) == {"softmax-value": 0, "softmax-axis": 0, "counter-add": 2, "apply-callback": 0,
                             "apply-partial": 0.5}
    assert "沿 axis 求和应为 1" in next(t.message for t in wrong.tests if t.grade_id == "softmax-axis")


@places
def test_the_student_file_and_folder_stay_as_they_were(toy, sandbox, tmp_path):
    (tmp_path / "data.txt").write_text("1 2 3")
    notebook = toy.notebook(extra=[("setup", "open('made.txt', 'w').write(open('data.txt').read())")])
    done = run(toy, notebook, sandbox, files={"data.txt": b"1 2 3"})
    assert done.score == 10 and sorted(p.name for p in tmp_path.iterdir()) == ["data.txt"]
    assert not [o for c in done.notebook.cells for o in c.get("outputs", []) if o.output_type == "error"]


def test_an_altered_test_cell_is_never_run_on_the_trusted_side(toy):
    notebook = rebuild(source_as_submission(toy.released_reference), toy.assignment).notebook
    next(c for c in notebook.cells if is_test(c)).source += "\nimport os"
    with pytest.raises(ValueError, match="原文"):
        execute(notebook, toy.assignment)


def test_scores_follow_nbgraders_rule(toy):
    from nbformat.v4 import new_output
    from nbgrader.utils import determine_grade

    cell = next(c for c in toy.assignment.pristine.cells if grade_id(c) == "softmax-value").copy()
    for outputs in ([], [new_output("error", ename="E", evalue="", traceback=[])], [new_output("stream", name="stdout", text="x")],
                    *([new_output("execute_result", data={"text/plain": text})] for text in ("2.0", "0.5", "0.0", "3.0", "7.0", "-1.0"))):
        given = score(outputs, 3.0)
        cell.outputs = outputs
        assert given == determine_grade(cell)[0]


@pytest.mark.parametrize(("last", "points"), [("1", 1), ("np.float64(0.5)", 0.5), ("9", 3), ("-2", 0), ("True", 3), ("False", 0),
                                              ("np.bool_(False)", 0), ("None", 3), ("np.ones(3)", 0), ("'text'", 0), ("float('nan')", 0),
                                              ("[1]", 0), ("x = 1", 3)])
def test_only_a_number_is_partial_credit(last, points):
    from grading.trusted import new_namespace, run_test

    assert score(run_test(last, "t", new_namespace(), None).outputs, 3.0) == points


# -- honest but odd: nothing may be lost -------------------------------------------------------------------------------

ODD = {
    "warnings": {"softmax": """
import warnings, sys
def softmax(x, axis=-1):
    warnings.warn("慢")
    print("正在算", file=sys.stderr)
    print(x)
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)"""},
    "global state": {"softmax": """
calls = 0
cache = {}
def softmax(x, axis=-1):
    global calls
    calls += 1
    cache[calls] = x.shape
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)"""},
    "closure and partial": {"softmax": """
from functools import partial
def make(shift):
    def inner(x, axis=-1):
        e = np.exp(x - shift(x, axis))
        return e / e.sum(axis=axis, keepdims=True)
    return inner
softmax = make(lambda x, axis: x.max(axis=axis, keepdims=True))
softmax = partial(softmax)"""},
    "callable class": {"softmax": """
class Softmax:
    def __call__(self, x, axis=-1):
        e = np.exp(x - x.max(axis=axis, keepdims=True))
        return e / e.sum(axis=axis, keepdims=True)
softmax = Softmax()"""},
    "lambda and semicolons": {"softmax": "ex = lambda x, a: np.exp(x - x.max(axis=a, keepdims=True));"
                                         "softmax = lambda x, axis=-1: ex(x, axis) / ex(x, axis).sum(axis=axis, keepdims=True)"},
    "matrix subclass": {"softmax": """
def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return (e / e.sum(axis=axis, keepdims=True)).view(np.ma.MaskedArray)"""},
    "nested lists": {"softmax": """
def softmax(x, axis=-1):
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return (e / e.sum(axis=axis, keepdims=True)) + np.float64(0)"""},
    "slow but allowed": {"apply": "import time\ndef twice(f, x):\n    time.sleep(0.3)\n    return f(f(x))"},
    "other structure": {"counter": """
from collections import Counter as Base, defaultdict
class Counter:
    def __init__(self):
        self.seen = Base()
    def add(self, token):
        if token == '':
            raise ValueError('不能为空')
        self.seen.update([token])
        return int(self.seen[token])
    def most(self):
        return (token for token, _ in self.seen.most_common())"""},
    "generator with send": {"counter": """
class Counter:
    seen = None
    def add(self, token):
        if not token: raise ValueError
        self.seen = self.seen or {}
        self.seen[token] = self.seen.get(token, 0) + 1
        return np.int64(self.seen[token])
    def most(self):
        return sorted(self.seen, key=self.seen.get, reverse=True)"""},
    "async and magics": {"apply": "%time 1 + 1\nimport asyncio\nawait asyncio.sleep(0)\ndef twice(f, x):\n    return f(f(x))"},
    "chinese names": {"apply": "def 两次(函数, 值):\n    return 函数(函数(值))\ntwice = 两次"},
    "numpy under another name": {"softmax": """
import numpy
np = None
def softmax(x, axis=-1):
    e = numpy.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)""", "setup-is-given": ""},
    "random generator": {"apply": """
rng = np.random.default_rng(3)
np.random.seed(0)
def twice(f, x):
    rng.normal(size=10); np.random.rand()
    return f(f(x))"""},
    "threads": {"softmax": """
from concurrent.futures import ThreadPoolExecutor
def softmax(x, axis=-1):
    with ThreadPoolExecutor(2) as pool:
        e = pool.submit(lambda: np.exp(x - x.max(axis=axis, keepdims=True))).result()
    return e / e.sum(axis=axis, keepdims=True)"""},
    "type hints and dataclass": {"counter": """
from dataclasses import dataclass, field
@dataclass
class Counter:
    seen: dict[str, int] = field(default_factory=dict)
    def add(self, token: str) -> int:
        if not token:
            raise ValueError(token)
        self.seen[token] = self.seen.setdefault(token, 0) + 1
        return self.seen[token]
    def most(self):
        yield from dict(sorted(self.seen.items(), key=lambda kv: -kv[1]))"""},
    "star imports and shadowed builtins": {"softmax": """
from math import *
from numpy import exp, asarray
sum = max = None; list = [1]; type = 'x'
def softmax(x, axis=-1):
    e = exp(asarray(x) - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)"""},
    "extended precision": {"softmax": """
def softmax(x, axis=-1):
    x = x.astype(np.longdouble)
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)"""},
    "decorated": {"apply": """
import functools, time
def timed(function):
    @functools.wraps(function)
    def inner(*args, **kwargs):
        began = time.perf_counter()
        try:
            return function(*args, **kwargs)
        finally:
            print(f"{time.perf_counter() - began:.3f} s")
    return inner
@timed
@timed
def twice(f, x): return f(f(x))"""},
    "full-width names": {"apply": "def ｔｗｉｃｅ(ｆ, ｘ):\n    # 全角字母的名字就是半角的\n    return f(f(x))"},
    "newer syntax": {"apply": """
def twice(f, x, /, *, times: int | None = None):
    match (n := times or 2):
        case 2: out = x
        case _: raise NotImplementedError
    while n := n - 1 if n > 0 else 0: out = f(out)
    return f(out)"""},
    "a property, slots and a class method": {"counter": """
class Counter:
    __slots__ = ("_pairs",)
    def __init__(self): self._pairs = []
    @property
    def seen(self): return {t: n for t, n in self._pairs}
    def add(self, token):
        if not token: raise ValueError("空")
        self._pairs = [*({**self.seen, token: self.seen.get(token, 0) + 1}).items()]
        return self.seen[token]
    def most(self): return {t: n for n, t in sorted((-n, t) for t, n in self._pairs)}.keys()"""},
    "a dictionary of its own": {"counter": """
class Tally(dict):
    def __missing__(self, key): return 0
class Counter(Tally):
    seen = property(lambda self: self)
    def add(self, token):
        if token == "": raise ValueError(token)
        self[token] += 1
        return self[token]
    def most(self):
        from collections import deque
        return deque(sorted(self, key=self.get, reverse=True))"""},
    "a metaclass and errors of its own": {"counter": """
class Meta(type):
    def __call__(cls, *a): return super().__call__(*a)
class EmptyToken(ValueError):
    def __init__(self): super().__init__("空词元")
class Counter(metaclass=Meta):
    def __new__(cls): self = super().__new__(cls); self.seen = {}; return self
    def add(self, token):
        if not token: raise EmptyToken from None
        return self.seen.__setitem__(token, self.seen.get(token, 0) + 1) or self.seen[token]
    def most(self): return iter(sorted(self.seen, key=lambda t: -self.seen[t]))"""},
    "files, pickles and modules of its own": {"softmax": """
import importlib, pathlib, pickle, sys, tempfile
pathlib.Path("my_helpers.py").write_text("import numpy as np\\ndef shifted(x, axis): return x - x.max(axis=axis, keepdims=True)\\n")
from my_helpers import shifted
with open("cache.pkl", "wb") as file: pickle.dump({"axis": -1}, file)
def softmax(x, axis=pickle.load(open("cache.pkl", "rb"))["axis"]):
    with tempfile.TemporaryFile() as file:
        np.save(file, np.exp(shifted(x, axis))); file.seek(0); e = np.load(file)
    return e / e.sum(axis=axis, keepdims=True)"""},
    "processes": {"softmax": """
import multiprocessing
def _exp(row): return np.exp(row)
def softmax(x, axis=-1):
    with multiprocessing.get_context("fork").Pool(2) as pool:
        e = pool.apply(_exp, (x - x.max(axis=axis, keepdims=True),))
    return e / e.sum(axis=axis, keepdims=True)"""},
    "progress bars, logs and options": {"softmax": """
import logging, sys
from tqdm import tqdm
logging.basicConfig(level=logging.DEBUG, stream=sys.stderr, force=True)
np.set_printoptions(precision=2); np.seterr(all="warn")
def softmax(x, axis=-1):
    for _ in tqdm(range(3), file=sys.stderr): logging.warning("第 %d 步", _)
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)"""},
    "deep recursion": {"apply": """
import sys
sys.setrecursionlimit(8000)
def down(n): return 0 if n == 0 else 1 + down(n - 1)
def twice(f, x):
    assert down(4000) == 4000
    return f(f(x))"""},
    "an alarm of its own": {"apply": """
import signal
def late(*_): raise TimeoutError
signal.signal(signal.SIGALRM, late)
def twice(f, x):
    signal.alarm(5)
    try: return f(f(x))
    finally: signal.alarm(0)"""},
    "its own examples in the cell": {"apply": """
def twice(f, x):
    return f(f(x))
if __name__ == "__main__":
    assert twice(str.upper, "a") == "A"
    print(twice(lambda v: v * 2, 3)); twice(lambda v: v * 2, 3)"""},
    "words that end lines": {"apply": "def twice(f, x):\r\n\tname = '行\u2028段\u2029页\x0c'\r\n\treturn f(f(x))  # 🐈\u200d⬛ ＃"},
}


@pytest.mark.sandbox
@pytest.mark.parametrize("name", ODD)
def test_honest_but_odd_solutions_lose_nothing(toy, name):
    done = run(toy, toy.notebook(ODD[name]), limits=Limits())
    assert points(done) == FULL, [t.message for t in done.tests]


@pytest.mark.sandbox
def test_scratch_cells_of_all_kinds_cost_nothing(toy):
    extra = [("setup", "1/0"), ("setup", "raise SystemExit"), ("softmax", "def broken(:"), ("softmax", "undefined_name"),
             ("softmax-value", "print('好' * 100_000)"), ("counter", "input('名字？')"), ("counter", "%matplotlib inline"),
             ("counter", "!ls"), ("apply", "%%bash\nexit 3"), ("apply", "quit()"), ("apply", "import sys; sys.exit(1)"),
             ("apply", "while True: pass")]
    done = run(toy, toy.notebook(extra=extra))
    assert points(done) == FULL and "timeout" in done.notes


@pytest.mark.sandbox
def test_answers_that_stand_elsewhere_count(toy):
    """Written in a cell of its own, with the answer cell only naming it; numbered, empty and noisy cells between."""
    reference = {grade_id(c): c.source for c in toy.released_reference.cells}
    own = ["%%writefile twice_of_mine.py\ndef twice(f, x):\n    return f(f(x))", "", "# 只有注释", "%%capture\nprint(1)", "%%time\nx = 1"]
    done = run(toy, toy.notebook({"softmax": "softmax = my_softmax", "apply": "from twice_of_mine import twice\n%xmode Verbose"},
                                 extra=[("setup", reference["softmax"].replace("def softmax", "def my_softmax")), *(("counter", c) for c in own)]),
               limits=Limits())
    assert points(done) == FULL, [t.message for t in done.tests]


@pytest.mark.sandbox
def test_plots_work(toy):
    done = run(toy, toy.notebook(extra=[("softmax", "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()")]),
               limits=Limits())
    assert done.score == 10
    assert any("image/png" in o.get("data", {}) for c in done.notebook.cells for o in c.get("outputs", []))


# -- what a submission breaks is its own -------------------------------------------------------------------------------


@pytest.mark.sandbox
@pytest.mark.parametrize("body", ["while True: pass", "import time; time.sleep(60)", "import os; os._exit(3)",
                                  "import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "return f.__wrapped__",
                                  "import ctypes; ctypes.string_at(0)", "return [0] * (10 ** 10)"])
def test_one_broken_function_leaves_the_others_their_points(toy, body):
    done = run(toy, toy.notebook({"softmax": f"def softmax(x, axis=-1):\n    f = None\n    {body}"}))
    want = {**FULL, "softmax-value": 0, "softmax-axis": 0, "apply-callback": 0}
    assert points(done) == want


@pytest.mark.sandbox
def test_a_function_that_can_not_be_interrupted_costs_only_itself(toy):
    stubborn = "def softmax(x, axis=-1):\n    while True:\n        try:\n            while True: pass\n        except BaseException: pass"
    done = run(toy, toy.notebook({"softmax": stubborn}))
    assert points(done) == {**FULL, "softmax-value": 0, "softmax-axis": 0, "apply-callback": 0}
    assert done.seconds < 20


@pytest.mark.sandbox
def test_a_cell_that_ends_the_kernel_is_skipped_and_named(toy):
    done = run(toy, toy.notebook(extra=[("softmax", "import os\nos._exit(1)")]))
    assert points(done) == FULL and "kernel-died" in done.notes


@pytest.mark.sandbox
def test_the_total_time_is_bounded(toy):
    extra = [("setup", "import time\ntime.sleep(2.5)")] * 8
    done = run(toy, toy.notebook(extra=extra), limits=Limits(cell_seconds=3, call_seconds=2, total_seconds=6))
    assert done.score == 0 and done.seconds < 10


# -- the channel -------------------------------------------------------------------------------------------------------


@pytest.mark.sandbox
def test_outputs_are_bounded_and_harmless(toy):
    extra = [("softmax", "from IPython.display import HTML, Javascript, display\ndisplay(HTML('<script>x</script>'))\n"
                         "display(Javascript('alert(1)'))\ndisplay({'text/html': '<b>', 'text/plain': 'ok'}, raw=True)"),
             ("softmax", "for i in range(2000): print('x' * 1000)"),
             ("softmax", "from IPython.display import display\nfor i in range(1000): display(i)")]
    done = run(toy, toy.notebook(extra=extra), limits=Limits())
    text = str(done.notebook)
    outputs = [o for c in done.notebook.cells for o in c.get("outputs", [])]
    assert done.score == 10 and "<script" not in str(outputs)
    assert {mime for o in outputs for mime in o.get("data", {})} == {"text/plain"}
    assert len(text) < 1_500_000


@pytest.mark.sandbox
def test_mutated_arguments_are_seen(toy):
    done = run(toy, toy.notebook({"softmax": "def softmax(x, axis=-1):\n    x -= x.max(axis=axis, keepdims=True)\n"
                                             "    np.exp(x, out=x)\n    x /= x.sum(axis=axis, keepdims=True)\n    return x"}))
    assert points(done)["softmax-axis"] == 0 and "不应修改输入" in done.tests[1].message


def test_nothing_hidden_is_in_a_message(toy):
    wrong = {"softmax": "def softmax(x, axis=-1):\n    raise ValueError(repr(x.tolist()))",
             "counter": "class Counter:\n    def add(self, token):\n        return token + 3"}
    for sandbox in (False,):
        done = run(toy, toy.notebook(wrong), sandbox)
        hidden = next(t for t in done.tests if t.grade_id == "softmax-value")
        assert "公开测试" in hidden.message or "ValueError" in hidden.message
    wrong["softmax"] = "def softmax(x, axis=-1):\n    if x.shape == (2,): return np.array([.5, .5])\n    raise ValueError(repr(x.tolist()))"
    done = run(toy, toy.notebook(wrong), False)
    secret = repr(np.random.default_rng(20).normal(size=(3, 4)).tolist())[2:12]
    assert all(secret not in t.message and "hidden_input" not in t.message and "rng" not in t.message for t in done.tests)
