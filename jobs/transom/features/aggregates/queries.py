"""What is asked of the granules of aggregations: figures over windows that no level reports."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from numbers import Integral, Real
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from transom.core.durations import parse_duration
from transom.core.partitions import PartitionKey
from transom.engine.hours import quoted
from transom.engine.reader import Reader, UnknownKey, in_utc, sql_literal, sql_name
from transom.features.aggregates.horizon import Figures, Horizon
from transom.features.aggregates.resolve import block_of
from transom.features.aggregates.spec import Aggregation
from transom.features.items.validate import with_article
from transom.formats.record_format import FieldType
from transom.spec.errors import did_you_mean
from transom.spec.stream import Stream
from transom.storage.store import Store
from transom.storage.tables import in_hours_sql


def horizon(
    reader: Reader, key: Mapping[str, Any], until: datetime, h: timedelta | str, block: str | None = None
) -> dict[str, Any] | None:
    """Return the figures of one key over `[until - h, until)`, without Spark.

    They are those that a level of range `h` would report at `until`: equal to a recomputation from the
    events (Patroumpas and Sellis, continuous reports). Both ends lie on granules of the block, multiples
    of the greatest common divisor of its slides and an hour, and on units of its lines.

    Args:
        key: a value for each column of the block's key; None is null.
        until: the end, outside; with a zone.
        h: how far back, as "90 minutes" or a timedelta.
        block: of `aggregates`; need not be named where there is one.

    Returns:
        The columns of `aggregates` but level and hour; `complete` is False where an hour is incomplete.
        None where the key has no record in the window, and has one in another hour.

    Raises:
        ValueError: an end lies inside a granule; the key has other columns, or a value of another type
            than its column; no such block.
        UnknownKey: no hour of the block has a record of the key.
        StaleDataError: granules of an hour are not there, or are out of date, or nobody has asked for the
            hour in which it ends. Hours before that one which nobody has asked for count as empty.
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
        _granules(window), lambda: reader.rows("granules", terms, window.columns)
    )
    batches = Figures(window, incomplete)(rows.to_batches())
    figures: list[dict[str, Any]] = pa.Table.from_batches(batches, window.schema).to_pylist()
    if figures:
        return figures[0]
    if key and not reader.rows("granules", of_key, ["hour"]).num_rows:
        values = ", ".join(f"{column} {value!r}" for column, value in key.items())
        raise UnknownKey(f"key: no hour of block {window.block.name} has a record of {values}")
    return None


def horizons(
    reader: Reader, spark: SparkSession, until: datetime, h: timedelta | str, block: str | None = None
) -> DataFrame:
    """Return the same of every key that has a record, by Spark.

    Raises:
        ValueError, StaleDataError: as `horizon`.
    """
    window = _window(reader.stream, until, h, block)
    # The version is pinned: rows may be asked for when a run has replaced them.
    pins, incomplete = reader.read_fresh(
        _granules(window), lambda: Store(spark, reader.root).pin(["granules"])
    )
    rows = pins.read("granules", window.hours).where(F.col("block") == window.block.name)
    rows = rows.select(*quoted(window.columns))
    by_key = rows.repartition(*quoted(window.block.key)) if window.block.key else rows.repartition(1)
    return by_key.mapInArrow(Figures(window, incomplete), from_arrow_schema(window.schema))


def _window(stream: Stream, until: datetime, h: timedelta | str, block: str | None) -> Horizon:
    blocks = list(stream.blocks(Aggregation))
    if block is None and len(blocks) != 1:
        raise ValueError(f"block: must be one of aggregates': {', '.join(blocks) or 'it has none'}")
    name = block or blocks[0]
    if name not in blocks:
        raise ValueError(f"block: aggregates has no block {name!r}{did_you_mean(name, blocks)}")
    back = parse_duration(h) if isinstance(h, str) else h
    return Horizon.of(block_of(stream, name), in_utc(until), back)


def _granules(window: Horizon) -> list[PartitionKey]:
    """The partitions that a window is made of."""
    return [PartitionKey("aggregates", window.block.name, "granules", hour) for hour in window.hours]


def _require_type(name: str, value: Any, kind: FieldType) -> None:
    """Check that a value of a key is of its column's type; None, which is null, is of every type.

    Raises:
        ValueError: it is not; SQL would compare it all the same, as '443' with 443.
    """
    fits: dict[FieldType, bool] = {
        "string": isinstance(value, str),
        "integer": isinstance(value, Integral) and not isinstance(value, bool | np.bool_),
        "number": isinstance(value, Real) and not isinstance(value, bool | np.bool_),
        "boolean": isinstance(value, bool | np.bool_),
        "timestamp": isinstance(value, datetime),
    }
    if value is not None and not fits[kind]:
        raise ValueError(f"key: must be {with_article(kind)} for {name}; got {value!r}")
