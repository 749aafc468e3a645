"""Causes are data: neither a path nor a text decides about an hour."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.ledger_factories import GOOD, at, lacking, node, of_ingest, snapshot
from transom.core.partitions import CARRIED_INCOMPLETE, PartitionState, Status, partition_hash
from transom.core.reasons import Kind, Reason, format_reasons, read, write
from transom.ledger.input_hashes import is_stale
from transom.ledger.ledger import Ledger

EARLIER = Reason("earlier", "2 earlier incomplete hours, first 2015-05-17T03:00")
OWN = Reason("inputs", "1 incomplete hours, first 2015-05-17T03:00")


@pytest.mark.parametrize(
    "path", ["in/a; b.log", "in/a: b; run x.log", f"in/1 {CARRIED_INCOMPLETE} 2.log", "a; run me"]
)
def test_any_path_survives_in_a_cause(path: str) -> None:
    missing = lacking(Reason("file", f"{path}: cut; after 5 lines", path))
    assert missing.has_own_gap
    (result,) = of_ingest(snapshot({1: missing, 2: missing, 3: GOOD}))
    assert (result.kind, result.start_time, result.end_time) == ("incomplete", at(1), at(3))
    assert result.title.endswith(f"are incomplete: {path}: cut; after 5 lines")
    assert result.evidence[0] == f"{path}: cut; after 5 lines"


def test_files_with_one_problem_are_one_finding_for_any_names() -> None:
    entries = {n: lacking(Reason("file", f"x; {n}: y.log: cut", f"x; {n}: y.log")) for n in (1, 2)}
    (result,) = of_ingest(snapshot(entries))
    assert (result.start_time, result.end_time) == (at(1), at(3))


@pytest.mark.parametrize("status", ["published", "quarantined", "blocked", "damaged"])
@pytest.mark.parametrize("kind", ["check", "file", "quarantined_file"])
def test_changed_text_makes_no_new_finding(status: Status, kind: Kind) -> None:
    """A run with another text, or another file, continues the existing finding."""
    ids = set()
    for texts in ("a.log: cut", "b.log: it ends in 2015-05-17T03:00, behind line 5"):
        about = "files_expected" if kind == "check" else texts[:5]
        cause = Reason(kind, texts, about)
        (result,) = of_ingest(snapshot({1: replace(lacking(cause), status=status)}))
        ids.add(result.finding_id)
    assert len(ids) == 1


def test_another_check_makes_another_finding() -> None:
    names = ("files_expected", "periods_covered")
    result = [of_ingest(snapshot({1: lacking(Reason("check", f"{name}: 1", name))}))[0] for name in names]
    assert len({finding.finding_id for finding in result}) == 2


@pytest.mark.parametrize(
    ("causes", "missing"),
    [((EARLIER,), False), ((EARLIER, OWN), True), ((OWN,), True), ((), True)],
)
def test_later_hours_depend_on_the_kind_of_a_cause(causes: tuple[Reason, ...], missing: bool) -> None:
    entry = PartitionState("published", "a", complete=False, digest="1:2", reason="x", reasons=causes)
    assert entry.has_own_gap == missing
    assert not replace(entry, complete=True).has_own_gap


@pytest.mark.parametrize("own", [False, True])
def test_changed_text_makes_nothing_stale(own: bool) -> None:
    for causes in ((EARLIER,), (OWN,), (EARLIER, OWN)):
        entry = replace(lacking(*causes), digest="1:2")
        others = [replace(cause, text="said otherwise; at length") for cause in causes]
        otherwise = replace(entry, reason=format_reasons(others), reasons=tuple(others))
        assert partition_hash(node(1), entry, own) == partition_hash(node(1), otherwise, own)
        inputs = {"specification": "s"}
        assert not is_stale(replace(otherwise, input_hashes=inputs), inputs, "checks")


def test_causes_are_stored_unchanged(tmp_path: Path) -> None:
    causes = (Reason("file", "a; b: \u201cc\u201d", "a; b"), EARLIER)
    assert read(write(causes)) == causes
    ledger = Ledger(str(tmp_path))
    entries = {node(1): lacking(*causes), node(2): GOOD}
    ledger.claim("ingest", entries, "a")
    ledger.publish("ingest", entries, "a")
    assert Ledger(str(tmp_path)).snapshot() == entries
    # A run has begun to replace them, and is killed.
    ledger.claim("ingest", entries, "b")
    writing = Ledger(str(tmp_path)).snapshot()
    assert {of: entry.state_before_claim() for of, entry in writing.items()} == entries
