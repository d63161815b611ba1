"""What a student's server knows of nbgrader: the exchange and the course."""

import os

c = get_config()  # noqa: F821
c.Exchange.root = os.environ["NBGRADER_EXCHANGE"]
c.CourseDirectory.course_id = os.environ.get("COURSE_ID", "token-journey")
c.Exchange.path_includes_course = False

if os.environ.get("NGSHARE_URL"):
    from ngshare_exchange import configureExchange

    configureExchange(c, os.environ["NGSHARE_URL"])
