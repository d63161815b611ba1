"""The Python side of the page's runner, where it can be tried without a browser."""

import importlib.util
import json
import random
import re
import sys
import unicodedata
from functools import cache

import pytest
import regex

from book.ext import pyrun
from lib import tokenizer


@pytest.fixture(scope="module")
def stand_in(root):
    """book/pyrun/modules/regex.py under another name, beside the real `regex`."""
    spec = importlib.util.spec_from_file_location("regex_in_the_page", root / "book" / "pyrun" / "modules" / "regex.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PATTERNS = sorted({value for name, value in vars(tokenizer).items() if name.endswith("PATTERN")} | set(getattr(tokenizer, "PATTERNS", {}).values()))


@cache
def agreed():
    """Characters that this Python's and regex's Unicode tables put into the same class (they may be of different years)."""
    kinds = [(kind, regex.compile(rf"\p{{{kind}}}")) for kind in ("L", "N", "M", "Lu", "Ll")]
    found = []
    for character in map(chr, range(sys.maxunicode + 1)):
        category = unicodedata.category(character)
        if category not in ("Cs", "Cn", "Co") and all(category.startswith(kind) == bool(rule.match(character)) for kind, rule in kinds):
            found.append(character)
    return found


@pytest.mark.parametrize("pattern", PATTERNS)
def test_regex_of_the_page_cuts_like_the_real_one(stand_in, pattern):
    ours, real = stand_in.compile(pattern), regex.compile(pattern)
    characters = [*agreed()]
    assert len(characters) > 140_000
    rng = random.Random(0)
    rng.shuffle(characters)
    everything = "".join(characters)
    assert ours.findall(everything) == real.findall(everything) == stand_in.findall(pattern, everything)
    common = list("aZé你，。 \t\n\r\x1c\x85\u3000'stredvml09²Ⅷ_-/!🙂\u0301")
    for _ in range(3000):
        text = "".join(rng.choices(common, k=rng.randrange(1, 20)))
        assert ours.findall(text) == real.findall(text), text


def test_hidden_cells_come_with_the_page(tmp_path):
    """What a page doesn't show but its cells need (the first cell) is handed to the runner."""
    cell = {"cell_type": "code", "metadata": {"tags": ["remove-cell"]}, "source": ["import sys\n", "x = '</script>'"]}
    shown = {"cell_type": "code", "metadata": {}, "source": ["print(x)"]}
    path = tmp_path / "a.ipynb"
    path.write_text(json.dumps({"cells": [cell, shown]}))
    assert pyrun.hidden_code(path) == "import sys\nx = '</script>'"
    assert "</script>" not in pyrun.panel({}, True, pyrun.hidden_code(path)).split("application/json")[1].split("</script>")[0]


def test_hidden_cells_stand_first(root):
    """They run before all others; one in the middle of a chapter would run too early."""
    from book import execute

    for path in execute.notebooks(root):
        code = [c for c in json.loads(path.read_text(encoding="utf-8"))["cells"] if c["cell_type"] == "code"]
        hidden = [bool({"remove-cell", "remove-input"} & set(c["metadata"].get("tags", ()))) for c in code]
        assert hidden == sorted(hidden, reverse=True), path.name


def test_the_stand_in_has_what_lib_and_the_ledger_ask_for(root, stand_in):
    used = {name for folder in ("lib", "claims") for path in (root / folder).rglob("*.py")
            for name in re.findall(r"\bregex\.(\w+)", path.read_text(encoding="utf-8"))}  # fmt: skip
    assert used and used <= set(vars(stand_in))
