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
from transom.features.aggregates.resolve import Unit
from transom.features.frames import input_columns
from transom.features.frames.algorithm import params
from transom.features.frames.sources import FrameSource
from transom.features.frames.spec import Baseline, Frame
from transom.features.frames.spec_rules import overlaps
from transom.ledger.stage import InputRange
from transom.spec.stream import Stream
from transom.storage.tables import SPARK_TYPES


@dataclass(frozen=True)
class ResolvedFrames:
    """One kind of frame of a stream, with everything that its columns are derived from.

    Attributes:
        key: the Spark types of the columns of the key.
        source: of the readings.
        conditions: on the readings, as Spark SQL, by the fields of the stream's file.
        value: the column whose value delimits frames, if any.
        unit: of the value.
        read: the columns that are read besides the key.
        on_duplicate_time: how several events of one key at one time are combined.
        period: the length of the periods that are framed by themselves, in hours; None if frames may go on
            from hour to hour.
        overlap: whether frames of a key may overlap.
        longest: whether only the longest of a period are reported.
    """

    name: str
    key: Mapping[str, str]
    source: FrameSource
    conditions: Mapping[str, str]
    value: str | None
    unit: Unit
    read: tuple[str, ...]
    on_duplicate_time: str | None
    baseline: Baseline | None
    framing: params.FrameSpec
    period: int | None
    overlap: bool
    longest: bool

    @property
    def picks(self) -> bool:
        """Whether one of several events at one time is picked."""
        return self.on_duplicate_time in ("first", "last")

    @property
    def shifts(self) -> tuple[int, ...]:
        """How long ago the readings of the baseline are, in microseconds."""
        return tuple(map(microseconds, self.baseline.shift)) if self.baseline else ()

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
        """The hours of the readings' table that an hour reads: itself, or the period that it completes; and
        those of the baseline."""
        # With `missing: zero` a requested hour without a reading counts as 0.
        zero = self.baseline is not None and self.baseline.missing == "zero"
        reads = []
        for shift in (0, *self.shifts):
            back, forward = -(-shift // HOUR_LENGTH) + self._earlier, -(shift // HOUR_LENGTH)
            back_of = partial(self._back_of, back)
            reads.append(InputRange(*self.source.table, back, forward, back_of, requested=zero and shift > 0))
        return tuple(reads)

    def completes(self, hour: datetime) -> bool:
        """Return whether a period ends with an hour; every hour does without periods."""
        return self.period is None or not ((micros(hour) // HOUR_LENGTH + 1) % self.period)

    @property
    def _earlier(self) -> int:
        """The number of earlier hours in the period that an hour completes."""
        return 0 if self.period is None else self.period - 1

    def _back_of(self, back: int, hour: datetime) -> int:
        return back if self.completes(hour) else -1

    def hours_of(self, targets: Iterable[datetime]) -> list[datetime]:
        """Return the hours whose readings some hours are computed from, ascending."""
        return sorted(extend_back(filter(self.completes, targets), self._earlier))


def frame_block_of(stream: Stream, name: str) -> ResolvedFrames:
    """Return a kind of frame of the stream file, resolved against its columns."""
    spec = stream.blocks(Frame)[name]
    source, value = FrameSource.of(stream, spec.source), input_columns.value(stream, name)
    unit = Unit((1, 1), True) if value is None else source.unit(value)
    every = input_columns.every(stream, name)
    framing = params.FrameSpec(
        _kind(spec, unit),
        1 if every is None else microseconds(every),
        every is not None,
        spec.missing or ("breaks" if spec.kind in ("threshold", "trend") else "bridged"),
        microseconds(spec.silence),
        0 if spec.min_length is None else microseconds(spec.min_length),
        spec.min_records,
        None if spec.max_length is None else microseconds(spec.max_length),
        spec.max_records,
        spec.when_open or "continue",
        spec.known is not None,
    )
    return ResolvedFrames(
        name,
        {column: SPARK_TYPES[stream.event_types[column]] for column in input_columns.key(stream, name)},
        source,
        {field: test.sql for field, test in input_columns.conditions(stream, name).items()},
        value,
        unit,
        tuple(input_columns.read(stream, name)),
        spec.on_duplicate_time,
        spec.baseline,
        framing,
        None if spec.period is None else spec.period // HOUR,
        overlaps(spec),
        spec.longest,
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
