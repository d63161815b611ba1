"""nbgrader 在课堂上用到的三处换成我们的：收作业、评分、生成反馈。其余（发布、交换、人工评分界面）是 nbgrader 自己的。

`nbgrader_config.py` calls `install`. From then on the formgrader's buttons and the commands `nbgrader autograde`, `collect` and
`generate_feedback` go through intake, sandbox and trusted tests, and write the same gradebook.
"""

import fnmatch
import os
import pwd
from pathlib import Path

import nbgrader.api
import nbgrader.apps.api
import nbgrader.apps.autogradeapp
import nbgrader.apps.generatefeedbackapp
from nbgrader.converters import Autograde, GenerateFeedback, NbGraderException
from nbgrader.exchange.default import ExchangeCollect

from grading import batch, feedback, intake
from grading.assignment import Assignment, AssignmentError
from grading.gradebook import COURSE, GradeStore, schema_version
from grading.sandbox import SandboxUnavailable


class SafeCollect(ExchangeCollect):
    """Collects plain files of the student's own, following no link: what a student can't read never comes along."""

    def do_copy(self, src, dest, log=None):
        owner = os.lstat(src).st_uid
        if self.check_owner:
            claimed = os.path.basename(src).rsplit("+", 3)[0]
            try:
                name = pwd.getpwuid(owner).pw_name
            except KeyError:
                name = str(owner)
            if name != claimed:
                self.log.error("%s 属于 %s，没有收取", src, name)
                return
        try:
            files, notes = intake.read_plain(src, owner if self.check_owner else None)
        except OSError as error:
            self.log.error("%s 没有收取：%s", src, error)
            return
        for text in notes.values():
            self.log.warning("%s：%s", src, text)
        for name, data in files.items():
            path = Path(dest) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)


def _refuse(converter, text):
    """As nbgrader's converters do it: the log shows why, the command ends with 1."""
    converter.log.error("%s", text)
    raise NbGraderException(text)


def _folders(converter):
    """(submissions, out) of a course as `make grade` would name them."""
    root = Path(converter.coursedir.root)
    autograded = root / converter.coursedir.autograded_directory
    if autograded.name != "autograded":
        _refuse(converter, f"CourseDirectory.autograded_directory 应以 autograded 结尾，现在是 {autograded}")
    return root / converter.coursedir.submitted_directory, autograded.parent


def _assignment(converter):
    coursedir = converter.coursedir
    try:
        return Assignment.load(coursedir.assignment_id, Path(coursedir.root) / coursedir.source_directory)
    except AssignmentError as error:
        _refuse(converter, str(error))


class SafeAutograde(Autograde):
    """nbgrader's command, our engine."""

    def start(self):
        submissions, out = _folders(self)
        assignment = _assignment(self)
        chosen = lambda student: fnmatch.fnmatchcase(student, self.coursedir.student_id)
        try:
            summary = batch.grade(assignment.name, submissions, out, solutions=assignment.folder.parent,
                                  db_url=self.coursedir.db_url, chosen=chosen, again=self.force, progress=False,
                                  course_id=self.coursedir.course_id or COURSE)
        except (SandboxUnavailable, batch.Busy, intake.IntakeError) as error:
            _refuse(self, str(error))
        for row in summary.rows:
            if row["assignment"] == assignment.name and row["student"] in summary.graded:
                self.log.info("%s：%s / %s %s", row["student"], row["score"], row["max_score"], " ".join(row["flags"]))
        if not summary.graded and not summary.unchanged:
            _refuse(self, f"{submissions} 里没有 {self.coursedir.student_id} 的 {assignment.name}")


class SafeGenerateFeedback(GenerateFeedback):
    """Our page where nbgrader's exchange expects its own."""

    def start(self):
        assignment = _assignment(self)
        found = False
        with GradeStore(self.coursedir.db_url, self.coursedir.course_id or COURSE) as store:
            for row in store.results(assignment.name):
                if fnmatch.fnmatchcase(row["student"], self.coursedir.student_id):
                    found = True
                    folder = Path(self.coursedir.root) / self.coursedir.feedback_directory / row["student"] / assignment.name
                    page = feedback.page(row["student"], [batch.sheet_of(assignment, row)])
                    batch.write_if_changed(folder / f"{assignment.name}.html", page)
                    self._carry(row["student"], assignment.name, folder)
                    self.log.info("%s 的反馈已写好", row["student"])
        if not found:
            _refuse(self, f"成绩簿里没有 {self.coursedir.student_id} 的 {assignment.name}：先评分")

    def _carry(self, student, assignment, folder):
        """What the exchange wants beside a page: the time and the secret of the submission that the page belongs to."""
        submitted = Path(self.coursedir.root) / self.coursedir.submitted_directory / student / assignment
        files = intake.read_plain(submitted)[0] if submitted.is_dir() else {}
        for name in ("timestamp.txt", "submission_secret.txt"):
            if name in files:
                batch.write_if_changed(folder / name, files[name][:200].decode("utf-8", "replace"))


def install(config):
    """Put the three in nbgrader's place, for its commands as well as for its web interface."""
    config.ExchangeFactory.collect = SafeCollect
    nbgrader.api.get_alembic_version = schema_version
    for module in (nbgrader.apps.api, nbgrader.apps.autogradeapp):
        module.Autograde = SafeAutograde
    for module in (nbgrader.apps.api, nbgrader.apps.generatefeedbackapp):
        module.GenerateFeedback = SafeGenerateFeedback
