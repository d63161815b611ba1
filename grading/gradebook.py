"""成绩簿：nbgrader 自己的数据库（SQLite 或 PostgreSQL），一份提交一个事务。

Beside nbgrader's tables one more is kept, `grading_record`: which submission was graded with what, and the result from which
feedback is made. It is written in the same transaction as the grades, so a kill at any moment leaves either all or nothing
of a submission, and what is there needs no second run.
"""

import json
import os
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa
from alembic.script import ScriptDirectory
from nbgrader import api
from nbgrader.utils import parse_utc

from grading.assignment import grade_id, is_answer, is_graded, role

COURSE = os.environ.get("COURSE_ID", "token-journey")
RECORD = sa.Table(
    "grading_record", sa.MetaData(),
    sa.Column("assignment", sa.String(128), primary_key=True),
    sa.Column("student", sa.String(128), primary_key=True),
    sa.Column("fingerprint", sa.String(64), nullable=False),
    sa.Column("result", sa.Text, nullable=False),
)


def sqlite_url(path):
    """For one file; the timeout lets a teacher's browser and a grading run share it."""
    return f"sqlite:///{Path(path).resolve()}?timeout=60"


def schema_version():
    """The version of nbgrader's tables, read instead of asked of a program, which a user on a hub may not be able to run."""
    return ScriptDirectory(Path(api.__file__).parent / "alembic").get_current_head()


def _create(db_url):
    """Make the tables if they are missing, ours and nbgrader's, and note the version of nbgrader's.

    nbgrader would start a program to learn that version, and note it last: a kill just before would leave the database
    without one for ever.
    """
    engine = sa.create_engine(db_url)
    with engine.connect() as connection:
        if engine.dialect.name == "sqlite":
            connection.execute(sa.text("PRAGMA journal_mode=WAL"))
            connection.commit()
        if "alembic_version" not in sa.inspect(connection).get_table_names():
            api.Base.metadata.create_all(connection)
            connection.execute(sa.text("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)"))
            connection.execute(sa.text("INSERT INTO alembic_version VALUES (:v)"), {"v": schema_version()})
        RECORD.create(connection, checkfirst=True)
        connection.commit()
    engine.dispose()


class GradeStore:
    """An open gradebook."""

    def __init__(self, db_url, course_id=COURSE):
        _create(db_url)
        self.gradebook = api.Gradebook(db_url, course_id)
        self.db = self.gradebook.db

    @contextmanager
    def _transaction(self):
        try:
            yield
            self.db.commit()
        except BaseException:
            self.db.rollback()
            raise

    def close(self):
        self.gradebook.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # -- the assignment ----------------------------------------------------------------------------------------------

    def register(self, assignment):
        """Bring nbgrader's picture of the assignment up to date; cells may have come or gone since the last run."""
        book, name = self.gradebook, assignment.name
        book.update_or_create_assignment(name)
        notebook = book.update_or_create_notebook(name, name)
        wanted = {"grade": set(), "solution": set(), "source": set()}
        for cell in (c for c in assignment.pristine.cells if grade_id(c)):
            cell_name, kind = grade_id(cell), {"cell_type": cell.cell_type}
            if is_graded(cell):
                wanted["grade"].add(cell_name)
                book.update_or_create_grade_cell(cell_name, name, name, max_score=float(role(cell, "points")), **kind)
            if is_answer(cell):
                wanted["solution"].add(cell_name)
                book.update_or_create_solution_cell(cell_name, name, name)
            wanted["source"].add(cell_name)
            book.update_or_create_source_cell(
                cell_name, name, name, locked=bool(role(cell, "locked")) and not is_answer(cell), source=cell.source,
                checksum=role(cell, "checksum"), **kind)
        with self._transaction():
            self.db.refresh(notebook)
            for kind, names in wanted.items():
                for old in getattr(notebook, f"{kind}_cells"):
                    if old.name not in names:
                        self._drop_cell(old)

    def _drop_cell(self, cell):
        for model in (api.Grade, api.Comment):
            self.db.execute(sa.delete(model).where(model.cell_id == cell.id))
        self.db.delete(cell)

    # -- one submission ----------------------------------------------------------------------------------------------

    def fingerprints(self, assignment):
        """{student: fingerprint} of what has been graded."""
        rows = self.db.execute(sa.select(RECORD.c.student, RECORD.c.fingerprint).where(RECORD.c.assignment == assignment))
        found = {row.student: row.fingerprint for row in rows}
        self.db.rollback()
        return found

    def save(self, assignment, result, fingerprint, submitted=""):
        """All of one result, in one transaction. Scores that a person gave stay; changed ones are marked for review."""
        with self._transaction():
            submission = self._submission(assignment.name, result["student"])
            if submitted:
                submission.timestamp = parse_utc(submitted)
            notebook = submission.notebooks[0]
            self._save_grades(notebook, result)
            key = {"assignment": assignment.name, "student": result["student"]}
            stored = {k: v for k, v in result.items() if k not in ("notebook", "student")}
            self.db.execute(sa.delete(RECORD).where(RECORD.c.assignment == assignment.name,
                                                    RECORD.c.student == result["student"]))
            self.db.execute(sa.insert(RECORD).values(**key, fingerprint=fingerprint,
                                                     result=json.dumps(stored, ensure_ascii=False)))

    def _submission(self, assignment, student):
        found = self.db.query(api.SubmittedAssignment).join(api.Assignment).filter(
            api.Assignment.name == assignment, api.SubmittedAssignment.student_id == student).one_or_none()
        if found is None:
            if self.db.get(api.Student, student) is None:
                self.db.add(api.Student(id=student))
                self.db.flush()
            known = self.gradebook.find_assignment(assignment)
            found = api.SubmittedAssignment(assignment_id=known.id, student_id=student)
            self.db.add(found)
            self.db.flush()
            for notebook in known.notebooks:
                self.db.add(api.SubmittedNotebook(notebook_id=notebook.id, assignment_id=found.id))
            self.db.flush()
        return found

    def _save_grades(self, notebook, result):
        answered = {name for name, text in result["answers"].items() if text is not None}
        grades = {grade.cell_id: grade for grade in notebook.grades}
        comments = {comment.cell_id: comment for comment in notebook.comments}
        scores = {test["grade_id"]: test["score"] for test in result["tests"]}
        for cell in notebook.notebook.grade_cells:
            if (grade := grades.get(cell.id)) is None:
                self.db.add(grade := api.Grade(cell_id=cell.id, notebook_id=notebook.id))
            grade.auto_score = scores.get(cell.name, None if cell.name in answered else 0.0)
            grade.needs_manual_grade = grade.manual_score is not None or grade.auto_score is None
        for cell in notebook.notebook.solution_cells:
            if (comment := comments.get(cell.id)) is None:
                self.db.add(comment := api.Comment(cell_id=cell.id, notebook_id=notebook.id))
            comment.auto_comment = None if cell.name in answered else "没有作答。"

    # -- reading -----------------------------------------------------------------------------------------------------

    def results(self, assignment=None):
        """Rows of what has been graded, sorted: dicts with assignment, student, score, max_score, pending, cells, result.

        `cells` maps a grade cell to {"score", "max", "auto", "manual", "extra", "pending"}; `comments` a solution cell to text.
        """
        query = sa.select(RECORD.c.assignment, RECORD.c.student, RECORD.c.result).order_by(RECORD.c.assignment, RECORD.c.student)
        if assignment:
            query = query.where(RECORD.c.assignment == assignment)
        records = list(self.db.execute(query))
        grades = self._grades(assignment)
        comments = self._comments(assignment)
        self.db.rollback()
        rows = []
        for name, student, result in records:
            cells = grades.get((name, student), {})
            rows.append({
                "assignment": name, "student": student, "result": json.loads(result), "cells": cells,
                "comments": comments.get((name, student), {}), "score": sum(c["score"] for c in cells.values()),
                "max_score": sum(c["max"] for c in cells.values()), "pending": any(c["pending"] for c in cells.values())})
        return rows

    def _joined(self, model, cell_model, columns, assignment):
        query = (sa.select(api.Assignment.name, api.SubmittedAssignment.student_id, cell_model.name, *columns)
                 .select_from(model).join(cell_model, cell_model.id == model.cell_id)
                 .join(api.SubmittedNotebook, api.SubmittedNotebook.id == model.notebook_id)
                 .join(api.SubmittedAssignment, api.SubmittedAssignment.id == api.SubmittedNotebook.assignment_id)
                 .join(api.Assignment, api.Assignment.id == api.SubmittedAssignment.assignment_id))
        return self.db.execute(query.where(api.Assignment.name == assignment) if assignment else query)

    def _grades(self, assignment):
        found = {}
        columns = (api.Grade.auto_score, api.Grade.manual_score, api.Grade.extra_credit, api.Grade.needs_manual_grade,
                   api.GradeCell.max_score)
        for name, student, cell, auto, manual, extra, pending, most in self._joined(api.Grade, api.GradeCell, columns, assignment):
            score = (manual if manual is not None else auto or 0.0) + (extra or 0.0)
            found.setdefault((name, student), {})[cell] = {"score": score, "max": most, "auto": auto, "manual": manual,
                                                           "extra": extra, "pending": pending}
        return found

    def _comments(self, assignment):
        found = {}
        columns = (api.Comment.manual_comment, api.Comment.auto_comment)
        for name, student, cell, manual, auto in self._joined(api.Comment, api.SolutionCell, columns, assignment):
            if text := manual or auto:
                found.setdefault((name, student), {})[cell] = text
        return found
