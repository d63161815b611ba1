"""Chinese text: spacing and punctuation (AutoCorrect), bold that renders, one word for one term."""

import re

import autocorrect_py
import pytest

from tests.hygiene.files import markdown_cells, notebooks, tracked

PROSE = {".md": "md", ".ipynb": "ipynb", ".py": "py"}
# Typed differently on purpose: the lock is machine-written, tests quote wrong text, quotations of the documents stay as they are.
EXEMPT = ("requirements.txt", "tests/", "claims/records/", "exercises/",
          # written out of docstrings and checks, where punctuation is code
          "chapters/appendix/shapes.md", "chapters/appendix/check-coverage.md", "chapters/appendix/mutants.md")


@pytest.mark.parametrize("path", [p for p in tracked() if p.suffix in PROSE and not p.as_posix().startswith(EXEMPT)], ids=str)
def test_autocorrect(path):
    result = autocorrect_py.lint_for(path.read_text(encoding="utf-8"), PROSE[path.suffix])
    faults = [f"{path}:{line.line}: {line.old.strip()!r} -> {line.new.strip()!r}" for line in result.lines
              if str(line.severity) == "Severity.Error" and not intended(line.old, line.new, path.suffix)]
    assert not faults, "\n".join(faults)


def intended(old, new, suffix):
    """What AutoCorrect would change though it is meant so: a full-width space between columns, and in code any punctuation."""
    old, new = old.replace("\u3000", " "), new.replace("\u3000", " ")
    if "->" in old:  # a signature in a block of text
        return True
    if suffix == ".py":  # `[进, 出]` is code there; only the spaces between Chinese and Latin are checked
        old, new = (re.sub(r"[^\w\s]+", ",", re.sub(r"\s*([^\w\s])\s*", r"\1", text)) for text in (old, new))
    return re.sub(" +", " ", old) == re.sub(" +", " ", new)


def prose():
    """(where, markdown text) of every page and notebook cell that a reader sees."""
    for path in tracked():
        if path.suffix == ".md":
            yield str(path), path.read_text(encoding="utf-8")
    for path in notebooks():
        for number, text in markdown_cells(path):
            yield f"{path} 单元 {number}", text


def outside_code(text):
    return re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.S)


def find(pattern, flags=0):
    return [f"{where}: {match[0]!r}" for where, text in prose() for match in re.finditer(pattern, outside_code(text), flags)]


def test_bold_renders():
    # CommonMark doesn't close ** between full-width punctuation and a character that follows directly (nor open it, mirrored).
    inner, outer = "（）「」『』“”。，：；！？、", r"[\u3400-\u9fffA-Za-z0-9]"
    faults = []
    for where, text in prose():
        for line in outside_code(text).split("\n"):
            parts = line.split("**")
            for before, bold, after in zip(parts[0::2], parts[1::2], parts[2::2]):
                if bold and ((bold[-1] in inner and re.match(outer, after)) or (bold[0] in inner and re.search(outer + "$", before))):
                    faults.append(f"{where}: …{before[-8:]}**{bold}**{after[:8]}…")
    assert not faults, "\n".join(faults)


def test_display_maths_stands_alone():
    # `$$` right after a line of text is read as inline maths and shows the raw source.
    faults = []
    for where, text in prose():
        lines, inside = outside_code(text).split("\n"), False
        for before, line in zip([""] + lines, lines):
            if line.strip().startswith("$$"):
                if not inside and before.strip() and not before.lstrip().startswith((">", ":", "```")):
                    faults.append(f"{where}: {before.strip()} / {line.strip()}")
                inside = not inside if line.strip() == "$$" or line.count("$$") == 1 else inside
    assert not faults, "\n".join(faults)


def test_no_chinese_in_mathrm():
    assert not find(r"\\(?:mathrm|operatorname)\{[^}]*[\u3400-\u9fff]")


@pytest.mark.parametrize("wrong, right", [("变压器", "Transformer"), ("您", "你"), ("标记化", "分词"), ("令牌", "词元"),
                                          ("层标准化", "层归一化"), ("残差链接", "残差连接"), ("因果遮罩", "因果掩码")])
def test_glossary_word(wrong, right):
    # A quotation of a document inside 「」 keeps the document's word.
    faults = [f for f in find(r"[^\n]*" + wrong + r"[^\n]*") if wrong in re.sub(r"「[^」]*」|“[^”]*”", "", f)]
    assert not faults, f"应写作{right}：\n" + "\n".join(faults)
