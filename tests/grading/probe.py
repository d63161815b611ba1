"""Run by test_sandbox: what a student's code finds in its kernel, as JSON on standard output.

    python probe.py PORT NAME…    PORT: a listener on loopback, outside; NAME…: folders that must not be seen
"""

import json
import sys

from grading.kernels import StudentKernel
from grading.sandbox import Limits

INSIDE = """
import ctypes, json, os, resource, signal, socket, subprocess, sys, threading
def tries(f, *a):
    try:
        return f(*a) or True
    except BaseException as e:
        return f"{type(e).__name__}: {e}"
def lines(path):
    return dict(line.split(":", 1) for line in open(path).read().splitlines())
def listing(path):
    try:
        return os.listdir(path)
    except OSError as e:
        return type(e).__name__
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *a):
    return "allowed" if getattr(libc, name)(*a) == 0 else os.strerror(ctypes.get_errno())
def write(path):
    with open(path, "w") as f: f.write("x")
    return "written"
status = lines("/proc/self/status")
seen = {
    "uid": os.getuid(), "euid": os.geteuid(), "groups": os.getgroups(),
    "caps": {k: int(status[k], 16) for k in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")},
    "no_new_privs": status["NoNewPrivs"].strip(), "seccomp": status["Seccomp"].strip(),
    "environment": dict(os.environ), "process environment": open("/proc/self/environ").read(),
    "listings": {p: listing(p) for p in FOLDERS}, "work": os.getcwd(), "work listing": os.listdir("."),
    "processes": sorted(int(p) for p in os.listdir("/proc") if p.isdigit()), "pid": os.getpid(), "parent": os.getppid(),
    "interfaces": [name for _, name in socket.if_nameindex()],
    "network": tries(lambda: socket.create_connection(("127.0.0.1", PORT), 2)),
    "vsock": tries(lambda: socket.socket(40, socket.SOCK_STREAM)),
    "imports": {m: tries(lambda: bool(__import__(m))) for m in ("lib", "grading", "claims", "solutions")},
    "writes": {p: tries(write, p) for p in WRITES},
    "sandbox writes": [tries(write, p) for p in ("here", "/tmp/there", "/dev/shm/shared")],
    "unshare": call("unshare", 0x10000000), "mount": call("mount", b"none", b"/tmp", b"tmpfs", 0, None),
    "setuid": call("setuid", 0), "setuid program": subprocess.run(["su", "-c", "id"], capture_output=True, text=True).returncode,
    "limits": {n: resource.getrlimit(getattr(resource, "RLIMIT_" + n)) for n in ("AS", "NPROC", "CPU", "FSIZE", "NOFILE", "CORE")},
    "memory": tries(lambda: bytearray(3 << 30)), "mounts": open("/proc/mounts").read(), "hostname": os.uname().nodename,
    "descriptors": {n: os.readlink(f"/proc/self/fd/{n}") for n in os.listdir("/proc/self/fd") if os.path.lexists(f"/proc/self/fd/{n}")},
    "file size": tries(lambda: open("big", "wb").write(b"x" * (200 << 20))),
}
def many():
    started = []
    for _ in range(500):
        pid = os.fork()
        if pid == 0:
            signal.pause()
        started.append(pid)
seen["processes allowed"] = tries(many)
seen["children"] = len([p for p in os.listdir("/proc") if p.isdigit()])
print(json.dumps(seen))
"""


def main(port, folders):
    writes = [f"{folder.rstrip('/')}/planted" for folder in folders] + ["/planted", "/usr/planted", f"{sys.prefix}/planted", "/dev/planted"]
    with StudentKernel(Limits(cell_seconds=30)).ready() as kernel:
        source = INSIDE.replace("PORT", port).replace("FOLDERS", repr(folders)).replace("WRITES", repr(writes))
        run = kernel.run(source)
        print("".join(o.get("text", "") for o in run.outputs) if not run.problem else json.dumps({"problem": run.problem}))
        if any(o.output_type == "error" for o in run.outputs):
            print(run.outputs, file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
