"""A block of `aggregates` with types, units and defaults, as the stage uses it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from transom.core import rounding
from transom.core.intervals import HOUR_LENGTH, MICROSECOND
from transom.features.aggregates.algorithm.granules import WindowLevel
from transom.features.aggregates.output_columns import (
    alert_figures,
    columns_of,
    hash_column,
    state_columns,
)
from transom.features.aggregates.spec import Aggregation
from transom.formats.record_format import Field, FieldType
from transom.spec.stream import Stream
from transom.storage.tables import SPARK_TYPES, Table


@dataclass(frozen=True)
class Unit:
    """The resolution of a column. The values of the column are multiples of it.

    Attributes:
        step: the resolution, as numerator and denominator.
        is_whole: whether the column has the type integer.
    """

    step: tuple[int, int]
    is_whole: bool

    @classmethod
    def of(cls, field: Field) -> "Unit":
        """Return the unit of a column."""
        if field.type == "integer":
            return cls((1, 1), True)
        return cls(rounding.ratio(field.resolution), False)


@dataclass(frozen=True)
class FitParams:
    """The series of a block's lines.

    Attributes:
        unit: the length of a unit, in microseconds.
        value: the function of a unit's values: mean, sum, min or max.
        carried: whether a unit without values has the last value; else it has 0.
    """

    unit: int
    value: str
    carried: bool


@dataclass(frozen=True)
class AggregateBlock:
    """A block of `aggregates`, with types, units and defaults; columns have their Spark types.

    Attributes:
        name: the name of the block.
        key: the columns of the key.
        where: the condition on events, as Spark SQL; None selects all.
        measures: function and column of each count, sum, mean and extreme, by measure.
        distinct: the column of each count of distinct values, by measure.
        units: the units of the measured columns.
        levels: the levels, the finest first.
        base: the length of a granule, in microseconds.
        item: the columns of an item; empty without recurring items.
        item_base: the length of an item's granule, in microseconds.
        fit: the series of its lines; None without lines.
        aging: a weight for each level, the finest first; None without aged means.
        state: its columns in `granules`: sums and hashes.
        figures: its columns in `aggregates`.
        alert_figures: its columns in `alerts`.
    """

    name: str
    key: Mapping[str, str]
    where: str | None
    measures: Mapping[str, tuple[str, str | None]]
    distinct: Mapping[str, str]
    units: Mapping[str, Unit]
    levels: tuple[WindowLevel, ...]
    base: int
    item: Mapping[str, str]
    item_base: int
    fit: FitParams | None
    aging: tuple[float, ...] | None
    state: Mapping[str, str]
    figures: Mapping[str, str]
    alert_figures: Mapping[str, str]

    @property
    def reach(self) -> int:
        """The number of earlier hours that the aggregates of an hour read."""
        return max(map(self.reach_of, self.levels))

    @staticmethod
    def reach_of(level: WindowLevel) -> int:
        """Return the number of earlier hours that the windows of a level read.

        The first window that ends after `h` ends at `h + gcd(slide, 1 hour)` or later.
        """
        return -((math.gcd(level.slide, HOUR_LENGTH) - level.range) // HOUR_LENGTH)

    def declared(self, table: str) -> dict[str, Mapping[str, str]]:
        """Return the block's columns for the placeholders of a table."""
        figures = self.alert_figures if table == "alerts" else self.figures
        return {"key": self.key, "state": self.state, "figures": figures, "item": self.item}

    def schema(self, table: str) -> pa.Schema:
        """Return the schema of the block's rows in a table. It reads descriptions, which tasks lack."""
        return Table.load(table).declare(**self.declared(table)).block_schema()


def block_of(stream: Stream, name: str) -> AggregateBlock:
    """Resolve a block of a stream."""
    spec, fields = stream.blocks(Aggregation)[name], stream.event_columns
    where = stream.where_of(spec)
    pairs = {name: (measure.function, measure.column) for name, measure in spec.measures.items()}
    measures = {name: pair for name, pair in pairs.items() if pair[0] != "distinct"}
    distinct = {name: column for name, (_, column) in pairs.items() if column and name not in measures}
    measured = sorted({column for _, column in measures.values() if column})
    fit = None
    if spec.fit and spec.unit:
        fit = FitParams(spec.unit // MICROSECOND, spec.fit.value, spec.fit.missing == "last")
    return AggregateBlock(
        name=name,
        key=_spark_types({column: fields[column].type for column in spec.key}),
        where=where.sql if where else None,
        measures=measures,
        distinct=distinct,
        units={column: Unit.of(fields[column]) for column in measured},
        levels=tuple(
            WindowLevel(level.range // MICROSECOND, level.slide // MICROSECOND)
            for level in reversed(spec.levels)
        ),
        base=spec.base // MICROSECOND,
        item=_spark_types({column: fields[column].type for column in spec.recurring}),
        item_base=spec.item_base // MICROSECOND,
        fit=fit,
        aging=spec.aging and spec.aging[::-1],
        state=_spark_types(*map(state_columns, measured))
        | {hash_column(column): "array<bigint>" for column in sorted(set(distinct.values()))},
        figures=_spark_types(*columns_of(stream, name).values()),
        alert_figures=_spark_types(alert_figures(stream, name)),
    )


def _spark_types(*columns: Mapping[str, FieldType]) -> dict[str, str]:
    return {name: SPARK_TYPES[kind] for part in columns for name, kind in part.items()}
