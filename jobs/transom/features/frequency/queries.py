"""Queries of the window of an hour, without Spark."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa

from transom.core.intervals import HOUR, hour_of, number_of
from transom.core.partitions import PartitionKey
from transom.engine.reader import Reader, in_utc, sql_literal, sql_name
from transom.features.frequency.algorithm.window_sketch import WindowSketch
from transom.features.frequency.resolve import FrequencyBlock, frequency_block_of
from transom.features.frequency.spec import Frequency
from transom.features.frequency.tables_cells import VALUE_SCHEMA, values_of_rows
from transom.features.frequency.windows import HEAVY, Hours
from transom.features.items import validate as item_rules
from transom.formats.record_format import FieldType
from transom.spec.errors import did_you_mean
from transom.spec.literals import TYPES
from transom.spec.stream import Stream
from transom.storage.tables import in_hours_sql

ITEM_PYTHON_TYPES: dict[FieldType, type] = {**TYPES, "timestamp": datetime}
"""The type of an item's value in Python, by the type of its column."""


@dataclass(frozen=True)
class Answer:
    """The frequency of an item in a window.

    Attributes:
        estimate: the sketch's estimate, limited to the bounds.
        low: the lower bound.
        high: the upper bound.
        margin: the estimate is too large by more than this with probability at most `delta`; None if there is
            no such bound.
        records: the number of records in the window, of all items.
    """

    estimate: int
    low: int
    high: int
    margin: float | None
    records: int


def frequency(reader: Reader, sketch: str, item: Any, at: datetime) -> Answer:
    """Return how often any item occurs in the window that ends at a time (Rivetti, Busnel and Mostefaoui,
    listings 2.1 to 3.4).

    Args:
        sketch: the name of a block of `frequency`.
        item: a value for each of its columns, as a tuple or list in their order; or the value of its only
            column.
        at: the end of the window, exclusive: the end of an hour, with a zone.

    Raises:
        ValueError: the block does not exist, the item has other columns or types or is too long, or the time
            is not the end of an hour.
        StaleDataError: an hour of the window is missing or out of date, or the last one was not requested.
            Earlier hours that were not requested count as empty.
    """
    block, last = _window(reader.stream, sketch, at)
    values = dict(zip(block.item, _values(item, block, reader.stream), strict=True))
    is_item = (f"{sql_name(name)} = {sql_literal(value)}" for name, value in values.items())
    rows, hour = _read(reader, block, last, " AND ".join(is_item)), number_of(last)
    queried = {name: pa.array([value], rows.schema.field(name).type) for name, value in values.items()}
    # A heavy item is a candidate whether or not an hour has kept it.
    times = {name: pa.array([last], pa.timestamp("us", "UTC")) for name in ("hour", "since")}
    heavy = pa.table({"row_kind": [HEAVY], **times, **queried})
    hours = Hours(block, _concat(rows, heavy))
    (code,) = hours.heavy[hour]
    window = hours.window(hour, np.array([code]))
    (at_code,) = np.flatnonzero(window.item == code)
    margin = None if window.margin is None else float(window.margin[at_code])
    low, high = int(window.low[at_code]), int(window.high[at_code])
    return Answer(int(window.estimate[at_code]), low, high, margin, window.records)


def sketch(reader: Reader, sketch: str, at: datetime) -> WindowSketch:
    """Return the sketch of the window of a block that ends at a time.

    It estimates the count of any item. Sketches of the same shape, seed, variant, tick, window and end can be
    added, such as those of other streams (section 3.5).

    Args:
        sketch: the name of a block of `frequency`.
        at: the end of the window, exclusive: the end of an hour, with a zone.

    Raises:
        ValueError: the block does not exist, or the time is not the end of an hour.
        StaleDataError: as for `frequency`.
    """
    block, last = _window(reader.stream, sketch, at)
    return Hours(block, _read(reader, block, last, "FALSE")).sketch(number_of(last))


def _window(stream: Stream, sketch: str, at: datetime) -> tuple[FrequencyBlock, datetime]:
    """Return a block, and the last hour of the window that ends at a time."""
    blocks = stream.blocks(Frequency)
    if sketch not in blocks:
        raise ValueError(f"sketch: frequency has no block {sketch!r}{did_you_mean(sketch, blocks)}")
    end = in_utc(at)
    if end != hour_of(end):
        raise ValueError(f"at: must be the end of an hour; got {at.isoformat()}")
    return frequency_block_of(stream, sketch), end - HOUR


def _read(reader: Reader, block: FrequencyBlock, last: datetime, is_item: str) -> pa.Table:
    """Return the rows of a window in the form of `combine_rows`, with the items that meet a SQL condition."""
    hours = [last - back * HOUR for back in range(block.back, -1, -1)]
    partitions = [PartitionKey("frequency", block.name, "tick_matrices", hour) for hour in hours]
    if block.chained:
        partitions.append(PartitionKey("frequency", block.name, "cells", last))
    of_block = f"block = {sql_literal(block.name)}"
    selected = f"(row_kind IN ('hour', 'others') OR (row_kind = 'item' AND {is_item}))"

    def read() -> pa.Table:
        rows = reader.rows("tick_matrices", [of_block, in_hours_sql(hours), selected])
        cells = reader.rows("cells", [of_block, in_hours_sql([last])]) if block.chained else None
        return combine_rows(block, rows, cells)

    return reader.read_fresh(partitions, read)[0]


def _values(item: Any, block: FrequencyBlock, stream: Stream) -> tuple[Any, ...]:
    """Return the values of a queried item.

    Raises:
        ValueError: it is no valid item of the block.
    """
    values = tuple(item) if isinstance(item, tuple | list) else (item,)
    if len(values) != len(block.item):
        raise ValueError(f"item: must have a value for each of {', '.join(block.item)}; got {item!r}")
    for rule in item_rules.value_problems(values, block.item, stream, ITEM_PYTHON_TYPES):
        raise ValueError(f"item: {rule}")
    return values


def combine_rows(block: FrequencyBlock, rows: pa.Table, cells: pa.Table | None) -> pa.Table:
    """Return rows of `tick_matrices`, and for chained variants of `cells`, in the form of
    `windows.rows_of_windows`."""
    columns = {name: rows[name] for name in ("hour", "row_kind", "records", *block.item)}
    table = pa.table({"counters": rows["cells"], **columns})
    if cells is None:
        return table
    values = values_of_rows(block, cells.rename_columns({"row": "number"}).to_batches())
    return _concat(table, pa.Table.from_batches(values, VALUE_SCHEMA))


def _concat(*tables: pa.Table) -> pa.Table:
    return pa.concat_tables(tables, promote_options="default").combine_chunks()
