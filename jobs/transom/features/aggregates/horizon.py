"""Windows that end at any granule and reach back any number of them (Patroumpas and Sellis, III.C: continuous
reporting), of the granules that a block's reports are made of, by the same code."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from transom.core.durations import format_duration
from transom.core.exact_sums import Int64s
from transom.core.intervals import HOUR, MICROSECOND, Interval, hour_of, micros
from transom.features.aggregates.algorithm.granules import WindowLevel
from transom.features.aggregates.reports import ReportBuilder, schema_of
from transom.features.aggregates.resolve import AggregateBlock

EXCLUDED = ("hour", "level")
"""Columns of reports that mean nothing of a horizon."""


@dataclass(frozen=True)
class Horizon:
    """The window `[until - h, until)` of every key of a block.

    Attributes:
        block: with one level in place of those that are not shorter than the window. In an aged mean the ring
            of each level ends where the window does, and what is beyond the widest counts as the widest.
        until: in microseconds.
    """

    block: AggregateBlock
    until: int

    @classmethod
    def of(cls, block: AggregateBlock, until: datetime, h: timedelta) -> "Horizon":
        """A window of a block's granules.

        Raises:
            ValueError: an end lies inside a granule, or inside a unit of the block's lines.
        """
        grain = math.lcm(block.base, block.fit.unit) if block.fit else block.base
        length, end = h // MICROSECOND, micros(until)
        text = format_duration(timedelta(microseconds=grain))
        if length <= 0 or length % grain:
            raise ValueError(f"h: must be a multiple of {text}, above 0; got {format_duration(h)}")
        if end % grain:
            raise ValueError(f"until: must be a multiple of {text} since 1970; got {until.isoformat()}")
        finer = tuple(level for level in block.levels if level.range < length)
        weights = block.aging and (*block.aging[: len(finer)], block.aging[: len(finer) + 1][-1])
        return cls(replace(block, levels=(*finer, WindowLevel(length, grain)), aging=weights), end)

    @property
    def level(self) -> WindowLevel:
        """The window's own."""
        return self.block.levels[-1]

    @property
    def hours(self) -> list[datetime]:
        """Every hour that it reaches."""
        end = datetime.fromtimestamp(0, UTC) + self.until * MICROSECOND
        first, last = hour_of(end - self.level.range * MICROSECOND), hour_of(end - MICROSECOND)
        return list(Interval(first, last + HOUR).hours())

    @property
    def columns(self) -> list[str]:
        """What is read of the granules."""
        return ["granule", *self.block.key, "records", *self.block.state_columns()]

    @property
    def schema(self) -> pa.Schema:
        """Of the figures."""
        return pa.schema([field for field in schema_of(self.block) if field.name not in EXCLUDED])


@dataclass(frozen=True)
class Figures:
    """What is made of the granules of some keys in a window: a row a key that has a record.

    Attributes:
        incomplete: the hours in which something is missing, in microseconds, ordered.
    """

    window: Horizon
    incomplete: Int64s

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The figures of some keys, of which these are all granules in the window."""
        window = self.window
        one = [(window.until - window.level.slide, window.until)]
        for batch in ReportBuilder(window.block, one, self.incomplete)(batches):
            own = batch.filter(pc.equal(batch["level"], len(window.block.levels) - 1))
            yield own.select(window.schema.names)
