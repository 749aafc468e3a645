"""The aggregations of a stream, resolved against its columns: what their tables' columns follow from."""

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
    """The step in which a column is counted, as numerator and denominator: values are multiples of it."""

    step: tuple[int, int]
    is_whole: bool

    @classmethod
    def of(cls, field: Field) -> "Unit":
        """The unit of a column, as its resolution gives it."""
        if field.type == "integer":
            return cls((1, 1), True)
        return cls(rounding.ratio(field.resolution), False)


@dataclass(frozen=True)
class FitParams:
    """How the series of a block's lines are made.

    Attributes:
        unit: length of a unit, in microseconds.
        value: which figure of a unit's values is its value.
        carried: whether a unit without any has the last one; else 0.
    """

    unit: int
    value: str
    carried: bool


@dataclass(frozen=True)
class AggregateBlock:
    """One aggregation of a stream, with everything that its columns are derived from.

    Attributes:
        base, item_base: lengths of the granules of keys and of their items, in microseconds.
        measures: of counts, sums, means and extremes, which figure of which column they are.
        distinct: of counts of distinct values, of which column they are.
        item: the columns of an item, where it is asked which ones are recurring.
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
        """How many hours before its own the reports of an hour reach.

        The first report after `h` is at `h + gcd(slide, 1 hour)` at the earliest.
        """
        return max(map(self.reach_of, self.levels))

    @staticmethod
    def reach_of(level: WindowLevel) -> int:
        """The same of one level."""
        hour = HOUR // MICROSECOND
        return -((math.gcd(level.slide, hour) - level.range) // hour)

    def state_columns(self) -> dict[str, str]:
        """The columns of `granules` that hold this block's sums, and hashes of what it counts distinct."""
        columns = (state_columns(column) for column in self.units)
        sums = {name: SPARK_TYPES[kind] for some in columns for name, kind in some.items()}
        return sums | {hash_column(column): "array<bigint>" for column in self.hashed}

    @property
    def hashed(self) -> list[str]:
        """The columns whose distinct values are counted."""
        return sorted(set(self.distinct.values()))

    def figure_columns(self) -> dict[str, str]:
        """The columns of `aggregates` that hold this block's measures."""
        return {name: SPARK_TYPES[kind] for some in self.figures.values() for name, kind in some.items()}


def block_of(stream: Stream, name: str) -> AggregateBlock:
    """A block of the stream file, resolved against its columns."""
    spec, fields = stream.blocks(Aggregation)[name], stream.event_columns
    where = stream.where_of(stream.blocks(Aggregation)[name])
    measures = {
        m: (measure.function, measure.column)
        for m, measure in spec.measures.items()
        if measure.function != "distinct"
    }
    distinct = {m: of.column for m, of in spec.measures.items() if of.function == "distinct" and of.column}
    measured = sorted({column for _, column in measures.values() if column is not None})
    return AggregateBlock(
        name,
        {column: SPARK_TYPES[fields[column].type] for column in spec.key},
        None if where is None else where.sql,
        measures,
        distinct,
        columns_of(stream, name),
        {column: Unit.of(fields[column]) for column in measured},
        tuple(
            WindowLevel(level.range // MICROSECOND, level.slide // MICROSECOND)
            for level in reversed(spec.levels)
        ),
        spec.base // MICROSECOND,
        {column: SPARK_TYPES[fields[column].type] for column in spec.recurring},
        spec.item_base // MICROSECOND,
        None
        if spec.fit is None or spec.unit is None
        else FitParams(spec.unit // MICROSECOND, spec.fit.value, spec.fit.missing == "last"),
        spec.aging and spec.aging[::-1],
    )
