"""The blocks of a stream, resolved against its columns: what the tables' columns follow from."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from transom.core import rounding
from transom.core.intervals import HOUR, MICROSECOND
from transom.features.aggregates.algorithm.granules import WindowLevel
from transom.features.aggregates.output_columns import columns_of, hash_column, state_columns
from transom.features.aggregates.spec import Aggregation
from transom.formats.record_format import Field, FieldType
from transom.spec.stream import Stream
from transom.storage.tables import SPARK_TYPES


@dataclass(frozen=True)
class Unit:
    """The resolution of a column, of which its values are multiples.

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
        unit: length of a unit, in microseconds.
        value: the figure of a unit's values that is its value: mean, sum, min or max.
        carried: whether a unit without values has the last value; else it has 0.
    """

    unit: int
    value: str
    carried: bool


@dataclass(frozen=True)
class AggregateBlock:
    """A block of `aggregates`, with types, units and defaults.

    Attributes:
        key: the Spark types of the key's columns.
        where: the condition on events, as Spark SQL.
        measures: function and column of counts, sums, means and extremes.
        distinct: the columns of counts of distinct values.
        figures: the columns of each measure.
        units: the units of the measured columns.
        levels: the finest first.
        base: length of a granule, in microseconds.
        item: the Spark types of an item's columns; empty without recurring items.
        item_base: length of an item's granule, in microseconds.
        aging: a weight for each level, the finest first.
    """

    name: str
    key: Mapping[str, str]
    where: str | None
    measures: Mapping[str, tuple[str, str | None]]
    distinct: Mapping[str, str]
    figures: Mapping[str, Mapping[str, FieldType]]
    units: Mapping[str, Unit]
    levels: tuple[WindowLevel, ...]
    base: int
    item: Mapping[str, str]
    item_base: int
    fit: FitParams | None
    aging: tuple[float, ...] | None

    @property
    def reach(self) -> int:
        """The number of hours before its own that the reports of an hour read."""
        return max(map(self.reach_of, self.levels))

    @staticmethod
    def reach_of(level: WindowLevel) -> int:
        """Return the reach of one level.

        The first report after `h` is at `h + gcd(slide, 1 hour)` or later.
        """
        hour = HOUR // MICROSECOND
        return -((math.gcd(level.slide, hour) - level.range) // hour)

    @property
    def hashed(self) -> list[str]:
        """The columns whose distinct values are counted."""
        return sorted(set(self.distinct.values()))

    def state_columns(self) -> dict[str, str]:
        """Return the Spark types of this block's columns in `granules`: sums and hashes."""
        sums = {
            name: SPARK_TYPES[kind] for column in self.units for name, kind in state_columns(column).items()
        }
        return sums | {hash_column(column): "array<bigint>" for column in self.hashed}

    def figure_columns(self) -> dict[str, str]:
        """Return the Spark types of this block's columns in `aggregates`."""
        return {
            name: SPARK_TYPES[kind] for columns in self.figures.values() for name, kind in columns.items()
        }


def block_of(stream: Stream, name: str) -> AggregateBlock:
    """Return a block of the stream file, resolved."""
    spec, fields = stream.blocks(Aggregation)[name], stream.event_columns
    where = stream.where_of(spec)
    pairs = {name: (measure.function, measure.column) for name, measure in spec.measures.items()}
    measures = {name: pair for name, pair in pairs.items() if pair[0] != "distinct"}
    fit = None
    if spec.fit and spec.unit:
        fit = FitParams(spec.unit // MICROSECOND, spec.fit.value, spec.fit.missing == "last")
    return AggregateBlock(
        name=name,
        key={column: SPARK_TYPES[fields[column].type] for column in spec.key},
        where=where.sql if where else None,
        measures=measures,
        distinct={
            name: column for name, (function, column) in pairs.items() if column and name not in measures
        },
        figures=columns_of(stream, name),
        units={column: Unit.of(fields[column]) for column in sorted({c for _, c in measures.values() if c})},
        levels=tuple(
            WindowLevel(level.range // MICROSECOND, level.slide // MICROSECOND)
            for level in reversed(spec.levels)
        ),
        base=spec.base // MICROSECOND,
        item={column: SPARK_TYPES[fields[column].type] for column in spec.recurring},
        item_base=spec.item_base // MICROSECOND,
        fit=fit,
        aging=spec.aging and spec.aging[::-1],
    )
