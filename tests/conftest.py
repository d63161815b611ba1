"""What tests need from the machine, decided once: a missing system package skips loudly on a reader's machine
and fails where REQUIRE_SYSTEM=1 (CI), so that no check is lost silently."""

import glob
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from book import chromium

ROOT = Path(__file__).resolve().parent.parent

# marker -> (commands of which one must exist, what to tell the reader)
SYSTEM = {
    "browser": (chromium.NAMES, chromium.HOW),
    "sandbox": (("bwrap",), "需要 bubblewrap：apt-get install bubblewrap"),
    "postgres": (("postgres", *glob.glob("/usr/lib/postgresql/*/bin/postgres")), "需要 PostgreSQL：apt-get install postgresql"),
}
ALL = os.environ.get("TEST_ALL") == "1"  # set by `make test-all`


@cache
def missing(marker):
    """The reason why a test with this marker can't run here, or None."""
    commands, hint = SYSTEM[marker]
    if not any(map(shutil.which, commands)):
        return hint
    if marker == "sandbox":
        probe = ["bwrap", "--unshare-pid", "--unshare-net", "--ro-bind", "/", "/", "true"]
        if (done := subprocess.run(probe, capture_output=True, text=True)).returncode != 0:
            return f"bubblewrap 在这里建不了命名空间：{done.stderr.strip()}"
    return None


def pytest_collection_modifyitems(items):
    """What takes long runs in `make test-all`; the ordinary run says so by name."""
    for item in items:
        if item.get_closest_marker("long") and not ALL:
            item.add_marker(pytest.mark.skip(reason="耗时较长，在 make test-all 中运行"))


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
    return chromium.path()


@pytest.fixture(scope="module")
def start_browser():
    """start_browser(*flags): one Playwright a module, as it suffers neither a second one beside it nor another event loop."""
    with chromium.starter() as start:
        yield start
