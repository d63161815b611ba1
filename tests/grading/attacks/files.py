"""What is handed in instead of a notebook, or beside it."""

import json
import os
import stat
import warnings
import zipfile

import nbformat

from . import made
from .structure import honest

NOTHING = dict(deserves={})


def text(toy):
    return nbformat.writes(honest(toy), version=nbformat.NO_CONVERT)


@made("not-json", "files", "half of a notebook", flags={"unreadable"}, **NOTHING)
def _(toy, hand_in):
    hand_in(text(toy)[:700])


@made("empty-file", "files", "a file of no bytes", flags={"unreadable"}, **NOTHING)
def _(toy, hand_in):
    hand_in("")


@made("zeros", "files", "a megabyte of zeros", flags={"unreadable"}, **NOTHING)
def _(toy, hand_in):
    hand_in(b"\0" * (1 << 20))


@made("deep-json", "files", "brackets nested a million deep", flags={"unreadable"}, **NOTHING)
def _(toy, hand_in):
    hand_in("[" * 1_000_000)


@made("huge-json-number", "files", "a number of a million digits in the metadata", flags={"unreadable"}, **NOTHING)
def _(toy, hand_in):
    hand_in(text(toy).replace('"metadata": {', '"metadata": {"n": ' + "9" * 1_000_000 + ",", 1))


@made("repeated-keys", "files", "every key of the file twice, NaN and Infinity among the values")
def _(toy, hand_in):
    hand_in(text(toy)[:-2].rstrip() + ', "x": NaN, "y": Infinity, "metadata": {}, "metadata": {"a": -Infinity}}')


@made("byte-order-mark", "files", "UTF-8 with a mark in front", flags={"reencoded"})
def _(toy, hand_in):
    hand_in(b"\xef\xbb\xbf" + text(toy).encode())


@made("gbk", "files", "written in GB 18030", flags={"reencoded"})
def _(toy, hand_in):
    hand_in(json.dumps(json.loads(text(toy)), ensure_ascii=False).encode("gb18030"))


@made("utf-16", "files", "written in UTF-16", flags={"reencoded"})
def _(toy, hand_in):
    hand_in(json.dumps(json.loads(text(toy)), ensure_ascii=False).encode("utf-16"))


@made("old-format", "files", "a notebook of format 3", flags={"converted"})
def _(toy, hand_in):
    document = json.loads(text(toy))
    for cell in document["cells"]:
        if cell["cell_type"] == "code":
            cell["input"] = cell.pop("source")
            cell["language"] = "python"
    hand_in(json.dumps({"nbformat": 3, "nbformat_minor": 0, "metadata": {"name": ""},
                        "worksheets": [{"cells": document["cells"], "metadata": {}}]}))


@made("new-format", "files", "a notebook of a format that doesn't exist yet", flags={"converted"})
def _(toy, hand_in):
    hand_in(json.dumps(json.loads(text(toy)) | {"nbformat": 6, "nbformat_minor": 99}))


@made("renamed", "files", "the browser has numbered the file", flags={"renamed"})
def _(toy, hand_in):
    hand_in(text(toy), "toy-attention (3).ipynb")


@made("wrong-file", "files", "something else under the right name", flags={"unreadable"}, **NOTHING)
def _(toy, hand_in):
    hand_in(b"%PDF-1.7\n" + os.urandom(4096))


@made("a-link", "files", "the notebook is a link to somebody else's", flags={"not-a-plain-file", "no-notebook"}, **NOTHING)
def _(toy, hand_in):
    path = hand_in("x")
    path.unlink()
    path.symlink_to("@submissions@/witness-a/toy-attention/toy-attention.ipynb")


@made("a-pipe", "files", "a pipe on which a reader waits for ever", flags={"not-a-plain-file"})
def _(toy, hand_in):
    path = hand_in(text(toy))
    os.mkfifo(path.with_name("data.csv"))
    os.mkfifo(path.with_name("more.ipynb"))


@made("links-beside", "files", "links to the course's files lie beside the notebook", flags={"not-a-plain-file"})
def _(toy, hand_in):
    notebook = honest(toy)
    notebook.cells.insert(2, nbformat.v4.new_code_cell(
        "import os\nfor name in os.listdir('.'):\n    try: print(name, open(name).read())\n    except OSError as e: print(e)"))
    path = hand_in(notebook)
    for name, target in (("data.txt", "/etc/shadow"), ("gradebook.db", "@out@/gradebook.db"), ("source", "@source@")):
        path.with_name(name).symlink_to(target)


@made("a-folder", "files", "a folder with the notebook's name", flags={"no-notebook"}, **NOTHING)
def _(toy, hand_in):
    path = hand_in("x")
    path.unlink()
    path.mkdir()
    (path / "x.txt").write_text("x")


@made("nothing-at-all", "files", "an empty folder", flags={"no-notebook"}, **NOTHING)
def _(toy, hand_in):
    hand_in("x").unlink()


@made("modules-beside", "files", "files named like the modules that kernel and grader import")
def _(toy, hand_in):
    path = hand_in(honest(toy))
    for name in ("numpy", "wire", "kernel", "confine", "grading", "json", "zmq", "sitecustomize", "random", "IPython"):
        path.with_name(f"{name}.py").write_text("import os\nos._exit(7)\n")


@made("megabytes-of-old-output", "files", "stored outputs of twenty megabytes")
def _(toy, hand_in):
    notebook = honest(toy)
    notebook.cells[2].outputs = [nbformat.v4.new_output("stream", text="z" * (19 << 20))]
    hand_in(notebook)


@made("beyond-all-sizes", "files", "a notebook of a gigabyte", flags={"too-large"}, **NOTHING)
def _(toy, hand_in):
    path = hand_in(text(toy))
    with open(path, "r+b") as file:
        file.truncate(1 << 30)


@made("odd-names", "files", "files with names of control characters, quotes and directions")
def _(toy, hand_in):
    path = hand_in(honest(toy))
    for name in ("a\nb.txt", "\u202etxt.exe", "-rf", "'; drop table grade; --", "$(touch x)", "a" * 200):
        path.with_name(name).write_text("x")


@made("odd-bytes-in-names", "files", "files whose names are no text at all, and a time of submission that no clock shows")
def _(toy, hand_in):
    path = hand_in(honest(toy))
    for name in (b"\xff\xfe.txt", b"\xc3(.ipynb.txt", b"a\x1b[31m.txt"):
        with open(os.path.join(os.fsencode(path.parent), name), "w") as file:
            file.write("x")
    path.with_name("timestamp.txt").write_text("0001-01-01 00:00:00+23:59")


@made("one-zip", "files", "a zip instead of its content, with names that climb, links, bombs, the same name twice",
      flags={"unpacked", "not-a-plain-file", "too-large", "several-notebooks"})
def _(toy, hand_in):
    path = hand_in("x")
    path.unlink()
    with warnings.catch_warnings(), zipfile.ZipFile(path.with_name("handin.zip"), "w", zipfile.ZIP_DEFLATED) as archive:
        warnings.simplefilter("ignore")
        archive.writestr("work/toy-attention.ipynb", "{")
        archive.writestr("work/toy-attention.ipynb", text(toy))
        for name in ("../../planted-@token@", "/planted-@token@", "..\\..\\planted", "C:/planted", "work/../../aaa-witness/toy-attention/toy-attention.ipynb"):
            archive.writestr(name, "x")
        link = zipfile.ZipInfo("work/link.ipynb")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")
        for n in range(3):
            archive.writestr(f"work/bomb{n}", b"\0" * (19 << 20))
        archive.writestr("work/inner.zip", b"PK\x05\x06" + b"\0" * 18)
        archive.writestr("work/other.ipynb", "{}")
