"""Too much: of time, memory, processes, files, output."""

from . import add

SOFTMAX = "    e = np.exp(x - x.max(axis=axis, keepdims=True))\n    return e / e.sum(axis=axis, keepdims=True)\n"

add("endless-cell", "limits", "a loop without end", "while True: pass", flags={"timeout"})
add("endless-function", "limits", "a loop without end in the function under test",
    answers={"softmax": "def softmax(x, axis=-1):\n    while True: pass"}, flags={"timeout"})
add("stubborn-cell", "limits", "a loop that swallows interruptions", """
while True:
    try:
        while True: pass
    except BaseException: pass
""", flags={"timeout"})
add("deaf-to-signals", "limits", "ignores signals and sleeps", """
import signal, time
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP): signal.signal(number, signal.SIG_IGN)
time.sleep(1000)
""", flags={"timeout"})
add("slow-everywhere", "limits", "every call takes a little less than is allowed",
    answers={"softmax": "import time\ndef softmax(x, axis=-1):\n    time.sleep(2.5)\n" + SOFTMAX},
    deserves={"softmax-value": 3, "softmax-axis": 2, "counter-add": 2})
add("many-slow-cells", "limits", "one cell after the other works nearly as long as a cell may", """
import time
def work(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end: pass
work(3)
""", answers={"softmax": "work(3)", "counter": "work(3)", "apply": "work(3)"}, deserves={})
add("stop-itself", "limits", "stops its own process, so that nothing answers",
    "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)", flags={"timeout"})
add("leave-in-a-cell", "limits", "ends the process in a cell", "import os\nos._exit(0)", flags={"kernel-died"})
add("leave-in-a-function", "limits", "ends the process when it is tested",
    answers={"softmax": "def softmax(x, axis=-1):\n    import os\n    os._exit(0)"}, flags={"kernel-died"})
add("crash", "limits", "reads address zero", "import ctypes\nctypes.string_at(0)", flags={"kernel-died"})
add("abort", "limits", "aborts", "import os\nos.abort()", flags={"kernel-died"})
add("become-another-program", "limits", "replaces the kernel by a program that does nothing",
    "import os\nos.execv('/bin/sleep', ['sleep', '1000'])")
add("kill-the-parent", "limits", "kills its parent and everybody else whom it may kill", """
import os, signal
for pid in (os.getppid(), 1, 2, -1):
    try: os.kill(pid, signal.SIGKILL)
    except (OSError, ProcessLookupError) as error: print(error)
""")
add("fork-bomb", "limits", "doubles itself without end", """
import os
while True:
    try: os.fork()
    except OSError: pass
""", flags={"timeout"})
add("leave-daemons", "limits", "leaves processes that outlive the notebook", """
import os, subprocess
for n in range(10):
    subprocess.Popen(["sh", "-c", "trap '' TERM HUP INT; exec -a daemon-@token@ sleep 1000 || sleep 1000"], start_new_session=True)
if os.fork() == 0:
    if os.fork() == 0:
        os.setsid()
        while True: pass
    os._exit(0)
""")
add("leave-threads", "limits", "leaves busy threads behind", """
import threading
for n in range(20): threading.Thread(target=lambda: [None for _ in iter(int, 1)], daemon=True).start()
""")
add("much-memory", "limits", "takes ten gigabytes", "x = bytearray(10 << 30)")
add("much-memory-in-many-processes", "limits", "takes memory in many processes", """
import os, time
for n in range(30):
    if os.fork() == 0:
        try: x = bytearray(500 << 20); x[::4096] = b"1" * len(x[::4096])
        finally: time.sleep(100)
time.sleep(3)
""")
add("much-output", "limits", "prints sixty megabytes", "for n in range(60_000): print('x' * 1000)")
add("many-outputs", "limits", "shows ten thousand objects",
    "from IPython.display import display\nfor n in range(10_000): display(n)")
add("many-pictures", "limits", "shows hundreds of megabytes of pictures", """
from IPython.display import display
picture = "iVBORw0KGgo" + "A" * (3 << 20)
for n in range(60): display({"image/png": picture, "text/plain": "x"}, raw=True)
""")
add("output-from-a-thread", "limits", "prints from a thread while other cells and tests run", """
import threading, time
def flood():
    for _ in range(3000): print("y" * 10_000); time.sleep(0.001)
threading.Thread(target=flood, daemon=True).start()
""")
add("many-files", "limits", "opens files until none is left",
    "files = []\ntry:\n    while True: files.append(open('/dev/null'))\nexcept OSError: pass\ndel files")
add("deep-recursion", "limits", "recurses far beyond any stack",
    "import sys\nsys.setrecursionlimit(10 ** 9)\ndef f(n): return f(n + 1)\nf(0)")
add("huge-number", "limits", "computes a number of a hundred million digits", "x = 7 ** (10 ** 8)\nstr(x)", flags={"timeout"})
add("raise-limits", "limits", "raises its own limits first", """
import resource
for name in ("RLIMIT_AS", "RLIMIT_NPROC", "RLIMIT_CPU", "RLIMIT_FSIZE"):
    try: resource.setrlimit(getattr(resource, name), (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    except (ValueError, OSError) as error: print(error)
x = bytearray(10 << 30)
""")
add("escape-the-sandbox", "limits", "asks for new namespaces, mounts, powers and other users", """
import ctypes, os, subprocess
libc = ctypes.CDLL(None, use_errno=True)
for flags in (0x10000000, 0x00020000, 0x20000000, 0x40000000): libc.unshare(flags)
libc.setuid(0); libc.mount(b"none", b"/tmp", b"tmpfs", 0, None); libc.ptrace(16, 1, 0, 0)
for command in ("su", "mount", "unshare -Ur", "nsenter -t 1 -a", "chroot /"):
    subprocess.run(command.split(), capture_output=True, stdin=subprocess.DEVNULL)
try: open("/proc/1/mem", "r+b").write(b"x")
except OSError: pass
for path in ("/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern"):
    try: open(path, "w").write("c")
    except OSError: pass
""")
add("signal-everybody", "limits", "sends every signal to its group, its session and whomever it sees", """
import os, signal
for number in (signal.SIGINT, signal.SIGUSR1, signal.SIGALRM, signal.SIGWINCH, signal.SIGURG): signal.signal(number, signal.SIG_IGN)
for number in (signal.SIGINT, signal.SIGUSR1, signal.SIGWINCH, signal.SIGURG):
    for target in (0, -1, 1, os.getppid(), os.getsid(0)):
        try: os.kill(target, number) if target else os.killpg(0, number)
        except OSError: pass
signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
""")
add("no-more-imports", "limits", "lets every later import fail for want of memory", """
import sys
class Broken:
    def find_spec(self, *a): raise MemoryError
sys.meta_path.insert(0, Broken())
""")
