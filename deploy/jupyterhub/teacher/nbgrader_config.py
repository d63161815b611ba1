"""What a teacher's server knows of nbgrader: the exchange, and the course folder with its own nbgrader_config.py."""

import os
from pathlib import Path

c = get_config()  # noqa: F821
c.Exchange.root = os.environ["NBGRADER_EXCHANGE"]
c.CourseDirectory.root = os.environ["COURSE_ROOT"]
load_subconfig("nbgrader_config.py", path=str(Path(os.environ["COURSE_ROOT"])))  # noqa: F821
