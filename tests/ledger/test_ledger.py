"""The ledger without Spark: claims, fencing tokens, and which run may call rows fresh."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from deltalake.table import TableOptimizer

from transom.core.partitions import CheckResult, PartitionKey, PartitionState
from transom.engine import compaction as tidying
from transom.ledger.ledger import Ledger, Run
from transom.storage.fencing import RunSuperseded
from transom.storage.tables import Table, TableFolder

HOUR = timedelta(hours=1)
DAY = datetime(2015, 5, 17, tzinfo=UTC)


def node(number: int, stage: str = "ingest") -> PartitionKey:
    return PartitionKey(stage, "events", "events", DAY + number * HOUR)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(str(tmp_path))


def published(run: str, digest: str = "1:5") -> PartitionState:
    return PartitionState("published", run, digest=digest, input_hashes={"specification": "s"}, rows=1)


def test_table_that_a_reader_has_opened_gets_its_missing_columns(ledger: Ledger) -> None:
    table = Table.load("findings")
    *older, newest = table.arrow_schema()
    DeltaTable.create(f"{ledger.root}/findings", pa.schema(older), partition_by=list(table.partition))
    assert newest.name not in [field.name for field in ledger.open("findings").schema().fields]
    ledger.create(table)
    assert newest.name in [field.name for field in ledger.open("findings").schema().fields]


def test_claim_is_published_and_tokens_increase(ledger: Ledger) -> None:
    first = ledger.claim("ingest", [node(0), node(1)], "a")
    assert {entry.status for entry in ledger.snapshot().values()} == {"writing"}
    ledger.publish("ingest", {node(0): published("a"), node(1): published("a")}, "a")
    assert ledger.snapshot()[node(0)] == published("a")
    assert ledger.claim("ingest", [node(0)], "b").token > first.token


def test_overtaken_run_publishes_nothing(ledger: Ledger) -> None:
    ledger.claim("ingest", [node(0), node(1)], "a")
    ledger.claim("ingest", [node(1)], "b")
    with pytest.raises(RunSuperseded, match=r"2015-05-17T01:00: run a was superseded by run b \(writing\)"):
        ledger.publish("ingest", {node(0): published("a"), node(1): published("a")}, "a")
    assert ledger.snapshot()[node(0)].status == "writing"
    ledger.publish("ingest", {node(1): published("b")}, "b")
    with pytest.raises(RunSuperseded, match=r"2015-05-17T01:00: run b was superseded by run b \(published\)"):
        ledger.publish("ingest", {node(1): published("b", "3:8")}, "b")
    assert ledger.snapshot()[node(1)] == published("b")


def test_claim_on_hours_changed_since_they_were_read_is_refused(ledger: Ledger) -> None:
    noticed = ledger.snapshot()
    ledger.claim("ingest", [node(0)], "a")
    with pytest.raises(RunSuperseded, match="run a was recorded meanwhile; run b wrote nothing"):
        ledger.claim("ingest", [node(0), node(1)], "b", noticed)
    ledger.claim("ingest", [node(0)], "b", ledger.snapshot())
    assert ledger.snapshot()[node(0)].run_id == "b"


def test_claim_is_refused_if_an_assumption_of_the_run_is_false(ledger: Ledger) -> None:
    noticed = ledger.snapshot()
    ledger.claim("ingest", [node(0)], "a", noticed, holds=lambda snapshot: snapshot == noticed)
    with pytest.raises(
        RunSuperseded, match=r"another run of other hours.* was recorded meanwhile; run b wrote nothing"
    ):
        ledger.claim("ingest", [node(1)], "b", noticed, holds=lambda snapshot: snapshot == noticed)
    assert list(ledger.snapshot()) == [node(0)]


def test_claim_records_version_of_the_rows_that_it_replaces(ledger: Ledger) -> None:
    ledger.claim("ingest", [node(0)], "a", versions={"events": 3})
    ledger.publish("ingest", {node(0): published("a")}, "a")
    assert ledger.snapshot()[node(0)].previous_version is None
    # Two runs are killed one after the other. The published rows are where the first one found them.
    for run, version in (("b", 7), ("c", 8)):
        ledger.claim("ingest", [node(0), node(1)], run, ledger.snapshot(), versions={"events": version})
    assert {n.hour.hour: e.previous_version for n, e in ledger.snapshot().items()} == {0: 7, 1: 7}
    assert ledger.snapshot()[node(0)].digest == published("a").digest


@pytest.mark.parametrize(
    "previous",
    [
        replace(published("a"), status="quarantined", complete=False, reason="f: rejected_share"),
        replace(published("a"), status="blocked", complete=False, reason="ingest events is quarantined"),
        replace(published("a"), status="expired", rows=0),
        replace(published("a"), complete=False, reason="f: truncated"),
        replace(published("a"), input_hashes=None),
    ],
)
def test_partition_replaced_by_killed_runs_keeps_its_previous_state(
    ledger: Ledger, previous: PartitionState
) -> None:
    ledger.claim("ingest", [node(0)], "a")
    ledger.publish("ingest", {node(0): previous}, "a")
    for run in ("b", "c"):
        ledger.claim("ingest", [node(0)], run, ledger.snapshot(), versions={"events": 7})
    entry = ledger.snapshot()[node(0)]
    assert (entry.status, entry.state_before_claim()) == ("writing", previous)
    assert previous.state_before_claim() is previous


def test_requested_hour_stays_requested(ledger: Ledger) -> None:
    ledger.claim("ingest", [node(0), node(1)], "a", unrequested={node(1)})
    assert ledger.snapshot().hours("ingest") == {DAY}
    ledger.publish("ingest", {node(n): replace(published("a"), requested=n == 0) for n in (0, 1)}, "a")
    assert ledger.snapshot().hours("ingest") == {DAY}
    ledger.claim("ingest", [node(0), node(1)], "b", unrequested={node(0)})
    assert ledger.snapshot().hours("ingest") == {DAY, DAY + HOUR}


def test_ledger_with_cache_equals_ledger_without(ledger: Ledger) -> None:
    rival = Ledger(ledger.root)
    for number, run in enumerate(["a", "b", "a"]):
        own, other = (ledger, rival) if run == "a" else (rival, ledger)
        own.claim("ingest", [node(0), node(number)], run, own.snapshot(), {"events": number})
        assert other.snapshot() == own.snapshot() == Ledger(ledger.root).snapshot()
        result = {
            node(0): None if number == 1 else published(run),
            node(number): published(run, f"1:{number}"),
        }
        own.publish("ingest", result, run)
        own.claim("aggregates", [node(number, "aggregates")], run)
        for stages in (None, ["ingest"], ["aggregates"], ["aggregates", "ingest"]):
            assert other.snapshot(stages) == own.snapshot(stages) == Ledger(ledger.root).snapshot(stages)


def test_conflicting_commit_is_retried(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = TableFolder.open
    rivals = iter([True, False])

    def open_and_be_overtaken(tables: TableFolder, name: str) -> object:
        table = opened(tables, name)
        if name == "ledger" and next(rivals, False):
            Ledger(ledger.root).claim("ingest", [node(7)], "rival")
        return table

    monkeypatch.setattr(TableFolder, "open", open_and_be_overtaken)
    ledger.claim("ingest", [node(0)], "a")
    assert next(rivals, None) is None
    assert {n.hour.hour: e.run_id for n, e in ledger.snapshot().items()} == {0: "a", 7: "rival"}


def test_checks_count_under_the_run_that_published_the_partition(ledger: Ledger) -> None:
    def verdict(observed: float) -> CheckResult:
        return CheckResult(node(0), "rejected_share", "error", observed, "at most 0.05", False)

    for run, observed in (("a", 0.5), ("b", 0.7)):
        ledger.claim("ingest", [node(0)], run)
        ledger.record_checks("ingest", [verdict(observed)], run)
        ledger.publish("ingest", {node(0): replace(published(run), status="quarantined")}, run)
    # A killed run has recorded it for rows that are not fresh.
    ledger.claim("ingest", [node(0)], "c")
    ledger.record_checks("ingest", [verdict(0.9)], "c")
    assert [v.observed for v in ledger.checks(ledger.snapshot(), "ingest", {DAY})] == [0.7]


def run_of(ledger: Ledger, number: int, stage: str = "ingest") -> None:
    """Write all that an hourly run of a stage records in its ledger."""
    name, of = f"{stage} {number}", node(number, stage)
    ledger.claim(stage, [of], name, ledger.snapshot())
    verdict = CheckResult(
        of, "rejected_share", "error", number / 10, "at most 0.05", number % 2 > 0, failing_rows=("a",)
    )
    ledger.record_checks(stage, [verdict], name)
    ledger.publish(stage, {of: published(name, f"1:{number}")}, name)
    hour = DAY + number * HOUR
    ledger.record_run(
        Run(name, "schedule", stage, hour, hour + HOUR, 0, None, 1, 1, {"total": 1.5}, 100, "1", hour + HOUR)
    )


def ledger_content(root: str) -> object:
    """Return the full content of a ledger."""
    ledger = Ledger(root)
    snapshot = ledger.snapshot()
    every = {of.hour for of in snapshot}
    checks = {stage: ledger.checks(snapshot, stage, every) for stage in ("ingest", "aggregates")}
    return dict(snapshot), checks, ledger.failures(snapshot, "ingest"), ledger.runs()


def files(ledger: Ledger, stage: str) -> dict[str, int]:
    return {
        name: len(ledger.open(name).file_uris(file_pruning_predicate=[("stage", "=", stage)]))
        for name in ("ledger", "checks", "runs")
    }


def test_ledger_reads_the_same_after_compaction(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tidying, "SCATTERED", 3)
    for number in range(4):
        run_of(ledger, number)
        run_of(ledger, number, "aggregates")
        if number < 3:
            tidying.compact(ledger, "ingest")
    scattered = ledger_content(ledger.root)
    assert [run["run_id"] for run in ledger.runs()][-2:] == ["aggregates 3", "ingest 3"]
    token = ledger.open("ledger").version()
    assert files(ledger, "ingest") == {"ledger": 4, "checks": 4, "runs": 4}
    tidying.compact(ledger, "ingest")
    assert files(ledger, "ingest") == {"ledger": 1, "checks": 1, "runs": 1}
    assert files(ledger, "aggregates") == {"ledger": 4, "checks": 4, "runs": 4}
    assert ledger_content(ledger.root) == scattered
    # A ledger with a cache sees it, and the token of a claim is above all earlier ones.
    assert ledger.snapshot() == Ledger(ledger.root).snapshot()
    assert ledger.claim("ingest", [node(0)], "later", ledger.snapshot()).token > token + 1


def test_many_runs_leave_few_files(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tidying, "SCATTERED", 3)
    # A file of one run has about 5,500 bytes, one of ten runs about 6,500.
    monkeypatch.setattr(tidying, "SIZES", (12_400, 2**20))
    for number in range(40):
        run_of(ledger, number)
        tidying.compact(ledger, "ingest")
    assert max(files(ledger, "ingest").values()) <= 2 * 3
    assert len(ledger.snapshot()) == len(ledger.runs()) == 40


@pytest.fixture
def in_many_files(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    """Return a ledger in which a stage has left one file above the limit."""
    monkeypatch.setattr(tidying, "SCATTERED", 3)
    for number in range(4):
        run_of(ledger, number)
    return ledger


def test_full_files_are_not_compacted(in_many_files: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = in_many_files
    monkeypatch.setattr(tidying, "SIZES", (2000, 5000))

    def write_many(*_: object, target_size: int) -> None:
        pytest.fail(f"what is smaller than {target_size} is brought together")

    monkeypatch.setattr(TableOptimizer, "compact", write_many)
    tidying.compact(ledger, "ingest")
    monkeypatch.setattr(tidying, "SIZES", (5000, 50_000))
    with pytest.raises(pytest.fail.Exception, match="what is smaller than 50000 is brought together"):
        tidying.compact(ledger, "ingest")


def test_claim_in_conflict_with_compaction_is_retried(
    in_many_files: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = in_many_files
    opened: Callable[[str], DeltaTable] = ledger.open
    rivals = iter([True])

    def open_and_be_tidied(name: str) -> DeltaTable:
        table = opened(name)
        if next(rivals, False):
            tidying.compact(Ledger(ledger.root), "ingest")
        return table

    monkeypatch.setattr(ledger, "open", open_and_be_tidied)
    ledger.claim("ingest", [node(0)], "a")
    assert {n.hour.hour: e.run_id for n, e in Ledger(ledger.root).snapshot().items()} == {
        0: "a", 1: "ingest 1", 2: "ingest 2", 3: "ingest 3",
    }  # fmt: skip


def test_compaction_in_conflict_with_a_claim_is_left_to_a_later_run(
    in_many_files: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = in_many_files
    compact = TableOptimizer.compact

    def claimed_before(optimizer: TableOptimizer, *arguments: object, **named: object) -> object:
        if optimizer.table._table.table_uri().rstrip("/").endswith("ledger"):
            Ledger(ledger.root).claim("ingest", [node(0)], "rival")
        return compact(optimizer, *arguments, **named)

    with monkeypatch.context() as patch:
        patch.setattr(TableOptimizer, "compact", claimed_before)
        tidying.compact(ledger, "ingest")
    assert files(ledger, "ingest") == {"ledger": 4, "checks": 1, "runs": 1}
    assert ledger.snapshot()[node(0)].run_id == "rival"
    tidying.compact(ledger, "ingest")
    assert files(ledger, "ingest") == {"ledger": 1, "checks": 1, "runs": 1}
    assert ledger.snapshot()[node(0)].run_id == "rival"


def test_record_in_conflict_with_a_table_change_is_written(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: Callable[[str], DeltaTable] = ledger.open
    rivals = iter([True])

    def open_and_be_changed(name: str) -> DeltaTable:
        table = opened(name)
        if name == "runs" and next(rivals, False):
            opened(name).alter.set_table_properties({"delta.enableExpiredLogCleanup": "false"})
        return table

    monkeypatch.setattr(ledger, "open", open_and_be_changed)
    run_of(ledger, 0)
    assert [run["run_id"] for run in ledger.runs()] == ["ingest 0"]
