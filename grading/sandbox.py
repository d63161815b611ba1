"""学生代码的沙箱：bubblewrap 建立命名空间与文件系统，Jupyter 的 kernel provisioner 在其中启动内核。

What a student's process can see: the system's `/usr`, the Python environment (read-only, the course's own packages masked),
and an empty working folder in memory. No network, no other process, no home, no course files, no environment.

Each kernel gets a sandbox of its own. The kernel process is not started from a file but forked from a zygote, which has
loaded IPython and NumPy once and joins the sandbox before it gives up its powers (`inside/zygote.py`): a fresh kernel
costs tens of milliseconds instead of a second. The kernel's sockets lie in the sandbox's own memory and are reached
through /proc, so that nothing of a student's is ever written to the host's disk.
"""

import asyncio
import contextlib
import importlib.util
import itertools
import json
import os
import select
import shutil
import socket
import subprocess
import sys
import sysconfig
import threading
import time
from dataclasses import asdict, dataclass
from importlib.metadata import EntryPoint
from pathlib import Path

from jupyter_client.kernelspec import KernelSpec
from jupyter_client.provisioning import KernelProvisionerBase, KernelProvisionerFactory
from traitlets import Bool, Dict, List, Unicode

ROOT = Path(__file__).resolve().parent.parent
INSIDE = Path(__file__).resolve().parent / "inside"
PRIVATE_PACKAGES = ("lib", "claims", "grading", "solutions")
FOLDER, SOCKETS = "/sandbox", "/run/kernel"
NOBODY = 65534
PROVISIONER = "bwrap-provisioner"
INSTALL_HINT = (
    "没有找到 bubblewrap（命令 bwrap）。别人的作业只在沙箱里运行，因此评分没有开始。\n"
    "安装：Debian / Ubuntu 用 apt-get install bubblewrap，Fedora 用 dnf install bubblewrap，Arch 用 pacman -S bubblewrap。\n"
    "macOS 与 Windows 请在 Linux 虚拟机、WSL 2 或 deploy/ 中的容器里评分。"
)


class SandboxUnavailable(RuntimeError):
    """There is no sandbox here, and the message says what to do."""


@dataclass(frozen=True)
class Limits:
    """What one submission may use."""

    memory_mb: int = 2048  # address space of each process
    total_memory_mb: int = 3072  # resident, of all its processes together
    processes: int = 96  # and threads
    cpu_seconds: int = 120  # of each process
    file_mb: int = 64  # one file, and each of the folders in memory
    open_files: int = 256
    cell_seconds: float = 20.0
    call_seconds: float = 10.0
    total_seconds: float = 120.0  # of the student's code, cells and calls together
    output_kb: int = 256  # kept of a cell's output

    def resources(self):
        """As names and numbers of setrlimit(2)."""
        return {"AS": self.memory_mb << 20, "NPROC": self.processes, "CPU": self.cpu_seconds,
                "FSIZE": self.file_mb << 20, "NOFILE": self.open_files, "CORE": 0}


def require_sandbox():
    """Refuse to go on without bubblewrap, or where it can't make namespaces."""
    if sys.platform != "linux" or shutil.which("bwrap") is None:
        raise SandboxUnavailable(INSTALL_HINT)
    probe = subprocess.run([*_namespaces(), "--ro-bind", "/", "/", "true"], capture_output=True, text=True)
    if probe.returncode != 0:
        raise SandboxUnavailable(
            f"bubblewrap 在这台机器上建不了沙箱：{probe.stderr.strip()}\n"
            "Ubuntu 24.04 需要 AppArmor 允许 bwrap 使用用户命名空间（apt-get install apparmor-profiles）；"
            "容器需要 CAP_SYS_ADMIN 或放开的 seccomp 配置，见 deploy/README.md。"
        )


def _namespaces():
    argv = ["bwrap", "--die-with-parent", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts",
            "--unshare-cgroup-try", "--hostname", "sandbox", "--clearenv", "--cap-drop", "ALL"]
    if os.geteuid() != 0:
        argv += ["--unshare-user", "--disable-userns", "--uid", str(NOBODY), "--gid", str(NOBODY)]
    return argv


def _package_folders():
    """Where the packages lie that a notebook may use; usually one folder."""
    specs = [importlib.util.find_spec(name) for name in ("ipykernel", "zmq", "IPython", "numpy", "matplotlib")]
    folders = dict.fromkeys(str(Path(spec.origin).resolve().parents[1]) for spec in specs if spec and spec.origin)
    return [folder for folder in folders if not Path(folder).samefile(ROOT)]


def _python_paths():
    """What `import` searches, without what .pth files add (an editable install of the course would come that way)."""
    paths = sysconfig.get_paths()
    standard = [paths["stdlib"], paths["platstdlib"], str(Path(paths["stdlib"]) / "lib-dynload"),
                f"{sys.base_prefix}/lib/python{sys.version_info[0]}.{sys.version_info[1]}/lib-dynload"]
    return [path for path in dict.fromkeys([*standard, *_package_folders()]) if os.path.isdir(path)]


def _private_folders():
    """Folders that must stay invisible even if they lie below something that is shown."""
    folders = {ROOT}
    for name in PRIVATE_PACKAGES:
        spec = importlib.util.find_spec(name)
        folders.update(Path(p).resolve() for p in (spec.submodule_search_locations or []) if spec) if spec else None
    return folders


def bwrap_arguments(size_mb, read_only=()):
    """The command line that makes a sandbox and waits in it until a line or the end of its standard input."""
    argv = [*_namespaces(), "--ro-bind", "/usr", "/usr", "--proc", "/proc", "--dev", "/dev"]
    for path in ("/bin", "/sbin", "/lib", "/lib64", "/lib32"):
        if os.path.islink(path):
            argv += ["--symlink", os.readlink(path), path]
        elif os.path.isdir(path):
            argv += ["--ro-bind", path, path]
    argv += ["--perms", "0755", "--dir", "/etc"]
    for path in ("/etc/ld.so.cache", "/etc/alternatives", "/etc/fonts", "/etc/localtime"):
        if os.path.exists(path):
            argv += ["--ro-bind", path, path]
    # Before the interpreter's folders are shown: they may lie in /tmp themselves.
    for path, size in ((FOLDER, size_mb), ("/tmp", size_mb), ("/dev/shm", size_mb), (SOCKETS, 1)):
        argv += ["--size", str(size << 20), "--perms", "1777", "--tmpfs", path]
    shown, made = [], {"/", "/usr", "/tmp"}
    for path in dict.fromkeys(map(str, [sys.base_prefix, sys.prefix, *_package_folders(), *read_only])):
        if not any(Path(path).is_relative_to(there) for there in [*shown, "/usr"]):
            for parent in reversed(Path(path).parents):  # bwrap would make them unreadable
                if str(parent) not in made:
                    made.add(str(parent))
                    argv += ["--perms", "0755", "--dir", str(parent)]
            argv += ["--ro-bind", path, path]
        shown.append(Path(path))
    for folder in sorted(_private_folders()):
        if any(folder.is_relative_to(path) for path in [*shown, Path("/usr")]):
            argv += ["--tmpfs", str(folder), "--remount-ro", str(folder)]
            argv += [word for path in shown if path.is_relative_to(folder) and path != folder
                     for word in ("--ro-bind", str(path), str(path))]
    return [*argv, "--perms", "1777", "--dir", "/tmp/home", "--remount-ro", "/dev", "--remount-ro", "/",
            "--chdir", FOLDER, "--", "/bin/sh", "-c", "echo; read line"]


def _environment():
    return {"PATH": f"{sys.prefix}/bin:/usr/bin:/bin", "HOME": "/tmp/home", "LANG": "C.UTF-8", "PYTHONUTF8": "1",
            "MPLBACKEND": "module://matplotlib_inline.backend_inline", "MPLCONFIGDIR": "/tmp/home/matplotlib",
            "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "IPYTHONDIR": "/tmp/home/.ipython",
            "PYTHONDONTWRITEBYTECODE": "1", "NBGRADER_EXECUTION": "autograde"}


class Zygote:
    """One per process: the ready-made kernel that all kernels of this process are forked from."""

    _current = None
    _lock = threading.Lock()

    def __init__(self):
        here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with there:
            self.process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(INSIDE / "zygote.py"), str(there.fileno()), str(INSIDE), *_python_paths()],
                pass_fds=[there.fileno()], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                env={"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PATH": "/usr/bin:/bin"})
        self.connection = here

    @classmethod
    def current(cls):
        """The zygote of this process, started anew if it has died."""
        with cls._lock:
            if cls._current is None or cls._current.process.poll() is not None:
                cls._current = cls()
            return cls._current

    def fork(self, request, report, release):
        """Ask for a kernel; the two descriptors are duplicated into it."""
        socket.send_fds(self.connection, [json.dumps(request).encode()], [report, release])


class Sandbox:
    """One kernel in one sandbox."""

    _uids = itertools.count()

    def __init__(self, limits, connection, read_only=()):
        """Start it; `wait_ready` must follow. `connection` is Jupyter's connection information, seen from inside."""
        self.limits, self.kernel_pid = limits, None
        info, info_in_sandbox = os.pipe()
        self.report, report_in_kernel = os.pipe()
        try:
            self.process = subprocess.Popen(
                ["bwrap", "--info-fd", str(info_in_sandbox), *bwrap_arguments(limits.file_mb, read_only)[1:]],
                pass_fds=[info_in_sandbox], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                env={"PATH": os.environ.get("PATH", "/usr/bin:/bin")})
            os.close(info_in_sandbox)
            self._wait_for_mounts()
            self.pid = json.loads(os.read(info, 4096))["child-pid"]
            Zygote.current().fork({
                "sandbox": self.pid, "uid": self._unused_uid(), "limits": limits.resources(), "folder": FOLDER,
                "environment": _environment(), "path": _python_paths(), "connection": connection,
            }, report_in_kernel, self.process.stdin.fileno())
        finally:
            os.close(info)
            os.close(report_in_kernel)

    def _wait_for_mounts(self):
        if not self.process.stdout.readline():
            raise SandboxUnavailable(f"bubblewrap 没有启动：{self.process.stderr.read().decode(errors='replace').strip()}")

    @classmethod
    def _unused_uid(cls):
        """As root: a user that no other sandbox has, since a limit on processes counts per user."""
        if os.geteuid() != 0:
            return None
        last = max(int(first) + int(count) - 1 for first, _, count in map(str.split, open("/proc/self/uid_map")))
        first = 1 << 30 if last > 1 << 31 else 20_000
        return first + (os.getpid() * 64 + next(cls._uids) % 64) % ((1 << 30) if last > 1 << 31 else 40_000)

    def wait_ready(self, seconds=30.0):
        """Until the kernel's sockets are bound."""
        deadline, text = time.monotonic() + seconds, b""
        while b"ready\n" not in text:
            if not select.select([self.report], [], [], max(0, deadline - time.monotonic()))[0]:
                raise SandboxUnavailable("沙箱中的内核没有按时启动")
            piece = os.read(self.report, 4096)
            text += piece
            if not piece or b"failed" in text:
                raise SandboxUnavailable(f"沙箱中的内核没有启动：{text.decode(errors='replace').strip()}")
        os.close(self.report)
        self.report = None
        self.kernel_pid = int(text.split(b"pid ")[1].split()[0])

    def poll(self):
        """None while the kernel runs."""
        return self.process.poll()

    def kill(self):
        """End every process of the sandbox."""
        if self.report is not None:
            os.close(self.report)
            self.report = None
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            with contextlib.suppress(OSError):
                pipe.close()
        self.process.wait()


class BwrapProvisioner(KernelProvisionerBase):
    """Gives Jupyter a kernel in a sandbox; named by the kernel specification (see `kernel_spec`)."""

    limits = Dict(help="fields of grading.sandbox.Limits").tag(config=True)
    read_only = List(Unicode(), help="further folders that the student's code may read").tag(config=True)
    wait_until_ready = Bool(True, help="whether to wait until the kernel is ready; who starts kernels ahead doesn't").tag(config=True)
    sandbox = None

    @property
    def has_process(self):
        return self.sandbox is not None

    @property
    def process(self):
        """What can be polled, as LocalProvisioner has it."""
        return self.sandbox

    async def pre_launch(self, **kwargs):
        require_bwrap()
        self.kernel_spec.interrupt_mode = "message"  # a signal from outside would not reach the kernel
        return await super().pre_launch(cmd=[], **kwargs)

    async def launch_kernel(self, cmd, **kwargs):
        names = ("shell_port", "iopub_port", "stdin_port", "hb_port", "control_port")
        session = self.parent.session
        connection = {"transport": "ipc", "ip": f"{SOCKETS}/s", "key": session.key.decode(),
                      "signature_scheme": session.signature_scheme, **{n: i for i, n in enumerate(names, 1)}}
        self.sandbox = Sandbox(Limits(**self.limits), connection, self.read_only)
        if self.wait_until_ready:
            try:
                self.sandbox.wait_ready()
            except BaseException:
                self.sandbox.kill()
                raise
        self.connection_info = connection | {"ip": f"/proc/{self.sandbox.pid}/root{SOCKETS}/s", "key": session.key}
        return self.connection_info

    async def poll(self):
        return 0 if self.sandbox is None else self.sandbox.poll()

    async def wait(self):
        while self.sandbox is not None and self.sandbox.poll() is None:
            await asyncio.sleep(0.01)
        self.sandbox = None
        return 0

    async def send_signal(self, signum):
        if signum not in (0, 2):
            await self.kill()

    async def kill(self, restart=False):
        if self.sandbox is not None:
            self.sandbox.kill()

    async def terminate(self, restart=False):
        await self.kill(restart)

    async def cleanup(self, restart=False):
        await self.kill(restart)


def require_bwrap():
    """The cheap part of `require_sandbox`."""
    if shutil.which("bwrap") is None:
        raise SandboxUnavailable(INSTALL_HINT)


def _register():
    """Let Jupyter know the provisioner, also where this package lies on the path without having been installed."""
    known = KernelProvisionerFactory.instance().provisioners
    known.setdefault(PROVISIONER, EntryPoint(PROVISIONER, f"{__name__}:{BwrapProvisioner.__name__}", "jupyter_client.kernel_provisioners"))


def kernel_spec(limits=None, wait=True):
    """The specification of the sandboxed kernel."""
    _register()
    config = {"wait_until_ready": wait, **({"limits": asdict(limits)} if limits else {})}
    return KernelSpec(
        argv=[], display_name="Python 3 (sandbox)", language="python", interrupt_mode="message",
        metadata={"kernel_provisioner": {"provisioner_name": PROVISIONER, "config": config}})
