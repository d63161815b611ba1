"""收作业：从文件夹或压缩包里读出每个学生交了什么。这里不执行、不解释任何东西，只认普通文件。

Understood are nbgrader's folders (STUDENT/ASSIGNMENT/*.ipynb), one folder or one file a student, and the zip exports of Moodle
(`张三_123_assignsubmission_file_/…`) and Canvas (`zhangsan_LATE_123_456_ex04.ipynb`), zips in zips included. Links, pipes,
devices and files of a foreign owner are left out and reported; nothing is ever followed out of the folder.

Names inside what a student handed in never decide whose it is: only the names that the platform or the teacher gave do.
"""

import contextlib
import hashlib
import os
import re
import stat
import unicodedata
import zipfile
from dataclasses import dataclass, field
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path

MAX_FILES = 200  # of one submission
MAX_FILE = 20 << 20
MAX_TOTAL = 64 << 20  # of one submission
MAX_CLASS = 2 << 30  # of a class's zip
MAX_RATIO = 100  # unpacked to packed, beyond which a zip is a bomb
MAX_DEPTH = 6
MAX_ID = 160  # bytes of a student's id, which becomes the name of files

COPY_MARK = re.compile(r"(?: ?\(\d+\)|[-_ ]?[Cc]opy\d*| ?- ?副本(?: ?\(\d+\))?| 的副本|-\d+)$")
MOODLE = re.compile(r"(?P<name>.+?)_(?P<number>\d+)_assignsubmission_(?:file|onlinetext)_?$")
CANVAS = re.compile(r"(?P<name>[^_]+)_(?:(?:LATE)_)?(?P<user>\d+)_(?P<submission>\d+)_(?P<file>.+)$", re.S)
UNSAFE = set('<>:"/\\|?*')  # in names of files, here or on a teacher's other computers


@dataclass
class Submission:
    """What one student handed in for one assignment."""

    student: str
    files: dict = field(default_factory=dict)  # relative name -> bytes
    notes: dict = field(default_factory=dict)  # code -> explanation in Chinese
    submitted: str = ""  # when, as nbgrader's timestamp.txt says
    notebook: str | None = None  # name of the file that is graded

    def take(self, name, content):
        """Add a file, or the reason why there is none; a second file of the same name gets another name."""
        if isinstance(content, Refused):
            self.notes[content.code] = content.text
            return
        while name in self.files:
            name = f"again/{name}"
        self.files[name] = content

    @property
    def digest(self):
        """Of all that could make a difference."""
        digest = hashlib.sha256()
        for name in sorted(self.files):
            digest.update(f"{name}\0{len(self.files[name])}\0".encode() + self.files[name])
        digest.update(repr((self.notebook, sorted(self.notes))).encode())
        return digest.hexdigest()


@dataclass(frozen=True)
class Refused:
    """In place of a file's bytes: why it was not read."""

    code: str
    text: str


class IntakeError(ValueError):
    """The folder or zip can't be read, and the message says why."""


def collect(place, assignment):
    """All submissions for the assignment (its name), sorted by student."""
    place = Path(place)
    if place.is_file():
        found = _from_file(place, assignment)
    elif place.is_dir():
        found = _from_folder(place, assignment)
    else:
        raise IntakeError(f"没有 {place}：请给出提交所在的文件夹或 zip 文件")
    for submission in found.values():
        _bound(submission)
        _choose_notebook(submission, assignment)
    return [found[student] for student in sorted(found)]


def student_id(name):
    """A name that is safe as a file and as an id. Where it had to be changed it ends with a digest: no two become one."""
    name = unicodedata.normalize("NFC", _decodable(name))
    safe = "".join("_" if c in UNSAFE or unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp") else c for c in name)
    safe = safe.strip().strip(".").strip()
    while len(safe.encode()) > MAX_ID:
        safe = safe[:-1]
    if safe == name.strip():
        return safe or "student"
    return f"{safe or 'student'}-{hashlib.sha256(name.encode()).hexdigest()[:6]}"


def _decodable(name):
    """Without the halves of characters that stand for bytes of a name that is no UTF-8."""
    return name.encode("utf-8", "replace").decode()


# -- folders ---------------------------------------------------------------------------------------------------------


def _from_folder(place, assignment):
    found = {}
    entries = [e for e in sorted(os.scandir(place), key=lambda e: e.name) if not e.name.startswith((".", "__"))]
    if len(entries) == 1 and entries[0].name.endswith(".zip") and entries[0].is_file(follow_symlinks=False):
        return _from_file(Path(entries[0].path), assignment)  # an export; beside others a zip is one student's
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            _student_folder(found, entry, assignment)
        elif not entry.is_file(follow_symlinks=False):
            name = re.sub(r"\.(ipynb|zip)$", "", entry.name)
            _submission(found, _student_of(name, assignment)).take(entry.name, _not_plain(_decodable(entry.name)))
        elif entry.name.endswith((".zip", ".ipynb")):
            _add_named_file(found, entry.name, _Reader().plain_file(place, entry.name), assignment)
    return found


def _submission(found, name):
    """The submission of the student of this name, begun if there is none."""
    student = student_id(name)
    return found.setdefault(student, Submission(student))


def _not_plain(shown):
    return Refused("not-a-plain-file", f"{shown} 是链接或特殊文件，没有读取")


def _foreign(shown):
    return Refused("foreign-owner", f"{shown} 属于别的用户，没有读取")


def _unreadable(shown, error):
    return Refused("unreadable-file", f"{shown} 读不了：{error.strerror}")


def _student_folder(found, entry, assignment):
    moodle = MOODLE.match(entry.name)
    student = f"{moodle['name']}_{moodle['number']}" if moodle else entry.name
    try:
        inside = {e.name: e for e in os.scandir(entry.path)}
        chosen = inside.get(assignment)
        if chosen is None and not moodle:
            others = [e for e in inside.values() if e.is_dir(follow_symlinks=False) and not e.name.startswith(".")]
            if (others or not inside) and not any(e.name.endswith((".ipynb", ".zip")) for e in inside.values()):
                return  # nbgrader's layout, and this student has not handed in this assignment
        if chosen is not None and (chosen.is_symlink() or not chosen.is_dir(follow_symlinks=False)):
            _submission(found, student).take(assignment, _not_plain(assignment))
            return
        submission = _submission(found, student)
        for name, content in _Reader().folder(chosen.path if chosen else entry.path):
            submission.take(name, content)
    except OSError as error:
        _submission(found, student).take("", _unreadable(f"文件夹 {_decodable(entry.name)}", error))
        return
    _take_timestamp(submission)
    _unpack_single_zip(submission)


class _Reader:
    """Reads plain files below a folder without following a link, within limits."""

    def __init__(self, owner=None, strict=False):
        self.total, self.count, self.owner, self.strict = 0, 0, owner, strict

    def folder(self, path):
        """(name, bytes or Refused) of each file."""
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            yield from self._walk(handle, "", 0)
        finally:
            os.close(handle)

    def _walk(self, handle, prefix, depth):
        for name in sorted(os.listdir(handle)):
            if name in (".ipynb_checkpoints", "__pycache__", "__MACOSX", ".DS_Store", ".git"):
                continue
            shown = prefix + _decodable(name)
            try:
                if not stat.S_ISDIR(os.stat(name, dir_fd=handle, follow_symlinks=False).st_mode):
                    yield shown, self.plain_file(handle, name, prefix)
                elif depth >= MAX_DEPTH:
                    yield shown, Refused("too-deep", f"{shown} 嵌套太深，没有读取")
                else:
                    yield from self._folder(os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=handle), shown, depth)
            except OSError as error:  # no permission, or gone since the list was made
                yield shown, _unreadable(shown, error)

    def _folder(self, handle, shown, depth):
        """Go into an open folder; whose it is is asked of what has been opened, not of its name."""
        try:
            if self.owner is not None and os.fstat(handle).st_uid != self.owner:
                yield shown, _foreign(shown)
            else:
                yield from self._walk(handle, f"{shown}/", depth + 1)
        finally:
            os.close(handle)

    def plain_file(self, handle, name, prefix=""):
        """The bytes of a regular file, or Refused."""
        where = {"dir_fd": handle} if isinstance(handle, int) else {}
        path = name if where else os.path.join(handle, name)
        shown = f"{prefix}{_decodable(name)}"
        if not stat.S_ISREG(os.stat(path, follow_symlinks=False, **where).st_mode):
            return _not_plain(shown)
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, **where)
        except OSError as error:
            return _unreadable(shown, error)
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(file.fileno())
            if self.owner is not None and status.st_uid != self.owner:
                return _foreign(shown)
            shared = self.strict and status.st_nlink > 1  # may be a file that the student couldn't read
            if not stat.S_ISREG(status.st_mode) or shared:
                return Refused("not-a-plain-file", f"{shown} 有多个硬链接或不是普通文件，没有读取")
            self.count += 1
            if status.st_size > MAX_FILE or self.total + status.st_size > MAX_TOTAL or self.count > MAX_FILES:
                return Refused("too-large", f"{shown} 太大或文件太多，没有读取")
            self.total += status.st_size
            return file.read(MAX_FILE)


def read_plain(path, owner=None):
    """({name: bytes}, notes) of a folder that somebody else can write to."""
    read = Submission("")
    for name, content in _Reader(owner, strict=True).folder(path):
        read.take(name, content)
    return read.files, read.notes


# -- zips ------------------------------------------------------------------------------------------------------------


def _from_file(path, assignment):
    """A zip that a platform has exported, or one student's."""
    if path.stat().st_size > MAX_CLASS:
        raise IntakeError(f"{path.name} 超过 {MAX_CLASS >> 30} GB：请解开后给出文件夹")
    found, members = {}, _members(path.read_bytes(), path.name, MAX_CLASS)
    roots = {name.split("/")[0] for name in members}
    if len(roots) == 1 and all("/" in name and not MOODLE.match(name.split("/")[0]) for name in members):  # a folder around all
        inner = {name.split("/", 1)[1]: content for name, content in members.items()}
        if any("/" in name for name in inner) and not any(name.startswith(assignment + "/") for name in inner):
            members = inner
    alone = _single_student(members, assignment)
    if alone is not None:
        submission = _submission(found, _student_of(path.stem, assignment))
        for name, content in alone.items():
            submission.take(name, content)
    else:
        for name, content in sorted(members.items(), key=lambda item: item[0]):
            _place_member(found, name, content, assignment)
    for submission in found.values():
        _take_timestamp(submission)
        _unpack_single_zip(submission)
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
    rest = parts[1:]
    if len(rest) > 1 and not moodle:
        if rest[0] == assignment:
            rest = rest[1:]
        elif re.fullmatch(r"ex\d\d-[\w-]+", rest[0]):
            return  # another assignment of the course
    _submission(found, f"{moodle['name']}_{moodle['number']}" if moodle else parts[0]).take("/".join(rest), content)


def _add_named_file(found, name, content, assignment):
    """A file whose own name says whose it is."""
    if canvas := CANVAS.match(name):
        student, name = f"{canvas['name']}_{canvas['user']}", canvas["file"]
    else:
        student = _student_of(name.rsplit(".", 1)[0], assignment)
        name = f"{assignment}.ipynb" if name.endswith(".ipynb") else name
    submission = _submission(found, student)
    submission.take(name, content)
    _unpack_single_zip(submission)


def _student_of(stem, assignment):
    """张三_ex04-attention, ex04-attention-张三 → 张三."""
    stem = COPY_MARK.sub("", stem)
    rest = re.sub(rf"[-_ .]*{re.escape(assignment)}[-_ .]*", "", stem)
    return rest or stem


def _unpack_single_zip(submission):
    """A student who handed in a zip instead of its content."""
    zips = [name for name in submission.files if name.endswith(".zip")]
    if len(zips) != 1 or any(name.endswith(".ipynb") for name in submission.files):
        return
    try:
        members = _members(submission.files[zips[0]], zips[0], MAX_TOTAL)
    except IntakeError as error:
        submission.notes["unreadable-zip"] = str(error)
        return
    del submission.files[zips[0]]
    for name, content in members.items():
        submission.take(name, content)
    submission.notes["unpacked"] = f"{zips[0]} 已解开"


def _members(data, zip_name, room):
    """{name: bytes or Refused} of a zip, within limits. Names that climb out or begin at the root are brought inside."""
    try:
        archive = zipfile.ZipFile(BytesIO(data))
        infos = archive.infolist()
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError) as error:
        raise IntakeError(f"{zip_name} 不是能读的 zip：{error}") from None
    members = {}
    for info in infos:
        raw = _member_name(info)
        parts = [part for part in raw.split("/") if part not in ("", ".", "..")]
        if info.is_dir() or not parts or any(part.startswith(("__MACOSX", ".")) for part in parts):
            continue
        shown, name = f"{zip_name} 里的 {raw[:80]}", "/".join(parts)
        if raw.startswith("/") or ".." in raw.split("/") or stat.S_ISLNK(info.external_attr >> 16):
            members[name] = Refused("not-a-plain-file", f"{shown} 指向别处，没有读取")
        elif info.file_size > min(MAX_FILE, room, MAX_RATIO * max(info.compress_size, 1024)):
            members[name] = Refused("too-large", f"{shown} 太大，没有读取")
        else:
            members[name] = _unpacked(archive, info, shown)
            room -= len(members[name]) if isinstance(members[name], bytes) else 0
    return members


def _unpacked(archive, info, shown):
    """The bytes of a member."""
    try:
        with archive.open(info) as file:
            return file.read(MAX_FILE)
    except Exception as error:  # noqa: BLE001  zlib and friends raise their own kinds
        return Refused("unreadable-file", f"{shown} 读不了：{str(error)[:100] or type(error).__name__}")


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
    return _decodable(name.replace("\\", "/"))


# -- one submission --------------------------------------------------------------------------------------------------


def _take_timestamp(submission):
    """nbgrader's exchange writes the time of submission into a file."""
    text = submission.files.pop("timestamp.txt", b"").decode("utf-8", "replace").strip()[:40]
    with contextlib.suppress(ValueError, OverflowError):  # the year 1, say, has no time in another zone
        when = datetime.fromisoformat(text.replace(" UTC", "+00:00"))
        when = when.astimezone(UTC) if when.tzinfo else when
        submission.submitted = when.strftime("%Y-%m-%d %H:%M:%S.%f UTC") if when.year > 1970 else ""


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
