"""The columns that make an item, as Spark groups by them."""

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import add, and_, or_
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column
from pyspark.sql import functions as F

from transom.arrays.arrow import int64s
from transom.features.items.tables import LONG
from transom.features.items.validate import LONGEST
from transom.ledger.task_counters import NOTES, TaskCounters

BEGINNING = 60
"""Characters shown of an item that is too long."""


def item_columns(item: Mapping[str, str]) -> tuple[list[Column], Column]:
    """Return an item's columns, and whether it is too long. If so, only the beginnings of its texts are kept,
    and it is not counted.

    Args:
        item: the Spark type of each column.
    """
    texts = {name: F.col(f"`{name}`") for name, kind in item.items() if kind == "string"}
    long = reduce(add, map(F.octet_length, texts.values()), F.lit(0)) > LONGEST
    shortened = {
        name: F.when(long, F.left(column, F.lit(BEGINNING))).otherwise(column).alias(name)
        for name, column in texts.items()
    }
    return [shortened.get(name, F.col(f"`{name}`")) for name in item], long.alias("long")


def is_among(item: Iterable[str], items: Iterable[Sequence[Any]]) -> Column:
    """Return whether an item is one of the given ones, each with a value for every column."""
    names = list(item)
    same = (
        reduce(and_, (F.col(f"`{name}`") == F.lit(value) for name, value in zip(names, values, strict=True)))
        for values in items
    )
    return reduce(or_, same, F.lit(False))


def without_long(rows: pa.Table, item: Sequence[str], hour: str, tally: TaskCounters, check: str) -> pa.Table:
    """Return the rows without items that are too long; count and note these.

    Args:
        rows: with their numbers of `records`.
        hour: the column of the rows' hours.
        check: the check whose failing rows the notes are.
    """
    is_long = pc.fill_null(rows["long"], False)
    if not pc.any(is_long).as_py():
        return rows
    long = rows.filter(is_long)
    hours = int64s(long[hour])
    tally.add(LONG, hours, int64s(long["records"]))
    items = pc.binary_join_element_wise(*(long[name].cast(pa.string()) for name in item), ", ")
    for at in np.unique(hours).tolist():
        # The first ones of each hour, as the tasks of a run keep them.
        for text in sorted(items.filter(pa.array(hours == at)).unique().to_pylist())[:NOTES]:
            tally.note(check, at, text)
    return rows.filter(pc.invert(is_long)).combine_chunks()
