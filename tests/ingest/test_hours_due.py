"""Which hours a run of ingest publishes, which tables of them it writes, and which it drops. No Spark."""

from collections.abc import Mapping, Set
from dataclasses import replace
from datetime import datetime

import pytest

from tests.support.file_factories import RULES, after, at, content, listed, run
from tests.support.stream_factories import changed
from transom.core.intervals import HOUR, Interval
from transom.core.partitions import PartitionKey, PartitionState, Status
from transom.features.ingest.expected_inputs import STAGE, partition_of
from transom.features.ingest.file_decisions import Decisions
from transom.features.ingest.file_records import FileRecord
from transom.features.ingest.hour_plan import IngestDecision, plan_hours
from transom.features.ingest.publish import forced_partitions, states_of_tables
from transom.features.ingest.snapshot import IngestSnapshot
from transom.features.ingest.tables import Tables
from transom.ledger.scope import Scope
from transom.ledger.snapshot import LedgerSnapshot
from transom.storage.store import PinnedTables, Store
from transom.stream import parse

STREAM = parse(changed())
EXPECTED = {"specification": "now"}
NOTHING = Decisions({}, {}, {}, frozenset(), frozenset())
STANDS = PartitionState("published", "earlier", digest="1:2", input_hashes=EXPECTED, rows=1)


def required_hours(
    entries: Mapping[PartitionKey, PartitionState],
    known: Mapping[str, FileRecord] | None = None,
    decisions: Decisions = NOTHING,
) -> tuple[list[datetime], Set[datetime]]:
    """Return the hours that a run of the first hour publishes with their rows, and those that it drops."""
    snapshot, chunk = LedgerSnapshot(entries), Interval(at(0), at(1))
    scope = Scope.of(chunk, chunk, 2 * HOUR, snapshot.hours(STAGE))
    result = IngestSnapshot(
        snapshot, PinnedTables(Store(None, ""), {}), scope, known or {}, {}, RULES, lambda _: EXPECTED
    )
    files = {path: file for path, file in (known or {}).items() if path not in decisions.dropped}
    step, forgotten = plan_hours(
        STREAM, Tables.of(STREAM), result, IngestDecision(decisions, files, {}, {}, ()), "now"
    )
    return step.plan.hours["events"], forgotten


def test_unpublished_hour_is_required() -> None:
    assert required_hours({}) == ([at(0)], set())


@pytest.mark.parametrize("table", ["events", "duplicates", "rejected", "files"])
@pytest.mark.parametrize(("status", "expected"), [("published", []), ("writing", [at(0)])])
def test_published_hour_is_not_written_unless_a_killed_run_left_part_of_it(
    table: str, status: Status, expected: list[datetime]
) -> None:
    entries = {partition_of(of.name, at(0)): STANDS for of in Tables.of(STREAM)}
    remaining = PartitionState(status, "earlier", digest="1:2", input_hashes=EXPECTED, rows=1)
    assert required_hours(entries | {partition_of(table, at(0)): remaining}) == (expected, set())


@pytest.mark.parametrize("queried", [True, False])
def test_hour_without_files_is_dropped_unless_it_was_requested(queried: bool) -> None:
    known = after({}, run({}, {"f": (listed("f", 5), content("ab", (5,)))}))
    source = str(known["f"].source_id)
    deleted = Decisions({}, {source: known["f"].touched}, {}, frozenset({"f"}), frozenset())
    entries = {
        partition_of("events", at(0)): STANDS,
        partition_of("events", at(5)): PartitionState(
            "published", "earlier", input_hashes=EXPECTED, requested=queried
        ),
    }
    assert required_hours(entries, known, deleted) == (([at(5)], set()) if queried else ([], {at(5)}))


@pytest.mark.parametrize("former", [frozenset[str](), frozenset({"former"})])
def test_rows_are_written_if_they_differ_or_may_have_had_a_former_column(
    former: frozenset[str],
) -> None:
    tables = Tables.of(STREAM)
    tables = replace(
        tables,
        events=replace(tables.events, excluded_from_digest=tables.events.excluded_from_digest | former),
    )
    snapshot = LedgerSnapshot({partition_of(of.name, at(n)): STANDS for of in tables for n in range(4)})
    observed = {partition_of("events", at(n)): replace(STANDS, run_id="now") for n in (0, 1, 2)}
    decisions = replace(NOTHING, removed={"a": frozenset({at(2)})})
    # In hour 0 one event differs; in hour 3 only the files' count of duplicates changes.
    nodes = [*(partition_of(of.name, at(n)) for of in tables for n in range(3)), partition_of("files", at(3))]
    values = {node: {"count": 1, "digest": "1:2"} for node in nodes}
    values[partition_of("events", at(0))] = {"count": 2, "digest": "2:3"}
    chunk = Interval(at(0), at(4))
    scope = Scope.of(chunk, chunk, 2 * HOUR, snapshot.hours(STAGE))
    scene = IngestSnapshot(
        snapshot, PinnedTables(Store(None, ""), {}), scope, {}, {}, RULES, lambda _: EXPECTED
    )
    results = states_of_tables(scene, (), "now", observed, values)
    forced = forced_partitions(tables, scene, decisions, values)
    files = {partition_of("files", at(n)) for n in range(4)}
    assert forced == files | ({partition_of("events", at(2))} if former else set())
    same = replace(STANDS, run_id="now")
    expected = {partition_of(of.name, at(n)): same for of in tables for n in range(3)}
    expected[partition_of("events", at(0))] = replace(same, digest="2:3", rows=2)
    assert results == {**expected, partition_of("files", at(3)): same}
