"""A stream in a folder of its own, run by the jobs' own code in one Spark session."""

import gzip
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from transom import job
from transom.intervals import Interval, format_hour
from transom.lake import findings
from transom.lake.book import EMPTY_DIGEST, Book, Node, Verdict
from transom.lake.causes import Finding
from transom.lake.digest import digest_of, row_hash, total_hash
from transom.lake.ledger import Ledger
from transom.lake.refresh import Outcome
from transom.lake.store import Store
from transom.lake.tables import Table, read_rows
from transom.stages import aggregate as aggregate_stage
from transom.stages import fill as fill_stage
from transom.stages import frame as frame_stage
from transom.stages import sketch as sketch_stage
from transom.stages import widen as widen_stage
from transom.stages.ingest_tables import Tables
from transom.stream import Stream, parse
from transom.work import WORKS

WEB = """
name: web
preset: apache/combined
source: {path: "landing/web/%Y-%m-%d/access.%H*.log.gz", expect: 1}
key: [client]
aggregate:
  traffic:
    measures: {n: count, sent: sum(bytes), kinds: distinct(status)}
    levels: RANGES 6 HOURS, 2 HOURS, 30 MINUTES SLIDES 1 HOUR, 30 MINUTES, 10 MINUTES
    fit: {unit: 10 minutes, value: sum, missing: zero}
    aging: [0.3, 0.7, 1]
    recurring: [status]
  site: {key: [], measures: {n: count}, levels: RANGES 1 HOUR SLIDES 1 HOUR}
"""


def hour(number: int) -> datetime:
    """The n-th hour of the tests' day."""
    return datetime.fromtimestamp(1431820800 + 3600 * number, UTC)


def line(at: int, client: str = "10.0.0.1", sent: int | str = 100, status: int | str = 200) -> str:
    """A line of an Apache combined log, `at` seconds after the tests' day begins."""
    time = datetime.fromtimestamp(1431820800 + at, UTC).strftime("%d/%b/%Y:%H:%M:%S +0000")
    return f'{client} - - [{time}] "GET / HTTP/1.1" {status} {sent} "-" "agent"'


def clock(rows: DataFrame) -> set[int]:
    """The hours of some rows, from 0 to 23. A time that `collect` gives is in the machine's zone."""
    return {row[0] for row in rows.select(F.hour("hour")).distinct().collect()}


class Standing(NamedTuple):
    """What the ledger says of a node."""

    status: str
    complete: bool
    digest: str
    rows: int
    inputs: Mapping[str, str] | None
    cause: str | None
    asked: bool
    checks: tuple[Verdict, ...]


class House:
    """A landing folder, a stream and a lake."""

    def __init__(self, spark: SparkSession, folder: Path, text: str = WEB, lake: str = "lake") -> None:
        self.spark = spark
        self.folder = folder
        self.stream: Stream = parse(yaml.safe_load(text))
        self.root = str(folder / lake / self.stream.name)
        self.store = Store(spark, self.root)
        self.ledger = Ledger(self.root)

    def land(self, number: int, lines: list[str], name: str = "") -> Path:
        """Writes the file of an hour."""
        moment = hour(number)
        path = self.folder / f"landing/web/{moment:%Y-%m-%d}/access.{moment:%H}{name}.log.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress("".join(text + "\n" for text in lines).encode()))
        return path

    def context(self, start: int, end: int) -> job.Context:
        """What a job would be given for hours `[start, end)`."""
        return self.context_of(Interval(hour(start), hour(end)))

    def context_of(self, interval: Interval) -> job.Context:
        """What a job would be given for an interval."""
        run_id = f"run {uuid.uuid4()}"
        return job.Context(self.store, self.ledger, self.stream, interval, run_id, interval)

    def ingest(self, start: int, end: int) -> Outcome:
        """The first stage over hours `[start, end)`."""
        return self._stage("ingest", self.context(start, end))

    def frame(self, start: int, end: int) -> Outcome:
        """The stage of frames over hours `[start, end)`."""
        return self._stage("frame", self.context(start, end))

    def fill(self, start: int, end: int) -> Outcome:
        """The stage of fills over hours `[start, end)`."""
        return self._stage("fill", self.context(start, end))

    def sketch(self, start: int, end: int) -> Outcome:
        """The stage of persistent items over hours `[start, end)`."""
        return self._stage("sketch", self.context(start, end))

    def aggregate(self, start: int, end: int) -> Outcome:
        """The second stage over hours `[start, end)`."""
        return self._stage("aggregate", self.context(start, end))

    def widen(self, start: int, end: int) -> Outcome:
        """The stage of patterns over hours `[start, end)`."""
        return self._stage("widen", self.context(start, end))

    def in_chunks(self, stage: str, start: int, end: int) -> None:
        """A stage over hours `[start, end)`, in the stream's chunks."""
        whole = Interval(hour(start), hour(end))
        chunks = whole.chunks(self.stream.chunk)
        self._stage(stage, *(replace(self.context_of(whole), chunk=chunk) for chunk in chunks))

    def _stage(self, stage: str, *contexts: job.Context) -> Outcome:
        """A stage over the chunks of a run, and what it found."""
        outcome = Outcome()
        for context in contexts:
            outcome.add(WORKS[stage](context))
        job.tell(self.ledger, self.stream, stage, outcome.stale)
        return outcome

    def run(self, start: int, end: int) -> None:
        """Every stage."""
        self.run_over(Interval(hour(start), hour(end)))

    def run_over(self, interval: Interval) -> None:
        """Every stage over an interval."""
        for stage in self.stream.stages:
            self._stage(stage, self.context_of(interval))

    def book(self) -> Book:
        """The ledger."""
        return self.ledger.book()

    def findings(self) -> list[Finding]:
        """What a person is told, the worst first."""
        return findings.findings(self.root)

    def table(self, name: str) -> DataFrame:
        """A table as it stands."""
        return self.spark.read.format("delta").load(f"{self.root}/{name}")

    def rows_of(self, name: str) -> list[dict[str, Any]]:
        """The rows of a table, read without Spark."""
        return read_rows(DeltaTable(f"{self.root}/{name}"))

    def state(self) -> Mapping[str, Standing]:
        """What the promise is about: all that the ledger says of every node but who said it."""
        book = self.book()
        seen: dict[Node, list[Verdict]] = {node: [] for node in book}
        for stage in {node.stage for node in book}:
            for verdict in self.ledger.checks(book, stage, {node.hour for node in book}):
                seen[verdict.node].append(verdict)
        return {
            f"{node.stage}.{node.block}.{node.table} {format_hour(node.hour)}": Standing(
                entry.status,
                entry.complete,
                entry.digest,
                entry.rows,
                entry.inputs,
                entry.cause,
                entry.asked,
                tuple(seen[node]),
            )
            for node, entry in sorted(book.items())
        }

    def assert_ledger_true(self) -> None:
        """The digests in the ledger are those of the rows that stand, and each line is accounted for."""
        self._assert_lines_accounted()
        columns = {table.name: table for table in Tables.of(self.stream)}
        declared = {
            (block, step.table.name): part.columns
            for stage in (widen_stage, aggregate_stage, frame_stage, fill_stage, sketch_stage)
            for step in stage.stage(self.stream).steps
            for block, part in step.parts.items()
        }
        series = {(node.block, node.table) for node in self.book()}
        for block, table in sorted(series):
            rows = self.table(table)
            if (block, table) in declared:
                of = declared[block, table]
                rows = rows.where(F.col("block") == block)
            else:
                of = columns[table].promised()
            found = self.digests(rows, of)
            for node, entry in self.book().items():
                if (node.block, node.table) == (block, table) and entry.status != "expired":
                    assert found.pop(node.hour, EMPTY_DIGEST) == entry.digest, node
            assert not found, (block, table)

    def _assert_lines_accounted(self) -> None:
        """Lines of a file = events + duplicates + rejected + header lines, of each file that stands."""
        standing = {
            table: dict(self.table(table).groupBy("source_id").count().collect())
            for table in ("events", "duplicates", "rejected")
        }
        files = self.table("files").where("source_id IS NOT NULL").collect()
        for file in files:
            counted = [
                standing[table].pop(file.source_id, 0) for table in standing if file.status != "duplicate"
            ]
            told = [file.accepted, file.duplicates, file.rejected]
            assert counted in ([], told), file
            assert file.lines == sum(told) + file.header_lines, file
        assert not any(standing.values()), standing

    def digests(self, rows: DataFrame, columns: Sequence[str]) -> dict[datetime, str]:
        """The digest of each hour's rows, recomputed."""
        hashed = rows.select("hour", row_hash(rows, columns).alias("hash"))
        total = digest_of(F.count("*"), total_hash(F.col("hash")))
        found = hashed.groupBy("hour").agg(total.alias("digest")).toArrow().to_pylist()
        return {row["hour"].astimezone(UTC): row["digest"] for row in found}

    def rows(self) -> Mapping[str, Sequence[str]]:
        """Every row of every table but the ledger's, by table, without what is outside the promise. Read
        without Spark, in milliseconds."""
        names = sorted(path.parent.name for path in Path(self.root).glob("*/_delta_log"))
        return {name: self._rows(name) for name in names if name not in self.ledger.tables}

    def _rows(self, name: str) -> Sequence[str]:
        outside = Table.load(name).outside
        # A lake keeps the columns that its specification has had, without a value in them.
        return sorted(
            repr(sorted((k, v) for k, v in row.items() if k not in outside and v is not None))
            for row in read_rows(DeltaTable(f"{self.root}/{name}"))
        )

    def assert_same(self, other: "House", note: object = "") -> None:
        """Two lakes hold the same, by ledger and row by row."""
        for mine, others in ((self.state(), other.state()), (self.rows(), other.rows())):
            names = mine.keys() | others.keys()
            differ = {n: (mine.get(n), others.get(n)) for n in names if mine.get(n) != others.get(n)}
            assert not differ, f"{note}: {differ}"
