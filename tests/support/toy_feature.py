"""A feature for the tests: keys with many events in an hour. It shows the parts of a new feature."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
from pydantic import Field
from pyspark.sql import functions as F

from transom.core.intervals import HOUR
from transom.core.partitions import PartitionState
from transom.engine.check_builders import built_in
from transom.features.registry import FEATURES
from transom.findings.source import FIRST_HOUR, IDENTITY, ONGOING, FindingSource, FindingTemplate, Row
from transom.findings.source import HOUR as HOUR_COLUMN
from transom.ledger.stage import (
    BlockOutput,
    BlockTask,
    InputRange,
    Stage,
    StepRequest,
    StepResult,
    TableStep,
    rows_where,
)
from transom.spec.base import Model
from transom.spec.block_columns import BlockColumns, sql_of, tested
from transom.spec.checks import BuiltIn
from transom.spec.errors import Issue
from transom.spec.feature import Feature
from transom.spec.fingerprints import canonical
from transom.spec.stream import Stream, stream_type
from transom.spec.validate import condition_problems, key_problems
from transom.storage.tables import Table


class Crowd(Model):
    """A key with many events in an hour."""

    key: tuple[str, ...] = ()
    """The columns whose values are counted."""
    where: str | None = None
    """Which events are counted."""
    at_least: Annotated[int, Field(ge=1)] = 2
    """How many events make a row."""


def problems(stream: Stream) -> Iterator[Issue]:
    """Yield the problems of the blocks."""
    for name, block in stream.blocks(Crowd).items():
        yield from key_problems(f"crowds.{name}.key", block.key, stream)
        if block.where is not None:
            yield from condition_problems(f"crowds.{name}.where", block.where, stream.event_types)


def columns_read(stream: Stream) -> Iterator[BlockColumns]:
    """Yield the columns of the events that each block needs."""
    for name, block in stream.blocks(Crowd).items():
        where = stream.where_of(block)
        yield BlockColumns(name, block.key, sql_of(where), tested(where))


def shape(stream: Stream, name: str) -> str:
    """Return the part of a block that determines its rows."""
    block = stream.blocks(Crowd)[name]
    where = stream.where_of(block)
    return canonical({"key": list(block.key), "where": sql_of(where), "at_least": block.at_least})


def definition(stream: Stream) -> Stage:
    """Return the stage."""
    blocks = stream.blocks(Crowd)
    key = {column: "string" for block in blocks.values() for column in block.key}

    def compute(request: StepRequest) -> StepResult:
        tasks = []
        for name, hours in request.targets.items():
            block, where = blocks[name], stream.where_of(blocks[name])
            events = request.pins.read("events", hours)
            events = events if where is None else events.where(F.expr(where.sql))
            counts = events.groupBy("hour", *block.key).agg(F.count("*").alias("events"))
            tasks.append(BlockTask(name, counts.where(F.col("events") >= block.at_least)))
        return StepResult(tasks)

    outputs = {
        name: BlockOutput(
            (InputRange("ingest", "events", "events"),), shape(stream, name), ("hour", *block.key, "events")
        )
        for name, block in blocks.items()
    }
    step = TableStep(
        Table.load("crowds", Path(__file__).parents[1] / "data").declare(key=key),
        outputs,
        compute,
        checks=built_in(stream, "crowds_bounded", metric="too_many", at_most=0),
        metrics={"too_many": rows_where("events > 3")},
        failing_row_filters={"crowds_bounded": "events > 3"},
    )
    return Stage("crowds", 1, (step,))


@dataclass(frozen=True, kw_only=True)
class CrowdFindings(FindingTemplate):
    """Texts of a crowd."""

    columns: tuple[str, ...] = ("events",)
    times: tuple[str, ...] = ()
    start: str = HOUR_COLUMN

    @property
    def grouped(self) -> tuple[str, ...]:
        """The key: a finding has one row."""
        return self.key

    def summarize(
        self, rows: pa.Table, entries: Mapping[datetime, PartitionState], last: datetime
    ) -> pa.Table:
        """Return a row for each row."""
        clients, hours = rows["client"].to_pylist(), rows["hour"].to_pylist()
        added = {
            IDENTITY: pa.array([f"{c}/{hour}" for c, hour in zip(clients, hours, strict=True)], pa.string()),
            HOUR_COLUMN: rows["hour"],
            FIRST_HOUR: rows["hour"],
            ONGOING: pa.array([False] * len(rows)),
            "end_time": pa.array([hour + HOUR for hour in hours], rows.schema.field("hour").type),
        }
        for name, column in added.items():
            rows = rows.append_column(name, column)
        return rows

    def evidence(self, row: Row) -> list[str]:
        """Return the number of events."""
        return [f"{row['events']} events"]


def templates(stream: Stream) -> Iterator[CrowdFindings]:
    """Yield the blocks' findings."""
    for name, block in stream.blocks(Crowd).items():
        yield CrowdFindings(block=name, severity="low", titled="a crowd of {client}", key=block.key)


SOURCE = FindingSource("crowds", "crowds", "crowd", templates)


def words(stream: Stream, name: str) -> str:
    """Return a block as text."""
    block = stream.blocks(Crowd)[name]
    return f"{', '.join(block.key)} with at least {block.at_least} events an hour"


def no_lookback(stream: Stream) -> Iterator[tuple[str, timedelta]]:
    """Yield nothing: no block reads state."""
    return iter(())


def no_conditions(stream: Stream) -> Iterator[Any]:
    """Yield nothing."""
    return iter(())


FEATURE: Feature[Stream] = Feature(
    name="crowds",
    block=Crowd,
    meaning="Keys with many events in an hour.",
    noun="crowd",
    rows="crowds",
    doc="Events become keys with many of them.",
    outlets=("crowds",),
    script=Path(__file__).with_name("toy_job.py"),
    upstream=lambda stream: "ingest",
    problems=problems,
    columns_read=columns_read,
    lookback=no_lookback,
    conditions=no_conditions,
    definition=definition,
    fingerprints={"crowds": shape},
    labels={"key": "`key`", "where": "`where`", "at_least": "`at_least`"},
    checks={"crowds_bounded": BuiltIn("crowds", "error", "no crowd has more than three events")},
    summary=words,
    facts=words,
    findings="tests.support.toy_feature:SOURCE",
)
ToyStream = stream_type("ToyStream", __name__, [*FEATURES, FEATURE])
"""The type of a stream's file that may have the feature."""
STREAM = {
    "name": "toy",
    "preset": "apache/combined",
    "source": {"path": "landing/toy/%Y-%m-%d/access.%H*.log", "expected_files": 1},
    "key": ["client"],
    "crowds": {"many": {"where": "status = 200"}},
}
"""A stream's file that has it."""
