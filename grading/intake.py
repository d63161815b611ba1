"""收作业：从文件夹或压缩包里读出每个学生交了什么。这里不执行、不解释任何东西，只认普通文件。

Understood are nbgrader's folders (STUDENT/ASSIGNMENT/*.ipynb), one folder or one file a student, and the zip exports of Moodle
(`张三_123_assignsubmission_file_/…`) and Canvas (`zhangsan_LATE_123_456_ex04.ipynb`), zips in zips included. Links, pipes,
devices and files of a foreign owner are left out and reported; nothing is ever followed out of the folder.
"""

import contextlib
import hashlib
import os
import re
import stat
import zipfile
from dataclasses import dataclass, field
from datetime import datetime
from io import BytesIO
from pathlib import Path

MAX_FILES = 200  # of one submission
MAX_FILE = 20 << 20
MAX_TOTAL = 64 << 20  # of one submission
MAX_CLASS = 2 << 30  # of a class's zip
MAX_RATIO = 100  # unpacked to packed, beyond which a zip is a bomb
MAX_DEPTH = 6

COPY_MARK = re.compile(r"(?: ?\(\d+\)|[-_ ]?[Cc]opy\d*| ?- ?副本(?: ?\(\d+\))?| 的副本|-\d+)$")
MOODLE = re.compile(r"(?P<name>.+?)_(?P<number>\d+)_assignsubmission_(?:file|onlinetext)_?$")
CANVAS = re.compile(r"(?P<name>[^_]+)_(?:(?:LATE)_)?(?P<user>\d+)_(?P<submission>\d+)_(?P<file>.+)$", re.S)
UNSAFE_NAME = re.compile(r'[\x00-\x1f\x7f<>:"/\\|?*\u200b-\u200f\u202a-\u202e\u2066-\u2069]')


@dataclass
class Submission:
    """What one student handed in for one assignment."""

    student: str
    files: dict = field(default_factory=dict)  # relative name -> bytes
    notes: dict = field(default_factory=dict)  # code -> explanation in Chinese
    submitted: str = ""  # when, as nbgrader's timestamp.txt says
    notebook: str | None = None  # name of the file that is graded

    @property
    def digest(self):
        """Of all that could make a difference."""
        digest = hashlib.sha256()
        for name in sorted(self.files):
            digest.update(f"{name}\0{len(self.files[name])}\0".encode() + self.files[name])
        digest.update(repr((self.notebook, sorted(self.notes))).encode())
        return digest.hexdigest()


class IntakeError(ValueError):
    """The folder or zip can't be read, and the message says why."""


def collect(place, assignment):
    """All submissions for the assignment (its name), sorted by student."""
    place = Path(place)
    if place.is_file():
        found = _from_zip(place.read_bytes(), place.name, assignment)
    elif place.is_dir():
        found = _from_folder(place, assignment)
    else:
        raise IntakeError(f"没有 {place}：请给出提交所在的文件夹或 zip 文件")
    for submission in found.values():
        _bound(submission)
        _choose_notebook(submission, assignment)
    return [found[student] for student in sorted(found)]


def student_id(name):
    """A name that is safe as a file and as an id, or None where nothing is left of it."""
    name = UNSAFE_NAME.sub("_", name.encode("utf-8", "replace").decode()).strip().strip(".")[:100]
    return name or None


# -- folders ---------------------------------------------------------------------------------------------------------


def _from_folder(place, assignment):
    found = {}
    for entry in sorted(os.scandir(place), key=lambda e: e.name):
        if entry.name.startswith((".", "__")):
            continue
        if entry.is_symlink() or not (entry.is_dir(follow_symlinks=False) or entry.is_file(follow_symlinks=False)):
            if student := student_id(_student_of(re.sub(r"\.(ipynb|zip)$", "", entry.name), assignment)):
                note = {"not-a-plain-file": f"{entry.name} 是链接或特殊文件，没有读取"}
                found.setdefault(student, Submission(student)).notes |= note
        elif entry.is_dir():
            _student_folder(found, entry, assignment)
        elif entry.name.endswith(".zip"):
            _add_zip(found, Path(entry.path), assignment)
        elif entry.name.endswith(".ipynb"):
            reader = _Reader()
            data = reader.plain_file(place, entry.name)
            if data is not None:
                _add_named_file(found, entry.name, data, assignment)
    return found


def _add_zip(found, path, assignment):
    """A zip among submissions: one student's, or a whole export."""
    try:
        inside = _from_zip(path.read_bytes(), path.name, assignment)
    except IntakeError as error:
        student = student_id(path.stem)
        found[student] = Submission(student, notes={"unreadable-zip": str(error)})
        return
    for student, submission in inside.items():
        found[student] = submission


def _student_folder(found, entry, assignment):
    moodle = MOODLE.match(entry.name)
    student = student_id(f"{moodle['name']}_{moodle['number']}" if moodle else entry.name)
    if student is None:
        return
    inside = {e.name: e for e in os.scandir(entry.path)}
    chosen = inside.get(assignment)
    if chosen is None and not moodle:
        others = [e for e in inside.values() if e.is_dir(follow_symlinks=False) and not e.name.startswith(".")]
        if (others or not inside) and not any(e.name.endswith((".ipynb", ".zip")) for e in inside.values()):
            return  # nbgrader's layout, and this student has not handed in this assignment
    submission = Submission(student)
    if chosen is not None and (chosen.is_symlink() or not chosen.is_dir(follow_symlinks=False)):
        submission.notes["not-a-plain-file"] = f"{assignment} 不是普通文件夹，没有读取"
    else:
        reader = _Reader()
        submission.files = reader.folder(chosen.path if chosen else entry.path)
        submission.notes |= reader.notes
        _take_timestamp(submission)
        _unpack_single_zip(submission, assignment)
    found[student] = submission


class _Reader:
    """Reads plain files below a folder without following a link, within limits."""

    def __init__(self, owner=None, strict=False):
        self.notes, self.total, self.count, self.owner, self.strict = {}, 0, 0, owner, strict

    def folder(self, path):
        files = {}
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            self._walk(handle, "", files, 0)
        finally:
            os.close(handle)
        return files

    def _walk(self, handle, prefix, files, depth):
        for name in sorted(os.listdir(handle)):
            if name in (".ipynb_checkpoints", "__pycache__", "__MACOSX", ".DS_Store", ".git"):
                continue
            status = os.stat(name, dir_fd=handle, follow_symlinks=False)
            if self.owner is not None and status.st_uid != self.owner:
                self.notes["foreign-owner"] = f"{prefix}{name} 属于别的用户，没有读取"
            elif stat.S_ISDIR(status.st_mode):
                if depth >= MAX_DEPTH:
                    self.notes["too-deep"] = f"{prefix}{name} 嵌套太深，没有读取"
                    continue
                inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=handle)
                try:
                    self._walk(inner, f"{prefix}{name}/", files, depth + 1)
                finally:
                    os.close(inner)
            elif (data := self.plain_file(handle, name, prefix)) is not None:
                files[prefix + name] = data

    def plain_file(self, handle, name, prefix=""):
        """The bytes of a regular file, or None with a note."""
        where = {"dir_fd": handle} if isinstance(handle, int) else {}
        path = name if where else os.path.join(handle, name)
        shown = f"{prefix}{name}"
        if not stat.S_ISREG(os.stat(path, follow_symlinks=False, **where).st_mode):
            self.notes["not-a-plain-file"] = f"{shown} 是链接或特殊文件，没有读取"
            return None
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, **where)
        except OSError as error:
            self.notes["unreadable-file"] = f"{shown} 读不了：{error.strerror}"
            return None
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(file.fileno())
            shared = self.strict and status.st_nlink > 1  # may be a file that the student couldn't read
            if not stat.S_ISREG(status.st_mode) or shared:
                self.notes["not-a-plain-file"] = f"{shown} 有多个硬链接或不是普通文件，没有读取"
                return None
            self.count += 1
            if status.st_size > MAX_FILE or self.total + status.st_size > MAX_TOTAL or self.count > MAX_FILES:
                self.notes["too-large"] = f"{shown} 太大或文件太多，没有读取"
                return None
            self.total += status.st_size
            return file.read(MAX_FILE)


def read_plain(path, owner=None):
    """({name: bytes}, notes) of a folder that somebody else can write to."""
    reader = _Reader(owner, strict=True)
    return reader.folder(path), reader.notes


# -- zips ------------------------------------------------------------------------------------------------------------


def _from_zip(data, zip_name, assignment):
    members, notes = _members(data, zip_name, MAX_CLASS)
    found = {}
    roots = {name.split("/")[0] for name in members}
    if len(roots) == 1 and all("/" in name for name in members):  # one folder around everything
        inner = {name.split("/", 1)[1]: content for name, content in members.items()}
        if any("/" in name for name in inner) and not any(name.startswith(assignment + "/") for name in inner):
            members = inner
    if notes and not members:
        student = student_id(Path(zip_name).stem)
        return {student: Submission(student, notes=notes)}
    alone = _single_student(members, assignment)
    if alone is not None:
        student = student_id(_student_of(Path(zip_name).stem, assignment))
        found[student] = Submission(student, alone, notes)
        _take_timestamp(found[student])
        return found
    for name, content in sorted(members.items()):
        _place_member(found, name, content, assignment)
    for submission in found.values():
        submission.notes |= notes
        _take_timestamp(submission)
        _unpack_single_zip(submission, assignment)
    return found


def _single_student(members, assignment):
    """The files, if the zip is one student's submission rather than a class's."""
    notebooks = [name for name in members if name.endswith(".ipynb")]
    if len(notebooks) != 1 or any(MOODLE.match(part) for part in notebooks[0].split("/")):
        return None
    folder, _, name = notebooks[0].rpartition("/")
    if CANVAS.match(name) or (folder and folder.split("/")[-1] != assignment) or folder.count("/"):
        return None
    if _notebook_stem(name) != assignment:
        return None  # STUDENT.ipynb: the file, not the zip, tells whose it is
    return {n[len(folder) + 1 if folder and n.startswith(folder + "/") else 0:]: c for n, c in members.items()}


def _place_member(found, name, content, assignment):
    """One file of a class's zip to its student."""
    parts = name.split("/")
    if len(parts) == 1:
        _add_named_file(found, name, content, assignment)
        return
    moodle = MOODLE.match(parts[0])
    student = student_id(f"{moodle['name']}_{moodle['number']}" if moodle else parts[0])
    rest = parts[1:]
    if len(rest) > 1 and not moodle:
        if rest[0] == assignment:
            rest = rest[1:]
        elif re.fullmatch(r"ex\d\d-[\w-]+", rest[0]):
            return  # another assignment of the course
    if student:
        found.setdefault(student, Submission(student)).files["/".join(rest)] = content


def _add_named_file(found, name, content, assignment):
    """A file whose own name says whose it is."""
    if canvas := CANVAS.match(name):
        student, name = f"{canvas['name']}_{canvas['user']}", canvas["file"]
    else:
        student = _student_of(name.rsplit(".", 1)[0], assignment)
        name = f"{assignment}.ipynb" if name.endswith(".ipynb") else name
    if student := student_id(student):
        submission = found.setdefault(student, Submission(student))
        submission.files[name] = content
        _unpack_single_zip(submission, assignment)


def _student_of(stem, assignment):
    """张三_ex04-attention, ex04-attention-张三 → 张三."""
    stem = COPY_MARK.sub("", stem)
    rest = re.sub(rf"[-_ .]*{re.escape(assignment)}[-_ .]*", "", stem)
    return rest or stem


def _unpack_single_zip(submission, assignment):
    """A student who handed in a zip instead of its content."""
    zips = [name for name in submission.files if name.endswith(".zip")]
    if len(zips) != 1 or any(name.endswith(".ipynb") for name in submission.files):
        return
    try:
        members, notes = _members(submission.files[zips[0]], zips[0], MAX_TOTAL)
    except IntakeError as error:
        submission.notes["unreadable-zip"] = str(error)
        return
    del submission.files[zips[0]]
    submission.files |= members
    submission.notes |= notes
    submission.notes["unpacked"] = f"{zips[0]} 已解开"


def _members(data, zip_name, room):
    """({name: bytes}, notes) of a zip, within limits."""
    try:
        archive = zipfile.ZipFile(BytesIO(data))
        infos = archive.infolist()
    except (zipfile.BadZipFile, ValueError, OSError) as error:
        raise IntakeError(f"{zip_name} 不是能读的 zip：{error}") from None
    members, notes = {}, {}
    for info in infos:
        name = _member_name(info)
        parts = name.split("/")
        if name.startswith("/") or ".." in parts or stat.S_ISLNK(info.external_attr >> 16):
            notes["not-a-plain-file"] = f"{zip_name} 里的 {name[:80]} 指向别处，没有读取"
            continue
        if info.is_dir() or any(part.startswith(("__MACOSX", ".")) for part in parts):
            continue
        if info.file_size > min(MAX_FILE, room, MAX_RATIO * max(info.compress_size, 1024)):
            notes["too-large"] = f"{zip_name} 里的 {name[:80]} 太大，没有读取"
            continue
        try:
            with archive.open(info) as file:
                members[name] = file.read(MAX_FILE)
            room -= len(members[name])
        except (zipfile.BadZipFile, RuntimeError, NotImplementedError, OSError, EOFError, ValueError) as error:
            notes["unreadable-file"] = f"{zip_name} 里的 {name[:80]} 读不了：{str(error)[:100]}"
        except Exception as error:  # noqa: BLE001  zlib and friends raise their own kinds
            notes["unreadable-file"] = f"{zip_name} 里的 {name[:80]} 读不了：{type(error).__name__}"
    return members, notes


def _member_name(info):
    """Windows writes Chinese names in GBK without saying so; zipfile takes them for CP437."""
    name = info.filename
    if not info.flag_bits & 0x800:
        with contextlib.suppress(UnicodeError):
            raw = name.encode("cp437")
            if not raw.isascii():
                try:
                    name = raw.decode("utf-8")
                except UnicodeDecodeError:
                    name = raw.decode("gb18030")
    return name.replace("\\", "/")


# -- one submission --------------------------------------------------------------------------------------------------


def _take_timestamp(submission):
    """nbgrader's exchange writes the time of submission into a file."""
    text = submission.files.pop("timestamp.txt", b"").decode("utf-8", "replace").strip()[:40]
    with contextlib.suppress(ValueError):
        datetime.fromisoformat(text.replace(" UTC", "+00:00"))
        submission.submitted = text


def _bound(submission):
    """No student takes more room than one may, however the files came; notebooks go first."""
    kept, room = {}, MAX_TOTAL
    for name in sorted(submission.files, key=lambda n: (not n.endswith(".ipynb"), n)):
        if len(submission.files[name]) > room or len(kept) >= MAX_FILES:
            submission.notes["too-large"] = f"{name[:80]} 太大或文件太多，没有读取"
            continue
        room -= len(submission.files[name])
        kept[name] = submission.files[name]
    submission.files = kept


def _notebook_stem(name):
    """ex04-attention (1).ipynb, ex04-attention-Copy1.ipynb, ex04-attention - 副本.ipynb → ex04-attention."""
    stem = Path(name).stem
    while (shorter := COPY_MARK.sub("", stem)) != stem:
        stem = shorter
    return stem


def _choose_notebook(submission, assignment):
    """Which of the files is graded: the right name, else a renamed copy, else the only one there is."""
    notebooks = sorted((n for n in submission.files if n.endswith(".ipynb")), key=lambda n: (n.count("/"), n))
    exact = [n for n in notebooks if Path(n).name == f"{assignment}.ipynb"]
    renamed = [n for n in notebooks if _notebook_stem(n) == assignment]
    if exact:
        submission.notebook = exact[0]
    elif renamed or len(notebooks) == 1:
        submission.notebook = (renamed or notebooks)[-1]
        submission.notes["renamed"] = f"笔记本叫 {Path(submission.notebook).name}，按 {assignment}.ipynb 评分"
    elif notebooks:
        named = [n for n in notebooks if assignment in n]
        submission.notebook = (named or notebooks)[0]
        submission.notes["renamed"] = f"有 {len(notebooks)} 个笔记本，没有一个叫 {assignment}.ipynb；评的是 {submission.notebook}"
    else:
        submission.notes["no-notebook"] = "没有找到笔记本（.ipynb）"
    if len(notebooks) > 1 and (exact or renamed):
        submission.notes["several-notebooks"] = f"有 {len(notebooks)} 个笔记本，评的是 {submission.notebook}"
