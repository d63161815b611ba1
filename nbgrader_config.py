"""nbgrader 的设置：文件夹、发布时的占位文字，以及换成沙箱评分的三处（见 grading/classroom.py）。

`nbgrader …` 在仓库根目录运行即可；它与 `make grade` 用同一个成绩簿、同一个评分引擎。
"""

import os
from pathlib import Path

from grading.classroom import install
from grading.gradebook import COURSE
from grading.release import settings

ROOT = Path(__file__).resolve().parent

c = get_config()  # noqa: F821  nbgrader provides it
c.merge(settings())

c.CourseDirectory.root = os.environ.get("COURSE_ROOT", str(ROOT))
c.CourseDirectory.course_id = COURSE
c.CourseDirectory.submitted_directory = "submissions"
c.CourseDirectory.autograded_directory = os.path.join("grades", "autograded")
c.CourseDirectory.feedback_directory = os.path.join("grades", "returned")
c.CourseDirectory.db_url = os.environ.get(
    "GRADEBOOK_URL", f"sqlite:///{c.CourseDirectory.root}/grades/gradebook.db?timeout=60")

(Path(c.CourseDirectory.root) / "grades").mkdir(exist_ok=True)  # SQLite makes files, not folders

install(c)

if os.environ.get("NGSHARE_URL"):  # a cluster without a shared disk: deploy/README.md
    from ngshare_exchange import configureExchange

    configureExchange(c, os.environ["NGSHARE_URL"])
