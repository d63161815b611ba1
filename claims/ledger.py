"""The ledger: records as data (`records/NN.json`, one file a chapter), evaluated to rows with a verdict."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from claims.judge import VERDICTS, Evidence, judge
from claims.registry import compute
from claims.texts import fill, show, shown_at

HERE = Path(__file__).resolve().parent

# What a claim that does not hold does to a reader, worst first. Digits and missing inputs follow from the verdict.
HARMS = {
    "code": "照着写代码会出错",
    "fact": "会记住错的事实",
    "intuition": "会建立错的直觉",
    "digits": "只差末位",
    "unchecked": "无法核对",
}
_HARM_OF_VERDICT = {"rounding": "digits", "unreproducible": "unchecked", "unverifiable": "unchecked"}


@dataclass(frozen=True, repr=False)
class Row:
    """One evaluated record. Unknown attributes are those of the record: `row.quote`, `row.claimed`, `row.line`…"""

    record: dict
    evidence: Evidence
    verdict: str

    def __getattr__(self, name):
        try:
            return self.record[name]
        except KeyError:
            raise AttributeError(name) from None

    def __repr__(self):
        place = f"{self.doc} L{self.line}"
        text = f"[{self.label}] {self.id}  {place}  原文 {show(self.claimed)} → 重算 {shown_at(self)}"
        return "\n    ".join([text, *filter(None, (self.correct, self.note))])

    @property
    def computed(self):
        return self.evidence.computed

    @property
    def label(self):
        return VERDICTS[self.verdict][0]

    @property
    def tol(self):
        return self.record.get("tol")

    @property
    def correct(self):
        """The correct statement, with the measured numbers filled in; None where the document's own is correct."""
        return self._text("correct")

    @property
    def note(self):
        return self._text("note")

    @property
    def reason(self):
        return self._text("reason")

    @property
    def harm(self):
        """How much harm it does, or None for what holds."""
        if self.verdict == "holds":
            return None
        return _HARM_OF_VERDICT.get(self.verdict) or self.record["harm"]

    @property
    def sources(self):
        """The cited sources as (text, place in the source)."""
        return [_cited(citation) for citation in self.record.get("source", ())]

    def _text(self, name):
        text = self.record.get(name)
        return text if text is None else fill(text, self.record, self.evidence)

    def as_dict(self):
        """Everything as JSON-ready values."""
        given = {key: self.record.get(key) for key in ("doc", "line", "section", "kind", "quote", "tol", "basis", "against", "missing")}
        return {
            "id": self.id, "chapter": self.chapter, "verdict": self.verdict, "claimed": self.claimed, "computed": json_value(self.computed),
            "correct": self.correct, "note": self.note, "reason": self.reason, "harm": self.harm, **given,
            "compute": self.record.get("compute"), "args": self.record.get("args"), "source": [text for text, _ in self.sources],
            "contradicts": self.record.get("contradicts", []),
        }


def evaluate(record):
    """Recompute one record and judge it. Nothing is read from the stored verdict unless the record says that a person decided."""
    if record["basis"] == "judgement":
        return Row(record, Evidence(record.get("fact")), record["verdict"])
    if record["basis"] == "source":
        evidence = Evidence(record.get("fact"), **{key: record[key] for key in ("says", "narrow") if key in record})
    else:
        evidence = compute(record["compute"], record.get("args"))
    verdict = judge(record["claimed"], evidence, record.get("tol"), compare=record.get("compare", "equal"),
                    against=record.get("against"), missing=record.get("missing"))
    return Row(record, evidence, verdict)


def load():
    """Every record, in the order of the chapters and, within one, of the documents."""
    found = []
    for path in sorted((HERE / "records").glob("[0-9][0-9].json")):
        for record in json.loads(path.read_text(encoding="utf-8")):
            found.append(record | {"chapter": path.stem})
    return sorted(found, key=lambda r: (r["chapter"], r["doc"], r["line"]))


@cache
def _records():
    return {record["id"]: record for record in load()}


@cache
def claim(id):
    """The row with this id, for a chapter that needs one number: `claim("b-out0").computed`."""
    if id not in _records():
        raise KeyError(f"核验账本里没有 {id!r}")
    return evaluate(_records()[id])


def ledger(chapter=None):
    """Every row, or those of one chapter; each is evaluated once a process, when first asked for."""
    return tuple(claim(id) for id, record in _records().items() if chapter in (None, record["chapter"]))


@cache
def sources():
    return json.loads((HERE / "sources.json").read_text(encoding="utf-8"))


def _cited(citation):
    key, _, place = citation.partition(" ")
    source = sources()[key]
    where = "，".join((source["where"], source["date"]))
    return "".join((source["text"], place and f" {place}", "（", where, "）")), source


def json_value(value):
    """JSON has no infinity: write it as a string, as the records do."""
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return "inf" if value > 0 else "-inf"
    if isinstance(value, list):
        return [json_value(item) for item in value]
    if isinstance(value, dict):
        return {key: json_value(item) for key, item in value.items()}
    return value
