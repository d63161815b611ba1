"""Binder gets what the chapters need and no more, in the versions of the lock."""

import re
import subprocess
import sys
import tomllib

import pytest


def pins(path):
    return dict(re.findall(r"^([A-Za-z0-9_.-]+)==([^\s;]+)", path.read_text(encoding="utf-8"), re.M))


def test_pins_are_those_of_the_lock(root):
    ours, lock = pins(root / "binder" / "requirements.txt"), pins(root / "requirements.txt")
    assert ours and all(lock[name] == version for name, version in ours.items())


def test_exactly_what_lib_declares(root):
    declared = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    assert {re.match(r"[\w-]+", line)[0] for line in declared} == set(pins(root / "binder" / "requirements.txt"))


def test_buttons_open_the_same_notebook(site):
    text = (site / "chapters" / "04-attention.html").read_text(encoding="utf-8")
    repository = "token-journey/token-journey"
    assert f"https://mybinder.org/v2/gh/{repository}/main?urlpath=lab/tree/chapters/04-attention.ipynb" in text
    assert f"https://colab.research.google.com/github/{repository}/blob/main/chapters/04-attention.ipynb" in text


@pytest.mark.long
def test_plan_of_the_image(root, tmp_path):
    """repo2docker says what it would do, without Docker: only binder/ is read, not the course's own environment."""
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    subprocess.run([python, "-m", "pip", "install", "-q", "jupyter-repo2docker==2026.4.0"], check=True)
    command = [python, "-m", "repo2docker", "--no-build", "--debug", "--user-id", "1000", "--user-name", "jovyan", root]
    done = subprocess.run(command, capture_output=True, text=True)
    plan = done.stdout + done.stderr
    assert "binder/requirements.txt" in plan and "binder/postBuild" in plan
    assert not re.search(r'-r "?requirements\.txt', plan)
