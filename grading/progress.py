"""进度：每份练习得了多少分，下一步做什么。改动过的笔记本会先重新检查。

    python -m grading.progress
"""

import unicodedata

from grading.catalog import CHAPTERS, assignments, exercise
from grading.check_home import check, digest_of, store, stored
from grading.release import answered

WIDTH = 20  # cells of a bar


def current(name):
    """The result for the notebook as it is now: None while nothing is written, else checked anew if it has changed."""
    path = exercise(name).release
    if not path.exists() or not answered(path):
        return None
    result = stored(name)
    if result is None or result.digest != digest_of(name, path):
        store(result := check(name, path))
    return result


def table(results):
    """One line per exercise."""
    lines = []
    for name, result in results.items():
        score, full = (result.score, result.automatic) if result else (0, exercise(name).automatic)
        bar = "█" * round(WIDTH * score / full)
        state = "完成" if result and result.complete else "缺简答" if result and score == full else "进行中" if result else "未开始"
        lines.append(f"{_padded(name, 18)}{_padded(exercise(name).title, 34)}{bar:·<{WIDTH}} {score:>4g} / {full:<4g} {state}")
    return lines


def _padded(text, width):
    """Padded to a width in terminal columns, where a Chinese character takes two."""
    return text + " " * max(1, width - sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text))


def advice(results):
    """What to do next: the first exercise that isn't complete, with its chapter."""
    for name, result in results.items():
        if not (result and result.complete):
            if result:
                return f"下一步：{name} 还差 {result.automatic - result.score:g} 分" + ("" if result.written else "和一道简答") \
                    + f"；make check EX={name} 看差在哪里。"
            chapter = next(iter(CHAPTERS.glob(f"{exercise(name).number}-*.ipynb")), None)
            reading = f"先读 chapters/{chapter.name}，再" if chapter else ""
            return f"下一步：{reading}打开 exercises/{name}/{name}.ipynb。"
    return "全部完成。"


def main():
    results = {name: current(name) for name in assignments()}
    print("\n".join(table(results)))
    score, full = (sum(r.score for r in results.values() if r), sum(exercise(n).automatic for n in results))
    print(f"\n自动评分合计 {score:g} / {full:g} 分。\n{advice(results)}")


if __name__ == "__main__":
    main()
