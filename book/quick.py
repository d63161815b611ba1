"""Import this before anything that imports jsonschema (nbformat does, Jupyter Book does).

jsonschema imports `rfc3987_syntax` when it is installed, only to check addresses, and that takes five seconds of
compiling a grammar, in every process. Nothing here checks addresses; jsonschema does without where it isn't there.
"""

import sys

sys.modules.setdefault("rfc3987_syntax", None)
