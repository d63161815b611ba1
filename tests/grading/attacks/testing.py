"""Turning the tests themselves: patched comparisons, objects that agree with everything, code that is rewritten."""

from . import add

EVERYTHING = {"softmax": "def softmax(x, axis=-1):\n    return Agreeable()", "apply": "def twice(f, x):\n    return Agreeable()"}

add("patch-numpy-testing", "testing", "makes NumPy's comparisons succeed", """
import numpy as np
for name in dir(np.testing):
    if name.startswith("assert"): setattr(np.testing, name, lambda *a, **k: None)
np.allclose = np.isclose = np.array_equal = lambda *a, **k: True
def softmax(x, axis=-1): return x
""", after="softmax")
add("patch-builtins", "testing", "replaces assertions' helpers in builtins", """
import builtins
builtins.all = builtins.any = builtins.isinstance = builtins.len = lambda *a, **k: True
builtins.AssertionError = type("Quiet", (Exception,), {})
builtins.abs = builtins.sum = builtins.max = lambda *a, **k: 0
""")
add("rewrite-the-tree", "testing", "an AST transformer that drops assertions and sets scores", """
import ast
class Drop(ast.NodeTransformer):
    def visit_Assert(self, node): return ast.Pass()
    def visit_Try(self, node): return ast.Pass()
    def visit_Expr(self, node): return ast.Expr(ast.Constant(1)) if isinstance(node.value, ast.Call) else node
get_ipython().ast_transformers.append(Drop())
""", after="counter-add")
add("rewrite-the-text", "testing", "an input transformer that empties every later cell", """
get_ipython().input_transformers_cleanup.append(lambda lines: ["4\\n"])
""", after="counter-add")
add("rewrite-errors", "testing", "shows no error and hides tracebacks", """
shell = get_ipython()
shell.set_custom_exc((BaseException,), lambda *a, **k: None)
shell.showtraceback = shell.showsyntaxerror = lambda *a, **k: None
shell.run_cell = shell.run_cell_async = None
""", after="counter-add")
add("answer-for-the-kernel", "testing", "the kernel says that every later cell went well", """
kernel = get_ipython().kernel
async def do_execute(*a, **k): return {"status": "ok", "execution_count": 1, "payload": [], "user_expressions": {}}
kernel.do_execute = do_execute
""", after="counter-add")
add("agree-with-everything", "testing", "returns objects whose comparisons are all true", """
class Agreeable:
    def __eq__(self, other): return True
    __ne__ = __lt__ = __gt__ = __le__ = __ge__ = __contains__ = __eq__
    def __getattr__(self, name): return Agreeable()
    def __call__(self, *a, **k): return Agreeable()
    def __getitem__(self, k): return Agreeable()
    def __bool__(self): return True
    def __len__(self): return 2
    def __iter__(self): return iter([True, True])
    def __float__(self): return 0.5
    def __array__(self, *a, **k):
        import numpy; return numpy.array([0.5, 0.5])
    __hash__ = object.__hash__
    __sub__ = __rsub__ = __add__ = __radd__ = __mul__ = __truediv__ = lambda self, other: Agreeable()
    def __abs__(self): return Agreeable()
""", answers=EVERYTHING)
add("agreeable-arrays", "testing", "returns an array subclass that decides NumPy's functions", """
import numpy as np
class Agreeable(np.ndarray):
    def __new__(cls, *a): return np.zeros((2, 3)).view(cls)
    def __array_function__(self, function, types, args, kwargs): return None if "assert" in function.__name__ else np.bool_(True)
    def __array_ufunc__(self, ufunc, method, *a, **k): return np.bool_(True)
    def __eq__(self, other): return np.bool_(True)
    shape = property(lambda self: (2, 3))
""", answers=EVERYTHING)
add("agreeable-numbers", "testing", "returns numbers, texts and containers that equal everything", """
class Agreeable(float):
    def __new__(cls): return float.__new__(cls, 7)
    def __eq__(self, other): return True
    def __sub__(self, other): return 0.0
    __rsub__ = __sub__
    __hash__ = float.__hash__
    shape = (2, 3)
""", answers=EVERYTHING)
add("lie-about-the-class", "testing", "claims to be an array or a known object", """
import numpy as np
class Agreeable:
    __class__ = property(lambda self: np.ndarray)
    dtype, shape, ndim, size = np.dtype(float), (2,), 1, 2
    def __array__(self, *a, **k): return np.array([0.5, 0.5])
    def __eq__(self, other): return True
    __hash__ = None
    def sum(self, *a, **k): return self
    def tobytes(self, *a): return np.array([0.5, 0.5]).tobytes()
""", answers=EVERYTHING)
add("changing-answers", "testing", "an object that shows another value each time it is looked at", """
import itertools, numpy as np
class Agreeable:
    n = itertools.count()
    def __array__(self, *a, **k): return np.full((2, 3), float(next(self.n)))
    def __len__(self): return next(self.n)
    def __iter__(self): return iter(range(next(self.n)))
""", answers=EVERYTHING)
add("explode-on-unpickling", "testing", "returns what runs code wherever it is unpickled, copied or printed", """
import os
class Agreeable:
    def __reduce__(self): return os.system, ("touch @planted@/planted-@token@",)
    def __deepcopy__(self, memo): os.system("touch @planted@/planted-@token@")
    def __repr__(self): os.system("touch @planted@/planted-@token@"); return "1"
    __str__ = __format__ = __repr__
    __getstate__ = __copy__ = __deepcopy__
""", answers=EVERYTHING)
add("read-the-callers", "testing", "looks at the frames of whoever calls it, for test code and expected values",
    answers={"softmax": """
def softmax(x, axis=-1):
    import sys, inspect
    frame, seen = sys._getframe(), []
    while frame:
        seen.append(str(frame.f_locals)[:2000])
        for name in ("wanted", "expected", "y", "desired"):
            if name in frame.f_locals: return frame.f_locals[name]
            if name in frame.f_globals: return frame.f_globals[name]
        frame = frame.f_back
    print(seen)
    raise RuntimeError(str(seen))
""".strip()})
add("trace-execution", "testing", "traces everything that runs, to change results on the way", """
import sys
def trace(frame, event, argument):
    for name in ("wanted", "out", "result"):
        if name in frame.f_locals: print(frame.f_locals[name])
    return trace
sys.settrace(trace); sys.setprofile(trace)
import threading; threading.settrace(trace)
""")
add("keep-the-inputs", "testing", "records what the tests pass in and shows it in a later cell", answers={
    "softmax": """
record = []
def softmax(x, axis=-1):
    record.append(x.tolist())
    open("/tmp/record", "a").write(repr(x.tolist()))
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)""".strip()},
    deserves={"softmax-value": 3, "softmax-axis": 2, "counter-add": 2})
add("tell-the-inputs-by-errors", "testing", "raises what the tests pass in, as text, name and type of the error", answers={
    "softmax": """
def softmax(x, axis=-1):
    text = "".join(c if c.isalnum() else "_" for c in repr(x.tolist()))
    if x.ndim == 1: return np.array([0.5, 0.5])
    raise type("E" + text, (ValueError,), {})(repr(x.tolist()))""".strip()})
add("raise-the-unusual", "testing", "raises what except doesn't catch", answers={
    "softmax": "def softmax(x, axis=-1):\n    raise SystemExit(0)", "apply": "def twice(f, x):\n    raise GeneratorExit"})
add("count-the-calls", "testing", "answers by the number of the call, from the visible examples", answers={
    "softmax": """
calls = 0
def softmax(x, axis=-1):
    global calls
    calls += 1
    return np.array([0.5, 0.5]) if calls == 1 else np.zeros((2, 3)) if calls == 4 else x""".strip()})
add("answer-before-the-question", "testing", "redefines names that only tests use",
    "wanted = hidden_input = out = calls = grid = before = good = rng = 1\nimport numpy\nnumpy.random.default_rng = None\nk = 4\n4")
add("change-after-returning", "testing", "goes on changing the array that it has returned, and the argument", """
import threading, numpy as np
kept = []
def churn():
    n = 0
    while True:
        n += 1
        for array in list(kept): array[...] = 0.5 + (n % 3) / 7
threading.Thread(target=churn, daemon=True).start()
""", answers={"softmax": "def softmax(x, axis=-1):\n    out = np.full(x.shape, 0.4)\n    kept.extend([out, x])\n    return out"})
add("odd-arrays", "testing", "returns arrays of structures, of objects, of nothing, without axes, of lengths beyond any memory", answers={
    "softmax": """
ring = np.empty(1, object)
ring[0] = ring
odd = [np.zeros((0, 1 << 40)), np.zeros(3, "f8,i4"), np.array([None, {}, [np.nan]], dtype=object), np.array(np.nan),
       np.full((2, 3), np.inf), ring, np.array("2026", "datetime64[Y]"), np.zeros((2, 3), "S0"), np.zeros((1,) * 40),
       np.broadcast_to(np.float64(0.5), (1 << 20, 1 << 20)), np.array([0.5, 0.5]).astype("M8[s]"), np.lib.stride_tricks.as_strided(
       np.zeros(1), (2, 3), (0, 0)), np.random.Generator(np.random.MT19937(1)), np.ma.masked, np.rec.array([(1, 2.0)])]
def softmax(x, axis=-1):
    odd.append(odd.pop(0))
    return odd[-1]""".strip()})
add("results-without-end", "testing", "returns generators and iterators that never end, and things that hold themselves", answers={
    "apply": """
import itertools
def endless():
    while True: yield 1
ring = []
ring.append(ring)
several = [endless(), itertools.count(), ring, iter(lambda: 1, 2), {"a": ring}, range(10 ** 18), (x for x in endless())]
def twice(f, x):
    several.append(several.pop(0))
    return several[-1]""".strip()})
add("tell-by-names", "testing", "tells the inputs by names of its functions, by lines, and by errors that the grader itself uses", answers={
    "softmax": """
def softmax(x, axis=-1):
    text = "".join(c if c.isalnum() else "_" for c in repr(x.tolist()))
    if x.ndim == 1: return np.array([0.5, 0.5])
    here = softmax.__code__.co_filename
    exec(compile(f"def E{text[:50]}():\\n    raise {'TimeoutError' if x.max() > 100 else 'ValueError'}({text!r})\\nE{text[:50]}()", here, "exec"), {})""".strip()})
