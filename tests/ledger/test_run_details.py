"""Details of runs: outcomes of partitions, intervals of hours, and the findings that changed."""

from datetime import UTC, datetime, timedelta

import pytest

from transom.core.intervals import UNKNOWN_HOUR
from transom.core.partitions import PartitionKey, PartitionState
from transom.ledger import run_details
from transom.ledger.run_details import Change, FindingChanges, outcome_of, written_ranges

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


def changes_of(change: Change, *ids: str) -> FindingChanges:
    changes = FindingChanges()
    for finding_id in ids:
        changes.record(change, finding_id, "low", f"title of {finding_id}")
    return changes


def test_changes_of_several_commits_are_added() -> None:
    changes = changes_of("new", "b", "a")
    changes.add(changes_of("updated", "c"))
    changes.add(changes_of("withdrawn", "d"))
    changes.add(changes_of("new", "0"))
    assert changes.counts == {"withdrawn": 1, "updated": 1, "new": 3}
    assert [(row["finding_id"], row["change"]) for row in changes.rows] == [
        ("d", "withdrawn"), ("c", "updated"), ("0", "new"), ("a", "new"), ("b", "new"),
    ]  # fmt: skip
    assert (changes.rows[0]["severity"], changes.rows[0]["title"]) == ("low", "title of d")


def test_first_changes_are_listed_and_all_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_details, "MAX_FINDINGS", 3)
    changes = changes_of("new", *"edcb")
    changes.add(changes_of("new", "a"))
    changes.add(changes_of("withdrawn", "z"))
    assert [row["finding_id"] for row in changes.rows] == ["z", "a", "b"]
    assert changes.counts == {"withdrawn": 1, "new": 5}
