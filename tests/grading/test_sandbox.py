"""What the student's code can see and do, seen from inside, as root and as an ordinary user."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import psutil
import pytest

from grading import sandbox
from grading.kernels import KernelLost, StudentKernel
from grading.sandbox import Limits

pytestmark = pytest.mark.sandbox
ROOT = Path(__file__).resolve().parents[2]
SOMEBODY = 54321  # an ordinary user's number, for tests that run as root


def readable_interpreter():
    """An interpreter that other users may start and that has the same version as this one."""
    for path in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        real = Path(path).resolve()
        open_to_all = real.exists() and all(p.stat().st_mode & 0o005 == 0o005 for p in [real, *real.parents])
        if open_to_all:
            version = subprocess.run([path, "-c", "import sys; print(sys.version_info[:2])"], capture_output=True, text=True)
            if version.stdout.strip() == str(sys.version_info[:2]):
                return path
    return None


def as_whom():
    if os.geteuid() != 0:
        return [pytest.param("me", id="ordinary user")]
    reason = ""
    if readable_interpreter() is None:
        reason = "没有一个别的用户也能运行的同版本 Python"
    elif not all(p.stat().st_mode & 0o005 == 0o005 for p in [ROOT, *ROOT.parents]):
        reason = f"别的用户读不到 {ROOT}"
    marks = [pytest.mark.skip(reason=reason)] if reason else []
    return [pytest.param("me", id="root"), pytest.param("somebody", id="ordinary user", marks=marks)]


@pytest.fixture(scope="module", params=as_whom())
def seen(request, tmp_path_factory):
    """What the probe saw; a listener counts who reached it."""
    home = tmp_path_factory.mktemp("home")
    home.chmod(0o777)
    secret = tmp_path_factory.mktemp("gradebook")
    (secret / "gradebook.db").write_text("secret")
    secret.chmod(0o755)
    folders = [str(ROOT), f"{ROOT}/solutions", f"{ROOT}/lib", f"{ROOT}/grading", str(secret), str(Path.home()), "/home",
               "/var", "/opt", "/sys"]
    interpreter, prefix = sys.executable, []
    if request.param == "somebody":
        interpreter = readable_interpreter()
        prefix = ["setpriv", f"--reuid={SOMEBODY}", f"--regid={SOMEBODY}", "--clear-groups"]
    packages = Path(psutil.__file__).parents[1]
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONPATH": f"{ROOT}{os.pathsep}{packages}",
                   "JUPYTERHUB_API_TOKEN": "secret-token", "PYTHONDONTWRITEBYTECODE": "1"}
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.5)
        done = subprocess.run([*prefix, interpreter, str(Path(__file__).with_name("probe.py")), str(listener.getsockname()[1]),
                               *folders], env=environment, capture_output=True, text=True, timeout=180, cwd="/")
        try:
            listener.accept()
            reached = True
        except TimeoutError:
            reached = False
    assert done.stdout.strip(), done.stderr
    return json.loads(done.stdout) | {"reached": reached, "root": request.param == "me" and os.geteuid() == 0,
                                      "secret": str(secret)}


def test_no_power_is_left(seen):
    assert seen["uid"] not in (0, os.getuid() or -1) and seen["euid"] == seen["uid"]
    assert set(seen["caps"].values()) == {0}
    assert seen["no_new_privs"] == "1" and seen["seccomp"] == "2"
    assert "allowed" not in (seen["unshare"], seen["mount"], seen["setuid"]) and seen["setuid program"] != 0


def test_no_network(seen):
    assert not seen["reached"] and "Error" in str(seen["network"])
    assert seen["interfaces"] == ["lo"] and "Error" in str(seen["vsock"])


def test_no_view_of_the_course(seen):
    hidden = {path: found for path, found in seen["listings"].items() if isinstance(found, list)}
    # parents of the interpreter's folders exist as empty shells; nothing of the course is in them
    shown = [Path(p) for p in (sys.prefix, sys.base_prefix, Path(psutil.__file__).parents[1])]
    for folder, found in hidden.items():
        assert set(found) <= {p.relative_to(folder).parts[0] for p in shown if folder in map(str, p.parents)}, folder
    assert all("ModuleNotFoundError" in str(found) for found in seen["imports"].values())
    assert seen["secret"] not in seen["mounts"]


def test_no_secrets_in_the_environment(seen):
    assert "secret-token" not in json.dumps(seen["environment"]) + seen["process environment"]
    assert set(seen["environment"]) <= {*sandbox._environment(), "JPY_PARENT_PID", "LC_CTYPE", "PYDEVD_USE_FRAME_EVAL",
                                        "TERM", "CLICOLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "PAGER", "GIT_PAGER"}


def test_only_its_own_processes(seen):
    assert len(seen["processes"]) <= 4 and seen["parent"] == 0 and seen["hostname"] == "sandbox"


def test_it_writes_nowhere_but_in_its_own_memory(seen):
    assert seen["work"] == "/sandbox" and not seen["work listing"]
    # What lies below /tmp is the sandbox's own memory there, whatever the host has at that path: look at the host.
    assert all("Error" in str(found) or (path.startswith("/tmp/") and not Path(path).exists()) for path, found in seen["writes"].items()), seen["writes"]
    assert seen["sandbox writes"] == ["written"] * 3
    assert not any("/dev/sd" in link or str(ROOT) in link for link in seen["descriptors"].values())


def test_limits(seen):
    limits = Limits().resources()
    assert {name: tuple(pair) for name, pair in seen["limits"].items()} == {n: (v, v) for n, v in limits.items()}
    assert "MemoryError" in str(seen["memory"]) and "Error" in str(seen["file size"])
    assert "Error" in str(seen["processes allowed"]) and seen["children"] < limits["NPROC"] + 5


def test_every_process_of_a_sandbox_ends_with_it():
    with StudentKernel().ready() as kernel:
        kernel.run("import subprocess; [subprocess.Popen(['sh', '-c', 'trap \"\" TERM HUP; sleep 600'], start_new_session=True)"
                   " for _ in range(5)]")
        inside = kernel._manager.provisioner.sandbox
        family = [p.pid for p in psutil.Process(inside.kernel_pid).children(recursive=True)]
        assert len(family) >= 5
    time.sleep(0.3)
    alive = [pid for pid in [*family, inside.kernel_pid, inside.pid] if psutil.pid_exists(pid)
             and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE]
    assert not alive


def test_memory_of_all_processes_together_is_bounded():
    with StudentKernel(Limits(total_memory_mb=400, cell_seconds=30)).ready() as kernel:
        run = kernel.run("import os, time\nfor _ in range(4):\n    if os.fork() == 0:\n        x = bytearray(200 << 20)\n"
                         "        time.sleep(60)\ntime.sleep(60)")
        assert "400 MB" in run.problem and "memory" in kernel.notes
        with pytest.raises(KernelLost):
            kernel.ask({"do": "look", "name": "x"})


def test_neighbours_do_not_share_limits():
    """A fork bomb in one sandbox must not cost another its threads."""
    with StudentKernel().ready() as bomb, StudentKernel().ready() as neighbour:
        bomb.run("import os, time\ntry:\n    while True:\n        if os.fork() == 0: time.sleep(30)\nexcept OSError: pass")
        run = neighbour.run("import threading\nt = [threading.Thread(target=lambda: None) for _ in range(20)]\n"
                            "[x.start() for x in t]; [x.join() for x in t]; print('fine')")
        assert "fine" in str(run.outputs)


def test_jupyters_own_client_can_use_the_provisioner():
    """nbgrader and JupyterLab start kernels this way."""
    from jupyter_client import KernelManager

    manager = KernelManager()
    manager._kernel_spec = sandbox.kernel_spec()
    manager.start_kernel()
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=60)
        reply = client.execute_interactive("import os; print(os.getcwd())", timeout=30, output_hook=lambda m: None)
        assert reply["content"]["status"] == "ok"
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    assert not manager.is_alive()


def test_without_bubblewrap_nothing_starts_and_the_way_out_is_named(monkeypatch, tmp_path, toy):
    from grading.batch import grade

    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(sandbox.SandboxUnavailable, match="apt-get install bubblewrap"):
        grade(toy.name, tmp_path, tmp_path / "out", solutions=toy.solutions)
    assert not (tmp_path / "out").exists()
    monkeypatch.undo()
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert shutil.which("bwrap") == str(broken)
    with pytest.raises(sandbox.SandboxUnavailable, match="AppArmor"):
        sandbox.require_sandbox()


def test_packages_of_the_course_are_masked_wherever_they_lie(monkeypatch):
    """Installed without -e they lie beside NumPy. The stand-in is a package that the kernel hasn't loaded before the mask."""
    folder = Path(nbformat.__file__).parent
    monkeypatch.setattr(sandbox, "_private_folders", lambda: {folder})
    with StudentKernel().ready() as kernel:
        run = kernel.run(f"import os, sys; print('loaded', 'nbformat' in sys.modules, os.listdir({str(folder)!r}))\n"
                         "import nbformat\nprint('visible', hasattr(nbformat, 'read'))")
        assert "loaded False []" in str(run.outputs) and "visible False" in str(run.outputs), run.outputs
