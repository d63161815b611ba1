"""发布、隔离、检查与评分：练习从源到成绩的全部路径。"""

import sys

# jsonschema would import it for a check of addresses that no notebook needs: 4 of nbgrader's 6 seconds of start-up.
sys.modules.setdefault("rfc3987_syntax", None)
