"""The judge: from what a document claims and what the computation finds to one of seven verdicts.

Nothing here knows a single claim. A verdict follows from the claimed value, the evidence, the tolerance and two facts
about the documents that a record states: what the claim is held against, and which input the documents leave out.
"""

import math
from dataclasses import dataclass, field
from typing import Any


class _Unset:
    def __repr__(self):
        return "UNSET"


UNSET = _Unset()  # a reading that a computation has nothing to say about; None would be a value

# Verdict -> (Chinese label, the rule in one sentence); the order is that of the tables and of the legend.
VERDICTS = {
    "holds": ("成立", "重算值与原文值之差不超过容差（末位的一半）；文字论断经受住了实验或来源的检验。"),
    "rounding": ("末位有出入", "差值超过容差，但不超过末位的一个单位；或者只因中间步骤取了舍入值。"),
    "wrong": ("错误", "与计算结果或来源不符，差得超过末位一个单位，或印出的其实是另一个量。"),
    "inconsistent": ("自相矛盾", "与文档别处的说法或它自己给出的数据不能同时成立。"),
    "misleading": ("易误导", "只在较窄的读法或特例下成立，照通常的读法不成立。"),
    "unreproducible": ("无法复现", "文档没有给出算出它所需的输入，或数字本身已经缺失。"),
    "unverifiable": ("无法核实", "找不到可以对照的公开来源，也没有可算的量。"),
}


@dataclass(frozen=True)
class Evidence:
    """What a computation, or a source, found out about one claim.

    computed  the value to show
    says      the same finding in the terms of the claim, where these differ from `computed`
    rounded   the value reached by rounding intermediate results (or by not rounding them, where the claim does)
    other     the value of another quantity that explains where a wrong number comes from
    narrow    what the claim says under the narrower reading in which it is right
    show      further measured values, for the placeholders of the record's texts
    """

    computed: Any
    says: Any = UNSET
    rounded: Any = UNSET
    other: Any = UNSET
    narrow: Any = UNSET
    show: dict = field(default_factory=dict)

    @property
    def verdict_value(self):
        return self.computed if self.says is UNSET else self.says


def judge(claimed, evidence, tol=None, *, compare="equal", against=None, missing=None):
    """Return the verdict. `against`: the place of the documents the claim is held against; `missing`: an input they leave out."""
    if claimed is None or missing:
        return "unreproducible"
    found = evidence.verdict_value
    if found is None:
        return "unverifiable"
    if agree(claimed, found, tol, compare):
        return "holds"
    if _only_digits(claimed, found, evidence, tol):
        return "rounding"
    if against:
        return "inconsistent"
    if evidence.narrow is not UNSET and agree(claimed, evidence.narrow, tol, compare):
        return "misleading"
    return "wrong"


def _only_digits(claimed, found, evidence, tol):
    if not tol:
        return False
    unit = [2 * t for t in tol] if isinstance(tol, list | tuple) else 2 * tol
    if evidence.rounded is not UNSET and agree(claimed, evidence.rounded, tol):
        return True
    # A number that another quantity gives is no rounding, however close the two lie.
    explained = evidence.other is not UNSET and agree(claimed, evidence.other, tol)
    return not explained and agree(claimed, found, unit)


def agree(claimed, found, tol=None, compare="equal"):
    """Do the two values agree? Nested lists element by element, numbers within `tol`, everything else exactly."""
    if compare == "subset":  # every item that the document lists is there
        return all(any(agree(c, f, tol) for f in found) for c in claimed)
    if compare == "within":  # the document gives an interval
        low, high = claimed
        values = found if isinstance(found, list | tuple) else [found]
        return all(low <= value <= high for value in values)
    if compare == "at_least":  # the document gives a lower bound
        return found >= claimed
    if isinstance(claimed, list | tuple):
        tols = tol if isinstance(tol, list | tuple) else [tol] * len(claimed)  # one for all, or one for each
        return isinstance(found, list | tuple) and len(claimed) == len(found) and all(map(agree, claimed, found, tols))
    if isinstance(claimed, dict):
        return isinstance(found, dict) and claimed.keys() == found.keys() and all(agree(v, found[k], tol) for k, v in claimed.items())
    if _is_number(claimed) and _is_number(found):
        if math.isinf(claimed) or math.isinf(found):
            return claimed == found
        # The slack keeps binary fractions from deciding a tie at the very edge of the tolerance.
        tol = tol or 0
        return abs(claimed - found) <= tol + 1e-9 * tol + 1e-14 * max(abs(claimed), abs(found))
    return type(claimed) is type(found) and claimed == found


def _is_number(value):
    return isinstance(value, int | float) and not isinstance(value, bool)
