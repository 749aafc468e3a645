"""What frames go by and are filled with: a stream's events, or the granules of an aggregation as if these
were.

A granule is a reading at its start; its measures are columns, those of them that can be told of one granule.
"""

from dataclasses import dataclass

from transom.features.aggregates.resolve import AggregateBlock, Unit, block_of
from transom.formats.record_format import Field
from transom.spec.stream import Stream
from transom.storage.external_source import ExternalSource

TIME = "event_time"
MEAN_STEPS = 2**20
"""A mean is no multiple of its column's resolution; it is counted in steps that are so much finer."""
_WHOLE = Unit((1, 1), True)


@dataclass(frozen=True)
class FrameSource:
    """Where rows are read.

    Attributes:
        over: the aggregation whose granules they are; None where they are events.
        fields: the columns of the events.
        filler: what is read instead of events, where that is not the stream's own.
    """

    over: AggregateBlock | None
    fields: dict[str, Field]
    filler: ExternalSource | None = None

    @classmethod
    def of(cls, stream: Stream, over: str | None) -> "FrameSource":
        """The events of a stream, or a block's granules."""
        return cls(None if over is None else block_of(stream, over), dict(stream.event_columns))

    @classmethod
    def outside(cls, filler: ExternalSource) -> "FrameSource":
        """What is not the stream's own."""
        return cls(None, {column.name: column for column in filler.columns}, filler)

    @property
    def table(self) -> tuple[str, str, str]:
        """The stage, block and table of the rows."""
        if self.filler is not None:
            return self.filler.series
        if self.over is None:
            return "ingest", "events", "events"
        return "aggregates", self.over.name, "granules"

    def unit(self, name: str) -> Unit:
        """In which a number is counted."""
        if self.over is None:
            return Unit.of(self.fields[name])
        function, column = self.over.measures[name]
        if column is None:
            return _WHOLE
        (up, down), whole = self.over.units[column].step, self.over.units[column].is_whole
        return Unit((up, down * MEAN_STEPS), False) if function == "mean" else Unit((up, down), whole)
