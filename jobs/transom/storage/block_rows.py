"""Rows of blocks that tasks take as they are stored: on the driver if they are few, else in Spark.

Without an expression of the stream file to evaluate, a job for a few rows takes longer than their task.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial, reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from transom.storage.session import frame_of
from transom.storage.store import PinnedTables
from transom.storage.tables import ARROW_TYPES, literal


@dataclass(frozen=True)
class BlockRows:
    """The selection of a block's rows in some hours of a table.

    Attributes:
        table: the table.
        block: the block.
        hours: the hours.
        columns: the columns, by the names that tasks know them by.
        values: further columns that have one value, with its Spark type.
        only: the permitted values of columns.
    """

    table: str
    block: str
    hours: Collection[datetime]
    columns: Mapping[str, str]
    values: Mapping[str, tuple[Any, str]] = field(default_factory=dict)
    only: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def on_driver(self, pins: PinnedTables) -> pa.Table | None:
        """Return the rows as an Arrow table; None if these are perhaps too many."""
        conditions = (
            f'"{column}" IN ({", ".join(map(literal, permitted))})' for column, permitted in self._permitted()
        )
        columns = set(self.columns.values())
        rows = pins.select_small(self.table, self.hours, columns, " AND ".join(conditions))
        if rows is None:
            return None
        selected = {name: rows[column] for name, column in self.columns.items()}
        for name, (value, kind) in self.values.items():
            selected[name] = pa.repeat(pa.scalar(value, ARROW_TYPES[kind]), rows.num_rows)
        return pa.table(selected)

    def frame(self, pins: PinnedTables) -> DataFrame:
        """Return the rows as a frame."""
        rows = self.on_driver(pins)
        return self.in_spark(pins) if rows is None else frame_of(pins.store.spark, rows)

    def in_spark(self, pins: PinnedTables) -> DataFrame:
        """Return the rows as a frame, selected by Spark."""
        rows = pins.read(self.table, self.hours)
        for column, permitted in self._permitted():
            rows = rows.where(F.col(column).isin(*permitted))
        values = (F.lit(value).cast(kind).alias(name) for name, (value, kind) in self.values.items())
        return rows.select(*(F.col(f"`{of}`").alias(name) for name, of in self.columns.items()), *values)

    def _permitted(self) -> list[tuple[str, Sequence[str]]]:
        return [("block", [self.block]), *self.only.items()]


def select(pins: PinnedTables, selections: Iterable[BlockRows]) -> pa.Table | DataFrame:
    """Return the rows of several selections; a column that one of them lacks is null in its rows.

    Args:
        pins: the tables.
        selections: the selections.

    Returns:
        An Arrow table if the rows are few, else a frame.
    """
    selections = list(selections)
    tables: list[pa.Table] = []
    for one in selections:
        if (rows := one.on_driver(pins)) is None:
            return select_frame(pins, selections)
        tables.append(rows)
    return pa.concat_tables(tables, promote_options="default").combine_chunks()


def select_frame(pins: PinnedTables, selections: Iterable[BlockRows]) -> DataFrame:
    """Return the rows of several selections as a frame, as `select`."""
    frames = (one.in_spark(pins) for one in selections)
    return reduce(partial(DataFrame.unionByName, allowMissingColumns=True), frames)
