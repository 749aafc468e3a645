"""Statistics of the columns of a data file, as Delta's log has them. Readers skip files by them."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

import pyarrow.parquet as pq

from transom.core.intervals import EPOCH

COLUMNS = 32
"""The number of columns with statistics: the first ones, as of Delta's own writers."""
PREFIX = 32
"""The maximum number of characters of a text in a bound, without its end."""
MILLISECOND = timedelta(milliseconds=1)
ColumnStats = Mapping[str, Mapping[str, Any]]
"""The parts `minValues`, `maxValues` and `nullCount`, each by column."""


def column_stats(file: pq.FileMetaData) -> ColumnStats:
    """Return the statistics of the columns of a Parquet file.

    Whole numbers, times and texts have bounds. Other columns have none: for example, Parquet's bounds of
    doubles omit NaN, which Delta orders after all numbers.
    """
    least: dict[str, Any] = {}
    most: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for place in range(min(file.num_columns, COLUMNS)):
        column = file.schema.column(place)
        # The others are inside of arrays.
        if column.path != column.name:
            continue
        groups = [file.row_group(group).column(place).statistics for group in range(file.num_row_groups)]
        if any(group is None or not group.has_null_count for group in groups):
            continue
        nulls[column.name] = sum(group.null_count for group in groups)
        filled = [group for group in groups if group.num_values]
        if filled and all(group.has_min_max for group in filled):
            least |= _bound(column.name, min(group.min for group in filled), is_upper=False)
            most |= _bound(column.name, max(group.max for group in filled), is_upper=True)
    return {"minValues": least, "maxValues": most, "nullCount": nulls}


def _bound(name: str, value: object, is_upper: bool) -> dict[str, Any]:
    return {name: bound for bound in _bounds(value, is_upper)}


def _bounds(value: object, is_upper: bool) -> Iterator[int | str]:
    """Yield the bound of a value; nothing if it has none."""
    match value:
        case bool() | float():
            return
        case int():
            yield value
        case datetime():
            yield _milliseconds(value, is_upper)
        case str() if len(value) <= PREFIX:
            yield value
        case str() if not is_upper:
            yield value[:PREFIX]
        case str():
            # The prefix alone is less than the text. An additional character that is greater than the next
            # one makes it an upper bound.
            end = next((end for end in ("\x7f", "\U0010ffff") if value[PREFIX] < end), None)
            if end is not None:
                yield value[:PREFIX] + end


def _milliseconds(moment: datetime, is_upper: bool) -> str:
    """Return a bound of a time: Delta's bounds are whole milliseconds."""
    millis = -((EPOCH - moment) // MILLISECOND) if is_upper else (moment - EPOCH) // MILLISECOND
    return f"{(EPOCH + millis * MILLISECOND).replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"
