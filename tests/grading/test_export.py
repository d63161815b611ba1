"""Grades go into the very table that a platform gave out, each to its own row or to none."""

import csv
import io

import pytest

from grading.export import WorksheetError, fill


def row(student, score, most=12.0):
    return {"student": student, "score": score, "max_score": most}


def table(filled):
    assert filled.text.startswith("\ufeff")  # Excel reads Chinese only with the mark
    return list(csv.reader(io.StringIO(filled.text.removeprefix("\ufeff"))))


MOODLE = """Identifier,"Full name","Email address",Status,Grade,"Maximum Grade","Grade can be changed","Last modified (submission)"
"Participant 12345",张三,a@example.org,"Submitted for grading",,100.00,Yes,"Monday, 1 June 2026, 10:00 AM"
"Participant 12346",李 四,b@example.org,"Submitted for grading",,100.00,Yes,-
"Participant 12347",王五,c@example.org,"No submission",,100.00,Yes,-
"""


def test_moodles_worksheet():
    filled = fill(MOODLE.encode("utf-8-sig"), [row("张三_12345", 7.5), row("李 四_12346", 12), row("赵六_9", 1)], "ex04-attention")
    lines = table(filled)
    assert [line[4] for line in lines] == ["Grade", "7.5", "12", ""] and lines[1][7] == "Monday, 1 June 2026, 10:00 AM"
    assert [[*line[:4], *line[5:]] for line in lines] == [[*line[:4], *line[5:]] for line in csv.reader(io.StringIO(MOODLE))]
    assert filled.count == 2 and filled.strangers == ["赵六_9"] and filled.absent == ["Participant 12347 王五"] and filled.by == "Identifier"
    scaled = fill(MOODLE.encode(), [row("张三_12345", 7.5)], "ex04-attention", out_of=100)
    assert table(scaled)[1][4] == "62.5"


def test_moodle_in_chinese_and_in_gbk():
    text = MOODLE.replace("Participant ", "参与者").replace("Identifier", "标识符").replace("Grade,", "成绩,")
    lines = table(fill(text.encode("gb18030"), [row("张三_12345", 7)], "ex04-attention"))
    assert lines[1][0] == "参与者12345" and lines[1][4] == "7"
    with pytest.raises(WorksheetError, match="对得上"):  # the number of a login is nobody's number
        fill(text.encode("gb18030"), [row("zhang12345", 7)], "ex04-attention")


def test_canvas_gradebook():
    text = ("Student,ID,SIS Login ID,Section,ex04-attention (991),ex05-multi-head (992)\n    Points Possible,,,,12,10\n"
            '"Zhang, San",111,zhangsan,1,,3\n"Li, Si",112,lisi,1,,\n')
    filled = fill(text.encode(), [row("zhangsan_111", 9), row("lisi_112", 0)], "ex04-attention")
    lines = table(filled)
    assert [line[4] for line in lines] == ["ex04-attention (991)", "12", "9", "0"] and lines[2][5] == "3" and not filled.absent
    assert filled.by == "ID" and table(fill(text.encode(), [row("lisi", 5)], "ex05-multi-head"))[3][5] == "5"


def test_nobody_gets_the_points_of_another():
    text = "学号,姓名,成绩\n1,张三,\n2,张三,\n3,李四,\n"
    filled = fill(text.encode(), [row("张三", 5), row("李四", 6)], "ex")
    assert [line[2] for line in table(filled)] == ["成绩", "", "", "6"] and filled.strangers == ["张三"]


def test_any_separator_and_the_column_by_name():
    lines = table(fill("id;第一次;第二次\nalice;1;\n".encode(), [row("alice", 4)], "ex", column="第二次"))
    assert lines[1] == ["alice", "1", "4"]


@pytest.mark.parametrize(("data", "words"), [
    (b"", "不是一张成绩表"), (b"x", "不是一张成绩表"), (b"id,a,b\nalice,,\n", "--column"), (b"id,grade\nbob,\n", "对得上"),
    (b"id,grade,score\nalice,,\n", "--column")])
def test_what_can_not_be_filled_is_said(data, words):
    with pytest.raises(WorksheetError, match=words):
        fill(data, [row("alice", 1)], "ex")
    with pytest.raises(WorksheetError, match="先评分"):
        fill(data, [], "ex")
