"""Items as columns of Spark's rows and of its tasks' tables."""

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import add, and_, or_
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from transom.arrays.arrow import int64s
from transom.core.exact_sums import Bools
from transom.engine.hours import hour_number
from transom.features.items.tables import LONG
from transom.features.items.validate import LONGEST
from transom.ledger.task_counters import NOTES, TaskCounters

HOUR_NUMBER = "__hour"
"""The column with the number of a row's hour since 1970."""
BEGINNING = 60
"""Maximum number of characters of a text of an item that is too long."""


def count_items(
    events: DataFrame,
    item: Mapping[str, str],
    where: str | None,
    watched: Iterable[Sequence[Any]],
    period: Column,
    *aggregates: Column,
) -> DataFrame:
    """Return a row for each item, hour and period: its `records`, and whether it is `long` and `watched`.

    An item is `long` if its texts have more than `LONGEST` bytes. Its row has only their beginnings.

    Args:
        events: the events.
        item: the Spark type of each column of an item. Events without one of them are skipped.
        where: a condition on the events that count, as Spark SQL; None for all events.
        watched: watched items, each with a value for every column.
        period: an expression over an event's time.
        aggregates: further aggregates of the events of a row.
    """
    if where is not None:
        events = events.where(F.expr(where))
    texts = {name: F.col(f"`{name}`") for name, kind in item.items() if kind == "string"}
    long = reduce(add, map(F.octet_length, texts.values()), F.lit(0)) > LONGEST
    shortened = {
        name: F.when(long, F.left(column, F.lit(BEGINNING))).otherwise(column).alias(name)
        for name, column in texts.items()
    }
    columns = [shortened.get(name, F.col(f"`{name}`")) for name in item]
    return (
        events.dropna(subset=list(item))
        .groupBy(*columns, long.alias("long"), hour_number().alias(HOUR_NUMBER), period)
        .agg(F.count("*").alias("records"), *aggregates)
        .withColumn("watched", is_among(item, watched))
    )


def is_among(item: Iterable[str], items: Iterable[Sequence[Any]]) -> Column:
    """Return whether an item is among some items, each with a value for every column."""
    names = list(item)
    same = (
        reduce(and_, (F.col(f"`{name}`") == F.lit(value) for name, value in zip(names, values, strict=True)))
        for values in items
    )
    return reduce(or_, same, F.lit(False))


def without_long(rows: pa.Table, item: Iterable[str], tally: TaskCounters, check: str) -> pa.Table:
    """Return the rows of `count_items` without items that are too long. Count these, and note them for a
    check."""
    is_long = pc.fill_null(rows["long"], False)
    if not pc.any(is_long).as_py():
        return rows
    long = rows.filter(is_long)
    hours = int64s(long[HOUR_NUMBER])
    tally.add(LONG, hours, int64s(long["records"]))
    items = pc.binary_join_element_wise(*(long[name].cast(pa.string()) for name in item), ", ")
    for hour in np.unique(hours).tolist():
        # Only the first ones of each hour: `note` keeps no more.
        for text in sorted(items.filter(pa.array(hours == hour)).unique().to_pylist())[:NOTES]:
            tally.note(check, hour, text)
    return rows.filter(pc.invert(is_long)).combine_chunks()


def flags(column: pa.ChunkedArray) -> Bools:
    """Return a column of truth values; false for null."""
    values: Bools = pc.fill_null(column, False).to_numpy(zero_copy_only=False).astype(bool)
    return values


def columns_by_name(rows: pa.Table) -> dict[str, Any]:
    """Return the columns of rows by their names."""
    return dict(zip(rows.column_names, rows.columns, strict=True))
