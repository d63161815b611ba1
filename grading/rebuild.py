"""重建：原始笔记本加上学生的答案。提交的文件里只有答案留得下来。

Cells are matched by nbgrader's `grade_id`. Where an editor has stripped the metadata (Colab does), by text and position.
Test cells, given cells, points and types come from the source, whatever the submission says about them. Cells that the
student added stay where they stood: helpers that an answer uses may live there.
"""

import copy
import json
import re
from dataclasses import dataclass, field

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell

from grading.assignment import grade_id, is_answer, is_setup, is_test, role
from grading.trusted import BEGIN_HIDDEN, END_HIDDEN

MAX_SOURCE = 200_000  # characters of one cell
MAX_EXTRA = 500  # cells that a student added
MAX_ATTACHED = 8 << 20  # bytes of pictures in answers
PICTURES = ("image/png", "image/jpeg", "image/gif")
BASE64 = re.compile(r"[A-Za-z0-9+/=\s]+")  # anything else could end the attribute of a page that it stands in


class Unreadable(ValueError):
    """The file holds no notebook, and the message says what it holds."""


@dataclass
class SubmittedCell:
    """What is read of a submitted cell, and nothing else."""

    kind: str
    source: str
    grade_id: str | None
    points: object = None
    attachments: dict = field(default_factory=dict)


@dataclass
class Rebuilt:
    """The notebook to run, and what was odd about the submitted one."""

    notebook: nbformat.NotebookNode
    answers: dict  # grade_id -> the student's text
    notes: dict = field(default_factory=dict)  # code -> explanation in Chinese

    @property
    def unanswered(self):
        return [name for name, text in self.answers.items() if text is None]


# -- reading -----------------------------------------------------------------------------------------------------------


def read_cells(data):
    """(cells, notes) of a notebook of any format version and of the encodings that editors produce."""
    notes = {}
    text, encoding = _decoded(data)
    if encoding != "utf-8":
        notes["reencoded"] = f"文件的编码是 {encoding}，已转换"
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"不是有效的 JSON：{str(error)[:120]}") from None
    if not isinstance(document, dict):
        raise Unreadable("JSON 里没有笔记本")
    raw = document.get("cells")
    if raw is None and isinstance(document.get("worksheets"), list):  # formats 2 and 3
        raw = [c for sheet in document["worksheets"] if isinstance(sheet, dict) for c in _listed(sheet.get("cells"))]
    if document.get("nbformat") != 4:
        notes["converted"] = f"笔记本的格式版本是 {_shown(document.get('nbformat'))}，已按版本 4 读取"
    if not isinstance(raw, list):
        raise Unreadable("JSON 里没有单元格")
    return [cell for cell in map(_read_cell, raw) if cell], notes


def _decoded(data):
    if not data.strip(b"\0 \t\r\n"):
        raise Unreadable("文件是空的")
    for encoding, mark in (("utf-8-sig", b"\xef\xbb\xbf"), ("utf-16", b"\xff\xfe"), ("utf-16", b"\xfe\xff")):
        if data.startswith(mark):
            try:
                return data.decode(encoding), encoding
            except UnicodeDecodeError:
                break
    for encoding in ("utf-8", "gb18030"):
        try:
            return data.decode(encoding), encoding
        except UnicodeDecodeError:
            continue
    return data.decode("utf-8", errors="replace"), "未知"


def _shown(x):
    """A number or word of the submission in a sentence; what is nested could be too deep to be written out."""
    return str(x)[:20] if x is None or isinstance(x, (str, int, float)) else type(x).__name__


def _listed(x):
    return x if isinstance(x, list) else []


def _read_cell(raw):
    if not isinstance(raw, dict):
        return None
    kind = raw.get("cell_type")
    source = raw.get("source", raw.get("input", ""))
    lines = source if isinstance(source, list) else [source]
    source = "".join(line for line in lines if isinstance(line, str))
    metadata = raw.get("metadata") if isinstance(raw.get("metadata"), dict) else {}
    grading = metadata.get("nbgrader") if isinstance(metadata.get("nbgrader"), dict) else {}
    name = grading.get("grade_id") if isinstance(grading.get("grade_id"), str) else None
    return SubmittedCell("code" if kind == "code" else "markdown", _clean(source), name, grading.get("points"),
                         _pictures(raw.get("attachments")))


def _clean(source):
    """Unix line ends, no lone surrogates, a bounded length."""
    text = source[:MAX_SOURCE].replace("\r\n", "\n").replace("\r", "\n")
    return text.encode("utf-8", errors="replace").decode("utf-8")


def _pictures(attachments):
    kept, room = {}, MAX_ATTACHED
    for name, bundle in attachments.items() if isinstance(attachments, dict) else ():
        for mime, data in bundle.items() if isinstance(bundle, dict) else ():
            if mime in PICTURES and isinstance(data, str) and len(data) <= room and BASE64.fullmatch(data):
                room -= len(data)
                kept[str(name)[:100]] = {mime: data}
    return kept


# -- rebuilding --------------------------------------------------------------------------------------------------------


def rebuild(cells, assignment, notes=None):
    """The pristine notebook with the answers of these cells in it."""
    pristine = copy.deepcopy(assignment.pristine)
    rebuilt = Rebuilt(pristine, {}, dict(notes or {}))
    places = _match(cells, pristine.cells, rebuilt.notes)
    answers, extra = _sort(cells, pristine.cells, places, rebuilt.notes)
    _report_changes(cells, pristine.cells, places, rebuilt.notes)
    out = extra.pop(None, [])
    for index, cell in enumerate(pristine.cells):
        if is_answer(cell):
            answer = answers.get(index)
            rebuilt.answers[grade_id(cell)] = answer.source if answer and answer.source != cell.source else None
            if answer:
                _fill(cell, answer, rebuilt.notes)
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
        out += [cell, *extra.pop(index, [])]
    pristine.cells = out
    return rebuilt


def _match(cells, pristine, notes):
    """{number of the submitted cell: number of the pristine one}; the last of several copies counts."""
    numbers = {grade_id(c): i for i, c in enumerate(pristine) if grade_id(c)}
    places, taken = {}, {}
    for number, cell in enumerate(cells):
        place = numbers.get(cell.grade_id)
        if place is None:
            continue
        if place in taken:
            notes["duplicated"] = f"单元格 {cell.grade_id} 出现多次，以最后一个为准"
            del places[taken[place]]
        places[number], taken[place] = place, number
    missing = [i for i in numbers.values() if i not in taken]
    if missing:
        found = _match_by_text(cells, pristine, places, missing)
        if found:
            names = "、".join(grade_id(pristine[i]) for i in sorted(found.values()))
            notes["matched-by-position"] = f"笔记本丢失了 nbgrader 元数据，下列单元格按位置和文字对应：{names}"
        places |= found
    for number, place in _match_plain(cells, pristine, places).items():
        places[number] = place
    return places


def _match_plain(cells, pristine, places):
    """Cells of the source without a grade_id, where the submission still has them word for word."""
    free = {i: c for i, c in enumerate(pristine) if not grade_id(c)}
    found = {}
    for number, cell in enumerate(cells):
        if number in places or cell.grade_id:
            continue
        for place, given in free.items():
            if given.source.strip() == cell.source.strip():
                found[number] = place
                del free[place]
                break
    return found


def _match_by_text(cells, pristine, places, missing):
    """Find the lost cells: an order-preserving alignment by likeness of text, answers by what their stub defines."""
    stripped = not places  # not one cell has kept its name: then a place is all that a text answer can be known by
    open_cells = [n for n in range(len(cells)) if n not in places and not cells[n].grade_id][:MAX_EXTRA * 2]
    wanted = [i for i in range(len(pristine)) if i in missing]
    likeness = {(n, i): _likeness(cells[n], pristine[i], stripped) for n in open_cells for i in wanted}
    # Longest common subsequence weighted by likeness: cells may be missing or added, not swapped.
    best = [[0.0] * (len(wanted) + 1) for _ in range(len(open_cells) + 1)]
    for a in reversed(range(len(open_cells))):
        for b in reversed(range(len(wanted))):
            joined = likeness[open_cells[a], wanted[b]]
            best[a][b] = max(best[a + 1][b], best[a][b + 1], best[a + 1][b + 1] + joined if joined else 0.0)
    found, a, b = {}, 0, 0
    while a < len(open_cells) and b < len(wanted):
        joined = likeness[open_cells[a], wanted[b]]
        if joined and best[a][b] == best[a + 1][b + 1] + joined:
            found[open_cells[a]] = wanted[b]
            a, b = a + 1, b + 1
        elif best[a][b] == best[a + 1][b]:
            a += 1
        else:
            b += 1
    return found


def _likeness(cell, given, stripped):
    """0 (surely another cell) to 1: how likely this submitted cell stems from the given one."""
    if cell.kind != given.cell_type:
        return 0.0
    stub = released_text(given)
    if cell.source.strip() == stub.strip():
        return 1.0
    lines, own_lines = _lines(stub), _lines(cell.source)
    if not is_answer(given):
        ratio = len(lines & own_lines) / max(len(lines), len(own_lines), 1)
        return ratio if ratio > 0.6 else 0.0
    if defined := _definitions(stub):
        return 0.9 * len(defined & _definitions(cell.source)) / len(defined)
    return 0.05 if stripped and own_lines else 0.0


def _lines(source):
    return {line.strip() for line in source.splitlines() if line.strip()}


def _definitions(source):
    """Names that a cell of code defines at the top level."""
    return {line.split("(")[0].split(":")[0].split()[1] for line in source.splitlines()
            if line.startswith(("def ", "class ")) and len(line.split()) > 1}


def released_text(cell):
    """The text of a source cell as students have it, without its hidden part."""
    lines, hidden = [], False
    for line in cell.source.split("\n"):
        if BEGIN_HIDDEN in line:
            hidden = True
        elif END_HIDDEN in line:
            hidden = False
        elif not hidden:
            lines.append(line)
    return "\n".join(lines).rstrip()


def _sort(cells, pristine, places, notes):
    """({place: answer}, {place after which: added cells})."""
    answers, extra, last, count = {}, {}, None, 0
    known = {grade_id(c) for c in pristine if grade_id(c)}
    for number, cell in enumerate(cells):
        place = places.get(number)
        if place is not None:
            last = place
            if is_answer(pristine[place]):
                answers[place] = cell
        elif cell.source.strip() and cell.grade_id not in known:  # else an earlier copy of a cell that is there
            count += 1
            if count <= MAX_EXTRA:
                new_cell = new_code_cell if cell.kind == "code" else new_markdown_cell
                extra.setdefault(last, []).append(new_cell(cell.source))
    if count > MAX_EXTRA:
        notes["too-many-cells"] = f"学生另加了 {count} 个单元格，只取前 {MAX_EXTRA} 个"
    return answers, extra


def _fill(cell, answer, notes):
    """Put the student's text into an answer cell, whose type stays the source's."""
    if answer.kind != cell.cell_type:
        notes["retyped"] = f"单元格 {grade_id(cell)} 的类型被改过，已按原类型处理"
    cell.source = answer.source
    if answer.attachments and cell.cell_type == "markdown":
        cell.attachments = answer.attachments


def _report_changes(cells, pristine, places, notes):
    """Note what was done to cells that are not the student's to change."""
    by_place = {place: cells[number] for number, place in places.items()}
    edited, deleted = [], []
    for place, cell in enumerate(pristine):
        name = grade_id(cell)
        if not name:
            continue
        submitted = by_place.get(place)
        if submitted is None:
            deleted.append(name)
            continue
        if (is_test(cell) or is_setup(cell)) and submitted.source.strip() not in (
                released_text(cell).strip(), cell.source.strip()):
            edited.append(name)
        if submitted.points is not None and role(cell, "points") is not None and submitted.points != role(cell, "points"):
            notes["points-changed"] = f"{name} 的分值被改成 {_shown(submitted.points)}，按原分值计"
    if edited:
        notes["given-cell-edited"] = f"给定或测试单元格被改过，已恢复：{'、'.join(edited)}"
    if deleted:
        notes["cell-deleted"] = f"单元格被删去，已恢复：{'、'.join(deleted)}"
    order = [place for _, place in sorted(places.items()) if grade_id(pristine[place])]
    if order != sorted(order):
        notes["moved"] = "单元格的顺序被改过，已恢复"


def source_as_submission(notebook):
    """The cells of any notebook object, as if they had been submitted."""
    return read_cells(nbformat.writes(notebook, version=nbformat.NO_CONVERT).encode())[0]
