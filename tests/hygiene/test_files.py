"""What must never be committed: machine paths, registry hosts, stored pictures, heavy files, hidden tests."""

import json
import re
import subprocess
import sys

import pytest

from tests.hygiene.files import ROOT, notebooks, read_notebook, tracked

TEXT = {".py", ".md", ".ipynb", ".json", ".yml", ".yaml", ".toml", ".txt", ".in", ".mk", ".js", ".mjs", ".css", ".html", ".cfg", ".sh", ".po", ".bib", ""}
FOLDERS = "|".join(("work", "farm", "root"))  # put together here, so that this file needs no exception
MACHINE = re.compile(rf'(?:^|[^A-Za-z0-9_.])/(?:{FOLDERS})/[A-Za-z.]|"resolved": *"http|(?:extra-)?index[-]url|https?:[/]{{2}}[^ "]*/simpl[e]/')


def lines(path):
    try:
        return path.read_text().splitlines()
    except UnicodeDecodeError:
        return []


def test_no_machine_paths_or_registry_hosts():
    faults = [f"{path}:{n}: {line.strip()[:100]}" for path in tracked() if path.suffix in TEXT
              for n, line in enumerate(lines(path), 1) if MACHINE.search(line)]
    assert not faults, "\n".join(faults)


def test_no_heavy_file():
    heavy = [f"{path}: {(ROOT / str(path)).stat().st_size / 1e6:.1f} MB" for path in tracked() if (ROOT / str(path)).stat().st_size > 2_000_000]
    assert not heavy, "\n".join(heavy)


@pytest.mark.parametrize("path", notebooks(), ids=str)
def test_notebook_is_clean(path):
    nb = read_notebook(path)
    assert nb.metadata.get("kernelspec", {}).get("name") == "python3", "内核应为 python3"
    for number, cell in enumerate(nb.cells):
        if cell.cell_type != "code":
            continue
        assert cell.execution_count is None, f"单元 {number} 存了执行序号"
        for output in cell.outputs:
            pictures = [mime for mime in output.get("data", {}) if mime.startswith("image/")]
            assert not pictures, f"单元 {number} 存了图片 {pictures}"
            assert output.output_type != "error", f"单元 {number} 存了一个报错：{output.get('evalue')}"


def test_chapter_figures_have_alt_text():
    faults = [f"{path} 单元 {n}" for path in notebooks() if path.as_posix().startswith("chapters/")
              for n, cell in enumerate(read_notebook(path).cells) if cell.cell_type == "code" and "plt.show()" in cell.source
              and not str(cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "")).strip()]
    assert not faults, "图缺替代文本（单元元数据 mystnb.image.alt）：\n" + "\n".join(faults)


def test_release_holds_no_solution():
    marks = re.compile(r"(?:BEGIN|END) (?:SOLUTION|HIDDEN TESTS)")
    assert not [str(p) for p in tracked() if p.as_posix().startswith("exercises/") and marks.search("\n".join(lines(p)))]


def test_lock_holds_every_direct_requirement():
    lock = dict(re.findall(r"^([A-Za-z0-9_.-]+)==([^ ;\n]+)", (ROOT / "requirements.txt").read_text(encoding="utf-8"), re.M))
    direct = re.findall(r"^([A-Za-z0-9_.-]+)(?:\[[^\]]*\])?==(\S+)", (ROOT / "requirements.in").read_text(encoding="utf-8"), re.M)
    assert direct and not [f"{name}=={version}，锁中为 {lock.get(name.lower())}" for name, version in direct if lock.get(name.lower()) != version]


def test_json_parses():
    for path in tracked():
        if path.suffix in {".json", ".ipynb"} and "attacks" not in path.as_posix() and "broken" not in path.as_posix():
            json.loads(path.read_text())


def test_ruff():
    run = subprocess.run([sys.executable, "-m", "ruff", "check", "--output-format", "concise", "."], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
