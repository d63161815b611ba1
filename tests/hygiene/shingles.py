"""Own words: no sentence of the two documents stands in the project. The documents themselves are not part of it,
so what is kept is a set of hashes of every run of LENGTH characters in them (from which no text can be read).

    python -m tests.hygiene.shingles DOCUMENT...     make the set anew from the documents' text files
"""

import hashlib
import re
import sys
from pathlib import Path

import numpy as np

STORE = Path(__file__).with_name("shingles.npy")
LENGTH = 18  # characters in a row; shorter runs are set phrases, formulas or table rows
NOISE = re.compile(r"[^\u3400-\u9fffA-Za-z0-9]+")


def hashes(text):
    """(position in the squeezed text, hash) of every run of LENGTH letters, with at least ten Chinese characters in it."""
    squeezed = NOISE.sub("", text)
    for start in range(len(squeezed) - LENGTH + 1):
        run = squeezed[start : start + LENGTH]
        if sum(c >= "\u3400" for c in run) >= 10:
            yield run, int.from_bytes(hashlib.blake2b(run.encode(), digest_size=6).digest(), "big")


def copied_runs(text):
    """Runs of the text that stand in a document as well, neighbours joined."""
    known, found = set(np.load(STORE).tolist()), []
    for run, value in hashes(text):
        if value in known:
            if found and found[-1].endswith(run[:-1]):
                found[-1] += run[-1]
            else:
                found.append(run)
    return found


if __name__ == "__main__":
    values = {value for name in sys.argv[1:] for _, value in hashes(Path(name).read_text(encoding="utf-8"))}
    np.save(STORE, np.array(sorted(values), dtype=np.uint64))
    print(f"{len(values)} runs of {LENGTH} characters")
