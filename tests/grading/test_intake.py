"""What is read of a folder or a zip, whose it is, and what is left alone."""

import io
import json
import os
import re
import stat
import zipfile

import pytest
from nbgrader.utils import parse_utc

from grading.intake import IntakeError, collect, read_plain, student_id

NAME = "ex04-attention"
NOTEBOOK = b'{"nbformat": 4, "cells": []}'


def found(place):
    return {s.student: s for s in collect(place, NAME)}


def lay(root, files):
    for name, data in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return root


def zipped(files, encoding=None):
    """A zip; with an encoding, names are written as Windows does: no UTF-8 flag."""

    class Unflagged(zipfile.ZipInfo):
        def _encodeFilenameFlags(self):
            return self.filename.encode(encoding), 0

    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in files.items():
            archive.writestr((Unflagged if encoding else zipfile.ZipInfo)(name), data, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def test_nbgraders_folders(tmp_path):
    lay(tmp_path, {f"alice/{NAME}/{NAME}.ipynb": NOTEBOOK, f"alice/{NAME}/data/x.txt": b"1",
                   f"alice/{NAME}/timestamp.txt": b"2026-03-01 10:00:00.000000 UTC",
                   f"李雷/{NAME}/{NAME}.ipynb": NOTEBOOK, "bob/ex05-multi-head/x.ipynb": NOTEBOOK, f"carol/{NAME}/readme.txt": b""})
    got = found(tmp_path)
    assert set(got) == {"alice", "李雷", "carol"}  # bob handed in something else
    assert got["alice"].submitted.startswith("2026-03-01") and set(got["alice"].files) == {f"{NAME}.ipynb", "data/x.txt"}
    assert got["carol"].notebook is None and "no-notebook" in got["carol"].notes


def test_one_folder_or_one_file_a_student(tmp_path):
    lay(tmp_path, {f"alice/{NAME}.ipynb": NOTEBOOK, "bob.ipynb": NOTEBOOK, f"韩梅梅_{NAME}.ipynb": NOTEBOOK,
                   f"{NAME}-dave.ipynb": NOTEBOOK, ".hidden/x.ipynb": NOTEBOOK})
    assert set(found(tmp_path)) == {"alice", "bob", "韩梅梅", "dave"}


MOODLE = {"张三_12345_assignsubmission_file_/ex04-attention.ipynb": NOTEBOOK,
          "李 四_12346_assignsubmission_file_/我的作业.ipynb": NOTEBOOK,
          "Wang Wu_12347_assignsubmission_file_/ex04-attention (1).ipynb": NOTEBOOK,
          "Zhao Liu_12348_assignsubmission_file/hand in.zip": zipped({"x/ex04-attention.ipynb": NOTEBOOK, "x/d.txt": b"1"})}


def check_moodle(got):
    assert set(got) == {"张三_12345", "李 四_12346", "Wang Wu_12347", "Zhao Liu_12348"}
    assert all(s.notebook for s in got.values())
    assert "renamed" in got["李 四_12346"].notes and "renamed" in got["Wang Wu_12347"].notes
    assert "unpacked" in got["Zhao Liu_12348"].notes and "x/d.txt" in got["Zhao Liu_12348"].files


def test_moodle_as_a_folder(tmp_path):
    check_moodle(found(lay(tmp_path, MOODLE)))


@pytest.mark.parametrize("encoding", [None, "gbk", "utf-8"])
def test_moodle_as_a_zip_with_names_of_any_encoding(tmp_path, encoding):
    (tmp_path / "export.zip").write_bytes(zipped(MOODLE, encoding))
    check_moodle(found(tmp_path / "export.zip"))
    lay(tmp_path / "folder", {"export.zip": zipped(MOODLE, encoding)})
    check_moodle(found(tmp_path / "folder"))


def test_moodle_with_one_student_who_handed_in_folders(tmp_path):
    (tmp_path / "export.zip").write_bytes(zipped({
        f"张三_12345_assignsubmission_file_/{NAME}.ipynb": NOTEBOOK, "张三_12345_assignsubmission_file_/data/x.txt": b"1"}))
    got = found(tmp_path / "export.zip")
    assert set(got) == {"张三_12345"} and got["张三_12345"].notebook and "data/x.txt" in got["张三_12345"].files


def test_canvas(tmp_path):
    (tmp_path / "submissions.zip").write_bytes(zipped({
        f"zhangsan_111_2001_{NAME}.ipynb": NOTEBOOK, f"lisi_LATE_112_2002_{NAME}-1.ipynb": NOTEBOOK,
        f"wangwu_113_2003_{NAME}.zip": zipped({f"{NAME}.ipynb": NOTEBOOK})}))
    got = found(tmp_path / "submissions.zip")
    assert set(got) == {"zhangsan_111", "lisi_112", "wangwu_113"} and all(s.notebook for s in got.values())


def test_plain_zips(tmp_path):
    files = {f"alice/{NAME}/{NAME}.ipynb": NOTEBOOK, f"bob/{NAME}/{NAME}.ipynb": NOTEBOOK,
             "bob/ex05-multi-head/ex05-multi-head.ipynb": NOTEBOOK}
    (tmp_path / "a.zip").write_bytes(zipped(files))
    (tmp_path / "b.zip").write_bytes(zipped({f"submitted/{n}": d for n, d in files.items()}))
    for name in ("a.zip", "b.zip"):
        got = found(tmp_path / name)
        assert set(got) == {"alice", "bob"} and set(got["bob"].files) == {f"{NAME}.ipynb"}
    lay(tmp_path / "c", {"小红.zip": zipped({f"{NAME}.ipynb": NOTEBOOK}), "小明.zip": zipped({f"{NAME}/{NAME}.ipynb": NOTEBOOK})})
    assert set(found(tmp_path / "c")) == {"小红", "小明"}
    (tmp_path / "flat.zip").write_bytes(zipped({"小红.ipynb": NOTEBOOK, f"小明_{NAME}.ipynb": NOTEBOOK}))
    assert set(found(tmp_path / "flat.zip")) == {"小红", "小明"}
    (tmp_path / "one.zip").write_bytes(zipped({"小红.ipynb": NOTEBOOK}))
    assert set(found(tmp_path / "one.zip")) == {"小红"}


@pytest.mark.parametrize(("names", "chosen"), [
    ([f"{NAME}.ipynb", f"{NAME} (1).ipynb", "notes.ipynb"], f"{NAME}.ipynb"), ([f"{NAME} (1).ipynb"], f"{NAME} (1).ipynb"),
    ([f"{NAME}-Copy1.ipynb", "other.ipynb"], f"{NAME}-Copy1.ipynb"), ([f"{NAME} - 副本.ipynb"], f"{NAME} - 副本.ipynb"),
    ([f"{NAME} 的副本.ipynb"], f"{NAME} 的副本.ipynb"), (["作业.ipynb"], "作业.ipynb"),
    ([f"我的{NAME}终稿.ipynb", "a.ipynb"], f"我的{NAME}终稿.ipynb")])
def test_the_graded_notebook(tmp_path, names, chosen):
    lay(tmp_path, {f"a/{NAME}/{n}": NOTEBOOK for n in names})
    submission = found(tmp_path)["a"]
    assert submission.notebook == chosen and ("renamed" in submission.notes) == (chosen != f"{NAME}.ipynb")


def test_nothing_but_plain_files_is_read(tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("top secret")
    place = tmp_path / "s"
    lay(place, {f"a/{NAME}/{NAME}.ipynb": NOTEBOOK, f"b/{NAME}/keep.txt": b"1", "real/x.ipynb": NOTEBOOK})
    work = place / "a" / NAME
    (work / "link.txt").symlink_to(secret)
    (work / "folder").symlink_to(tmp_path)
    os.mkfifo(work / "pipe.ipynb")
    (place / "b" / NAME / f"{NAME}.ipynb").symlink_to(secret)
    (place / "c").symlink_to(place / "a")
    (place / "d").mkdir()
    (place / "d" / NAME).symlink_to(work)
    (place / "e.ipynb").symlink_to(secret)
    got = found(place)
    assert set(got["a"].files) == {f"{NAME}.ipynb"} and "not-a-plain-file" in got["a"].notes
    assert got["b"].notebook is None and set(got["b"].files) == {"keep.txt"}
    assert not got["c"].files and not got["d"].files and not got["e"].files
    assert all("not-a-plain-file" in got[s].notes for s in "abcde")
    assert b"top secret" not in b"".join(data for s in got.values() for data in s.files.values())


def test_collecting_takes_no_hard_link(tmp_path):
    """It may be a file that the student can't read; a teacher's own folder may well hold some (cp -l)."""
    lay(tmp_path, {"secret.txt": b"1", f"s/a/{NAME}/{NAME}.ipynb": NOTEBOOK})
    os.link(tmp_path / "secret.txt", tmp_path / "s" / "a" / NAME / "hard.txt")
    files, notes = read_plain(tmp_path / "s" / "a" / NAME)
    assert set(files) == {f"{NAME}.ipynb"} and "not-a-plain-file" in notes
    assert "hard.txt" in found(tmp_path / "s")["a"].files


def test_files_of_another_owner_are_left_out(tmp_path):
    lay(tmp_path, {"mine.txt": b"1"})
    files, notes = read_plain(tmp_path, owner=os.getuid() + 1)
    assert not files and "foreign-owner" in notes
    assert read_plain(tmp_path, owner=os.getuid())[0]


def test_sizes_are_bounded(tmp_path):
    place = lay(tmp_path, {f"a/{NAME}/{NAME}.ipynb": NOTEBOOK})
    with open(place / "a" / NAME / "huge.bin", "wb") as file:
        file.truncate(1 << 30)
    for n in range(300):
        (place / "a" / NAME / f"n{n}.txt").write_bytes(b"")
    got = found(place)["a"]
    assert "huge.bin" not in got.files and len(got.files) <= 200 and "too-large" in got.notes


def test_zip_bombs_and_climbing_names(tmp_path):
    bomb = zipped({f"a/{NAME}.ipynb": NOTEBOOK, "a/bomb": b"\0" * (10 << 20), "../../evil.ipynb": NOTEBOOK,
                   "/etc/evil.ipynb": NOTEBOOK})
    link = io.BytesIO(bomb)
    with zipfile.ZipFile(link, "a") as archive:
        info = zipfile.ZipInfo("a/link.txt")
        info.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(info, "/etc/passwd")
    (tmp_path / "x.zip").write_bytes(link.getvalue())
    got = found(tmp_path / "x.zip")
    assert set(got["a"].files) == {f"{NAME}.ipynb"} and {"too-large", "not-a-plain-file"} <= set(got["a"].notes)
    assert not any("evil" in name for s in got.values() for name in s.files)


def test_many_members_that_are_each_allowed_are_too_many_together(tmp_path, monkeypatch):
    monkeypatch.setattr("grading.intake.MAX_TOTAL", 5 << 20)
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "小王.zip").write_bytes(zipped({f"{NAME}.ipynb": NOTEBOOK} | {f"n{i}": os.urandom(1 << 20) for i in range(9)}))
    got = found(tmp_path / "x")["小王"]
    assert got.notebook and sum(map(len, got.files.values())) <= 5 << 20 and "too-large" in got.notes


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04broken", b"text"])
def test_broken_zips_are_named(tmp_path, data):
    (tmp_path / "x.zip").write_bytes(data)
    with pytest.raises(IntakeError, match="x.zip"):
        found(tmp_path / "x.zip")
    lay(tmp_path / "f", {"小王.zip": data, f"a/{NAME}/hand.zip": data})
    got = found(tmp_path / "f")
    assert "unreadable-zip" in got["小王"].notes and "unreadable-zip" in got["a"].notes


def test_an_encrypted_zip_is_named(tmp_path):
    data = bytearray(zipped({f"{NAME}.ipynb": NOTEBOOK}))
    data[6] |= 1
    data[data.index(b"PK\x01\x02") + 8] |= 1
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "小王.zip").write_bytes(bytes(data))
    assert "unreadable-file" in found(tmp_path / "x")["小王"].notes


@pytest.mark.parametrize(("name", "safe"), [
    ("alice", "alice"), ("张三", "张三"), ("Zoe\u0308", "Zoë"), (" b ", "b"), ("..", "student-"), ("", "student"), ("a/b", "a_b-"),
    ("../x", "_x-"), ("a\0b", "a_b-"), ("a\nb\x9b\x1b[31m", "a_b__[31m-"), ("a\u202eb", "a_b-"), ("b.", "b-"), ("\udcff", "_-"),
    ("x" * 300, "x" * 160 + "-"), ("名" * 300, "名" * 53 + "-"), ("a\u2028b", "a_b-")])
def test_student_ids_are_safe_names(name, safe):
    """Short enough for every file system, whatever bytes a character takes; a changed name ends with a digest."""
    assert re.fullmatch(re.escape(safe) + ("[0-9a-f]{6}" if safe.endswith("-") else ""), student_id(name))


def test_names_that_differ_only_in_what_is_replaced_stay_different(tmp_path):
    names = ["a?b", "a:b", "a_b", "a|b", "x" * 200 + "1", "x" * 200 + "2", "Zoe\u0308", "\udcffa"]
    for name in names:
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{NAME}.ipynb").write_bytes(NOTEBOOK)
    got = found(tmp_path)
    assert len(got) == len(names) and all(s.notebook and not s.notes for s in got.values()) and {"a_b", "Zoë"} <= set(got)


def test_names_of_files_may_be_any_bytes(tmp_path):
    place = lay(tmp_path, {f"a/{NAME}/{NAME}.ipynb": NOTEBOOK})
    (place / "a" / NAME / "bad\udcff.txt").write_bytes(b"1")
    (place / "a" / NAME / "link\udcff").symlink_to("/")
    got = found(place)["a"]
    assert got.digest and "bad?.txt" in got.files
    json.dumps([*got.files, *got.notes.values()], ensure_ascii=False).encode()


def test_what_may_not_be_read_is_an_entry_not_an_end(tmp_path, monkeypatch):
    """Also for root, who may read everything: here the system refuses by its own word."""
    place = lay(tmp_path, {f"a/{NAME}/{NAME}.ipynb": NOTEBOOK, f"a/{NAME}/closed/x.txt": b"", f"b/{NAME}/{NAME}.ipynb": NOTEBOOK})
    real = os.open

    def refuse(path, flags, **how):
        if path == "closed" or str(path).endswith(f"b/{NAME}"):
            raise PermissionError(13, "Permission denied", path)
        return real(path, flags, **how)

    monkeypatch.setattr(os, "open", refuse)
    got = found(place)
    assert got["a"].notebook and "unreadable-file" in got["a"].notes and "unreadable-file" in got["b"].notes


def test_a_students_zip_never_speaks_for_another(tmp_path):
    """Beside others a zip is one student's, whatever folders it holds; notes stay with whose file they are about."""
    foreign = zipped({f"bob/{NAME}/{NAME}.ipynb": b"{}", f"{NAME}.ipynb": NOTEBOOK,
                      f"bob_7_assignsubmission_file_/{NAME}.ipynb": b"{}", "../bob.ipynb": b"{}"})
    got = found(lay(tmp_path / "s", {"mallory.zip": foreign, f"bob/{NAME}.ipynb": NOTEBOOK}))
    assert set(got) == {"mallory", "bob"} and got["bob"].files == {f"{NAME}.ipynb": NOTEBOOK} and not got["bob"].notes
    (tmp_path / "export.zip").write_bytes(zipped({
        f"张三_1_assignsubmission_file_/{NAME}.ipynb": NOTEBOOK, f"李四_2_assignsubmission_file_/{NAME}.ipynb": NOTEBOOK,
        "李四_2_assignsubmission_file_/big": b"\0" * (30 << 20)}))
    got = found(tmp_path / "export.zip")
    assert not got["张三_1"].notes and set(got["李四_2"].notes) == {"too-large"}


def test_work_that_came_twice_is_not_lost(tmp_path):
    got = found(lay(tmp_path, {f"张三/{NAME}.ipynb": NOTEBOOK, "张三.ipynb": b"{}", f"张三_{NAME}.ipynb": b"[]",
                               "张三.zip": zipped({f"{NAME}.ipynb": b"1"})}))
    assert set(got) == {"张三"} and got["张三"].files[got["张三"].notebook] == NOTEBOOK and "several-notebooks" in got["张三"].notes
    assert {NOTEBOOK, b"{}", b"[]"} <= set(got["张三"].files.values())


@pytest.mark.parametrize(("text", "time"), [
    ("2026-03-01 10:00:00.000000 UTC", "2026-03-01 10:00:00"), ("2026-03-01 10:00:00.5+08:00", "2026-03-01 02:00:00.500000"),
    ("20260301T10", "2026-03-01 10:00:00"), ("2026-W10-1", "2026-03-02 00:00:00"), ("-1", None), ("\0", None), ("9" * 40, None),
    ("0001-01-01 00:00:00+23:59", None), ("9999-12-31 23:59:59-23:59", None)])
def test_times_are_nbgraders_or_none(tmp_path, text, time):
    got = found(lay(tmp_path, {f"a/{NAME}/{NAME}.ipynb": NOTEBOOK, f"a/{NAME}/timestamp.txt": text.encode()}))["a"]
    assert str(parse_utc(got.submitted) if got.submitted else None) == str(time)


def test_no_folder_is_an_error_in_words(tmp_path):
    with pytest.raises(IntakeError, match="请给出"):
        found(tmp_path / "nothing")
