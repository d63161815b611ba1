"""Runs in the browser (Pyodide): a cell's code with its output, figures and errors shown as a notebook shows them."""

import ast
import io
import json
import linecache
import logging
import os
import sys
import time
import traceback
import types
from pathlib import Path

BOOK = Path("/home/book")
os.chdir(BOOK / "chapters")
sys.path[:0] = [str(BOOK / "chapters"), str(BOOK)]
sys.path.append(str(BOOK / "modules"))  # stand-ins for packages that the browser hasn't
# plt.show() puts the figures into the page.
BACKEND = """
from matplotlib.backend_bases import FigureManagerBase
from matplotlib.backends.backend_agg import FigureCanvasAgg

class FigureManager(FigureManagerBase):
    @classmethod
    def pyplot_show(cls, *, block=None):
        import __main__
        __main__.figures()

class FigureCanvas(FigureCanvasAgg):
    manager_class = FigureManager
"""
MODULES = BOOK.parent / "pyrun"
MODULES.mkdir(exist_ok=True)
(MODULES / "pyrun_backend.py").write_text(BACKEND)
sys.path.append(str(MODULES))
os.environ["MPLBACKEND"] = "module://pyrun_backend"
logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)  # it would announce its font cache
namespace = {"__name__": "__main__"}
AVAILABLE = set(json.loads(globals()["LOCK"])["packages"])  # pyodide-lock.json, set by worker.js
emit_now = None


class Stream(io.TextIOBase):
    """print() goes to the page at once."""

    def __init__(self, kind):
        self.kind = kind

    def write(self, text):
        if text and emit_now:
            emit_now(self.kind, text)
        return len(text)

    def isatty(self):
        return False


sys.stdout, sys.stderr = Stream("stdout"), Stream("stderr")


def show(value):
    """The last value of a cell, or an argument of display()."""
    if value is None:
        return
    if hasattr(value, "_repr_html_") and (markup := value._repr_html_()):
        emit_now("html", markup)
    else:
        print(repr(value))


class Markup:
    def __init__(self, data=""):
        self.data = data

    def _repr_html_(self):
        return self.data


# A worker is one thread that works for the page alone, so the time it takes is the time that passes; Emscripten's clock of
# the process stands still.
time.process_time = time.thread_time = time.perf_counter

# What chapters import from IPython; the rest of it isn't needed here.
display = types.ModuleType("IPython.display")
display.display, display.HTML, display.SVG = lambda *values: [show(value) for value in values] and None, Markup, Markup
ipython = types.ModuleType("IPython")
ipython.display, ipython.get_ipython = display, lambda: None
# A progress bar would only be a flood of lines in a page.
tqdm = types.ModuleType("tqdm.auto")


class Bar:
    def __init__(self, steps=(), **settings):
        self.steps = steps

    def __iter__(self):
        return iter(self.steps)

    def set_postfix(self, *values, **named):
        pass

    set_postfix_str = set_description = update = write = close = set_postfix


tqdm.tqdm = Bar
sys.modules.update({"IPython": ipython, "IPython.display": display, "tqdm": tqdm, "tqdm.auto": tqdm})


def imports(tree):
    """Names that a program imports, with the book's own modules among them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def needed(code):
    """Packages of the distribution that the code will import, itself or through the book's modules."""
    try:
        queue = list(imports(ast.parse(code)))
    except SyntaxError:
        return []
    seen, packages = set(), set()
    while queue:
        name = queue.pop()
        if name in seen:
            continue
        seen.add(name)
        if (top := name.split(".")[0]) in AVAILABLE and top not in sys.modules:
            packages.add(top)
        parts = name.split(".")
        for base in (BOOK, BOOK / "chapters"):
            for path in (base.joinpath(*parts, "__init__.py"), base.joinpath(*parts).with_suffix(".py")):
                if path.is_file():
                    queue.extend(imports(ast.parse(path.read_text(encoding="utf-8"))))
    return sorted(packages)


def figures():
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is None:
        return
    for number in pyplot.get_fignums():
        buffer = io.StringIO()
        pyplot.figure(number).savefig(buffer, format="svg", bbox_inches="tight")
        emit_now("figure", buffer.getvalue())
    pyplot.close("all")


def execute(code, name):
    linecache.cache[name] = (len(code), None, code.splitlines(True), name)
    tree = ast.parse(code, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    if last is not None and code.rstrip().endswith(";"):
        tree.body.append(last)
        last = None
    exec(compile(tree, name, "exec"), namespace)
    if last is not None:
        show(eval(compile(ast.Expression(last.value), name, "eval"), namespace))


def hint_for(error, code):
    """A sentence for what can't work here, whatever the code."""
    elsewhere = "这个单元在浏览器里运行不了；请用页首的 Binder 或 Colab。"
    if isinstance(error, SyntaxError) and any(line.lstrip().startswith(("%", "!")) for line in code.splitlines()):
        return "以 % 或 ! 开头的是 Jupyter 的命令。" + elsewhere
    if isinstance(error, ModuleNotFoundError):
        return f"浏览器里的 Python 没有 {error.name}。{elsewhere}"
    if isinstance(error, OSError) and "emscripten" in str(error):
        return "浏览器不能启动别的程序。" + elsewhere
    if isinstance(error, (ConnectionError, TimeoutError)) or type(error).__name__ == "URLError":
        return "浏览器里的 Python 不能访问网络。" + elsewhere
    return ""


def run(code, name, emit):
    """[traceback or "", hint or ""]"""
    global emit_now
    emit_now = emit
    try:
        execute(code, name)
        figures()
        return ["", ""]
    except BaseException as error:  # whatever a reader's code raises is shown to the reader
        frame = error.__traceback__
        while frame is not None and frame.tb_frame.f_code.co_filename != name:
            frame = frame.tb_next
        text = "".join(traceback.format_exception(type(error), error, frame))
        if (pyplot := sys.modules.get("matplotlib.pyplot")) is not None:
            pyplot.close("all")
        return [text, hint_for(error, code)]
