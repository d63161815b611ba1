"""可信的一侧：测试单元格在这里运行，学生的函数只是代理，来往的只有纯数据。

A test cell is the teacher's text alone. Names that it reads and doesn't define are looked up in the student's kernel:
plain data comes as a copy, everything else as a Proxy. A proxy can be called, indexed and asked for attributes; it has no
operators, so nothing that the student overloads takes part in a comparison.
"""

import ast
import builtins
import contextlib
import io
import linecache
import math
import re
import symtable
import traceback
import warnings
from dataclasses import dataclass, field

import nbformat
import numpy as np

from grading.checks import CheckFailure, RemoteFunction
from grading.inside import wire
from grading.kernels import CallTimeout, KernelLost

BEGIN_HIDDEN, END_HIDDEN = "### BEGIN HIDDEN TESTS", "### END HIDDEN TESTS"
PRESET = {"np": np, "numpy": np, "math": math}  # what nearly every test uses, whatever the student has bound to the name
MAX_SHOWN = 4000  # characters of a message


class StudentError(Exception):
    """The student's code raised. Subclasses are also the builtin exception of the name, so `except ValueError` works."""

    ours = False  # whether the text is the grader's own (a call that hung or killed the kernel)

    def __init__(self, message, lines=()):
        super().__init__(message)
        self.message, self.lines = message, lines

    def __str__(self):
        return self.message


def student_error(content):
    """The exception that a reply {"error": name, "kind": builtin name, "message": …, "lines": …} stands for."""
    name, message, lines = str(content.get("error"))[:80], str(content.get("message", ""))[:2000], []
    with contextlib.suppress(TypeError, ValueError):
        lines = [(str(function)[:60], int(line)) for function, line in content.get("lines", [])[:8]]
    builtin = getattr(builtins, name, None) or getattr(builtins, str(content.get("kind")), None)
    if not (isinstance(builtin, type) and issubclass(builtin, Exception)) or issubclass(builtin, (UnicodeError, BaseExceptionGroup)):
        bases = (StudentError,)
    else:
        bases = (StudentError, builtin)
    return type(name if name.isidentifier() else "Exception", bases, {})(message, lines)


def _our_error(content):
    error = student_error(content)
    error.ours = True
    return error


class Bridge:
    """The trusted end of the channel for one submission."""

    def __init__(self, kernel):
        self.kernel, self.callbacks, self.barred = kernel, [], {}

    def request(self, request, buffers=()):
        """One question to the student's side; its error or silence is raised here."""
        key = repr((request.get("object"), request.get("path"), request.get("name")))
        if key in self.barred:
            raise _our_error(self.barred[key])
        alive = not self.kernel.lost
        try:
            content, buffers = self.kernel.ask(request, buffers, self._call_back)
        except (CallTimeout, KernelLost) as error:
            kind = "TimeoutError" if isinstance(error, CallTimeout) else "KernelLost"
            content = {"error": kind, "message": str(error)}
            if alive:  # this very call hung or killed the kernel: it gets no second try
                self.barred[key] = content
            raise _our_error(content) from None
        if "error" in content:
            raise student_error(content)
        return content, buffers

    def value(self, content, buffers):
        """What a reply holds."""
        try:
            return wire.decode(content.get("value"), buffers, self._resolve)
        except wire.NotPlain as error:
            raise student_error({"error": "TypeError", "message": str(error)}) from None

    def look(self, name):
        """(found, value) of a name in the student's notebook."""
        content, buffers = self.request({"do": "look", "name": name})
        if "value" not in content:
            return False, None
        value = self.value(content, buffers)
        return True, Proxy(self, ["n", name], (), name) if isinstance(value, Proxy) else value

    def refer(self, x):
        """Name something that doesn't cross: the student's own object, or a function of the test."""
        if isinstance(x, Proxy):
            if x._path:
                raise TypeError("测试不能把学生对象的方法当作参数")
            return x._object
        if callable(x):
            if not any(x is known for known in self.callbacks):
                self.callbacks.append(x)
            return ["F", next(i for i, known in enumerate(self.callbacks) if known is x)]
        raise TypeError(f"测试不能把 {type(x).__name__} 传给学生代码")

    def _resolve(self, tree):
        if tree[0] == "o" and isinstance(tree[1], int):
            return Proxy(self, ["o", tree[1], str(tree[2])[:60], bool(tree[3])], (), str(tree[2])[:60])
        if tree[0] == "F" and isinstance(tree[1], int) and 0 <= tree[1] < len(self.callbacks):
            return self.callbacks[tree[1]]
        raise wire.NotPlain("无法识别的数据")

    def _call_back(self, number, tree, buffers):
        """Run a function of the test for the student's code."""
        try:
            if not isinstance(number, int) or not 0 <= number < len(self.callbacks):
                raise TypeError("没有这个函数")
            args, kwargs = wire.decode(tree, buffers, self._resolve)
            result, out = wire.encode(self.callbacks[number](*args, **{str(k): v for k, v in kwargs.items()}), self.refer)
            return {"value": result}, out
        except Exception as error:  # noqa: BLE001  goes on to the student's code, as it would in one process
            return {"error": type(error).__name__, "message": str(error)[:500]}, []


class Proxy(RemoteFunction):
    """Something of the student's."""

    __slots__ = ("_bridge", "_object", "_path", "__name__")
    __hash__ = None

    def __init__(self, bridge, tree, path, name):
        self._bridge, self._object, self._path, self.__name__ = bridge, tree, tuple(path), name

    def invoke(self, args, kwargs, iterate=False):
        """(result, args, kwargs): what the call gave, and the arguments as it left them."""
        args, kwargs = list(args), dict(kwargs)
        tree, buffers = wire.encode([args, kwargs], self._bridge.refer)
        content, buffers = self._bridge.request(
            {"do": "call", "object": self._object, "path": self._path, "arguments": tree, "iterate": iterate}, buffers)
        values = self._bridge.value(content, buffers)
        if not (isinstance(values, list) and len(values) == (3 if content.get("changed") else 1)):
            raise student_error({"error": "TypeError", "message": "无法识别的返回值"})
        if len(values) == 1:
            return values[0], args, kwargs
        result, after, named = values
        if not (isinstance(after, list) and isinstance(named, dict) and len(after) == len(args) and set(named) == set(kwargs)):
            raise student_error({"error": "TypeError", "message": "无法识别的返回值"})
        return result, [_kept(old, new) for old, new in zip(args, after)], {n: _kept(kwargs[n], named[n]) for n in kwargs}

    def __call__(self, *args, **kwargs):
        result, after, named = self.invoke(args, kwargs)
        for old, new in [*zip(args, after), *((kwargs[n], named[n]) for n in kwargs)]:
            _copy_back(old, new)
        return result

    def __getattr__(self, name):
        if name.startswith("__") and name != "__doc__":
            raise AttributeError(name)
        path = [*self._path, name]
        value = self._bridge.value(*self._bridge.request({"do": "get", "object": self._object, "path": path}))
        return Proxy(self._bridge, self._object, path, name) if isinstance(value, Proxy) and value._object[3] else value

    def _method(self, name, *args, iterate=False):
        return Proxy(self._bridge, self._object, [*self._path, name], name).invoke(args, {}, iterate)[0]

    def __len__(self):
        try:
            length = self._method("__len__")
        except AttributeError as error:  # list(x) asks an iterator for its length, too, and takes TypeError for an answer
            raise student_error({"error": "TypeError", "message": str(error)}) from None
        if type(length) is not int or not 0 <= length < 1 << 40:
            raise student_error({"error": "TypeError", "message": "__len__ 没有返回整数"})
        return length

    def __getitem__(self, key):
        return self._method("__getitem__", key)

    def __iter__(self):
        return iter(self._method("__iter__", iterate=True))

    def __repr__(self):
        return f"<学生的 {'.'.join([self.__name__, *self._path])}>"

    def _refuse(self, *_, **__):
        raise TypeError("学生的对象不能直接比较或当作数组；请比较它的数值")

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __bool__ = __array__ = __contains__ = _refuse


def _kept(old, new):
    """An argument after the call; what never crossed by value can't have changed."""
    return old if isinstance(old, Proxy) or callable(old) else new


def _copy_back(old, new):
    """Let a mutable argument show what the call did to it, as it would in one process."""
    if old is new:
        return
    if isinstance(old, np.ndarray) and isinstance(new, np.ndarray):
        if old.shape == new.shape and old.dtype == new.dtype and old.flags.writeable:
            old[...] = new
    elif type(old) is list and type(new) is list:
        if len(old) == len(new):
            for place, (before, after) in enumerate(zip(old, new)):
                old[place] = _merged(before, after)
        else:
            old[:] = new
    elif isinstance(old, dict) and isinstance(new, dict):
        merged = {key: _merged(old[key], value) if key in old else value for key, value in new.items()}
        old.clear()
        old.update(merged)
    elif type(old) is set and type(new) is set:
        old.clear()
        old.update(new)
    elif isinstance(old, np.random.Generator) and isinstance(new, np.random.Generator):
        old.bit_generator.state = new.bit_generator.state


def _merged(old, new):
    """The old object brought up to date where its kind and shape allow, else the new one."""
    if isinstance(old, Proxy) or callable(old):
        return old
    if isinstance(old, np.ndarray) and isinstance(new, np.ndarray) and old.shape == new.shape and old.dtype == new.dtype:
        old[...] = new
        return old
    if type(old) is type(new) and isinstance(old, (list, dict)):
        _copy_back(old, new)
        return old
    return new


# -- test cells ------------------------------------------------------------------------------------------------------


@dataclass
class TestRun:
    """What a test cell did: its outputs for nbgrader, one message for the student, the full story for the teacher."""

    outputs: list = field(default_factory=list)
    message: str = ""
    detail: str = ""


def new_namespace():
    """What test cells of one submission share."""
    return {"__name__": "__tests__", "__builtins__": builtins, **PRESET}


def run_setup(source, namespace, bridge):
    """Run a given (locked) cell on the trusted side too; '' or why it failed."""
    return run_test(source, "setup", namespace, bridge).detail


def run_test(source, name, namespace, bridge):
    """Run one test cell."""
    outputs, printed = [], io.StringIO()
    filename = f"<test {name}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    error = value = None
    borrowed = []
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed), warnings.catch_warnings(), np.errstate():
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(source, filename)
            borrowed = bind(source, namespace, bridge)
            value = _points(_execute(tree, filename, namespace))
        except (Exception, SystemExit) as raised:  # noqa: BLE001  a failing test, whatever it raised
            error = raised
    for borrowed_name in borrowed:  # the next test cell looks again: a cell between may have changed it
        namespace.pop(borrowed_name, None)
    if text := printed.getvalue():
        outputs.append(nbformat.v4.new_output("stream", name="stdout", text=text[:MAX_SHOWN]))
    if error is not None:
        lines = traceback.format_exception(error, limit=-6)
        outputs.append(nbformat.v4.new_output("error", ename=type(error).__name__, evalue=str(error)[:MAX_SHOWN],
                                              traceback=["".join(lines)[-MAX_SHOWN:]]))
        return TestRun(outputs, explain(error, source, filename), "".join(lines)[-MAX_SHOWN:])
    if value is not None:
        outputs.append(nbformat.v4.new_output("execute_result", data={"text/plain": repr(value)}))
    return TestRun(outputs)


def _execute(tree, filename, namespace):
    """Run the statements; the value of a last expression is the cell's, as in a notebook."""
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, filename, "exec"), namespace)
    return eval(compile(ast.Expression(last.value), filename, "eval"), namespace) if last else None


def _points(value):
    """The value of a test cell's last expression: points, or nothing.

    nbgrader gives all points for what is no number; but an array in its place would be the student's doing.
    """
    if value is None or value is True:
        return None
    if value is False or isinstance(value, np.bool_):
        assert value, "测试的最后一个表达式是 False"
        return None
    if isinstance(value, (int, float, np.integer, np.floating)) and math.isfinite(value):
        return float(value)
    raise TypeError(f"测试的最后一个表达式应是分数，得到 {type(value).__name__}")


def free_names(source):
    """Names that a cell reads from outside, also within the functions that it defines."""
    top = symtable.symtable(source, "<cell>", "exec")
    own = {s.get_name() for s in top.get_symbols() if s.is_assigned() or s.is_imported()}
    reads, tables = set(), [top]
    while tables:
        table = tables.pop()
        reads |= {s.get_name() for s in table.get_symbols()
                  if s.is_referenced() and (s.is_global() or table is top)}
        tables += table.get_children()
    return reads - own


def bind(source, namespace, bridge):
    """Put what the cell needs from the student into the namespace; the names so bound."""
    names = []
    for name in sorted(free_names(source) - set(namespace) - set(dir(builtins))):
        found, value = bridge.look(name)
        if found:
            namespace[name] = value
            names.append(name)
    return names


def hidden_lines(source):
    """Numbers of the lines (from 1) that students never see."""
    hidden, inside = set(), False
    for number, line in enumerate(source.splitlines(), 1):
        inside = inside or BEGIN_HIDDEN in line
        if inside:
            hidden.add(number)
        inside = inside and END_HIDDEN not in line
    return hidden


def explain(error, source, filename):
    """Why a test failed, in words that show the student nothing of a hidden test."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == filename]
    line = frames[0].lineno if frames else 0
    hidden = line in hidden_lines(source)
    if isinstance(error, CheckFailure):
        return str(error)[:MAX_SHOWN]
    if isinstance(error, NotImplementedError):
        return "这个函数还没有写（NotImplementedError）"
    if isinstance(error, StudentError):
        where = f"（{error.lines[-1][0]} 第 {error.lines[-1][1]} 行）" if error.lines else ""
        if hidden and not error.ours:
            return f"在隐藏测试的输入上，你的代码抛出了 {_known(error)}{_known_place(error, source)}"
        return f"{type(error).__name__}：{error}{where}"[:MAX_SHOWN]
    if isinstance(error, NameError) and (missing := re.search(r"name '(\w+)' is not defined", str(error))):
        return f"没有找到 {missing[1]}：定义它的单元格没有运行成功，或名字改了"
    return _explain_assertion(error, hidden, source, line, filename)


def _explain_assertion(error, hidden, source, line, filename):
    written_here = traceback.extract_tb(error.__traceback__)[-1].filename == filename
    text = str(error) if not hidden or (written_here and isinstance(error, AssertionError)) else ""
    if hidden:
        return f"隐藏测试没有通过：{text or '结果与期望不符'}"[:MAX_SHOWN]
    shown = source.splitlines()[line - 1].strip() if line else ""
    return f"公开测试没有通过：{shown}\n{type(error).__name__}: {text}"[:MAX_SHOWN].strip()


def _known_place(error, source):
    """Where it was raised, if the name is one that the released test uses: names of the student's could carry anything."""
    shown = "\n".join(line for n, line in enumerate(source.splitlines(), 1) if n not in hidden_lines(source))
    name, line = error.lines[-1] if error.lines else ("", 0)
    return f"（{name} 第 {line} 行）" if name in re.findall(r"\w+", shown) and 0 < line < 10_000 else ""


def _known(error):
    """The name of the exception if it is Python's own; a name of the student's making could carry anything."""
    return type(error).__name__ if hasattr(builtins, type(error).__name__) else "异常"
