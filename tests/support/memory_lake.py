"""Ledger and tables in memory, in which the real control flow runs stages: pins, claims, writes.

Rows are dictionaries, without a JVM; a few lines replace what Spark does with rows. Everything else is
`run_steps` and what it calls. `tests.support.toy_lake` has one stage of three steps;
`tests.support.memory_pipeline` has the steps of every real stage.
"""

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pyarrow as pa

from transom.core.intervals import HOUR, moment_of
from transom.core.partitions import EMPTY_DIGEST, CheckResult, PartitionKey, PartitionState
from transom.engine import measurement, publisher
from transom.engine import runner as module
from transom.engine.measurement import RunRows
from transom.ledger.check import predict_results
from transom.ledger.ledger import Ledger
from transom.ledger.snapshot import LedgerSnapshot
from transom.ledger.stage import BlockTask, StepResult, TableStep
from transom.ledger.task_counters import TaskCounters
from transom.storage.external_source import ExternalSource
from transom.storage.external_source import Rows as OutsideRows
from transom.storage.fencing import Claim, RunSuperseded
from transom.storage.store import PinnedTables, Store
from transom.storage.tables import Table
from transom.storage.write import Write

DAY = datetime(2015, 5, 17, tzinfo=UTC)
Row = dict[str, Any]


def at(number: int) -> datetime:
    return DAY + number * HOUR


class Killed(BaseException):
    """Ends a run as a kill would."""


class Rows(list[Row]):
    """Replaces a DataFrame."""

    def where(self, keep: Callable[[Row], bool]) -> "Rows":
        return Rows(row for row in self if keep(row))

    @classmethod
    def of(cls, rows: pa.Table) -> "Rows":
        return cls({name: in_utc(value) for name, value in row.items()} for row in rows.to_pylist())

    def drop(self, *names: str) -> "Rows":
        return self

    @staticmethod
    def unionByName(one: "Rows", other: "Rows", allowMissingColumns: bool) -> "Rows":
        return Rows([*one, *other])


def in_utc(value: Any) -> Any:
    """Return a value of Arrow with its time in UTC."""
    if isinstance(value, list):
        return tuple(map(in_utc, value))
    return value.astimezone(UTC) if isinstance(value, datetime) else value


def within(targets: Mapping[str | None, Iterable[datetime]]) -> Callable[[Row], bool]:
    required = {(block, hour) for block, hours in targets.items() for hour in hours}
    # Tables of ingest have no blocks.
    return lambda row: (row.get("block"), row["hour"]) in required


def digest(rows: Iterable[Row]) -> str:
    values = sorted(repr(sorted(row.items())) for row in rows)
    if not values:
        return EMPTY_DIGEST
    return f"{len(values)}:{hashlib.sha256(repr(values).encode()).hexdigest()[:16]}"


class MemoryLedger(Ledger):
    """A ledger in memory."""

    def __init__(self, commits: "Commits") -> None:
        self.root, self._now, self.commits, self.version = "", LedgerSnapshot({}), commits, 0
        self.verdicts: list[tuple[str, CheckResult]] = []

    def snapshot(self, stages: Sequence[str] | None = None) -> LedgerSnapshot:
        if stages is None:
            return self._now
        return LedgerSnapshot({node: entry for node, entry in self._now.items() if node.stage in stages})

    def _commit(
        self,
        stage: str,
        entries: Callable[[LedgerSnapshot], Mapping[PartitionKey, PartitionState | None]],
        run_id: str,
    ) -> int:
        with self.commits.one():
            self._now = self._now.updated(entries(self._now))
            self.version += 1
            return self.version

    def record_checks(self, stage: str, verdicts: Sequence[CheckResult], run_id: str) -> None:
        if verdicts:
            with self.commits.one():
                self.verdicts += [(run_id, verdict) for verdict in verdicts]

    def checks(self, snapshot: LedgerSnapshot, stage: str, hours: set[datetime]) -> list[CheckResult]:
        return [
            verdict
            for run, verdict in self.verdicts
            if verdict.partition.stage == stage and verdict.partition.hour in hours
            and verdict.partition in snapshot and snapshot[verdict.partition].previous_run == run
        ]  # fmt: skip

    def idle_time(self, run_id: str) -> timedelta:
        return timedelta(0)


class Commits:
    """Injects a fault before or after one of a run's commits and pins.

    Attributes:
        observer: is called after each of them.
    """

    def __init__(self) -> None:
        self.count = 0
        self.observer: Callable[[], None] = lambda: None
        self._strike: tuple[int, str, Callable[[], None]] | None = None

    @contextmanager
    def one(self) -> Iterator[None]:
        self.count += 1
        number = self.count
        self._reach(number, "before")
        yield
        self.observer()
        self._reach(number, "after")

    @contextmanager
    def struck(self, number: int, side: str, by: Callable[[], None]) -> Iterator[None]:
        """Call a function once, at the n-th commit or pin made inside."""
        self._strike = (self.count + number, side, by)
        try:
            yield
        finally:
            self._strike = None

    def _reach(self, number: int, side: str) -> None:
        if self._strike is not None and self._strike[:2] == (number, side):
            by, self._strike = self._strike[2], None
            by()


class MemoryStore(Store):
    """Tables in memory, version by version."""

    def __init__(self, commits: Commits) -> None:
        self.commits = commits
        self.versions: dict[str, list[Rows]] = {}
        self.tokens: dict[tuple[str, str], int] = {}
        conf = SimpleNamespace(get=str, set=lambda name, value: None)
        self.spark: Any = SimpleNamespace(createDataFrame=Rows.of, conf=conf)

    def pin(
        self,
        tables: Iterable[str],
        previous: Mapping[str, Mapping[datetime, int]] | None = None,
        fillers: Mapping[ExternalSource, OutsideRows] | None = None,
    ) -> PinnedTables:
        # Another run may take place here, too.
        with self.commits.one():
            versions = {name: len(self.versions.setdefault(name, [Rows()])) - 1 for name in tables}
            return Pinned(self, versions, previous or {}, fillers or {})

    def write(self, write: Write, claim: Claim, known: Iterable[PartitionKey] | None = None) -> None:
        name = write.table.name
        with self.commits.one():
            if self.tokens.get((name, claim.stage), -1) >= claim.token:
                raise RunSuperseded(f"run {claim.run_id} was overtaken")
            self.tokens[name, claim.stage] = claim.token
            replaced = within(write.targets)
            new = write.rows() if callable(write.rows) else write.rows
            rows = Rows.of(new) if isinstance(new, pa.Table) else new
            assert all(map(replaced, rows))
            stay = (row for row in self.versions.setdefault(name, [Rows()])[-1] if not replaced(row))
            self.versions[name].append(Rows([*stay, *rows]))


class Pinned(PinnedTables):
    def read(self, table: str, hours: Iterable[datetime], columns: Collection[str] | None = None) -> Any:
        required, previous = set(hours), self.partially_written.get(table, {})
        stored = self.store.versions[table]
        return Rows(
            row
            for version in sorted({self.versions[table], *previous.values()})
            for row in stored[version]
            if row["hour"] in required and previous.get(row["hour"], self.versions[table]) == version
        )

    def current_schema(self, table: Table) -> Table:
        return table

    def read_filler(self, filler: ExternalSource, hours: Collection[datetime]) -> Any:
        # No session exists that could read it.
        return self.fillers[filler](None, hours)  # type: ignore[arg-type]


class Outside:
    """Replaces the tables and streams outside the lake that stages read.

    Args:
        tables: a value for each hour of each, by its name.
    """

    def __init__(
        self, tables: Mapping[str, Mapping[datetime, int]], declared: Sequence[ExternalSource]
    ) -> None:
        self._tables = tables
        self._seen: dict[ExternalSource, Mapping[datetime, int]] = {filler: {} for filler in declared}

    def beside(self, snapshot: LedgerSnapshot) -> LedgerSnapshot:
        # The last observed state is pinned, as in `transom.engine.external`.
        self._seen = {filler: dict(self._tables.get(filler.name, {})) for filler in self._seen}
        return snapshot.with_external(
            {
                filler.series: self._hours(filler, values_by_hour, snapshot)
                for filler, values_by_hour in self._seen.items()
            }
        )

    def _hours(
        self, filler: ExternalSource, values_by_hour: Mapping[datetime, int], snapshot: LedgerSnapshot
    ) -> dict[datetime, PartitionState]:
        if filler.table is not None and filler.time is None:
            # Rows of all time: every hour reads all of them.
            text = digest({"hour": hour, "value": value} for hour, value in values_by_hour.items())
            return dict.fromkeys(snapshot.required_hours, PartitionState("published", "", digest=text))
        # Of another stream, hours that are required in this one.
        hours = (
            values_by_hour.keys()
            if filler.table is not None
            else values_by_hour.keys() & snapshot.required_hours
        )
        return {hour: PartitionState("published", "", digest=f"1:{values_by_hour[hour]}") for hour in hours}

    def pinned(self) -> Mapping[ExternalSource, OutsideRows]:
        def rows(
            values_by_hour: Mapping[datetime, int], listed: bool, session: object, hours: Collection[datetime]
        ) -> Any:
            return Rows(
                {"hour": h, "value": values_by_hour[h]}
                for h in sorted(values_by_hour)
                if listed or h in hours
            )

        return {
            filler: partial(rows, values_by_hour, filler.table is not None and filler.time is None)
            for filler, values_by_hour in self._seen.items()
        }


class MemorySpool:
    """Replaces a spool."""

    aggregates: Sequence[Mapping[str, Any]] = ()
    unmeasured: Mapping[str, str] = {}

    def __init__(
        self, store: Store, step: TableStep, shares: Sequence[BlockTask], hours: int, few: bool
    ) -> None:
        self._rows = Rows({"block": share.block, **row} for share in shares for row in share.frame)
        self.counted: dict[str, TaskCounters] = {}

    def rows(self) -> Rows:
        return self._rows

    def adopt_files(self, good: object) -> None:
        return None

    def discard(self) -> None:
        pass


def measured(
    step: TableStep,
    rows: RunRows | None,
    computed: StepResult,
    nodes: Iterable[PartitionKey],
    counted: Mapping[str, TaskCounters],
    by: str = "block",
) -> dict[PartitionKey, Row]:
    nodes = list(nodes)
    by_key: dict[tuple[str, datetime], Rows] = {(getattr(node, by), node.hour): Rows() for node in nodes}
    for row in () if rows is None else rows.read():
        # Every row is of a target.
        by_key[row[by], row["hour"]].append(row)
    figures = {}
    for node in nodes:
        own = by_key[getattr(node, by), node.hour]
        value = max((row["value"] for row in own if "value" in row), default=None)
        stored = Rows({name: row[name] for name in row if name != "table"} for row in own)
        figures[node] = {"count": len(own), "digest": digest(stored), "bytes": 0, "value": value}
    for of, counters in counted.items():
        for number, name, amount in counters.figures():
            for node in nodes:
                if (getattr(node, by), node.hour) == (of, moment_of(number)):
                    figures[node][name] = amount
    return figures


@contextmanager
def without_spark(outside: Mapping[str, Mapping[datetime, int]]) -> Iterator[None]:
    """Within the context, `run_steps` uses the rows of this module.

    Args:
        outside: external tables and streams, as in `Outside`.
    """
    instead: dict[str, object] = {
        "DataFrame": Rows, "StagedOutput": MemorySpool, "PinnedTables": Pinned,
        "_in": within,
        "ExternalSources": lambda root, declared: Outside(outside, declared),
    }  # fmt: skip
    with (
        patch.multiple(module, **instead),
        patch.object(publisher, "measure", measured),
        patch.object(measurement, "evaluate_checks", predict_results),
    ):
        yield
