"""Queries of granules: aggregates of windows that belong to no level.

A window ends at any granule and reaches back any number of them (Patroumpas and Sellis, section 3.C:
continuous reporting).
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from numbers import Integral, Real
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from transom.core.durations import format_duration, parse_duration
from transom.core.intervals import HOUR_LENGTH, MICROSECOND, micros, moment_of
from transom.core.partitions import PartitionKey
from transom.engine.hours import quoted
from transom.engine.reader import Reader, UnknownKey, in_utc, sql_literal, sql_name
from transom.features.aggregates.aggregate_rows import AggregateBuilder
from transom.features.aggregates.algorithm.granules import WindowLevel
from transom.features.aggregates.resolve import AggregateBlock, block_of
from transom.features.aggregates.spec import Aggregation
from transom.formats.record_format import FieldType
from transom.ledger.task_counters import TaskCounters
from transom.spec.errors import did_you_mean
from transom.spec.expressions.compiler import type_with_article
from transom.spec.stream import Stream
from transom.storage.store import Store
from transom.storage.tables import in_hours_sql


class _Window(AggregateBuilder):
    """The window `[until - h, until)` of every key of a block, and the function of a task that computes it.

    In an aged mean, the rings of all levels end with the window. Records that no level covers have the weight
    of the widest one.

    Args:
        block: the block, with the window as its last level, instead of those that are not shorter.
        until: the end of the window, in microseconds.

    Attributes:
        hours: the hours that contain a part of the window.
        columns: the columns of `granules` that the window reads.
    """

    def __init__(self, block: AggregateBlock, until: int) -> None:
        level = block.levels[-1]
        super().__init__(block, [(until - level.slide, until)], np.empty(0, np.int64))
        first, stop = (until - level.range) // HOUR_LENGTH, -(-until // HOUR_LENGTH)
        self.hours = list(map(moment_of, range(first, stop)))
        self.partitions = [PartitionKey("aggregates", block.name, "granules", hour) for hour in self.hours]
        self.columns = ["granule", *block.key, "records", *block.state]
        fields = [field for field in self.schema if field.name not in ("hour", "level")]
        self.window_schema = pa.schema(fields)

    def rows(self, table: pa.Table, counters: TaskCounters) -> Iterator[pa.RecordBatch]:
        """Yield a row for each key, without the columns hour and level."""
        for batch in super().rows(table, counters):
            widest = batch.filter(pc.equal(batch["level"], len(self.block.levels) - 1))
            yield widest.select(self.window_schema.names)


def horizon(
    reader: Reader, key: Mapping[str, Any], until: datetime, h: timedelta | str, block: str | None = None
) -> dict[str, Any] | None:
    """Return the aggregates of one key over `[until - h, until)`, without Spark.

    They equal a recomputation from the events. `h` and `until` are multiples of the block's granule, the
    longest duration that divides its slides and an hour, and of the unit of its lines.

    Args:
        key: a value for each column of the block's key; None is null.
        until: the end, exclusive; with a time zone.
        h: the length of the window, such as "90 minutes" or a timedelta.
        block: the block of `aggregates`; optional if there is only one.

    Returns:
        The columns of `aggregates` except level and hour; `complete` is False if an hour is incomplete.
        None if the key has records in other hours, but none in the window.

    Raises:
        ValueError: `h` or `until` is no such multiple, the columns of the key differ, a value has another
            type than its column, or there is no such block.
        UnknownKey: no hour of the block has a record of the key.
        StaleDataError: granules of an hour are missing or out of date, or the hour of the window's end was
            not requested. Earlier hours that were not requested count as empty.
    """
    window = _window(reader.stream, until, h, block)
    if key.keys() != window.block.key.keys():
        known = ", ".join(window.block.key) or "none"
        raise ValueError(f"key: must have a value for each of its columns ({known}); got {dict(key)}")
    for name, value in key.items():
        _require_type(name, value, reader.stream.event_types[name])
    of_key = [f"block = {sql_literal(window.block.name)}"]
    of_key += [
        f"{sql_name(column)} IS NULL" if value is None else f"{sql_name(column)} = {sql_literal(value)}"
        for column, value in key.items()
    ]
    terms = [*of_key, in_hours_sql(window.hours)]
    rows, incomplete = reader.read_fresh(
        window.partitions, lambda: reader.rows("granules", terms, window.columns)
    )
    window.incomplete = incomplete
    batches = window(rows.to_batches())
    figures: list[dict[str, Any]] = pa.Table.from_batches(batches, window.window_schema).to_pylist()
    if figures:
        return figures[0]
    if key and not reader.rows("granules", of_key, ["hour"]).num_rows:
        values = ", ".join(f"{column} {value!r}" for column, value in key.items())
        raise UnknownKey(f"key: no hour of block {window.block.name} has a record of {values}")
    return None


def horizons(
    reader: Reader, spark: SparkSession, until: datetime, h: timedelta | str, block: str | None = None
) -> DataFrame:
    """Return the aggregates of every key with a record in the window, by Spark.

    Arguments are those of `horizon`; `spark` is the session that reads the granules.

    Raises:
        ValueError: as in `horizon`.
        StaleDataError: as in `horizon`.
    """
    window = _window(reader.stream, until, h, block)
    # The version is pinned: Spark may read the rows after a run has replaced them.
    pins, incomplete = reader.read_fresh(
        window.partitions, lambda: Store(spark, reader.root).pin(["granules"])
    )
    rows = pins.read("granules", window.hours).where(F.col("block") == window.block.name)
    rows = rows.select(*quoted(window.columns))
    by_key = rows.repartition(*quoted(window.block.key)) if window.block.key else rows.repartition(1)
    window.incomplete = incomplete
    return by_key.mapInArrow(window, from_arrow_schema(window.window_schema))


def _window(stream: Stream, until: datetime, h: timedelta | str, block: str | None) -> _Window:
    """Return a window of a block's granules.

    Raises:
        ValueError: no such block, or an end inside a granule or a unit of the block's lines.
    """
    blocks = list(stream.blocks(Aggregation))
    if block is None and len(blocks) != 1:
        raise ValueError(f"block: must be one of aggregates': {', '.join(blocks) or 'it has none'}")
    name = block or blocks[0]
    if name not in blocks:
        raise ValueError(f"block: aggregates has no block {name!r}{did_you_mean(name, blocks)}")
    back, until = parse_duration(h) if isinstance(h, str) else h, in_utc(until)
    resolved = block_of(stream, name)
    grain = math.lcm(resolved.base, resolved.fit.unit) if resolved.fit else resolved.base
    length, end, text = back // MICROSECOND, micros(until), format_duration(grain * MICROSECOND)
    if length <= 0 or length % grain:
        raise ValueError(f"h: must be a multiple of {text}, above 0; got {format_duration(back)}")
    if end % grain:
        raise ValueError(f"until: must be a multiple of {text} since 1970; got {until.isoformat()}")
    finer = tuple(level for level in resolved.levels if level.range < length)
    weights = resolved.aging and (*resolved.aging[: len(finer)], resolved.aging[: len(finer) + 1][-1])
    levels = (*finer, WindowLevel(length, grain))
    return _Window(replace(resolved, levels=levels, aging=weights), end)


def _require_type(name: str, value: Any, kind: FieldType) -> None:
    """Check the type of a value of a key: SQL also compares values of other types, such as '443' with 443."""
    is_bool = isinstance(value, bool | np.bool_)
    fits: dict[FieldType, bool] = {
        "string": isinstance(value, str),
        "integer": isinstance(value, Integral) and not is_bool,
        "number": isinstance(value, Real) and not is_bool,
        "boolean": is_bool,
        "timestamp": isinstance(value, datetime),
    }
    if value is not None and not fits[kind]:
        raise ValueError(f"key: must be {type_with_article(kind)} for {name}; got {value!r}")
