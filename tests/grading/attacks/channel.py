"""Using the channel between kernel and grader: forged, late, huge and broken messages."""

from . import add

FORGE = """
kernel = get_ipython().kernel
def forged(self, stream, ident, parent):
    {body}
import types
kernel.shell_handlers["grading_request"] = types.MethodType(forged, kernel)
"""
LOSE = dict(deserves={})  # whoever breaks the channel gets no answers through it


def forge(body):
    return FORGE.replace("{body}", body)


add("reply-success", "channel", "answers every request with words of success", forge(
    'self.session.send(stream, "grading_reply", {"value": True, "passed": True, "score": 100, "ok": True}, parent, ident=ident)'), **LOSE)
add("reply-garbage", "channel", "answers with trees that mean nothing", forge(
    'self.session.send(stream, "grading_reply", {"value": ["a", 0, "|O", [9], {}], "changed": 7}, parent, ident=ident)'), **LOSE)
add("reply-a-pickle", "channel", "answers with bytes that run code where they are unpickled", forge(
    'import pickle, os; self.session.send(stream, "grading_reply", {"value": ["b", 0]}, parent, ident=ident, '
    'buffers=[b"cos\\\\nsystem\\\\n(S\'touch @planted@/planted-@token@\'\\\\ntR."])'), **LOSE)
add("reply-nothing", "channel", "never answers", forge("pass"), **LOSE, flags={"timeout"})
add("reply-much", "channel", "answers with three hundred megabytes", forge(
    'self.session.send(stream, "grading_reply", {"value": ["b", 0]}, parent, ident=ident, buffers=[b"x" * (300 << 20)])'),
    **LOSE)
add("reply-deep", "channel", "answers with lists nested ten thousand deep", forge(
    'import json; self.session.pack = lambda o: (b\'{"value": \' + b"[" * 10000 + b"]" * 10000 + b"}") if "value" in o '
    'else json.dumps(o, default=str).encode(); '
    'self.session.send(stream, "grading_reply", {"value": 1}, parent, ident=ident)'), **LOSE)
add("reply-twice", "channel", "answers each request many times, also to later ones", forge(
    'for n in range(50): self.session.send(stream, "grading_reply", {"value": ["l", [["l", []], 1, 2]]}, parent, ident=ident)'), **LOSE)
add("reply-errors-of-all-kinds", "channel", "answers with errors whose names and texts are chosen to harm", forge(
    'self.session.send(stream, "grading_reply", {"error": "KeyboardInterrupt\\\\n<script>", "message": ["x"] * 100, "lines": {"a": 1}}, '
    'parent, ident=ident)'), **LOSE)
add("send-bytes", "channel", "writes bytes that are no messages to every socket", """
import zmq
kernel = get_ipython().kernel
for _ in range(200):
    kernel.iopub_thread.socket.send_multipart([b"garbage", b"\\xff" * 100])
    kernel.iopub_thread.socket.send_multipart([b"<IDS|MSG>", b"", b"{", b"[", b"}", b"nope"])
""")
add("forge-the-end-of-a-cell", "channel", "says that the cell is done before it is, and publishes results for others", """
kernel = get_ipython().kernel
parent = kernel.get_parent()
send = lambda kind, content: kernel.session.send(kernel.iopub_socket, kind, content, parent)
for n in range(20):
    send("status", {"execution_state": "idle"})
    send("execute_result", {"data": {"text/plain": "10", "text/html": "<script>1</script>"}, "metadata": {}, "execution_count": 1})
    send("error", {"ename": 1, "evalue": None, "traceback": "x"})
    send("stream", {"name": [], "text": {}})
    send("display_data", {"data": []})
""")
add("call-functions-of-tests", "channel", "calls functions of the tests that nobody passed to it, and with odd arguments", """
kernel = get_ipython().kernel
import types
old = kernel.do_call
def do_call(self, request, buffers, route):
    for number in (0, 1, -1, 10 ** 9, "os", None, [0]):
        self.session.send(self.stdin_socket, "callback_request", {"callback": number, "arguments": ["l", [["l", [1]], ["d", []]]]}, route[1], ident=route[0])
    return old(request, buffers, route)
kernel.do_call = types.MethodType(do_call, kernel)
""")
add("call-functions-without-end", "channel", "calls the test's function again and again",
    answers={"apply": "def twice(f, x):\n    while True: f(x)"}, flags={"timeout"})
add("forge-functions-of-tests", "channel", "hands the test's own functions to other calls, and objects that it made up", """
kernel = get_ipython().kernel
kernel.refer = lambda x: ["o", 5, "function", True]
""", deserves={})
add("move-the-sockets", "channel", "replaces the kernel's sockets by links to other places and by servers of its own", """
import glob, os, socket
for path in glob.glob("/run/kernel/*"):
    os.unlink(path)
    try: os.symlink("@planted@/socket", path)
    except OSError: pass
for n in range(200):
    try: socket.socket(socket.AF_UNIX).bind(f"/run/kernel/x{n}")
    except OSError: break
""")
add("close-the-channel", "channel", "closes the kernel's sockets", """
kernel = get_ipython().kernel
kernel.shell_stream.close()
kernel.stdin_socket.close()
""", flags={"timeout"})
add("steal-the-key", "channel", "takes the session's key and answers future requests from a thread", """
import threading, time
kernel = get_ipython().kernel
def answer():
    while True:
        time.sleep(0.01)
        try: kernel.session.send(kernel.iopub_socket, "grading_reply", {"value": True}, kernel.get_parent())
        except Exception: pass
threading.Thread(target=answer, daemon=True).start()
""")
add("ask-for-input", "channel", "asks the teacher for input", "input('密码？')\nimport getpass\ngetpass.getpass()")
add("change-the-wire", "channel", "changes the coding of data so that every result looks right", """
import sys, numpy as np
wire = sys.modules["wire"]
old = wire.encode
wire.encode = lambda value, refer=None: old([np.array([0.5, 0.5])], refer)
""", deserves={})
add("halves-of-characters", "channel", "sends halves of characters and zero bytes in errors, outputs and results", """
import json
kernel = get_ipython().kernel
kernel.session.pack = lambda o: json.dumps(o, default=str).encode()
print("\\ud800 \\0 \\udfff")
display({"text/plain": "\\ud83d\\0"}, raw=True)
def softmax(x, axis=-1): raise ValueError("\\ud800\\0" * 100)
""", after="softmax", answers={"apply": "def twice(f, x):\n    return '\\ud800'"})
add("replace-the-code", "channel", "changes the code of the kernel's own functions while they are in use", """
import gc, sys
def do_call(self, request, buffers, route): return {"value": ["l", [["i", "0x7" + "f" * 200]]], "changed": False}, []
for thing in gc.get_objects():
    if getattr(thing, "__qualname__", "") == "StudentKernel.do_call" and hasattr(thing, "__code__"): thing.__code__ = do_call.__code__
    if isinstance(thing, dict) and "wanted" in thing: thing["wanted"] = 7
""", **LOSE)
add("calls-in-calls", "channel", "answers a call by calling the test's function, which calls it again, each time for as long as is allowed",
    answers={"apply": "def twice(f, x):\n    global known\n    known = f\n    out = f(f(x))\n    return out if str(out) == '3' else None", "softmax": """
import time
known = None
def softmax(x, axis=-1):
    end = time.process_time() + 2
    while time.process_time() < end: pass
    return known(x) if known else x""".strip()}, flags={"timeout"})
add("calls-without-work", "channel", "the same without any work, as deep as it goes",
    deserves={"counter-add": 2, "apply-partial": 1}, answers={
    "apply": "def twice(f, x):\n    global known\n    known = f\n    return f(f(x))",
    "softmax": "known = None\ndef softmax(x, axis=-1):\n    return known(x) if known else x"})
add("message-without-end", "channel", "writes the parts of one message to the grader's socket and never the last", """
import os, re, socket, struct
part = b"\\x03" + struct.pack(">Q", 40 << 20) + b"x" * (40 << 20)
for n in range(3, 256):
    try:
        link = socket.socket(fileno=os.dup(n))
        if link.family != socket.AF_UNIX or link.type != socket.SOCK_STREAM or not link.getsockname(): continue
        link.getpeername()
        link.setblocking(True)
        for _ in range(300): link.sendall(part)
    except (OSError, ValueError): pass
""", flags={"timeout"})
