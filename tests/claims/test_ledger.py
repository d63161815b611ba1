"""The ledger: stored verdicts are the computed ones, a changed claim changes its verdict, records are whole."""

import json
import math
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import claims
from claims.judge import VERDICTS
from claims.ledger import HARMS, sources
from claims.registry import computations
from tests.hygiene.shingles import copied_runs

RECORDS = claims.load()
COMPUTED = [record for record in RECORDS if record["basis"] == "computed"]
DERIVED = [record for record in RECORDS if record["basis"] != "judgement"]
FIELDS = {
    "id", "chapter", "doc", "line", "section", "kind", "quote", "claimed", "tol", "verdict", "basis", "compute", "args", "fact", "says",
    "narrow", "compare", "against", "missing", "source", "contradicts", "harm", "correct", "note", "reason",
}


def ids(records):
    return [record["id"] for record in records]


@pytest.mark.parametrize("record", DERIVED, ids=ids(DERIVED))
def test_stored_verdict_is_the_computed_one(record):
    row = claims.evaluate(record)
    assert row.verdict == record["verdict"], f"判定算得 {row.verdict}，存的是 {record['verdict']}；{row.evidence}"


def test_a_false_stored_verdict_is_noticed():
    """The check above can fail: with any other word stored, the computed verdict differs from it."""
    record = claims.claim("a-softmax-142").record
    for word in VERDICTS:
        assert (claims.evaluate(record | {"verdict": word}).verdict == word) is (word == "rounding")


@pytest.mark.parametrize("record", [r for r in DERIVED if r["verdict"] == "holds"], ids=ids([r for r in DERIVED if r["verdict"] == "holds"]))
def test_a_changed_claim_no_longer_holds(record):
    for other in changed(record):
        assert claims.evaluate(record | {"claimed": other}).verdict != "holds", other


def changed(record):
    """The claim with one number moved by three units of its last digit, or with other words."""
    tol = record.get("tol")
    step = 6 * (max(tol) if isinstance(tol, list) else tol) if tol else 1
    claimed = record["claimed"]
    if record.get("compare") == "within":
        return [[claimed[0] - 1e6, claimed[0] - 1e5]]
    if record.get("compare") == "at_least":
        return [claimed * 10]
    return [*one_leaf_changed(claimed, step)]


def one_leaf_changed(value, step):
    if isinstance(value, dict):
        return [value | {key: other} for key, item in value.items() for other in one_leaf_changed(item, step)]
    if isinstance(value, list):
        return [value[:i] + [other] + value[i + 1:] for i, item in enumerate(value) for other in one_leaf_changed(item, step)]
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int | float):
        return [value + max(step, 1e-6 * abs(value)), value - max(step, 1e-6 * abs(value))]
    return ["别的说法"]


def test_the_found_value_itself_would_hold():
    """Writing what was found into the document mends the claim: the judge has no grudge of its own."""
    stubborn = []
    for record in DERIVED:
        found = claims.evaluate(record).evidence.verdict_value
        if found is not None and not record.get("missing"):
            mended = claims.evaluate(record | {"claimed": found, "compare": "equal"})
            stubborn += [] if mended.verdict == "holds" else [record["id"]]
    assert not stubborn


def test_every_claim_of_the_documents_has_one_record():
    wanted = (Path(__file__).parent / "ids.txt").read_text(encoding="utf-8").split()
    counts = Counter(ids(RECORDS))
    assert len(wanted) == 445 and counts == dict.fromkeys(wanted, 1)


def faults_of(record):
    """What is missing or wrong in one record, as sentences."""
    verdict, basis = record["verdict"], record["basis"]
    if unknown := record.keys() - FIELDS:
        yield f"不认识的字段 {sorted(unknown)}"
    if record["doc"] not in ("000", "001") or not record["id"].startswith({"000": "a-", "001": "b-"}[record["doc"]]):
        yield "编号与文档不符"
    if not (record["line"] > 0 and record["section"] and verdict in VERDICTS):
        yield "位置或判定不对"
    if not 0 < len(record["quote"]) <= 80 or "\n" in record["quote"]:
        yield "引文应短，在一行里"
    if basis not in ("computed", "source", "judgement") or (basis == "computed") is not ("compute" in record):
        yield "依据与 compute 不符"
    if (basis == "judgement") is not ("reason" in record):
        yield "由人判断的记录要写理由，能算的不写"
    if basis == "source" and not ("fact" in record and record.get("source")):
        yield "依据来源的记录要有来源和其中的值"
    if verdict in ("wrong", "inconsistent", "misleading") and record.get("harm") not in HARMS:
        yield "不成立的论断要说明有什么害处"
    if verdict != "holds" and not record.get("correct"):
        yield "不成立的论断要给出正确的说法"
    if verdict == "inconsistent" and not record.get("against"):
        yield "自相矛盾要写明与哪里矛盾"


def test_records_are_whole():
    faults = [f"{record['id']}：{fault}" for record in RECORDS for fault in faults_of(record)]
    assert not faults, "\n".join(faults)


def test_a_damaged_record_is_noticed():
    good = next(record for record in RECORDS if record["verdict"] == "inconsistent" and record["basis"] == "computed")
    assert not [*faults_of(good)]
    damages = [{"quote": "长" * 81}, {"basis": "judgement"}, {"compute": None, "basis": "source"}, {"harm": None}, {"correct": ""}, {"against": None},
               {"doc": "000"}, {"colour": "red"}, {"verdict": "maybe"}]
    assert all([*faults_of(good | damage)] for damage in damages)


def test_texts_are_filled():
    """Every placeholder got its number, every sentence ends."""
    faults = [f"{row.id}：{text}" for row in claims.ledger() for text in filter(None, (row.correct, row.note, row.reason))
              if re.search(r"[{}]|UNSET|nan", text) or not re.search(r"[。？！）]$", text)]
    assert not faults, "\n".join(faults)


def test_texts_are_our_own():
    """Quotations stand in the field for quotations; what the ledger says about them is not the documents' wording."""
    faults = [f"{row.id}：{runs}" for row in claims.ledger() for text in filter(None, (row.correct, row.note, row.reason))
              if (runs := copied_runs(re.sub(r"「[^」]*」|“[^”]*”", "。", text)))]
    assert not faults, "\n".join(faults)


def test_computable_claims_are_computed():
    """A judgement is for the reading of words; numbers that a record gives inputs for are recomputed."""
    judged = [record for record in RECORDS if record["basis"] == "judgement"]
    assert all("compute" not in record and record["verdict"] != "holds" for record in judged)
    assert not [r["id"] for r in judged if r["verdict"] in ("rounding", "wrong")], "末位与错误必须由值得出"


def test_every_computation_is_used():
    used = {record["compute"] for record in COMPUTED}
    assert used == set(computations()), set(computations()) ^ used


def test_sources_exist_and_are_used():
    cited = {citation.split(" ")[0] for record in RECORDS for citation in record.get("source", ())}
    assert cited == set(sources())
    for source in sources().values():
        assert source["text"] and source["where"] and re.match(r"20\d\d(-\d\d(-\d\d)?)?$", source["date"])


def test_contradictions_name_existing_claims():
    known = set(ids(RECORDS))
    assert not [(r["id"], other) for r in RECORDS for other in r.get("contradicts", ()) if other not in known or other == r["id"]]


@pytest.fixture(scope="module")
def printed(root):
    run = subprocess.run([sys.executable, "-m", "claims", "--json"], cwd=root, capture_output=True, text=True, encoding="utf-8")
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout, parse_constant=lambda word: pytest.fail(f"JSON 里不能有 {word}"))


def test_json_output(printed):
    assert [entry["id"] for entry in printed] == ids(RECORDS)
    for entry in printed:
        assert {"id", "verdict", "computed", "claimed", "correct", "chapter", "doc", "line", "quote", "basis"} <= entry.keys()
        assert entry["verdict"] in VERDICTS and re.fullmatch(r"\d\d", entry["chapter"])
        assert entry["correct"] is None or entry["correct"].strip()


def test_json_holds_what_was_computed(printed):
    by_id = {entry["id"]: entry for entry in printed}
    assert by_id["b-out0"]["verdict"] == "rounding"
    assert all(math.isclose(a, b, abs_tol=1e-6) for a, b in zip(by_id["b-out0"]["computed"], [1.844638, 6.223188, 1.733044]))


def test_command_line_selects(root):
    run = subprocess.run([sys.executable, "-m", "claims", "--json", "--chapter", "08", "--verdict", "wrong"], cwd=root, capture_output=True, text=True,
                         encoding="utf-8")
    assert {(e["chapter"], e["verdict"]) for e in json.loads(run.stdout)} == {("08", "wrong")}
    run = subprocess.run([sys.executable, "-m", "claims", "b-no-such"], cwd=root, capture_output=True, text=True, encoding="utf-8")
    assert run.returncode == 2 and "b-no-such" in run.stderr
