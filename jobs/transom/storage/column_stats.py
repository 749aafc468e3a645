"""Statistics of the columns of a data file, as Delta's log has them. Readers skip files by them."""

from collections.abc import Mapping
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
    least: dict[str, int | str | None] = {}
    most: dict[str, int | str | None] = {}
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
            least[column.name] = _bound(min(group.min for group in filled), is_upper=False)
            most[column.name] = _bound(max(group.max for group in filled), is_upper=True)
    minima, maxima = (
        {name: bound for name, bound in of.items() if bound is not None} for of in (least, most)
    )
    return {"minValues": minima, "maxValues": maxima, "nullCount": nulls}


def _bound(value: object, is_upper: bool) -> int | str | None:
    """Return the bound of a value; None if it has none."""
    match value:
        case bool():
            return None
        case int():
            return value
        case datetime():
            return _milliseconds(value, is_upper)
        case str() if len(value) <= PREFIX:
            return value
        case str() if not is_upper:
            return value[:PREFIX]
        case str():
            # The prefix alone is less than the text. An additional character that is greater than the next
            # one makes it an upper bound.
            ends = (value[:PREFIX] + end for end in ("\x7f", "\U0010ffff") if value[PREFIX] < end)
            return next(ends, None)
    return None


def _milliseconds(moment: datetime, is_upper: bool) -> str:
    """Return a bound of a time: Delta's bounds are whole milliseconds."""
    millis = -((EPOCH - moment) // MILLISECOND) if is_upper else (moment - EPOCH) // MILLISECOND
    return f"{(EPOCH + millis * MILLISECOND).replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"
