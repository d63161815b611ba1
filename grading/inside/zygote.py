"""A process with IPython and NumPy loaded that becomes a kernel in a sandbox, by forking, as often as it is asked.

    python -I -S zygote.py FD PATH…      FD: a connected socket; PATH…: what to import from

Starting Python and importing those packages costs about a second of processor time, a fork a few milliseconds. The
process has never seen a submission or a test: it starts with an empty environment and forks before anything is run.

A request on the socket is one JSON line with the descriptor of a pipe attached (see `grading.sandbox`). The child

1. enters the namespaces of the sandbox (bubblewrap has made them) and forks once more, into its process namespace,
2. gives up its powers, closes every other descriptor, and becomes the kernel.

It writes "ready PID" to the pipe when the kernel's sockets are bound, or what went wrong.
"""

import contextlib
import importlib
import json
import os
import random
import signal
import socket
import sys

# What a kernel would import while it starts, runs its first cell or formats its first error.
LOADED_AHEAD = ("IPython.core.completerlib", "IPython.core.magics", "IPython.core.oinspect", "IPython.core.ultratb",
                "IPython.extensions.storemagic", "faulthandler", "ipykernel.debugger",
                "numpy.testing", "tornado.platform.asyncio", "tornado.queues")


def serve(connection):
    """Fork a kernel for every request until the other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the program that started us
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # children are reaped by the system
    while True:
        message, descriptors, _, _ = socket.recv_fds(connection, 1 << 16, 2)
        if not message:
            return
        if os.fork() == 0:
            connection.close()
            status = 1
            try:
                status = _child(json.loads(message), *descriptors)
            finally:
                os._exit(status)
        for descriptor in descriptors:
            os.close(descriptor)


def _child(request, report, release):
    """Enter the sandbox and wait there for the kernel process; then let the sandbox end."""
    try:
        confine.die_with_parent()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        confine.enter(request["sandbox"])
        begin, go = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(go)
            os.read(begin, 1)
            _become_kernel(request, report)
        os.write(report, f"pid {pid}\n".encode())
        os.close(report)
        os.write(go, b".")
        os.waitpid(pid, 0)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.write(report, f"failed {error}\n".encode())
    with contextlib.suppress(OSError):
        os.write(release, b"\n")  # what bubblewrap runs waits for this line
    return 0


def _become_kernel(request, report):
    """Drop everything that belongs to the grader and run the kernel. Never returns."""
    status = 1
    try:
        os.setsid()
        os.umask(0o022)
        confine.give_up_powers(request["uid"], request["limits"])
        confine.die_with_parent()
        confine.forbid_system_calls()
        os.chdir(request["folder"])
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(nothing, descriptor)
        os.dup2(report, 3)
        os.closerange(4, 65536)
        os.environ.clear()
        os.environ.update(request["environment"])
        sys.path[:] = [request["folder"], *request["path"]]
        random.seed()
        numpy.random.seed()  # noqa: NPY002  the global generator is the one that a fork would repeat
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.argv[:] = ["kernel"]
        kernel.main([], request["connection"], _announce)
        status = 0
    except BaseException as error:  # noqa: BLE001  the report is all that is left
        with contextlib.suppress(OSError):
            os.write(3, f"failed {type(error).__name__}: {error}\n".encode())
    finally:
        os._exit(status)


def _announce():
    os.write(3, b"ready\n")
    os.close(3)


if __name__ == "__main__":
    sys.path[:0] = sys.argv[2:]
    sys.modules["debugpy"] = None  # a debugger nobody attaches, and the dearest import of all
    import confine
    import kernel
    import numpy

    for module in LOADED_AHEAD:
        importlib.import_module(module)

    confine.die_with_parent()
    os.environ.clear()
    serve(socket.socket(fileno=int(sys.argv[1])))
