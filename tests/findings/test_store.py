"""The table of findings without Spark: how it follows the ledger, and what readers receive."""

from collections.abc import Iterable
from dataclasses import fields, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError

from tests.support.ledger_factories import GOOD, WITHHELD, at, junk, node, of_ingest, snapshot, waiting
from transom.core.intervals import UNKNOWN_HOUR, Interval
from transom.core.partitions import PartitionState
from transom.core.reasons import Reason
from transom.features.registry import FINDING_ORDER
from transom.findings import store as table
from transom.findings.from_ledger import Finding
from transom.findings.store import findings, select_findings, sync_ledger_findings
from transom.ledger.chain import blocking_reason
from transom.ledger.ledger import Ledger
from transom.storage.tables import Table, read_rows


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(str(tmp_path))


def ran(ledger: Ledger, run: str, bad: Iterable[int], hours: Iterable[int] = range(4)) -> None:
    """Write a run of ingest that quarantines some of its hours."""
    bad, nodes = set(bad), {node(number): number for number in hours}
    ledger.claim("ingest", nodes, run)
    ledger.record_checks("ingest", [junk(number) for number in nodes.values() if number in bad], run)
    results = {n: WITHHELD if number in bad else GOOD for n, number in nodes.items()}
    ledger.publish("ingest", {n: replace(entry, run_id=run) for n, entry in results.items()}, run)


def spans(root: str) -> list[tuple[datetime | None, datetime | None]]:
    return [(finding.start_time, finding.end_time) for finding in findings(root)]


def version(ledger: Ledger) -> int:
    return DeltaTable(f"{ledger.root}/findings").version()


def test_finding_stays_until_its_cause_is_fixed_without_needless_writes(
    ledger: Ledger,
) -> None:
    ran(ledger, "a", [1, 2])
    assert sync_ledger_findings(ledger, "web", "ingest", {})
    assert findings(ledger.root) == of_ingest(ledger.snapshot(), [junk(1), junk(2)])
    previous = version(ledger)
    ran(ledger, "b", [1, 2])
    assert not sync_ledger_findings(Ledger(ledger.root), "web", "ingest", {})
    assert version(ledger) == previous
    ran(ledger, "c", [2])
    assert sync_ledger_findings(ledger, "web", "ingest", {})
    assert spans(ledger.root) == [(at(2), at(3))]
    ran(ledger, "d", [])
    sync_ledger_findings(ledger, "web", "ingest", {})
    assert findings(ledger.root) == []


def test_staleness_noticed_by_a_run_counts_until_the_hours_change(ledger: Ledger) -> None:
    ran(ledger, "a", [])
    observed = {n: ledger.snapshot()[n] for n in map(node, (0, 1))} | {node(7, "new"): None}
    ran(ledger, "b", [], [0])
    sync_ledger_findings(ledger, "web", "ingest", observed)
    assert spans(ledger.root) == [(at(1), at(2)), (at(7), at(8))]


def test_hour_quarantined_by_another_stage_is_a_finding_of_that_stage_alone(ledger: Ledger) -> None:
    ran(ledger, "a", [1])
    why = {
        1: blocking_reason(node(1), ledger.snapshot()[node(1)]),
        2: Reason("waits", "it has not run", node(2).key),
    }
    entries = {node(number, "traffic", "aggregates"): waiting(cause) for number, cause in why.items()}
    ledger.claim("aggregates", entries, "b")
    ledger.publish("aggregates", entries, "b")
    for stage in ("ingest", "aggregates"):
        sync_ledger_findings(ledger, "web", stage, {})
    assert [(f.stage, f.start_time) for f in findings(ledger.root)] == [
        ("ingest", at(1)),
        ("aggregates", at(2)),
    ]


def test_stage_leaves_findings_of_others_unchanged(ledger: Ledger) -> None:
    ran(ledger, "a", [1])
    sync_ledger_findings(ledger, "web", "ingest", {})
    (own,) = findings(ledger.root)
    episode = replace(own, kind="episode", finding_id="e", key="10.0.0.1", exactness="1..3")
    others = [episode, replace(own, stage="aggregates", finding_id="o")]
    write_deltalake(f"{ledger.root}/findings", table.to_arrow(others), mode="append")
    ran(ledger, "b", [])
    sync_ledger_findings(ledger, "web", "ingest", {})
    assert findings(ledger.root, order=FINDING_ORDER) == others[::-1]


@pytest.mark.parametrize("meanwhile", [[2], [1]])
def test_slow_run_overwrites_no_newer_findings(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, meanwhile: list[int]
) -> None:
    ran(ledger, "a", [1])
    sync_ledger_findings(ledger, "web", "ingest", {})
    ran(ledger, "b", [3])
    computed, later = table.from_ledger, iter([True])
    since = []

    def and_is_slow(*arguments: Any) -> list[Finding]:
        required = computed(*arguments)
        if next(later, False):
            # After the slow run has read: a later one has other findings, or the same ones.
            rival = Ledger(ledger.root)
            ran(rival, "c", meanwhile)
            sync_ledger_findings(rival, "web", "ingest", {})
            since.append(version(ledger))
        return required

    monkeypatch.setattr(table, "from_ledger", and_is_slow)
    sync_ledger_findings(ledger, "web", "ingest", {})
    expected = [(at(number), at(number + 1)) for number in meanwhile]
    assert spans(ledger.root) == expected
    # If the later one has written something, stale findings never existed, even for a moment before a kill.
    for number in range(since[0], version(ledger) + 1) if meanwhile == [2] else ():
        result = read_rows(DeltaTable(f"{ledger.root}/findings", version=number))
        assert [(row["start_time"], row["end_time"]) for row in result] == expected


def test_conflict_with_a_run_on_older_data_is_retried(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran(ledger, "a", [1])
    sync_ledger_findings(ledger, "web", "ingest", {})
    knew = of_ingest(snapshot({0: WITHHELD}), [junk(0)])
    ran(ledger, "b", [3])
    computed, first = table.from_ledger, iter([True])

    def and_is_met(*arguments: Any) -> list[Finding]:
        required = computed(*arguments)
        if next(first, False):
            stored = DeltaTable(f"{ledger.root}/findings")
            table.replace(stored, "stage = 'ingest'", knew)
        return required

    monkeypatch.setattr(table, "from_ledger", and_is_met)
    assert sync_ledger_findings(ledger, "web", "ingest", {})
    assert spans(ledger.root) == [(at(3), at(4))]


def test_run_that_always_conflicts_reports_it(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    def conflict(*arguments: Any) -> None:
        raise CommitFailedError("another commit came first")

    monkeypatch.setattr(table, "replace", conflict)
    ran(ledger, "a", [1])
    with pytest.raises(CommitFailedError, match="ingest: findings were written by others at every one of"):
        sync_ledger_findings(ledger, "web", "ingest", {})


def test_reader_receives_overlapping_findings_the_worst_first(ledger: Ledger) -> None:
    assert findings(ledger.root) == []
    ran(ledger, "a", [1, 2])
    sync_ledger_findings(ledger, "web", "ingest", {node(0): ledger.snapshot()[node(0)]})
    assert [f.kind for f in findings(ledger.root)] == ["check_failed", "stale"]
    kinds = {n: [f.kind for f in findings(ledger.root, Interval(at(n), at(n + 1)))] for n in range(4)}
    assert kinds == {0: ["stale"], 1: ["check_failed"], 2: ["check_failed"], 3: []}


def test_finding_without_an_hour_is_returned_to_every_reader(ledger: Ledger) -> None:
    nowhere = replace(node(0), hour=UNKNOWN_HOUR)
    ledger.claim("ingest", [nowhere], "a")
    ledger.publish(
        "ingest", {nowhere: PartitionState("quarantined", "a", complete=False, reason="f: junk")}, "a"
    )
    sync_ledger_findings(ledger, "web", "ingest", {})
    for interval in (None, Interval(at(5), at(6))):
        assert [finding.start_time for finding in findings(ledger.root, interval)] == [None]


def test_table_matches_its_description(ledger: Ledger) -> None:
    described = Table.load("findings")
    assert set(described.columns) == {field.name for field in fields(Finding)}
    assert described.digest_columns() == tuple(described.columns)
    sync_ledger_findings(ledger, "web", "ingest", {})
    is_published = DeltaTable(f"{ledger.root}/findings")
    assert [field.name for field in is_published.schema().fields] == list(described.columns)
    assert is_published.metadata().partition_columns == ["stage"]


def test_many_findings_of_one_block_hide_no_other(ledger: Ledger) -> None:
    """A beacon and a failed check next to a thousand episodes of one noisy pattern."""
    ran(ledger, "a", [1])
    sync_ledger_findings(ledger, "web", "ingest", {})
    (quarantined,) = findings(ledger.root)
    noisy = [
        replace(
            quarantined, stage="patterns", kind="episode", block="noisy", severity="high",
            finding_id=f"{number:04}", start_time=at(number % 4), ongoing=True,
        )
        for number in range(1000)
    ]  # fmt: skip
    beacon = replace(
        quarantined, stage="persistence", kind="persistent_item", block="contacts", severity="low"
    )
    write_deltalake(f"{ledger.root}/findings", table.to_arrow([*noisy, beacon]), mode="append")
    for limit, each, episodes in ((20, 3, 3), (4, 3, 2), (1, 3, 1), (50, 1, 1)):
        result, rest = select_findings(ledger.root, limit, each, FINDING_ORDER)
        assert [f.kind for f in result] == ["episode"] * episodes + [
            "check_failed",
            "persistent_item",
        ]
        # The latest.
        assert [f.finding_id for f in result[:episodes]] == ["0003", "0007", "0011"][:episodes]
        assert (
            rest
            == f"... and {1000 - episodes} more in the table findings: {1000 - episodes} episode of noisy"
        )
    assert select_findings(ledger.root, 20, 3, FINDING_ORDER, Interval(at(9), at(10))) == ([], None)
