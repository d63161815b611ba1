"""把成绩填进平台自己导出的成绩表，再导回平台：Moodle 的评分工作表、Canvas 的成绩册，或任何一行一个学生的 CSV。

Platforms take back what they gave out: the same rows, the same headings, one column filled. Whose row is whose is told by the
column that knows most of our students, either as we call them or by the number at the end (`张三_12345` is Moodle's
`Participant 12345`, `zhangsan_111` is number 111 of Canvas).
"""

import csv
import io
import re
from dataclasses import dataclass

from grading.feedback import number

GRADE = ("grade", "成绩", "分数", "评分", "得分", "score")


class WorksheetError(ValueError):
    """The table can't be filled, and the message says why."""


@dataclass
class Filled:
    """The table to give back, and who is missing on either side."""

    text: str
    count: int
    by: str
    column: str
    strangers: list
    absent: list


def fill(data, rows, assignment, column=None, out_of=None):
    """`data` is the file as the platform gave it, `rows` are those of GradeStore.results."""
    if not rows:
        raise WorksheetError(f"成绩簿里没有 {assignment} 的成绩：先评分")
    table = _read(data)
    head, body = table[0], [line for line in table[1:] if any(line)]
    place = _grade_column(head, assignment, column)
    by, found = _whose(head, body, [row["student"] for row in rows])
    for row in rows:
        if (line := found.get(row["student"])) is not None:
            score = row["score"] * out_of / row["max_score"] if out_of else row["score"]
            line += [""] * (place + 1 - len(line))
            line[place] = number(score)
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(table)
    known = set(map(id, found.values()))
    absent = [" ".join(line[:2]).strip() for line in body if id(line) not in known and len(line) > by and line[by].strip()]
    strangers = [row["student"] for row in rows if row["student"] not in found]
    return Filled(f"\ufeff{text.getvalue()}", len(found), head[by], head[place], strangers, absent)


def _read(data):
    for encoding in ("utf-8-sig", "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "gb18030"):
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        first = text.splitlines()[0] if text.strip() else ""
        table = list(csv.reader(io.StringIO(text), delimiter=max(",;\t", key=first.count)))
        if len(table) > 1 and len(table[0]) > 1:
            return table
    raise WorksheetError("这不是一张成绩表：应是平台导出的 CSV，第一行是各列的名字")


def _grade_column(head, assignment, column):
    if column is not None:
        chosen = [place for place, name in enumerate(head) if name.strip() == column.strip()]
    else:
        chosen = [place for place, name in enumerate(head) if name.strip().lower().startswith(assignment)] \
            or [place for place, name in enumerate(head) if name.strip().lower() in GRADE]
    if len(chosen) != 1:
        raise WorksheetError(f"不知道填哪一列：用 --column 指定一个。表里有：{'、'.join(head)}")
    return chosen[0]


def _whose(head, body, students):
    """(number of the column that tells, {student: line})."""
    best = 0, {}
    for by in range(len(head)):
        for key in (str.strip, _last_number):
            lines, wanted = {}, {}
            for line in body:
                if by < len(line) and (known := key(line[by])):
                    lines.setdefault(known, []).append(line)
            for student in students:
                wanted.setdefault(key(student), []).append(student)
            # Only where neither side has two of one key: a wrong match would give a student another one's points.
            found = {names[0]: lines[known][0] for known, names in wanted.items()
                     if known and len(names) == 1 and len(lines.get(known, ())) == 1}
            if len(found) > len(best[1]):
                best = by, found
    if not best[1]:
        raise WorksheetError("表里没有一行对得上成绩簿里的学生：" + "、".join(students[:5]))
    return best


def _last_number(text):
    """Participant 12345, 参与者 12345, 张三_12345, 12345 → 12345; but zhangsan2 has none."""
    match = re.search(r"(?:^|[\s_\u4e00-\u9fff])(\d+)$", text.strip())
    return match[1] if match else None
