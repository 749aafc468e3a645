"""What is asked of a window of frequent items, answered without Spark from the rows of its hours."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transom.core.intervals import HOUR, HOUR_LENGTH, hour_of, number_of
from transom.core.partitions import PartitionKey
from transom.engine.reader import Reader, in_utc, sql_literal, sql_name
from transom.features.frequency.algorithm.window_sketch import WindowSketch
from transom.features.frequency.cell_values import SCHEMA, CellValues
from transom.features.frequency.resolve import FrequencyBlock, frequency_block_of
from transom.features.frequency.spec import Frequency
from transom.features.frequency.windows import HEAVY, Hours
from transom.features.items import validate as item_rules
from transom.formats.record_format import FieldType
from transom.spec.errors import did_you_mean
from transom.spec.stream import Stream
from transom.storage.tables import in_hours_sql

ITEM_PYTHON_TYPES: dict[FieldType, type] = {**item_rules.TYPES, "timestamp": datetime}
"""Types of the values of an item that is asked for."""


@dataclass(frozen=True)
class Answer:
    """How often an item was seen in a window.

    Attributes:
        estimate: by the sketch, within the bounds.
        low, high: at least, and at most.
        margin: the estimate is too large by more than this with probability `delta` at most; None where there
            is no such bound.
        records: of the window, of all items.
    """

    estimate: int
    low: int
    high: int
    margin: float | None
    records: int


def frequency(reader: Reader, sketch: str, item: Any, at: datetime) -> Answer:
    """Return how often an item was seen in the window that ends at a time, without Spark.

    Any item may be asked for, whether or not some hour has kept it: `estimate` is that of its sketch,
    within what is known of it besides (Rivetti, Busnel and Mostefaoui, listings 2.1 to 3.4).

    Args:
        sketch: a block of `frequency`.
        item: a value for each of its columns, a tuple or a list in their order; of one column the value
            itself.
        at: the end of the window, outside; the end of an hour, with a zone.

    Raises:
        ValueError: no such block, an item of other columns or types, one so long that it is passed over,
            or a time that is no hour's end.
        StaleDataError: an hour of the window is not there, or is out of date, or nobody has asked for the
            last one. Hours before that one which nobody has asked for count as empty.
    """
    block, last = _window(reader.stream, sketch, at)
    values = _values(item, block, reader.stream)
    columns = zip(block.item, values, strict=True)
    is_item = [f"{sql_name(name)} = {sql_literal(value)}" for name, value in columns]
    return frequency_of(block, values, *_read(reader, block, last, is_item), number_of(last))


def sketch(reader: Reader, sketch: str, at: datetime) -> WindowSketch:
    """Return what the sketch of a block holds at a time: others of the same shape, hashes, window and end may
    be added to it, as those of another stream or lake (section 3.5), and any item be asked for.

    Args:
        sketch, at: as of `frequency`.

    Raises:
        ValueError, StaleDataError: as `frequency`.
    """
    block, last = _window(reader.stream, sketch, at)
    return sketch_of(block, *_read(reader, block, last, ["FALSE"]), number_of(last))


def _window(stream: Stream, sketch: str, at: datetime) -> tuple[FrequencyBlock, datetime]:
    """A block, and the hour with which the window ends."""
    blocks = stream.blocks(Frequency)
    if sketch not in blocks:
        raise ValueError(f"sketch: frequency has no block {sketch!r}{did_you_mean(sketch, blocks)}")
    end = in_utc(at)
    if end != hour_of(end):
        raise ValueError(f"at: must be the end of an hour; got {at.isoformat()}")
    return frequency_block_of(stream, sketch), end - HOUR


def _read(
    reader: Reader, block: FrequencyBlock, last: datetime, is_item: Sequence[str]
) -> tuple[pa.Table, pa.Table | None]:
    """The rows of the hours of a window, of items that meet every one of some conditions; and what cells
    hold."""
    hours = [last - back * HOUR for back in range(block.back, -1, -1)]
    matrices = [PartitionKey("frequency", block.name, "tick_matrices", hour) for hour in hours]
    cells = [PartitionKey("frequency", block.name, "cells", last)] if block.chained else []
    of_block = f"block = {sql_literal(block.name)}"
    selected = f"(row_kind IN ('hour', 'others') OR (row_kind = 'item' AND {' AND '.join(is_item)}))"

    def read() -> tuple[pa.Table, pa.Table | None]:
        rows = reader.rows("tick_matrices", [of_block, in_hours_sql(hours), selected])
        return rows, reader.rows("cells", [of_block, in_hours_sql([last])]) if cells else None

    tables, _ = reader.read_fresh([*matrices, *cells], read)
    return tables


def _values(item: Any, block: FrequencyBlock, stream: Stream) -> tuple[Any, ...]:
    """An item as a value for each of its columns.

    Raises:
        ValueError: it is none.
    """
    values = tuple(item) if isinstance(item, tuple | list) else (item,)
    if len(values) != len(block.item):
        raise ValueError(f"item: must have a value for each of {', '.join(block.item)}; got {item!r}")
    for name, value in zip(block.item, values, strict=True):
        kind = stream.event_types[name]
        if type(value) is not ITEM_PYTHON_TYPES[kind]:
            raise ValueError(f"item: must be {item_rules.with_article(kind)} for {name}; got {value!r}")
        for rule in item_rules.why_invalid(name, value):
            raise ValueError(f"item: {rule}")
    for rule in item_rules.why_skipped(values):
        raise ValueError(f"item: {rule}")
    return values


def frequency_of(
    block: FrequencyBlock, item: Sequence[Any], rows: pa.Table, left: pa.Table | None, hour: int
) -> Answer:
    """How often one item was seen in the window that ends with an hour.

    Args:
        item: a value for each of its columns.
        rows: of `tick_matrices`: those of whole hours, rests, and the item's, of the hours of the window.
        left: of `cells`: those of the hour, of a chained variant.
        hour: its number.
    """
    asked = {
        name: pa.array([value], rows.schema.field(name).type)
        for name, value in zip(block.item, item, strict=True)
    }
    table = combine_rows(block, rows, left)
    table = _joined(table, pa.table({"hour": [hour], "row_kind": [HEAVY], "since": [0], **asked}))
    hours = Hours.of(block, table)
    (place,) = hours.heavy[hour]
    window = hours.window(hour, np.array([place]))
    (at,) = np.flatnonzero(window.seen.item == place)
    margin = None if window.margin is None else float(window.margin[at])
    low, high = int(window.seen.low[at]), int(window.seen.high[at])
    return Answer(int(window.estimate[at]), low, high, margin, window.records)


def sketch_of(block: FrequencyBlock, rows: pa.Table, left: pa.Table | None, hour: int) -> WindowSketch:
    """What the matrix of the window holds that ends with an hour.

    Args:
        rows, left, hour: as of `frequency_of`, of no item.
    """
    return Hours.of(block, combine_rows(block, rows, left)).sketch(hour)


def combine_rows(block: FrequencyBlock, rows: pa.Table, left: pa.Table | None) -> pa.Table:
    """Rows of both tables, as `rows_of_windows` has them."""
    as_number = pc.divide(rows["hour"].cast(pa.int64()), HOUR_LENGTH)
    columns = {name: rows[name] for name in ("row_kind", "records", *block.item)}
    table = pa.table({"hour": as_number, "counters": rows["cells"], **columns})
    if left is None:
        return table
    number = pc.divide(left["hour"].cast(pa.int64()), HOUR_LENGTH)
    left = left.set_column(left.column_names.index("hour"), "hour", number)
    left = left.rename_columns({"row": "number"})
    if block.variant == "splitter":
        left = pa.Table.from_batches(CellValues(block)(left.to_batches()), SCHEMA)
    return _joined(table, left.select([name for name in SCHEMA.names if name in left.column_names]))


def _joined(one: pa.Table, other: pa.Table) -> pa.Table:
    return pa.concat_tables([one, other], promote_options="default").combine_chunks()
