"""What is asked of a window of frequent items, answered without Spark from the rows of its hours."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transom.core.intervals import HOUR_LENGTH
from transom.features.frequency.algorithm.window_sketch import WindowSketch
from transom.features.frequency.cell_values import SCHEMA, CellValues
from transom.features.frequency.resolve import FrequencyBlock
from transom.features.frequency.windows import HEAVY, Hours


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
