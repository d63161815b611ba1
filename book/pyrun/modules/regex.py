"""What `lib` uses of the package `regex`, in a browser that has only the standard `re`: Unicode classes such as \\p{L} and
white space as Unicode defines it, written out as ranges. Compared with the real one in tests/book/test_pyrun.py."""

import re
import sys
import unicodedata
from functools import cache

SPACE = "\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
TOKEN = re.compile(r"\\p\{(\w+)\}|(\\[sS])|(\\.|.)", re.S)


@cache
def categories():
    """{general category: its characters as the inside of a character class}"""
    found, start = {}, 0
    kinds = [unicodedata.category(chr(code)) for code in range(sys.maxunicode + 1)]
    for code in range(1, sys.maxunicode + 2):
        if code > sys.maxunicode or kinds[code] != kinds[start]:
            found.setdefault(kinds[start], []).append(f"\\U{start:08x}-\\U{code - 1:08x}")
            start = code
    return {kind: "".join(ranges) for kind, ranges in found.items()}


def inside(name):
    """`L` is every category that begins with L, `Lu` only itself."""
    return "".join(ranges for kind, ranges in categories().items() if kind.startswith(name))


@cache
def compile(pattern):
    out, within = [], False
    for kind, space, other in TOKEN.findall(pattern):
        if kind or space == "\\s":
            ranges = inside(kind) if kind else SPACE
            out.append(ranges if within else f"[{ranges}]")
        elif space:
            out.append(f"[^{SPACE}]")
        else:
            within = other == "[" or within and other != "]"
            out.append(other)
    return re.compile("".join(out))


def findall(pattern, text):
    return compile(pattern).findall(text)
