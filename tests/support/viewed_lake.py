"""A lake for pages: its tables and its ledger are written by hand, without Spark."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake

from transom import __version__
from transom.app.definitions import definitions_of
from transom.app.freshness import freshness_of
from transom.charts.section import Section
from transom.core.intervals import HOUR, Interval
from transom.core.partitions import PartitionKey, PartitionState
from transom.features.ingest.expected_inputs import ExpectedInputs, partition_of
from transom.features.ingest.tables import Tables
from transom.findings.from_ledger import Finding
from transom.findings.store import NAME, to_arrow
from transom.ledger.ledger import Ledger, Run
from transom.storage.tables import Table, create
from transom.stream import load
from transom.views import quality, results
from transom.views.open_stream import OpenStream

DAY = datetime(2015, 5, 17, tzinfo=UTC)
ROWS = 10
"""The number of rows that the ledger has of each hour of ingest's tables."""
SIX = """
name: six
preset: apache/combined
source: {path: "landing/six/%Y-%m-%d/access.%H.log"}
key: [client]
aggregates:
  traffic:
    measures: {n: count, sent: sum(bytes)}
    levels: RANGES 2 HOURS, 1 HOUR SLIDES 1 HOUR, 1 HOUR
    fit: {unit: 1 hour, value: sum, missing: zero}
patterns:
  back:
    within: 3 hours
    steps: [{id: one, where: status = 404}, {id: other, where: status = 200}]
frames:
  busy: {kind: threshold, where: status = 200, value: bytes, on_duplicate_time: sum, idle: 2 hours}
fills:
  before: {frame: busy, shift: [3 hours], measures: {sent: sum(bytes)}}
persistence:
  regulars: {item: [client], slot: 1 hour, window: 4 hours, alpha: 0.7, epsilon: 0.6}
frequency:
  often: {item: [path], window: 2 hours, tick: 30 minutes, epsilon: 0.5, delta: 0.5, top: 2}
"""


def at(number: float) -> datetime:
    return DAY + number * HOUR


def between(start: int, end: int) -> Interval:
    return Interval(at(start), at(end))


class ViewedLake:
    """A lake with the stream `six`, without rows until a test adds them."""

    def __init__(self, folder: Path) -> None:
        self.uri, self.root = str(folder / "lake"), f"{folder}/lake/six"
        self.file = folder / "six.yaml"
        self.file.write_text(SIX)
        self.ledger = Ledger(self.root)
        self.load()

    def load(self) -> None:
        """Read the stream file again."""
        self.stream = load(self.file)
        self.tables = {
            step.table.name: step.table
            for stage in definitions_of(self.stream).values()
            for step in stage.steps
        } | {name: Table.load(name) for name in ("rejected", "files", "checks", "runs", NAME)}
        self.tables["events"] = Tables.of(self.stream).events

    def publish(self, hours: Iterable[int], run: str = "a", **state: Any) -> None:
        """Publish hours of every stage and table."""
        hours = [*hours]
        inputs = ExpectedInputs(self.stream)
        self.enter(
            "ingest",
            {
                partition_of(table, at(number)): PartitionState(
                    **{"status": "published", "run_id": run, "rows": ROWS}
                    | {"input_hashes": inputs.expected(at(number))}
                    | state
                )
                for number in hours
                for table in ("events", "rejected", "files")
            },
            run,
        )
        for name, stage in definitions_of(self.stream).items():
            entries = {
                PartitionKey(name, block, step.table.name, at(number)): PartitionState("published", run)
                for step in stage.steps
                for block in step.outputs
                for number in hours
            }
            self.enter(name, entries, run)

    def refresh(self) -> None:
        """Give all entries of later stages the input hashes of now."""
        freshness = freshness_of(self.stream, self.ledger.snapshot())
        for stage in self.stream.stages[1:]:
            keys = [key for key in freshness.snapshot if key.stage == stage]
            inputs = {key: freshness.recorded_inputs(key, "published") for key in keys}
            entries = {key: PartitionState("published", "b", input_hashes=of) for key, of in inputs.items()}
            self.enter(stage, entries, "b")

    def enter(self, stage: str, entries: dict[PartitionKey, PartitionState], run: str) -> None:
        """Write entries of the ledger."""
        self.ledger.claim(stage, entries, run)
        self.ledger.publish(stage, entries, run)

    def ran(self, stage: str, start: int, end: int, **counters: int) -> None:
        """Record a run."""
        self.ledger.record_run(
            Run(
                f"r{start}", "schedule", stage, at(start), at(end), 0, None, 12, 3, {"total": 7.5}, 100,
                __version__, datetime(2015, 5, 20, tzinfo=UTC), counters=counters,
            )
        )  # fmt: skip

    def add(self, table: str, rows: Iterable[dict[str, Any]]) -> None:
        """Add rows to a table; columns that a row lacks are null."""
        described = self.tables[table]
        create(self.root, described)
        schema = described.arrow_schema()
        empty = dict.fromkeys(schema.names)
        written = pa.Table.from_pylist([empty | row for row in rows], schema=schema)
        write_deltalake(f"{self.root}/{table}", written, mode="append")

    def find(self, *findings: Finding) -> None:
        """Add findings."""
        create(self.root, self.tables[NAME])
        write_deltalake(f"{self.root}/{NAME}", to_arrow(findings), mode="append")


PERSISTENT: dict[str, Any] = {
    "hour": at(5), "block": "regulars", "window_end": at(6), "high": 900, "slots": "1", "spell_id": "s",
}  # fmt: skip
"""A row of `persistent_items`, without the item and the number of slots."""


def window(number: int, client: str, n: int, level: int = 0, **more: Any) -> dict[str, Any]:
    """Return a row of `aggregates` that ends with an hour."""
    return {
        "hour": at(number), "block": "traffic", "level": level, "window_start": at(number - level),
        "window_end": at(number + 1), "client": client, "count": n, "n": n, "sent": 10 * n, "complete": True,
    } | more  # fmt: skip


def finding(number: int, title: str, **more: Any) -> Finding:
    """Return a finding of an hour."""
    values: dict[str, Any] = {
        "stage": "patterns", "hour": at(number), "finding_id": f"{number}{title[:20]}", "kind": "episode",
        "block": "back", "severity": "medium", "title": title, "start_time": at(number),
        "end_time": at(number + 1), "ongoing": False, "evidence": (), "first_hour": at(number),
    }  # fmt: skip
    return Finding(**values | more)


def sections_of(
    opened: OpenStream,
    feature: str | None = None,
    block: str | None = None,
    interval: Interval | None = None,
    key: Mapping[str, str] | None = None,
    page: int = 1,
) -> list[Section]:
    """Return the sections of features, read from one state of the lake; by default all, of all hours."""
    of_block = partial(results.sections, feature=feature, block=block)
    return opened.consistent(interval or opened.interval_of(None, None)[0], key or {}, page, of_block)[0]


def quality_of(
    opened: OpenStream, interval: Interval, page: int = 1, check: str | None = None
) -> list[Section]:
    """Return the sections about the quality of the data, read from one state of the lake."""
    return opened.consistent(interval, {}, page, partial(quality.sections, check=check))[0]
