"""发布：由 `solutions/` 生成学生拿到的 `exercises/`，逐字节可重复。

nbgrader's own converter does the work (it removes solutions and hidden tests and locks the tests by checksums) in a
temporary folder, without a gradebook; the result replaces `exercises/`. A notebook in which somebody has
answered already is never overwritten unless told to.

    python -m grading.release [--force]
"""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

import nbformat
from traitlets.config import Config

from grading import pages
from grading.assignment import ROOT, SOLUTIONS
from grading.catalog import EXERCISES, assignments, exercise, role

CODE_STUB = "# 在这里写你的代码\nraise NotImplementedError()"
TEXT_STUB = "在这里写你的答案。"

# Beside notebooks, whatever lies in an assignment's folder is released; these files never are.
NEVER_RELEASED = ["checks.py", "*.md", "__pycache__", "*.pyc", ".ipynb_checkpoints"]


def settings():
    """nbgrader's settings for a release; `nbgrader_config.py` uses them too, so both ways give the same files."""
    config = Config()
    config.ClearSolutions.code_stub = {"python": CODE_STUB}
    config.ClearSolutions.text_stub = TEXT_STUB
    config.CourseDirectory.ignore = NEVER_RELEASED
    config.CourseDirectory.source_directory = "solutions"
    config.CourseDirectory.release_directory = "exercises"
    return config


def generate(target):
    """Write the release of every assignment below `target`."""
    from nbgrader.converters import GenerateAssignment
    from nbgrader.coursedir import CourseDirectory

    target = Path(target).resolve()
    config = settings()
    config.CourseDirectory.root = str(ROOT)
    config.CourseDirectory.release_directory = str(target)
    config.GenerateAssignment.no_database = True  # these two are nbgrader's own --no-db
    config.SaveCells.enabled = False
    for name in assignments():
        config.CourseDirectory.assignment_id = name
        GenerateAssignment(coursedir=CourseDirectory(config=config), config=config).start()
    (target / "README.md").write_text(index(), encoding="utf-8")


def index():
    """The page of the folder: what there is to do."""
    rows = [f"| [{a.name}]({a.name}/{a.name}.ipynb) | {a.title} | {'、'.join(f'`{f}`' for f in a.functions)} "
            f"| {a.minutes} | {a.points} |" for a in map(exercise, assignments())]
    return "\n".join([
        "# 练习", "",
        "这些笔记本由 `make exercises` 生成，直接在里面写答案。写好后在仓库根目录运行 `make check EX=练习名` 看每条性质是否成立，",
        "`make progress` 看总进度。只需要 NumPy；评分的环境里没有 `lib`。", "",
        "| 练习 | 主题 | 要写的函数 | 分钟 | 分 |", "|---|---|---|---|---|", *rows, ""])


def answered(path):
    """Whether somebody has written into a released notebook: an answer that is no longer the stub."""
    stubs = (CODE_STUB.splitlines()[-1], TEXT_STUB)
    cells = nbformat.read(path, as_version=nbformat.NO_CONVERT).cells
    return any(role(cell) in ("solution", "manual") and not any(stub in cell.source for stub in stubs) for cell in cells)


def publish(force=False):
    """Replace `exercises/` by a fresh release. Returns the notebooks that changed."""
    with tempfile.TemporaryDirectory() as scratch:
        generate(scratch)
        fresh = {p.relative_to(scratch): p.read_bytes() for p in sorted(Path(scratch).rglob("*")) if p.is_file()}
    old = {p.relative_to(EXERCISES): p for p in EXERCISES.rglob("*") if p.is_file() and ".ipynb_checkpoints" not in p.parts}
    mine = [path for path in old.values() if path.suffix == ".ipynb" and answered(path)]
    if mine and not force:
        sys.exit("这些笔记本里有写好的答案，没有覆盖任何文件：\n" + "\n".join(f"  {p.relative_to(ROOT)}" for p in mine)
                 + "\n先把它们移到别处，或用 make exercises ARGS=--force 覆盖。")
    changed = [name for name in sorted(fresh.keys() | old.keys())
               if name not in fresh or name not in old or old[name].read_bytes() != fresh[name]]
    for name in changed:
        if name in fresh:
            (EXERCISES / name).parent.mkdir(parents=True, exist_ok=True)
            (EXERCISES / name).write_bytes(fresh[name])
        else:
            old[name].unlink()
            if not any(old[name].parent.iterdir()):
                shutil.rmtree(old[name].parent)
    return changed


def main():
    parser = argparse.ArgumentParser(description="由 solutions/ 生成 exercises/")
    parser.add_argument("--force", action="store_true", help="覆盖已有答案的笔记本")
    changed = [f"exercises/{name}" for name in publish(parser.parse_args().force)]
    changed += pages.write()
    print(f"{len(assignments())} 份练习（源在 {SOLUTIONS.name}/）；" + (
        "更新了：\n" + "\n".join(f"  {name}" for name in changed) if changed else "没有变化"))


if __name__ == "__main__":
    main()
