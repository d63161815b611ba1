"""The kernel that runs the student's cells: an ordinary IPython kernel that can also be asked to call a function.

Beside Jupyter's own requests it answers `grading_request` on the shell channel. Plain data comes in (see `wire`),
plain data goes out; objects that are not plain stay here and travel as numbers. A function that a test passes as an
argument is called back over the stdin channel, where the trusted side may ask again before it answers.

Everything in this process is at the student's mercy once their code has run; the trusted side believes none of it.
"""

import builtins
import collections.abc
import itertools
import pathlib
import sys
import traceback
import types

import wire
from ipykernel.compiler import get_tmp_directory
from ipykernel.ipkernel import IPythonKernel
from ipykernel.kernelapp import IPKernelApp
from ipykernel.zmqshell import ZMQInteractiveShell
from traitlets import Dict, Type

ITEMS = 100_000  # of a generator or iterator that a test reads
LINES = 8  # of a traceback
# Plain IPython settings that cost time or leave files and help nobody here.
SETTINGS = ["--HistoryManager.enabled=False", "--InteractiveShell.xmode=Minimal", "--InteractiveShell.colors=nocolor",
            "--IPKernelApp.capture_fd_output=False", "--log-level=CRITICAL"]


class StudentShell(ZMQInteractiveShell):
    """IPython's shell, in which a forgotten quit() doesn't end the notebook."""

    def ask_exit(self):
        pass


class StudentKernel(IPythonKernel):
    """IPythonKernel with `grading_request`."""

    shell_class = Type(StudentShell)

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.shell_handlers["grading_request"] = self.grading_request
        self.kept = {}  # id -> object that the trusted side may name
        self.callbacks = 0

    def grading_request(self, stream, ident, parent):
        """Answer one request of the trusted side."""
        content, buffers = self.answer(parent["content"], parent["buffers"], (ident, parent))
        self.session.send(stream, "grading_reply", content, parent, ident=ident, buffers=buffers)

    def answer(self, request, buffers, route):
        """(content, buffers) of the reply: {"value": tree, …}, {"missing": true} or {"error": name, …}."""
        try:
            return getattr(self, "do_" + request["do"])(request, buffers, route)
        except BaseException as error:  # noqa: BLE001  the student's code may raise anything, SystemExit included
            return {"error": type(error).__name__, "kind": _builtin(error), "message": str(error)[:2000],
                    "lines": _student_lines(error)}, []

    def do_look(self, request, buffers, route):
        """What a name holds: a value, an object, or nothing."""
        namespace = self.shell.user_ns
        if request["name"] not in namespace or isinstance(namespace[request["name"]], types.ModuleType):
            return {"missing": True}, []
        tree, buffers = wire.encode(namespace[request["name"]], self.refer)
        return {"value": tree}, buffers

    def do_call(self, request, buffers, route):
        """Call an object (or a method of it) and tell the result and what became of the arguments."""
        target = self.target(request)
        resolve = lambda tree: self.resolve(tree, route)
        args, kwargs = wire.decode(request["arguments"], buffers, resolve)
        result = target(*args, **kwargs)
        own = type(result).__module__ == "__main__"
        if request.get("iterate") or isinstance(result, collections.abc.Iterator) and not own:
            result = list(itertools.islice(result, ITEMS))
        elif own and isinstance(target, type):
            result = Made(result)
        after = wire.encode([list(args), kwargs], self.refer)
        changed = after != (request["arguments"], [bytes(b) for b in buffers])
        tree, out = wire.encode([result, *([list(args), kwargs] if changed else [])], self.refer)
        return {"value": tree, "changed": changed}, out

    def do_get(self, request, buffers, route):
        """An attribute."""
        tree, buffers = wire.encode(self.target(request), self.refer)
        return {"value": tree}, buffers

    def do_put(self, request, buffers, route):
        """Files of the submission, into the working folder."""
        for name, data in zip(request["names"], buffers):
            pathlib.Path(name).parent.mkdir(parents=True, exist_ok=True)
            pathlib.Path(name).write_bytes(data)
        return {"value": None}, []

    def target(self, request):
        target = self.resolve(request["object"], None)
        for name in request.get("path", ()):
            target = getattr(target, name)
        return target

    def refer(self, x):
        """Keep an object here and name it."""
        if isinstance(x, RemoteCallback):
            return ["F", x.number]
        if isinstance(x, Made):
            x = x.thing
        self.kept[id(x)] = x
        return ["o", id(x), type(x).__name__, callable(x)]

    def resolve(self, tree, route):
        tag, first, *_ = tree
        if tag == "n":
            return self.shell.user_ns[first]
        if tag == "o":
            return self.kept[first]
        if tag == "F" and route:
            return RemoteCallback(self, first, route)
        raise wire.NotPlain(tag)

    def call_back(self, number, args, kwargs, route):
        """Have the trusted side call one of its functions; it may send requests of its own meanwhile."""
        ident, parent = route
        tree, buffers = wire.encode([list(args), kwargs], self.refer)
        self.session.send(self.stdin_socket, "callback_request", {"callback": number, "arguments": tree}, parent,
                          ident=ident, buffers=buffers)
        while True:
            if not self.stdin_socket.poll(100):
                continue
            ident, message = self.session.recv(self.stdin_socket, copy=True)
            content = message["content"]
            if message["msg_type"] == "grading_request":
                content, buffers = self.answer(content, message["buffers"], route)
                self.session.send(self.stdin_socket, "grading_reply", content, message, ident=ident, buffers=buffers)
            elif "error" in content:
                raise _exception(content)
            else:
                return wire.decode(content["value"], message["buffers"], lambda tree: self.resolve(tree, route))


class Made:
    """An object that a test has made of a class of the student's: it is named, even if it is a dictionary or a list of a kind,
    whose content would cross without its methods."""

    def __init__(self, thing):
        self.thing = thing


class RemoteCallback:
    """A function of the test, as the student's code sees it."""

    def __init__(self, kernel, number, route):
        self._kernel, self.number, self._route = kernel, number, route

    def __call__(self, *args, **kwargs):
        return self._kernel.call_back(self.number, args, kwargs, self._route)


def _exception(content):
    kind = getattr(builtins, content["error"], None)
    usable = isinstance(kind, type) and issubclass(kind, Exception) and kind is not UnicodeDecodeError
    return (kind if usable else RuntimeError)(content.get("message", ""))


def _builtin(error):
    """The exception of Python's own that this one is: np.linalg.LinAlgError is a ValueError."""
    return next(kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins")


def _student_lines(error):
    """[(function, line)] of the frames in the student's cells, innermost last."""
    frames = traceback.extract_tb(error.__traceback__)
    return [[f.name[:60], f.lineno] for f in frames if f.filename.startswith(get_tmp_directory())][-LINES:]


class StudentKernelApp(IPKernelApp):
    """The kernel application without what a grading run has no use for."""

    kernel_class = StudentKernel
    given = Dict(help="connection information handed over in memory; else it is read from a file")

    def init_connection_file(self):
        if self.given:
            self.load_connection_info(self.given)
        else:
            super().init_connection_file()

    def write_connection_file(self, **kwargs):
        if not self.given:
            super().write_connection_file(**kwargs)

    def init_pdb(self):
        pass

    def log_connection_info(self):
        self._ports = {name: getattr(self, f"{name}_port") for name in ("shell", "iopub", "stdin", "hb", "control")}


def main(arguments, connection=None, announce=None):
    """Run the kernel until it is told to stop; `announce` is called when its sockets are bound."""
    app = StudentKernelApp.instance(given=connection or {})
    app.initialize([*arguments, *SETTINGS])
    if announce:
        announce()
    app.start()


if __name__ == "__main__":
    main(sys.argv[1:])
