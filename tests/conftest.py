"""What tests need from the machine, decided once: a missing system package skips loudly on a reader's machine
and fails where REQUIRE_SYSTEM=1 (CI), so that no check is lost silently."""

import os
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# marker -> (commands of which one must exist, what to tell the reader)
SYSTEM = {
    "browser": (("chromium", "chromium-browser", "google-chrome"), "需要 Chromium：apt-get install chromium"),
    "sandbox": (("bwrap",), "需要 bubblewrap：apt-get install bubblewrap"),
}


def missing(marker):
    """The reason why a test with this marker can't run here, or None."""
    commands, hint = SYSTEM[marker]
    return None if any(map(shutil.which, commands)) else hint


def pytest_runtest_setup(item):
    for marker in SYSTEM:
        if item.get_closest_marker(marker) and (reason := missing(marker)):
            if os.environ.get("REQUIRE_SYSTEM") == "1":
                pytest.fail(f"REQUIRE_SYSTEM=1：{reason}", pytrace=False)
            pytest.skip(reason)
    if item.get_closest_marker("peers"):
        # Live peers are an extra environment by design (`make peers`); golden values cover them in the ordinary run.
        pytest.importorskip("torch", reason="需要同类实现：make peers")


@pytest.fixture(scope="session")
def root():
    return ROOT


@pytest.fixture(scope="session")
def chromium_path():
    for command in SYSTEM["browser"][0]:
        if path := shutil.which(command):
            return path
    raise AssertionError(SYSTEM["browser"][1])
