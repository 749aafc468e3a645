"""A stream in its own folder, run by the jobs' code in one Spark session."""

import gzip
import os
import shutil
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import pyarrow as pa
import yaml
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.support.compare import Row, differences
from transom.app import run_stage as job
from transom.app.definitions import all_definitions
from transom.app.run_stage import run_chunk
from transom.core.intervals import Interval, format_hour
from transom.core.partitions import EMPTY_DIGEST, CheckResult, PartitionKey
from transom.engine.run_outcome import Outcome
from transom.features.ingest.tables import Tables
from transom.features.registry import FINDING_ORDER
from transom.findings import store as findings
from transom.findings.from_ledger import Finding
from transom.ledger.ledger import Ledger
from transom.ledger.snapshot import LedgerSnapshot
from transom.storage.digest import digest_of, row_hash, total_hash
from transom.storage.store import Store
from transom.storage.tables import Table, read_rows
from transom.stream import Stream, parse

WEB = """
name: web
preset: apache/combined
source: {path: "landing/web/%Y-%m-%d/access.%H*.log.gz", expected_files: 1}
key: [client]
aggregates:
  traffic:
    measures: {n: count, sent: sum(bytes), kinds: distinct(status)}
    levels: RANGES 6 HOURS, 2 HOURS, 30 MINUTES SLIDES 1 HOUR, 30 MINUTES, 10 MINUTES
    fit: {unit: 10 minutes, value: sum, missing: zero}
    aging: [0.3, 0.7, 1]
    recurring: [status]
  site: {key: [], measures: {n: count}, levels: RANGES 1 HOUR SLIDES 1 HOUR}
"""

PLAIN = """
name: web
preset: apache/combined
source: {path: "landing/web/%Y-%m-%d/access.%H*.log.gz", expected_files: 1}
key: [client]
aggregates:
  traffic:
    measures: {n: count, sent: sum(bytes)}
    levels: RANGES 6 HOURS, 2 HOURS SLIDES 1 HOUR, 30 MINUTES
  site: {key: [], measures: {n: count}, levels: RANGES 1 HOUR SLIDES 1 HOUR}
"""
"""Aggregates alone, for tests of hours and blocks: fewer tables than `WEB`."""


def hour(number: int) -> datetime:
    """Return the n-th hour of the tests' day."""
    return datetime.fromtimestamp(1431820800 + 3600 * number, UTC)


def line(at: int, client: str = "10.0.0.1", sent: int | str = 100, status: int | str = 200) -> str:
    """Return a line of an Apache combined log, `at` seconds after the tests' day begins."""
    time = datetime.fromtimestamp(1431820800 + at, UTC).strftime("%d/%b/%Y:%H:%M:%S +0000")
    return f'{client} - - [{time}] "GET / HTTP/1.1" {status} {sent} "-" "agent"'


def clock(rows: DataFrame) -> set[int]:
    """Return the hours of some rows, from 0 to 23. Times from `collect` are in the machine's zone."""
    return {row[0] for row in rows.select(F.hour("hour")).distinct().collect()}


class PartitionSummary(NamedTuple):
    """The ledger's state of a partition."""

    status: str
    complete: bool
    digest: str
    rows: int
    inputs: Mapping[str, str] | None
    cause: str | None
    requested: bool
    checks: tuple[CheckResult, ...]


class StreamHarness:
    """A landing folder, a stream and a lake."""

    def __init__(self, spark: SparkSession, folder: Path, text: str = WEB, lake: str = "lake") -> None:
        self.spark = spark
        self.folder = folder
        self.text = text
        self.stream: Stream = parse(yaml.safe_load(text))
        self.root = str(folder / lake / self.stream.name)
        self.store = Store(spark, self.root)
        self.ledger = Ledger(self.root)

    def land(self, number: int, lines: list[str], name: str = "") -> Path:
        """Write the file of an hour."""
        moment = hour(number)
        path = self.folder / f"landing/web/{moment:%Y-%m-%d}/access.{moment:%H}{name}.log.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress("".join(text + "\n" for text in lines).encode()))
        return path

    def context(self, start: int, end: int) -> job.Context:
        """Return a job's context for hours `[start, end)`."""
        return self.context_of(Interval(hour(start), hour(end)))

    def context_of(self, interval: Interval) -> job.Context:
        """Return a job's context for an interval."""
        run_id = f"run {uuid.uuid4()}"
        return job.Context(self.store, self.ledger, self.stream, interval, run_id, interval)

    def stage(self, stage: str, start: int, end: int) -> Outcome:
        """Run one stage over hours `[start, end)`."""
        return self._stage(stage, self.context(start, end))

    def in_chunks(self, stage: str, start: int, end: int) -> None:
        """Run a stage over hours `[start, end)`, in the stream's chunks."""
        whole = Interval(hour(start), hour(end))
        chunks = whole.chunks(self.stream.chunk)
        self._stage(stage, *(replace(self.context_of(whole), chunk=chunk) for chunk in chunks))

    def _stage(self, stage: str, *contexts: job.Context) -> Outcome:
        """Run a stage over the chunks of a run, and return its outcomes."""
        outcome = Outcome()
        for context in contexts:
            outcome.add(run_chunk(stage, context))
        job.sync_findings(self.ledger, self.stream, stage, outcome.stale)
        return outcome

    def run(self, start: int, end: int) -> None:
        """Run every stage over hours `[start, end)`."""
        self.run_over(Interval(hour(start), hour(end)))

    def run_over(self, interval: Interval) -> None:
        """Run every stage over an interval."""
        for stage in self.stream.stages:
            self._stage(stage, self.context_of(interval))

    def snapshot(self) -> LedgerSnapshot:
        """Return the ledger."""
        return self.ledger.snapshot()

    def findings(self) -> list[Finding]:
        """Return the findings, the worst first."""
        return findings.findings(self.root, order=FINDING_ORDER)

    def table(self, name: str) -> DataFrame:
        """Return the current version of a table."""
        return self.spark.read.format("delta").load(f"{self.root}/{name}")

    def rows_of(self, name: str) -> list[dict[str, Any]]:
        """Return the rows of a table, read without Spark."""
        return read_rows(DeltaTable(f"{self.root}/{name}"))

    def state(self) -> Mapping[str, PartitionSummary]:
        """Return what the promise covers: the ledger's state of every partition, without the run."""
        snapshot = self.snapshot()
        observed: dict[PartitionKey, list[CheckResult]] = {node: [] for node in snapshot}
        for stage in {node.stage for node in snapshot}:
            for verdict in self.ledger.checks(snapshot, stage, {node.hour for node in snapshot}):
                observed[verdict.partition].append(verdict)
        return {
            f"{node.stage}.{node.block}.{node.table} {format_hour(node.hour)}": PartitionSummary(
                entry.status,
                entry.complete,
                entry.digest,
                entry.rows,
                entry.input_hashes,
                entry.reason,
                entry.requested,
                tuple(observed[node]),
            )
            for node, entry in sorted(snapshot.items())
        }

    def assert_ledger_true(self) -> None:
        """Assert that the ledger's digests match the rows, and that each line is accounted for."""
        self._assert_lines_accounted()
        hashed: dict[tuple[str, str], tuple[Table, Sequence[str]]] = {
            (step.table.name, block): (step.table, part.columns)
            for stage in all_definitions(self.stream).values()
            for step in stage.steps
            for block, part in step.outputs.items()
        }
        of_ingest = {table.name: (table, table.digest_columns()) for table in Tables.of(self.stream)}
        series = {(node.table, node.block) for node in self.snapshot()}
        result = self._digests({of: hashed.get(of) or of_ingest[of[0]] for of in series})
        for node, entry in self.snapshot().items():
            if entry.status != "expired":
                assert result.pop((node.table, node.block, node.hour), EMPTY_DIGEST) == entry.digest, node
        assert not result, "rows of hours that the ledger does not know"

    def _assert_lines_accounted(self) -> None:
        """Assert lines = events + duplicates + rejected + header lines, for each file that was read."""
        tables = ("events", "duplicates", "rejected")
        counts = {table: Counter(row["source_id"] for row in self.rows_of(table)) for table in tables}
        for file in self.rows_of("files"):
            if file["source_id"] is None:
                continue
            read = [file[name] for name in ("accepted", "duplicates", "rejected")]
            if file["status"] != "duplicate":
                published = [counts[table].pop(file["source_id"], 0) for table in tables]
                assert published in (read, [0, 0, 0]), file
            assert file["lines"] == sum(read) + file["header_lines"], file
        assert not any(counts.values()), counts

    def _digests(
        self, hashed: Mapping[tuple[str, str], tuple[Table, Sequence[str]]]
    ) -> dict[tuple[str, str, datetime], str]:
        """Return the digest of each hour's rows, computed again in one Spark job over local rows.

        Delta's own scans of some twenty small tables would take a quarter of a minute.

        Args:
            hashed: the table's description and the digest's columns, by table and block.
        """
        rows = {name: self.rows_of(name) for name, _ in hashed}
        frames = []
        for (name, block), (table, columns) in hashed.items():
            # Ingest's tables have no blocks.
            own = [row for row in rows[name] if row.get("block", block) == block]
            whole = table.arrow_schema()
            schema = pa.schema([whole.field(column) for column in dict.fromkeys(["hour", *columns])])
            frame = self.spark.createDataFrame(pa.Table.from_pylist(own, schema=schema))
            key = (F.lit(name).alias("table"), F.lit(block).alias("block"), "hour")
            frames.append(frame.select(*key, row_hash(frame, columns).alias("hash")))
        total = digest_of(F.count("*"), total_hash(F.col("hash")))
        by_hour = reduce(DataFrame.unionAll, frames).coalesce(1).groupBy("table", "block", "hour")
        result = by_hour.agg(total.alias("digest")).toArrow().to_pylist()
        return {(row["table"], row["block"], row["hour"].astimezone(UTC)): row["digest"] for row in result}

    def rows(self) -> Mapping[str, list[Row]]:
        """Return the rows of every table except the ledger's, sorted, without columns outside the promise.

        They are read without Spark, in milliseconds.
        """
        names = sorted(path.parent.name for path in Path(self.root).glob("*/_delta_log"))
        return {name: self._rows(name) for name in names if name not in self.ledger.tables}

    def _rows(self, name: str) -> list[Row]:
        outside = Table.load(name).excluded_from_digest
        # A lake retains the columns of earlier specifications, without values.
        rows = [
            {column: value for column, value in row.items() if column not in outside and value is not None}
            for row in read_rows(DeltaTable(f"{self.root}/{name}"))
        ]
        return sorted(rows, key=lambda row: repr(sorted(row.items())))

    def assert_same(self, other: "StreamHarness", note: object = "") -> None:
        """Assert that two lakes are equal: ledger, findings and every row of every table.

        Args:
            other: the lake with the expected rows.
            note: what a failure prints first.
        """
        states = self.state(), other.state()
        for name in sorted(states[0].keys() | states[1].keys()):
            actual, expected = (state.get(name) for state in states)
            assert actual == expected, f"{note} ledger, {name}:\n  expected {expected}\n  actual   {actual}"
        mine, others = self.rows(), other.rows()
        problems = [
            differences(others.get(name, []), mine.get(name, []), name)
            for name in sorted(mine.keys() | others.keys())
        ]
        assert not any(problems), "\n".join([str(note), *filter(None, problems)])


class Templates:
    """Lakes with which several tests begin, each built once.

    A lake can be copied, as Delta's logs and the ledger have relative paths.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._built: dict[tuple[object, str], StreamHarness] = {}

    def copy(self, build: Callable[[StreamHarness], object], text: str, to: StreamHarness) -> None:
        """Copy a template's lake and landing folder into those of a test.

        Args:
            build: lands files and runs stages, with unchanged code of transom.
            text: the stream's file.
            to: an empty lake of the same stream.
        """
        template = self._built.get((build, text))
        if template is None:
            template = StreamHarness(to.spark, self.folder / str(len(self._built)), text)
            with patch.dict(os.environ, TRANSOM_HOME=str(template.folder)):
                build(template)
            self._built[build, text] = template
        # With the modification times of files, by which ingest recognises unchanged ones.
        shutil.copytree(template.folder / "landing", to.folder / "landing", dirs_exist_ok=True)
        # The ledger that opening the lake has created is replaced.
        shutil.rmtree(to.root)
        shutil.copytree(template.root, to.root)
