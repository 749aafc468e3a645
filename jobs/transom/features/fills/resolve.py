"""The fills of a stream, resolved against its columns: what fills which frames, and which hours are read."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from transom.core.durations import microseconds
from transom.core.intervals import HOUR, HOUR_LENGTH
from transom.features.fills import validate as fill_columns
from transom.features.fills.spec import Fill
from transom.features.frames.resolve import ResolvedFrames
from transom.features.frames.sources import TIME, FrameSource
from transom.features.frames.spec import Combination
from transom.ledger.stage import InputRange
from transom.spec.external_source import EVENTS
from transom.spec.external_source import Filler as Declared
from transom.spec.stream import Stream
from transom.storage.external_source import ExternalSource
from transom.storage.filesystem import absolute
from transom.storage.tables import SPARK_TYPES


@dataclass(frozen=True)
class FillBlock:
    """One fill of a stream, resolved against its columns.

    Attributes:
        frame: the kind of frame that it fills.
        source: what fills it.
        join_on: the columns in which both agree.
        where: a condition on what fills it, as Spark SQL.
        lead, lag: how much earlier and later than a frame, in microseconds.
        shifts: how long ago, in microseconds.
        combine: what is made of several shifts, if anything.
        measures: which figure of which column.
        kinds: their Spark types.
        reach: how much of a frame is filled, the last of it, in hours.
    """

    name: str
    frame: ResolvedFrames
    source: FrameSource
    join_on: tuple[str, ...]
    where: str | None
    lead: int
    lag: int
    shifts: tuple[int, ...]
    combine: Combination | None
    measures: Mapping[str, tuple[str, str]]
    kinds: Mapping[str, str]
    reach: int

    @property
    def longest(self) -> int:
        """How long a stretch is at most, in microseconds."""
        return self.lead + self.reach * HOUR_LENGTH + self.lag

    @property
    def reads(self) -> tuple[InputRange, ...]:
        """What an hour reads of what fills its frames, for each shift: these may have ended long before they
        are told as final, and end with the hour at the latest."""
        behind = self.frame.behind + self.reach
        return tuple(
            InputRange(
                *self.source.table,
                back=behind - (-(self.lead + shift) // HOUR_LENGTH),
                forward=(HOUR_LENGTH - 1 + self.lag - shift) // HOUR_LENGTH,
                # Coverage and state say which hours were requested.
                requested=True,
            )
            for shift in self.shifts
        )

    def hours_of(self, targets: Iterable[datetime]) -> set[datetime]:
        """The hours that some hours read."""
        spans = [read.span(hour) for hour in targets for read in self.reads]
        return {
            first + offset * HOUR for first, last in spans for offset in range((last - first) // HOUR + 1)
        }


def fill_block_of(stream: Stream, name: str, frames: Mapping[str, ResolvedFrames]) -> FillBlock:
    """A fill of the stream file, resolved against its columns."""
    said, where = stream.blocks(Fill)[name], fill_columns.where(stream, name)
    frame = frames[said.frame]
    return FillBlock(
        name,
        frame,
        _source(stream, name, said.source),
        fill_columns.by(stream, name),
        where.sql if where else None,
        microseconds(said.lead),
        microseconds(said.lag),
        tuple(map(microseconds, said.shift)),
        said.combine,
        {measure: (of.function, str(of.column)) for measure, of in said.measures.items()},
        {measure: SPARK_TYPES[kind] for measure, kind in fill_columns.measures(stream, name).items()},
        fill_columns.reach(stream, name) // HOUR,
    )


def _source(stream: Stream, name: str, said: Declared) -> FrameSource:
    """What fills frames: the stream's own, or a table that is told by its absolute path."""
    if not said.outside:
        return FrameSource.of(stream, None if said.block == EVENTS else said.block)
    columns = tuple(column.field(column_name) for column_name, column in said.columns.items())
    table = None if said.table is None else absolute(said.table)
    return FrameSource.outside(
        ExternalSource(f"fills.{name}.source", said.called, table, said.time or TIME, columns)
    )
