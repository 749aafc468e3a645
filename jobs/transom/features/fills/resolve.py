"""The fills of a stream, resolved against its columns: frames, source, and the hours that are read."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from transom.core.durations import microseconds
from transom.core.intervals import HOUR, HOUR_LENGTH, Interval
from transom.features.fills import input_columns
from transom.features.fills.spec import Fill
from transom.features.frames.resolve import FrameSource, ResolvedFrames
from transom.features.frames.spec import Combination
from transom.ledger.stage import InputRange
from transom.spec.stream import Stream
from transom.storage.external_source import TIME, ExternalSource
from transom.storage.filesystem import absolute
from transom.storage.tables import SPARK_TYPES


@dataclass(frozen=True)
class FillBlock:
    """One fill of a stream, resolved against its columns.

    Attributes:
        name: the name of the block.
        frame: the block of frames that it fills.
        source: the source of the rows.
        join_on: the columns that must be equal in a frame and its rows.
        where: a condition on the rows, as Spark SQL.
        lead: how long before a frame rows count, in microseconds.
        lag: how long after a frame rows count, in microseconds.
        shifts: how long ago the rows were, in microseconds.
        combine: how several shifts are combined, if they are.
        measures: the function and the column of each measure.
        kinds: the Spark types of the measures.
        reach: the number of last hours of a frame that are filled.
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
        """The maximum length of a filled period, in microseconds."""
        return self.lead + self.reach * HOUR_LENGTH + self.lag

    @property
    def reads(self) -> tuple[InputRange, ...]:
        """The hours of the source that an hour reads, for each shift.

        Its frames end with the hour at the latest, and at the earliest `frame.delay` hours before it.
        """
        back = self.frame.delay + self.reach
        return tuple(
            InputRange(
                *self.source.table,
                back=back - (-(self.lead + shift) // HOUR_LENGTH),
                forward=(HOUR_LENGTH - 1 + self.lag - shift) // HOUR_LENGTH,
                # Coverage and state depend on which hours were requested.
                requested=True,
            )
            for shift in self.shifts
        )

    def hours_of(self, targets: Iterable[datetime]) -> set[datetime]:
        """Return the hours of the source that the target hours read."""
        spans = [read.span(hour) for hour in targets for read in self.reads]
        return {hour for first, last in spans for hour in Interval(first, last + HOUR).hours()}


def fill_block_of(stream: Stream, name: str, frames: Mapping[str, ResolvedFrames]) -> FillBlock:
    """Return a fill of the stream file, resolved against its columns."""
    spec, where = stream.blocks(Fill)[name], input_columns.where(stream, name)
    return FillBlock(
        name,
        frames[spec.frame],
        _source(stream, name, spec),
        input_columns.by(stream, name),
        where.sql if where else None,
        microseconds(spec.lead),
        microseconds(spec.lag),
        tuple(map(microseconds, spec.shift)),
        spec.combine,
        {measure: (of.function, str(of.column)) for measure, of in spec.measures.items()},
        {measure: SPARK_TYPES[kind] for measure, kind in input_columns.measures(stream, name).items()},
        input_columns.reach(stream, name) // HOUR,
    )


def _source(stream: Stream, name: str, fill: Fill) -> FrameSource:
    """Return the stream's own rows, or an external table with its absolute path."""
    spec = fill.source
    if not spec.outside:
        return FrameSource.of(stream, input_columns.over(fill))
    fields = {column_name: column.field(column_name) for column_name, column in spec.columns.items()}
    table, columns = None if spec.table is None else absolute(spec.table), tuple(fields.values())
    filler = ExternalSource(f"fills.{name}.source", spec.called, table, spec.time or TIME, columns)
    return FrameSource(None, fields, filler)
