"""The machine's own Chromium, driven by Playwright: for the PDF, the comparison and the tests."""

import shutil
import sys
from contextlib import contextmanager

from playwright.sync_api import sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
HOW = "需要 Chromium：apt-get install chromium"


def path():
    """Where it is, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def starter():
    """Yields start(*flags) -> browser. One in a process at a time: Playwright doesn't start inside another one's block.
    Without Chromium the program ends, saying how to get it."""
    if not path():
        sys.exit(HOW)
    with sync_playwright() as play:
        yield lambda *flags: play.chromium.launch(executable_path=path(), args=["--no-sandbox", "--disable-gpu", *flags])
