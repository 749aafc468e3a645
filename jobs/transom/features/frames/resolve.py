"""The frames of a stream, resolved against its columns: what delimits them, what they read, how far back."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from functools import partial

from transom.core.durations import microseconds
from transom.core.intervals import HOUR, HOUR_LENGTH, micros
from transom.engine.hours import extend_back
from transom.features.aggregates.resolve import Unit
from transom.features.frames import validate as frame_columns
from transom.features.frames.algorithm.reference import (
    Aggregate,
    Boundary,
    Delta,
    FrameSpec,
    Kind,
    Marked,
    Threshold,
    Trend,
)
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
        source: of the readings.
        conditions: on the readings, as Spark SQL, by the fields of the stream's file.
        value: the column whose value delimits frames, if any.
        unit: in which it is counted.
        read: the columns that are read beside the key.
        on_duplicate_time: what is made of several events of one key at one time.
        period: how long the stretches are that frames are looked for in by themselves, in hours; None where
            they may go on from hour to hour for ever.
        overlap: whether frames of a key may overlap.
        longest: whether only the longest of a stretch are told.
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
    framing: FrameSpec
    period: int | None
    overlap: bool
    longest: bool

    @property
    def picks(self) -> bool:
        """Whether one of several events at one time is picked."""
        return self.on_duplicate_time in ("first", "last")

    @property
    def shifts(self) -> tuple[int, ...]:
        """How long ago the readings are that the baseline is made of, in microseconds."""
        return tuple(map(microseconds, self.baseline.shift)) if self.baseline else ()

    @property
    def liberal(self) -> bool:
        """Whether a frame reaches to its neighbours."""
        return isinstance(self.framing.kind, Threshold) and self.framing.kind.liberal

    @property
    def back(self) -> int:
        """How many hours a key is silent before nothing depends on its last reading any more, at most."""
        return -(-self.framing.idle // HOUR_LENGTH)

    @property
    def behind(self) -> int:
        """How many hours before the one that tells of it a frame may have ended."""
        if self.period is not None:
            return self.period - 1
        # Where missing readings are in frames, they reach to what closes them.
        return 1 if self.framing.begins else self.back

    @property
    def reads(self) -> tuple[InputRange, ...]:
        """What an hour reads of the readings' table: itself, or the stretch that it completes; and what was
        as long before that as the baseline looks back."""
        within = 0 if self.period is None else self.period - 1
        reads = []
        for shift in (0, *self.shifts):
            back, forward = -(-shift // HOUR_LENGTH) + within, -(shift // HOUR_LENGTH)
            # With `missing: zero` a requested hour without a reading counts as 0.
            zero = shift > 0 and self.baseline is not None and self.baseline.missing == "zero"
            back_of = partial(self._back_of, back)
            reads.append(InputRange(*self.source.table, back, forward, back_of, requested=zero))
        return tuple(reads)

    def completes(self, hour: datetime) -> bool:
        """Whether a stretch is over with an hour; every hour is one where there are none."""
        return self.period is None or not ((micros(hour) // HOUR_LENGTH + 1) % self.period)

    def _back_of(self, back: int, hour: datetime) -> int:
        return back if self.completes(hour) else -1

    def hours_of(self, targets: Iterable[datetime]) -> list[datetime]:
        """The hours whose readings some hours are made of, in order."""
        within = 0 if self.period is None else self.period - 1
        return sorted(extend_back(filter(self.completes, targets), within))


def frame_block_of(stream: Stream, name: str) -> ResolvedFrames:
    """A kind of frame of the stream file, resolved against its columns."""
    said = stream.blocks(Frame)[name]
    source = FrameSource.of(stream, said.source)
    value = frame_columns.value(stream, name)
    unit = Unit((1, 1), True) if value is None else source.unit(value)
    every = frame_columns.every(stream, name)
    missing = said.missing or ("breaks" if said.kind in ("threshold", "trend") else "bridged")
    return ResolvedFrames(
        name,
        {column: SPARK_TYPES[stream.event_types[column]] for column in frame_columns.key(stream, name)},
        source,
        {field: met.sql for field, met in frame_columns.conditions(stream, name).items()},
        value,
        unit,
        tuple(frame_columns.read(stream, name)),
        said.on_duplicate_time,
        said.baseline,
        FrameSpec(
            _kind(said, unit),
            1 if every is None else microseconds(every),
            every is not None,
            missing,
            microseconds(said.silence),
            0 if said.min_length is None else microseconds(said.min_length),
            said.min_records,
            None if said.max_length is None else microseconds(said.max_length),
            said.max_records,
            said.when_open or "continue",
            said.known is not None,
        ),
        None if said.period is None else said.period // HOUR,
        overlaps(said),
        said.longest,
    )


def _kind(said: Frame, unit: Unit) -> Kind:
    up, down = unit.step

    def steps(value: float | Fraction | None) -> Fraction:
        return Fraction(str(value)) * down / up

    match said.kind:
        case "threshold":
            return Threshold(said.extent == "liberal")
        case "boundary":
            return Boundary(steps(said.step))
        case "delta":
            return Delta(-int(-steps(said.below) // 1))
        case "aggregate":
            assert said.condition is not None
            of = said.condition
            bound = of.bound if of.function == "count" else steps(of.bound)
            return Aggregate(of.function, of.compared, bound, said.span == "minimal")
        case "trend":
            return Trend(said.direction == "increasing")
        case "marked":
            return Marked()
