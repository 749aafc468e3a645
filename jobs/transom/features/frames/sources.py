"""What frames go by and are filled with: a stream's events, or the granules of an aggregation as if these
were.

A granule is a reading at its start; its measures are columns, those of them that can be told of one granule.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from transom.engine.hours import quoted
from transom.features.aggregates.resolve import Block, Unit, block_of
from transom.formats.record_format import Field
from transom.spec.stream import Stream
from transom.storage.external import Filler
from transom.storage.store import Pins

TIME = "event_time"
MEAN_STEPS = 2**20
"""A mean is no multiple of its column's resolution; it is counted in steps that are so much finer."""
_WHOLE = Unit((1, 1), True)


def steps_column(name: str) -> str:
    """The column that holds a number in whole steps of its unit."""
    return f"__steps_{name}"


@dataclass(frozen=True)
class Source:
    """Where rows are read.

    Attributes:
        over: the aggregation whose granules they are; None where they are events.
        fields: the columns of the events.
        filler: what is read instead of events, where that is not the stream's own.
    """

    over: Block | None
    fields: dict[str, Field]
    filler: Filler | None = None

    @classmethod
    def of(cls, stream: Stream, over: str | None) -> "Source":
        """The events of a stream, or a block's granules."""
        return cls(None if over is None else block_of(stream, over), dict(stream.event_columns))

    @classmethod
    def outside(cls, filler: Filler) -> "Source":
        """What is not the stream's own."""
        return cls(None, {column.name: column for column in filler.columns}, filler)

    @property
    def table(self) -> tuple[str, str, str]:
        """The stage, block and table of the rows."""
        if self.filler is not None:
            return self.filler.series
        if self.over is None:
            return "ingest", "events", "events"
        return "aggregate", self.over.name, "granules"

    def read(self, pins: Pins, hours: Collection[datetime]) -> DataFrame:
        """The rows of some hours."""
        return (
            pins.read(self.table[2], hours) if self.filler is None else pins.read_filler(self.filler, hours)
        )

    def unit(self, name: str) -> Unit:
        """In which a number is counted."""
        if self.over is None:
            return Unit.of(self.fields[name])
        function, column = self.over.measures[name]
        if column is None:
            return _WHOLE
        (up, down), whole = self.over.units[column].step, self.over.units[column].whole
        return Unit((up, down * MEAN_STEPS), False) if function == "mean" else Unit((up, down), whole)

    def rows(
        self, table: DataFrame, key: Iterable[str], columns: Iterable[str], steps: Iterable[str]
    ) -> DataFrame:
        """Rows of the source's table: the key, `TIME`, some columns as conditions see them, and some
        numbers in whole steps."""
        key, names, counted = list(key), [c for c in columns if c not in key and c != TIME], list(steps)
        if self.over is None:
            told = [*quoted(names), *(self._event_steps(name).alias(steps_column(name)) for name in counted)]
            return table.select(*quoted(key), TIME, *told)
        return table.where(F.col("block") == self.over.name).select(
            *quoted(key),
            F.col("granule").alias(TIME),
            *(self._measure(name).alias(name) for name in names),
            *(self._granule_steps(name).alias(steps_column(name)) for name in counted),
        )

    def _event_steps(self, name: str) -> Column:
        unit, column = self.unit(name), F.col(f"`{name}`")
        up, down = unit.step
        # What others have written may be no number, or too large for one.
        return column if unit.whole else F.rint(column.cast("double") * down / up).try_cast("bigint")

    def _measure(self, name: str) -> Column:
        assert self.over is not None
        function, column = self.over.measures[name]
        if column is None:
            return F.col("records")
        up, down = self.over.units[column].step
        if function == "mean":
            return F.col(f"sum_{column}") * F.lit(float(up)) / F.lit(float(down)) / F.col(f"values_{column}")
        figure = F.col(f"{function}_{column}")
        return figure if self.over.units[column].whole else figure * F.lit(float(up)) / F.lit(float(down))

    def _granule_steps(self, name: str) -> Column:
        assert self.over is not None
        function, column = self.over.measures[name]
        if column is None:
            return F.col("records")
        if function == "mean":
            mean = F.col(f"sum_{column}").cast("double") / F.col(f"values_{column}")
            return F.rint(mean * F.lit(float(MEAN_STEPS))).cast("bigint")
        return F.col(f"{function}_{column}")
