"""Details of runs: outcomes of partitions, intervals of hours, and the findings that changed."""

from datetime import UTC, datetime, timedelta

import pytest

from transom.core.intervals import UNKNOWN_HOUR
from transom.core.partitions import PartitionKey, PartitionState
from transom.ledger import run_details
from transom.ledger.run_details import FindingChanges, SeenFinding, outcome_of, written_ranges

DONE = PartitionState("published", "b")


def at(number: int) -> datetime:
    return datetime(2015, 5, 17, tzinfo=UTC) + timedelta(hours=number)


def key(number: int, table: str = "events") -> PartitionKey:
    return PartitionKey("ingest", "events", table, at(number))


@pytest.mark.parametrize(
    ("before", "after", "outcome"),
    [
        (None, PartitionState("published", "b", rows=3), ("published", True, 3)),
        (PartitionState("published", "a", digest="1:1"), DONE, ("published", True, 0)),
        (PartitionState("published", "a"), DONE, ("published", False, 0)),
        (PartitionState("quarantined", "a"), DONE, ("published", True, 0)),
        (None, PartitionState("published", "b", complete=False), ("incomplete", True, 0)),
        (DONE, PartitionState("quarantined", "b", rows=9), ("quarantined", False, 0)),
        (PartitionState("published", "a", rows=9), None, ("deleted", True, 0)),
    ],
)  # fmt: skip
def test_outcome_shows_whether_the_published_rows_changed(
    before: PartitionState | None, after: PartitionState | None, outcome: tuple[str, bool, int]
) -> None:
    assert outcome_of(before, after) == outcome


def test_neighbouring_hours_with_one_outcome_are_one_range() -> None:
    good, same = ("published", True, 2), ("published", False, 2)
    outcomes = {key(n): good for n in (2, 0, 1, 5)} | {key(3): same, key(0, "rejected"): good}
    outcomes[PartitionKey("ingest", "events", "events", UNKNOWN_HOUR)] = good
    assert [(of.table, of.changed, of.start, of.end, of.rows) for of in written_ranges(outcomes)] == [
        ("events", True, at(0), at(3), 6),
        ("events", False, at(3), at(4), 2),
        ("events", True, at(5), at(6), 2),
        ("rejected", True, at(0), at(1), 2),
    ]


def changes_of(before: dict[str, int], after: dict[str, int]) -> FindingChanges:
    """Return the changes between findings, given as contents by id."""
    changes = FindingChanges()
    for name in sorted({**before, **after}, reverse=True):
        seen = [SeenFinding("low", name, of[name]) if name in of else None for of in (before, after)]
        changes.record(name, *seen)
    return changes


def listed(changes: FindingChanges) -> list[tuple[object, object]]:
    return [(row["finding_id"], row["change"]) for row in changes.rows]


def test_finding_is_new_updated_withdrawn_or_the_same() -> None:
    changes = changes_of({"moved": 1, "same": 1, "gone": 1}, {"same": 1, "made": 1, "moved": 2})
    changes.add(changes_of({}, {"later": 1}))
    changes.add(changes_of({"old": 1}, {}))
    assert changes.counts == {"withdrawn": 2, "updated": 1, "new": 2}
    assert listed(changes) == [
        ("gone", "withdrawn"), ("old", "withdrawn"), ("moved", "updated"), ("later", "new"), ("made", "new"),
    ]  # fmt: skip
    assert (changes_of({"same": 1}, {"same": 1}).counts, listed(changes_of({}, {}))) == ({}, [])


def test_first_changes_are_listed_and_all_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_details, "MAX_FINDINGS", 3)
    changes = changes_of({"z": 1}, dict.fromkeys("edcb", 1))
    changes.add(changes_of({}, {"a": 1}))
    assert listed(changes) == [("z", "withdrawn"), ("a", "new"), ("b", "new")]
    assert changes.counts == {"withdrawn": 1, "new": 5}
