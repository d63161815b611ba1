"""python -m book.bundle: archives of one and the same state, to take along: the site, the notebooks, the exercises.

    _build/dist/token-journey-site.zip        unpack anywhere, open index.html
    _build/dist/token-journey-notebooks.zip   chapters with lib and data, for JupyterLab
    _build/dist/token-journey-exercises.zip   the exercises as students get them
"""

import zipfile
from pathlib import Path

from book import build

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "_build" / "dist"
SKIPPED = {"__pycache__", ".ipynb_checkpoints", ".doctrees"}
NOTEBOOKS = ("chapters", "lib", "claims", "binder/requirements.txt", "LICENSE", "README.md", "README.zh-CN.md")
EXERCISES = ("exercises", "LICENSE")


def files(base, names):
    for name in names:
        path = base / name
        found = [path] if path.is_file() else path.rglob("*")
        yield from (p for p in found if p.is_file() and not SKIPPED & set(p.parts))


def archive(target, base, names, top):
    """The same files give the same archive, byte for byte."""
    with zipfile.ZipFile(target, "w") as out:
        for path in sorted(files(base, names)):
            entry = zipfile.ZipInfo(f"{top}/{path.relative_to(base).as_posix()}")
            entry.external_attr = 0o644 << 16
            out.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED)
    print(f"{target}  {target.stat().st_size / 1e6:.1f} MB")


def write_all(site, target):
    target.mkdir(parents=True, exist_ok=True)
    archive(target / "token-journey-site.zip", site, [p.name for p in site.iterdir()], "token-journey")
    archive(target / "token-journey-notebooks.zip", ROOT, NOTEBOOKS, "token-journey-notebooks")
    archive(target / "token-journey-exercises.zip", ROOT, EXERCISES, "token-journey-exercises")


def main():
    write_all(build.run(ROOT, ROOT / "_build", report=lambda text: None), TARGET)


if __name__ == "__main__":
    main()
