"""学生内核的可信一端：送去单元格与调用，收回输出与纯数据，对方说的话一概不信。

Every message may be forged, malformed, huge, late or missing. So: replies are matched by id and read as data only; sizes
and counts are bounded; whether the process lives is asked of the operating system; and whoever doesn't answer in time
is interrupted, then killed.
"""

import contextlib
import os
import re
import shutil
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field

import nbformat
import psutil
import zmq
from jupyter_client import KernelManager
from jupyter_client.kernelspec import KernelSpec

from grading.sandbox import INSIDE, Limits, kernel_spec

MAX_MESSAGE = 48 << 20  # of any message; larger ones end the connection
MAX_CONTENT = 16 << 20  # of a message's JSON part, which costs many times its size when read
MAX_WAITING = {"shell": 16, "stdin": 16, "iopub": 40}  # messages that wait to be read; the sender keeps the rest
MAX_OUTPUTS = 200  # of a cell
MAX_TEXT, MAX_PICTURES = 8 << 20, 32 << 20  # characters kept of all cells' outputs
MAX_NESTED = 50  # calls of the student's inside calls of the test's functions
MAX_CALLBACKS = 10_000  # calls of a test's functions during one call of the student's
TICK = 0.25  # seconds between looks at the process
WAITING = 3.0  # seconds of waiting that count as one of work
GRACE = 2.0  # seconds that an interrupted kernel has to answer
BASE64 = re.compile(r"[A-Za-z0-9+/=\s]+")
SHOWN_TYPES = ("text/plain", "image/png")  # all else could act in a teacher's browser


class KernelLost(RuntimeError):
    """The kernel is gone; the text says why, in words for the student."""


class CallTimeout(RuntimeError):
    """A call didn't return in time, and the kernel survived the interruption."""


class _Clock:
    """Time that a piece of code has used: its processor time, or a part of the wall time if it only waits.

    Limits must not hit the honest when the machine is busy with other things, so waiting counts a third.
    """

    def __init__(self, process):
        self._process, self._began, self._cpu = process, time.monotonic(), _cpu(process)

    def used(self):
        return max(_cpu(self._process) - self._cpu, (time.monotonic() - self._began) / WAITING)


def _cpu(process):
    """Of the thread that runs cells and calls; threads that were left behind take nothing from them."""
    with contextlib.suppress(OSError, ValueError, IndexError, AttributeError), open(f"/proc/{process.pid}/task/{process.pid}/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    with contextlib.suppress(psutil.Error, AttributeError):
        times = process.cpu_times()
        return times.user + times.system + times.children_user + times.children_system
    return 0.0


@dataclass
class CellRun:
    """What running one cell showed."""

    outputs: list = field(default_factory=list)
    problem: str = ""  # timeout or the end of the kernel


class StudentKernel:
    """One kernel for one submission."""

    def __init__(self, limits=None, sandbox=True, folder=None):
        """Start it (`ready` must follow). Without a sandbox it runs in `folder` with all powers of the user."""
        self.limits, self.sandboxed = limits or Limits(), sandbox
        self.lost, self.spent, self.notes = "", 0.0, set()
        self._sockets, self._nested, self._outermost = {}, 0, None
        self._room, self._closed = {"text": MAX_TEXT, "pictures": MAX_PICTURES}, threading.Event()
        self._folder = None if folder else tempfile.mkdtemp(prefix="home-check-") if not sandbox else None
        self._manager = KernelManager()
        self._manager._kernel_spec = kernel_spec(self.limits, wait=False) if sandbox else _home_spec()
        if not sandbox and sys.platform != "win32":
            self._manager.transport, self._manager.ip = "ipc", tempfile.mkdtemp(prefix="k-") + "/s"
        start = {} if sandbox else {"cwd": str(folder or self._folder), "env": _home_environment()}
        self._manager.start_kernel(**start)

    def ready(self):
        """Wait until it answers; itself."""
        if not self._sockets:
            try:
                if self.sandboxed:
                    self._manager.provisioner.sandbox.wait_ready()
                self._connect()
                if self.sandboxed:
                    threading.Thread(target=self._watch_memory, daemon=True).start()
            except BaseException:
                self.close()
                raise
        return self

    @property
    def _process(self):
        """The process that runs the student's code."""
        provisioner = self._manager.provisioner
        pid = provisioner.sandbox.kernel_pid if self.sandboxed else provisioner.pid
        with contextlib.suppress(psutil.Error):
            return psutil.Process(pid)
        return None

    def alive(self):
        """Whether its process runs."""
        return self._manager.is_alive()

    def _connect(self):
        context = zmq.Context.instance()
        for channel in ("shell", "iopub", "stdin", "control"):
            connection = context.socket(zmq.SUB if channel == "iopub" else zmq.DEALER)
            connection.setsockopt(zmq.MAXMSGSIZE, MAX_MESSAGE)
            connection.setsockopt(zmq.RCVHWM, MAX_WAITING.get(channel, 16))
            connection.setsockopt(zmq.LINGER, 0)
            connection.setsockopt(zmq.SNDTIMEO, 5000)  # with nobody at the other end a message would wait for ever
            connection.setsockopt(zmq.IDENTITY, b"grader")
            if self.sandboxed:  # all are bound already; a reconnection would follow whatever the student puts there
                connection.setsockopt(zmq.RECONNECT_IVL, -1)
            if channel == "iopub":
                connection.setsockopt(zmq.SUBSCRIBE, b"")
            connection.connect(self._manager._make_url(channel))
            self._sockets[channel] = connection
        self._poller = zmq.Poller()
        for channel in ("shell", "iopub", "stdin"):
            self._poller.register(self._sockets[channel], zmq.POLLIN)
        deadline, seen = time.monotonic() + 60, set()
        while seen != {"shell", "iopub"}:  # until both directions of both channels work
            if time.monotonic() > deadline:
                raise KernelLost("学生内核没有按时启动")
            self._send("shell", "kernel_info_request", {})
            for channel, _ in self._receive(0.2):
                seen.add(channel)
            self._look_at_process()
        while list(self._receive(0.02)):
            pass

    # -- messages ----------------------------------------------------------------------------------------------------

    def _send(self, channel, kind, content, buffers=(), parent=None):
        try:
            message = self._manager.session.send(self._sockets[channel], kind, content, parent, buffers=list(buffers) or None)
        except zmq.Again:
            self._lose("内核不再接收消息", "kernel-died")
            raise KernelLost(self.lost) from None
        return message["header"]["msg_id"]

    def _receive(self, seconds):
        """Messages that are there or come within this time, as (channel, message)."""
        for connection, _ in self._poller.poll(max(0, seconds) * 1000):
            channel = next(name for name, known in self._sockets.items() if known is connection)
            for _ in range(100):
                try:
                    frames = connection.recv_multipart(zmq.NOBLOCK)
                except zmq.Again:
                    break
                if (message := self._read(frames)) is not None:
                    yield channel, message

    def _read(self, frames):
        """The message if it is one; forged or broken ones are noted and dropped."""
        session = self._manager.session
        try:
            _, frames = session.feed_identities(frames)
            if any(len(frame) > MAX_CONTENT for frame in frames[:5]):
                raise ValueError("too large")
            message = session.deserialize(frames)
            kinds = (message["header"]["msg_type"], message["parent_header"].get("msg_id", ""))
            if not isinstance(message["content"], dict) or not all(isinstance(k, str) for k in kinds):
                raise TypeError("no message")
            return message
        except Exception:  # noqa: BLE001  hostile bytes may fail in any way
            self.notes.add("malformed-message")
            return None

    # -- the process -------------------------------------------------------------------------------------------------

    def _look_at_process(self):
        if not self.lost and self._manager.provisioner.process.poll() is not None:
            self._lose("内核在这里退出了（os._exit、内存超限、崩溃等）", "kernel-died")
        if self.lost:
            raise KernelLost(self.lost)

    def _watch_memory(self):
        """In a thread of its own: what the student's code has started goes on while this side is busy with a test."""
        while not self._closed.wait(2 * TICK):
            if self._memory_in_use() > self.limits.total_memory_mb << 20:
                self._lose(f"占用的内存超过 {self.limits.total_memory_mb} MB", "memory")
                return

    def _memory_in_use(self):
        """Bytes that all processes of the sandbox hold together; pages that forks share count once."""
        sandbox, total = self._manager.provisioner.sandbox, 0
        with contextlib.suppress(psutil.Error, AttributeError):
            own = psutil.Process(sandbox.kernel_pid)
            for process in [own, *own.children(recursive=True), *psutil.Process(sandbox.pid).children(recursive=True)]:
                total += _proportional_size(process.pid)
        return total

    def _lose(self, reason, note):
        self.lost = reason
        self.notes.add(note)
        self._manager.provisioner.sandbox.kill() if self.sandboxed else self._manager.shutdown_kernel(now=True)

    def _interrupt(self):
        self._send("control", "interrupt_request", {})

    def close(self):
        """End the kernel and everything that it started."""
        self._closed.set()
        for connection in self._sockets.values():
            connection.close(0)
        self._sockets = {}
        with contextlib.suppress(Exception):
            self._manager.shutdown_kernel(now=True)
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)
        if self._manager.ip.endswith("/s") and not self.sandboxed:
            shutil.rmtree(self._manager.ip[:-2], ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # -- cells -------------------------------------------------------------------------------------------------------

    def run(self, source):
        """Run one cell."""
        if self.lost:
            return CellRun([_error("KernelLost", self.lost)], self.lost)
        collector, clock = _Outputs(self.limits.output_kb << 10, self._room), _Clock(self._process)
        try:
            self._execute(source, collector, self._budget(self.limits.cell_seconds), clock)
            return CellRun(collector.outputs)
        except (KernelLost, CallTimeout) as end:
            return CellRun([*collector.outputs, _error(type(end).__name__, str(end))], str(end))
        finally:
            self.spent += clock.used()

    def _budget(self, seconds):
        """What is left of the whole, at most `seconds`."""
        left = self.limits.total_seconds - self.spent
        if left <= 0:
            raise CallTimeout(f"全部代码的运行时间超过 {self.limits.total_seconds:g} 秒，此处起不再执行")
        return min(seconds, left)

    def _limit(self, what, seconds):
        """Which limit was reached, in words."""
        if seconds in (self.limits.cell_seconds, self.limits.call_seconds):
            return f"{what}运行超过 {seconds:g} 秒"
        return f"全部代码的运行时间超过 {self.limits.total_seconds:g} 秒"

    def _execute(self, source, collector, seconds, clock):
        number = self._send("shell", "execute_request", {
            "code": source, "silent": False, "store_history": True, "user_expressions": {}, "allow_stdin": False,
            "stop_on_error": False})
        waiting, interrupted, replied = {"shell", "iopub"}, 0.0, 0.0
        while waiting:
            now = time.monotonic()
            if interrupted and now > interrupted + GRACE:
                self._lose(f"{self._limit('单元格', seconds)}，无法中断", "timeout")
                raise KernelLost(self.lost)
            if replied and now > replied + GRACE:
                break  # the rest of the output was lost on the way
            if not interrupted and not replied and clock.used() > seconds:
                self._interrupt()
                interrupted = now
            for channel, message in self._receive(TICK):
                if message["parent_header"].get("msg_id") != number:
                    continue
                if channel == "iopub" and collector.take(message):
                    waiting.discard("iopub")
                elif channel == "shell" and message["msg_type"] == "execute_reply":
                    waiting.discard("shell")
                    replied = time.monotonic()
            self._look_at_process()
        if interrupted:
            self.notes.add("timeout")
            raise CallTimeout(f"{self._limit('单元格', seconds)}，已中断")

    # -- calls -------------------------------------------------------------------------------------------------------

    def ask(self, request, buffers=(), callbacks=None):
        """Send one request to the student's side and return (content, buffers) of its reply.

        `callbacks(number, tree, buffers)` runs a function of the test and returns the reply for the student's side.
        """
        if self.lost:
            raise KernelLost(self.lost)
        if self._nested > MAX_NESTED:
            raise CallTimeout(f"测试的函数与学生的函数互相调用超过 {MAX_NESTED} 层")
        if not self._nested:  # a call inside a call has the time of the whole, or each could use it all again
            self._outermost = _Clock(self._process), self._budget(self.limits.call_seconds)
        clock, seconds = self._outermost
        channel = "stdin" if self._nested else "shell"
        number = self._send(channel, "grading_request", request, buffers)
        try:
            return self._reply(number, channel, seconds, clock, callbacks)
        finally:
            if not self._nested:
                self.spent += clock.used()

    def _reply(self, number, channel, seconds, clock, callbacks):
        interrupted, count = 0.0, 0
        while True:
            now = time.monotonic()
            if interrupted and now > interrupted + GRACE:
                self._lose(f"{self._limit('调用', seconds)}，无法中断", "timeout")
                raise KernelLost(self.lost)
            if not interrupted and clock.used() > seconds:
                self._interrupt()
                interrupted = now
            for source, message in self._receive(TICK):
                if (source, message["msg_type"]) == (channel, "grading_reply") and message["parent_header"].get("msg_id") == number:
                    if interrupted:
                        self.notes.add("timeout")
                        raise CallTimeout(f"{self._limit('调用', seconds)}，没有返回（死循环？）")
                    return message["content"], message["buffers"]
                if source == "stdin" and message["msg_type"] == "callback_request" and callbacks and not interrupted:
                    count += 1
                    if count > MAX_CALLBACKS:
                        self._lose(f"一次调用里用了测试函数 {MAX_CALLBACKS} 次", "timeout")
                        raise KernelLost(self.lost)
                    self._call_back(message, callbacks)
            self._look_at_process()

    def _call_back(self, message, callbacks):
        self._nested += 1
        try:
            content, buffers = callbacks(message["content"].get("callback"), message["content"].get("arguments"),
                                         message["buffers"])
        finally:
            self._nested -= 1
        self._send("stdin", "callback_reply", content, buffers)

    def put(self, files):
        """Lay plain files {name: bytes} into the working folder, before any cell of the student has run."""
        self.ask({"do": "put", "names": list(files)}, files.values())


class _Outputs:
    """Collects the outputs of one cell as nbformat's, and no more than a fixed size of them and of the notebook's."""

    def __init__(self, size, whole):
        self.room, self.whole, self.outputs, self._clear = min(size, whole["text"]), whole, [], False

    def take(self, message):
        """Add what the message shows; true when it says that the cell is done."""
        kind, content = message["msg_type"], message["content"]
        if kind == "status":
            return content.get("execution_state") == "idle"
        if kind == "clear_output":
            self._clear = True
        elif kind in ("stream", "display_data", "execute_result", "error") and self.room > 0:
            if self._clear:
                self.outputs, self._clear = [], False
            with contextlib.suppress(Exception):  # of the student's making: what is no output is left out
                self._add(kind, content)
        return False

    def _add(self, kind, content):
        if kind == "stream":
            text = self._cut(str(content["text"]))
            name = "stderr" if content.get("name") == "stderr" else "stdout"
            last = self.outputs[-1] if self.outputs else None
            if last is not None and last.output_type == "stream" and last.name == name:
                last.text += text
                return
            output = nbformat.v4.new_output("stream", name=name, text=text)
        elif kind == "error":
            lines = [self._cut(str(line)) for line in content.get("traceback", [])[:50]]
            output = nbformat.v4.new_output("error", ename=str(content["ename"])[:100],
                                            evalue=str(content["evalue"])[:2000], traceback=lines)
        else:
            data = {mime: self._cut(str(content["data"][mime]), mime) for mime in SHOWN_TYPES if mime in content["data"]}
            output = nbformat.v4.new_output(kind, data={k: v for k, v in data.items() if v})
            if kind == "execute_result":
                output.execution_count = None
        if len(self.outputs) >= MAX_OUTPUTS:
            self.room = 0
        self.outputs.append(output)

    def _cut(self, text, mime="text/plain"):
        if mime == "image/png":  # half a picture is none, and what isn't base64 could act in a page
            if len(text) > min(4 << 20, self.whole["pictures"]) or not BASE64.fullmatch(text):
                return ""
            self.whole["pictures"] -= len(text)
            return text
        if len(text) > self.room:
            text, left = text[:max(0, self.room)] + "\n…（输出太多，其余省略）", 0
        else:
            left = self.room - len(text)
        self.whole["text"] -= self.room - left
        self.room = left
        return text


def _error(name, text):
    return nbformat.v4.new_output("error", ename=name, evalue=text, traceback=[f"{name}: {text}"])


def _proportional_size(pid):
    with contextlib.suppress(OSError, ValueError), open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        for line in file:
            if line.startswith("Pss:"):
                return int(line.split()[1]) << 10
    return 0


def _home_spec():
    return KernelSpec(argv=[sys.executable, str(INSIDE / "kernel.py"), "-f", "{connection_file}"], language="python",
                      display_name="Python 3", interrupt_mode="message")


def _home_environment():
    return {**os.environ, "PYTHONPATH": "", "OPENBLAS_NUM_THREADS": "1", "PYTHONUTF8": "1"}

