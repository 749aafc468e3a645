"""The rows that frames are made of and filled with: events, or the granules of an aggregation.

A granule is a reading at its start. Its columns are the measures whose value a single granule has.
"""

from dataclasses import dataclass

from transom.features.aggregates.resolve import AggregateBlock, Unit, block_of
from transom.formats.record_format import Field
from transom.spec.stream import Stream
from transom.storage.external_source import ExternalSource

TIME = "event_time"
MEAN_STEPS = 2**20
"""Steps of a mean in one step of its column: a mean is no multiple of the column's resolution."""


@dataclass(frozen=True)
class FrameSource:
    """Where rows are read.

    Attributes:
        over: the aggregation with the granules; None for events.
        fields: the columns of events.
        filler: the table that is read instead of the stream's own events, if any.
    """

    over: AggregateBlock | None
    fields: dict[str, Field]
    filler: ExternalSource | None = None

    @classmethod
    def of(cls, stream: Stream, over: str | None) -> "FrameSource":
        """Return the events of a stream, or a block's granules."""
        return cls(None if over is None else block_of(stream, over), dict(stream.event_columns))

    @property
    def table(self) -> tuple[str, str, str]:
        """The stage, block and table of the rows."""
        if self.filler is not None:
            return self.filler.series
        if self.over is None:
            return "ingest", "events", "events"
        return "aggregates", self.over.name, "granules"

    def unit(self, name: str) -> Unit:
        """Return the unit of a number."""
        if self.over is None:
            return Unit.of(self.fields[name])
        function, column = self.over.measures[name]
        if column is None:
            return Unit((1, 1), True)
        unit = self.over.units[column]
        up, down = unit.step
        return Unit((up, down * MEAN_STEPS), False) if function == "mean" else unit
