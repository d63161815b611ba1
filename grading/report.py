"""给老师的报告：每道题难在哪里，哪些提交可疑、为什么，哪些文件出过问题。"""

import statistics
from collections import Counter
from itertools import groupby

import jinja2

from grading import suspicion
from grading.feedback import TEMPLATES, number


def page(rows):
    """The HTML of the report."""
    parts = [_part(name, list(group)) for name, group in groupby(rows, key=lambda row: row["assignment"])]
    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True, trim_blocks=True)
    return environment.get_template("report.html.j2").render(parts=parts, number=number)


def _part(name, rows):
    scores = [row["score"] for row in rows]
    return {"assignment": name, "rows": rows, "count": len(rows), "mean": statistics.fmean(scores),
            "median": statistics.median(scores), "best": max(scores), "max_score": max(row["max_score"] for row in rows),
            "pending": sum(row["pending"] for row in rows), "cells": _cells(rows), "suspicious": suspicious(rows)}


def _cells(rows):
    """Each graded cell: how much of its points the class got, and the message given most often."""
    found = []
    for name in dict.fromkeys(name for row in rows for name in row["cells"]):
        cells = [row["cells"][name] for row in rows if name in row["cells"]]
        messages = Counter(test["message"].strip().splitlines()[-1].strip()[:120] for row in rows
                           for test in row["result"]["tests"] if test["grade_id"] == name and test["message"].strip())
        common, times = messages.most_common(1)[0] if messages else ("", 0)
        most = cells[0]["max"]
        got = statistics.fmean(cell["score"] for cell in cells)
        found.append({"name": name, "max": most, "percent": round(100 * got / most) if most else 0, "common": common,
                      "times": times})
    return found


def suspicious(rows):
    """Rows that somebody should look at, with reasons."""
    twins = suspicion.identical({row["student"]: row["result"]["answers"] for row in rows})
    found = []
    for row in rows:
        reasons = [reason for _, reason in row["result"]["suspicions"]]
        if row["student"] in twins:
            reasons.append(f"全部答案与 {'、'.join(twins[row['student']])} 逐字相同")
        if reasons:
            found.append({"student": row["student"], "score": row["score"], "reasons": reasons})
    return found


def summary_table(rows, assignment):
    """The table that a run prints."""
    rows = [row for row in rows if row["assignment"] == assignment]
    if not rows:
        return "没有提交。"
    width = max(sum(2 if ord(c) > 0x2e80 else 1 for c in row["student"]) for row in rows)
    lines = []
    for row in rows:
        pad = " " * (width - sum(2 if ord(c) > 0x2e80 else 1 for c in row["student"]))
        flags = " ".join(row["flags"])
        lines.append(f"  {row['student']}{pad}  {number(row['score']):>6} / {number(row['max_score'])}  {flags}".rstrip())
    scores = [row["score"] for row in rows]
    lines.append(f"  {len(rows)} 份，平均 {number(statistics.fmean(scores))}，中位数 {number(statistics.median(scores))}")
    return "\n".join(lines)
