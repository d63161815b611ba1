"""Submissions that an honest grader must survive: each with what its author earned, and what it must not leave behind.

They are test data for our own grader. All aim at places that the test makes for them: files below a temporary folder, a
listener on loopback, tokens that stand nowhere else. Names say what a submission does, descriptions how it works.

The author of each has honestly written `Counter` (2 points) and nothing else, unless the entry says otherwise.
"""

from dataclasses import dataclass, field

HONEST = {"counter-add": 2}
ALL = []
# Of each kind those that end soonest: the ordinary run. `make test-all` runs every one.
QUICK = set("""
    read-the-source read-the-gradebook read-a-neighbour read-environments import-the-reference follow-a-link
    write-outside write-the-gradebook leave-a-startup-file change-the-imported connect other-families connect-from-a-function
    endless-function leave-in-a-function much-memory leave-daemons kill-the-parent escape-the-sandbox
    patch-numpy-testing rewrite-the-tree answer-for-the-kernel agree-with-everything agreeable-arrays explode-on-unpickling
    read-the-callers keep-the-inputs tell-the-inputs-by-errors reply-success reply-a-pickle reply-errors-of-all-kinds
    forge-the-end-of-a-cell call-functions-of-tests move-the-sockets edit-the-tests edit-the-points delete-the-tests
    duplicate-the-tests tests-as-answers stripped-metadata page-that-acts not-json empty-file gbk old-format renamed a-link a-pipe
    modules-beside halves-of-characters replace-the-code change-after-returning odd-arrays tell-by-names look-alikes
    metadata-without-end pages-that-break odd-bytes-in-names one-zip use-inherited-descriptors""".split())


@dataclass
class Attack:
    """One submission. `cells` are added after a named cell, `answers` replace the texts of answer cells."""

    name: str
    family: str
    why: str
    cells: list = field(default_factory=list)
    answers: dict = field(default_factory=dict)
    deserves: dict = field(default_factory=lambda: dict(HONEST))
    make: object = None  # (toy, place) -> None: lays the submission itself
    flags: set = field(default_factory=set)  # that must be among the flags

    @property
    def points(self):
        return sum(self.deserves.values())


def add(name, family, why, code="", *, after="setup", **more):
    """Register an attack that runs `code` in a cell of its own."""
    cells = [(after, code.strip())] if code else []
    ALL.append(Attack(name, family, why, cells, **more))


def made(name, family, why, **more):
    """Register one that is made by the decorated function."""

    def register(make):
        ALL.append(Attack(name, family, why, make=make, **more))
        return make

    return register


def every_attack():
    """All of them, loaded from the modules beside this one."""
    from . import channel, files, limits, network, reading, structure, testing, writing  # noqa: F401

    assert len({attack.name for attack in ALL}) == len(ALL) and QUICK <= {attack.name for attack in ALL}
    return ALL
