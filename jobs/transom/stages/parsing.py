"""Reading files on the executors: a task opens its files, parses them with Arrow and yields rows.

One pass gives events, rejections and a summary of each file, all of one reading of the bytes: a file
that is still being written is taken as it was at that moment, and replaced when it has grown.
"""

import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from transom.formats.layout import Layout, Span
from transom.formats.reading import Chunk, read_file
from transom.lake.tables import ARROW_TYPES
from transom.stages.landing import opened

TASK_BYTES = 32 * 2**20
"""Stored bytes that one task reads, where files are small enough to share one."""


@dataclass(frozen=True)
class Reading:
    """A file to read.

    Attributes:
        number: what its rows carry instead of its path.
        where: its absolute path.
        span: outside of which its rows are refused.
        known: decompressed lengths at which a digest of what comes before is wanted.
        start: the instant from which the times of its lines count, None where they say their own.
    """

    number: int
    path: str
    where: str
    size: int
    captures: Mapping[str, str]
    span: Span | None
    known: tuple[int, ...]
    start: datetime | None = None


FIXED = {
    "__file": "int",
    "__raw": "string",
    "__reason": "string",
    "__column": "string",
    "__detail": "string",
    "__summary": "string",
    "event_time": "timestamp",
    "source_line": "bigint",
}


def parsed(
    spark: SparkSession, readings: Sequence[Reading], layout: Layout, columns: Mapping[str, str]
) -> DataFrame:
    """Every event, rejection and summary of some files.

    Args:
        columns: Spark types of the declared columns, the rest where it is kept, and captures, in order.

    Returns:
        A row for each event (`__raw` and `__summary` null), each rejection (`__raw`, `__reason`) and
        each file (`__summary`, JSON); `__file` is the reading's number.
    """
    types = {**FIXED, **columns}
    schema = pa.schema([(name, ARROW_TYPES[kind]) for name, kind in types.items()])
    bins = _bins(readings, spark.sparkContext.defaultParallelism)
    # Spark takes what is cached of an equal plan for it, another run's too: what files hold is not in a plan.
    once = uuid.uuid4().hex
    ddl = ", ".join(f"`{name}` {kind}" for name, kind in types.items())
    reader = _reader(bins, layout, schema, once)
    return spark.range(0, len(bins), 1, max(len(bins), 1)).mapInArrow(reader, ddl)


def _bins(readings: Sequence[Reading], tasks: int) -> list[list[Reading]]:
    """Files in shares of similar size: at least one for each core, none far above `TASK_BYTES`."""
    total = sum(reading.size for reading in readings)
    count = min(len(readings), max(tasks, -(-total // TASK_BYTES)))
    bins: list[list[Reading]] = [[] for _ in range(count)]
    sizes = [0] * count
    for reading in sorted(readings, key=lambda reading: (-reading.size, reading.path)):
        smallest = min(range(count), key=lambda i: (sizes[i], len(bins[i])))
        bins[smallest].append(reading)
        sizes[smallest] += reading.size
    return bins


def _reader(
    bins: Sequence[Sequence[Reading]], layout: Layout, schema: pa.Schema, once: str
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterable[pa.RecordBatch], once: str = once) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for index in batch.column(0).to_pylist():
                for reading in bins[index]:
                    yield from _rows(reading, layout, schema)

    return run


def _rows(reading: Reading, layout: Layout, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    try:
        with opened(reading.where) as source:
            parts = read_file(
                source,
                reading.path,
                layout,
                reading.span,
                start=reading.start,
                captures=reading.captures,
                known=reading.known,
            )
            for part in parts:
                if isinstance(part, Chunk):
                    yield from _chunk(part, reading, schema)
                else:
                    yield _summary(json.dumps(asdict(part)), reading, schema)
    except FileNotFoundError:
        yield _summary(json.dumps({"vanished": True}), reading, schema)
    except OSError as error:
        yield _summary(json.dumps({"unreadable": str(error)}), reading, schema)


def _chunk(chunk: Chunk, reading: Reading, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    renamed = {"raw": "__raw", "reason": "__reason", "column": "__column", "detail": "__detail"}
    events, rejected = chunk.events, chunk.rejected
    if events.num_rows:
        yield _batch(
            dict(zip(events.schema.names, events.columns, strict=True)), events.num_rows, reading, schema
        )
    if rejected.num_rows:
        names = [renamed.get(name, name) for name in rejected.schema.names]
        yield _batch(dict(zip(names, rejected.columns, strict=True)), rejected.num_rows, reading, schema)


def _summary(text: str, reading: Reading, schema: pa.Schema) -> pa.RecordBatch:
    return _batch({"__summary": pa.array([text])}, 1, reading, schema)


def _batch(columns: Mapping[str, pa.Array], rows: int, reading: Reading, schema: pa.Schema) -> pa.RecordBatch:
    constant = {"__file": reading.number, **reading.captures}

    def array(field: pa.Field) -> pa.Array:
        if field.name in columns:
            return columns[field.name].cast(field.type)
        if field.name in constant:
            return pa.repeat(pa.scalar(constant[field.name], field.type), rows)
        return pa.nulls(rows, field.type)

    return pa.RecordBatch.from_arrays([array(field) for field in schema], schema=schema)
