"""The frames of a stream, resolved against its columns: their parameters, and the hours that they read."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from functools import partial

from transom.core.durations import microseconds
from transom.core.intervals import HOUR, HOUR_LENGTH, micros
from transom.engine.hours import extend_back
from transom.features.aggregates.resolve import AggregateBlock, Unit, block_of
from transom.features.frames import input_columns
from transom.features.frames.algorithm import params
from transom.features.frames.spec import Frame
from transom.features.frames.spec_rules import overlaps
from transom.formats.record_format import Field
from transom.ledger.stage import InputRange
from transom.spec.stream import Stream
from transom.storage.external_source import ExternalSource
from transom.storage.tables import SPARK_TYPES

MEAN_STEPS = 2**20
"""Steps of a mean in one step of its column: a mean is no multiple of the column's resolution."""


@dataclass(frozen=True)
class FrameSource:
    """The source of the rows from which frames are computed, or with which they are filled.

    The rows are events, or the granules of a block of aggregates. A granule is a reading at its start. Its
    columns are the measures that a single granule determines.

    Attributes:
        over: the block of aggregates with the granules; None for events.
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
        """Return the unit of a numeric column."""
        if self.over is None:
            return Unit.of(self.fields[name])
        function, column = self.over.measures[name]
        if column is None:
            return Unit((1, 1), True)
        unit = self.over.units[column]
        up, down = unit.step
        return Unit((up, down * MEAN_STEPS), False) if function == "mean" else unit


@dataclass(frozen=True)
class ResolvedFrames:
    """A block of frames, resolved against the columns of its stream.

    Attributes:
        name: the name of the block.
        spec: the block in the stream file.
        key: the Spark types of the columns of the key.
        source: the source of the readings.
        conditions: the conditions on the readings, as Spark SQL, by the fields of the stream file.
        value: the column whose value delimits frames, if any.
        unit: the unit of the value.
        read: the columns that are read besides the key.
        framing: the parameters of the algorithm.
    """

    name: str
    spec: Frame
    key: Mapping[str, str]
    source: FrameSource
    conditions: Mapping[str, str]
    value: str | None
    unit: Unit
    read: tuple[str, ...]
    framing: params.FrameSpec

    @property
    def picks(self) -> bool:
        """Whether one of several events at one time is selected."""
        return self.spec.on_duplicate_time in ("first", "last")

    @property
    def overlap(self) -> bool:
        """Whether frames of a key may overlap."""
        return overlaps(self.spec)

    @property
    def period(self) -> int | None:
        """The length of the periods with which frames end, in hours; None if frames continue from hour to
        hour."""
        return None if self.spec.period is None else self.spec.period // HOUR

    @property
    def shifts(self) -> tuple[int, ...]:
        """Shifts of the readings of the baseline into the past, in microseconds."""
        return tuple(map(microseconds, self.spec.baseline.shift)) if self.spec.baseline else ()

    @property
    def back(self) -> int:
        """The number of hours after which nothing depends on the last reading of a silent key."""
        return -(-self.framing.idle // HOUR_LENGTH)

    @property
    def delay(self) -> int:
        """The maximum number of hours from the end of a frame to the hour that reports it."""
        if self.period is not None:
            return self._earlier
        # Missing readings extend a frame up to what closes it.
        return 1 if self.framing.begins else self.back

    @property
    def reads(self) -> tuple[InputRange, ...]:
        """The hours of the readings' table that an hour reads.

        These are itself, or the period that it completes; and the hours of the baseline.
        """
        # With `missing: zero` a requested hour without a reading counts as 0.
        zero = self.spec.baseline is not None and self.spec.baseline.missing == "zero"
        reads = []
        for shift in (0, *self.shifts):
            back, forward = -(-shift // HOUR_LENGTH) + self._earlier, -(shift // HOUR_LENGTH)
            back_of = partial(self._back_of, back)
            reads.append(InputRange(*self.source.table, back, forward, back_of, requested=zero and shift > 0))
        return tuple(reads)

    def completes(self, hour: datetime) -> bool:
        """Return whether a period ends with an hour; always True without periods."""
        return self.period is None or not ((micros(hour) // HOUR_LENGTH + 1) % self.period)

    @property
    def _earlier(self) -> int:
        """The number of earlier hours in the period that an hour completes."""
        return 0 if self.period is None else self.period - 1

    def _back_of(self, back: int, hour: datetime) -> int:
        return back if self.completes(hour) else -1

    def hours_of(self, targets: Iterable[datetime]) -> list[datetime]:
        """Return the hours whose readings the target hours are computed from, ascending."""
        return sorted(extend_back(filter(self.completes, targets), self._earlier))


def frame_block_of(stream: Stream, name: str) -> ResolvedFrames:
    """Return a block of the stream file, resolved against the columns of the stream."""
    spec = stream.blocks(Frame)[name]
    source, value = FrameSource.of(stream, spec.source), input_columns.value(stream, name)
    unit = Unit((1, 1), True) if value is None else source.unit(value)
    every = input_columns.every(stream, name)
    framing = params.FrameSpec(
        _kind(spec, unit),
        every=1 if every is None else microseconds(every),
        scheduled=every is not None,
        missing=spec.missing or ("breaks" if spec.kind in ("threshold", "trend") else "bridged"),
        idle=microseconds(spec.silence),
        min_time=0 if spec.min_length is None else microseconds(spec.min_length),
        min_records=spec.min_records,
        max_time=None if spec.max_length is None else microseconds(spec.max_length),
        max_records=spec.max_records,
        when_open=spec.when_open or "continue",
        begins=spec.known is not None,
    )
    return ResolvedFrames(
        name,
        spec,
        {column: SPARK_TYPES[stream.event_types[column]] for column in input_columns.key(stream, name)},
        source,
        {field: test.sql for field, test in input_columns.conditions(stream, name).items()},
        value,
        unit,
        tuple(input_columns.read(stream, name)),
        framing,
    )


def _kind(spec: Frame, unit: Unit) -> params.Kind:
    up, down = unit.step

    def steps(value: float | Fraction | None) -> Fraction:
        return Fraction(str(value)) * down / up

    match spec.kind:
        case "threshold":
            return params.Threshold(spec.extent == "liberal")
        case "boundary":
            return params.Boundary(steps(spec.step))
        case "delta":
            return params.Delta(math.ceil(steps(spec.below)))
        case "aggregate":
            assert spec.condition is not None
            function, _, compared, bound, _ = spec.condition
            bound = bound if function == "count" else steps(bound)
            return params.Aggregate(function, compared, bound, spec.span == "minimal")
        case "trend":
            return params.Trend(spec.direction == "increasing")
        case "marked":
            return params.Marked()
