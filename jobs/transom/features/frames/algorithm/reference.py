"""Frames, record by record (Grossniklaus, Maier, Moorthy and Tufte, sections 4.1 to 4.4 and appendix A).

A frame is a time interval that the data itself delimits. A framing function (definition 5) takes one reading
of a key at a time. It opens a frame, extends the open one, or closes it; at most one is open. A frame starts
and ends at the times of its first and its last reading. Its length includes the time that the last reading
covers:

    length = end - start + every

A reading is missing if it has no value, or did not come in its turn. A missing reading begins no frame unless
the specification allows it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Literal, NamedTuple

from transom.features.frames.algorithm.params import (
    COMPARED,
    Aggregate,
    Boundary,
    Delta,
    FrameSpec,
    Function,
    Kind,
    Threshold,
    Trend,
)

FUNCTIONS: dict[Function, Callable[[list[int]], int | Fraction]] = {
    "sum": sum, "count": len, "min": min, "max": max, "avg": lambda values: Fraction(sum(values), len(values))
}  # fmt: skip


class Reading(NamedTuple):
    """The reading of a key in one turn.

    Attributes:
        time: in microseconds, a multiple of `every`; later than the previous reading's.
        value: in whole units; None for no value, which a threshold frame allows.
        missing: whether it has nothing that the kind can use.
        holds: whether a threshold's predicate holds.
        starts: whether the condition of a start holds; True if there is none.
        ends: whether the condition of an end holds.
    """

    time: int
    value: int | None = None
    missing: bool = False
    holds: bool = True
    starts: bool = True
    ends: bool = False


def _joins(kind: Kind, values: list[int], reading: Reading) -> bool:
    """Return whether a reading may join a frame of some values, or begin one if there are none."""
    match kind, reading.value:
        case Threshold(), _:
            return reading.holds
        case Boundary(step), int(value):
            return not values or value // step == values[-1] // step
        case Delta(below), int(value):
            return not values or max(*values, value) - min(*values, value) < below
        case Trend(rising), int(value):
            return not values or (value > values[-1] if rising else value < values[-1])
        case Aggregate(minimal=False), int(value):
            return _holds(kind, [*values, value])
    return True


def _holds(kind: Aggregate, values: list[int]) -> bool:
    return COMPARED[kind.compared](FUNCTIONS[kind.function](values), kind.bound)


@dataclass(frozen=True)
class FramedReadings:
    """A frame and its contents.

    Attributes:
        readings: the readings that are not missing; all if missing ones may begin a frame.
        latest: the time of the last reading; of a last missing one, if missing ones satisfy.
        missing: the number of missing readings; without a schedule only null readings count.
        before: the time of the reading before it to which a liberal extent reaches, or None.
        after: the time of the reading after it to which a liberal extent reaches, or None.
        closed: when it was closed, in microseconds; None while it is open.
    """

    readings: tuple[Reading, ...]
    latest: int
    missing: int = 0
    before: int | None = None
    after: int | None = None
    closed: int | None = None

    @property
    def first(self) -> int:
        """The time of the first reading."""
        return self.readings[0].time

    @property
    def start(self) -> int:
        """The start, including the extent."""
        return self.first if self.before is None else self.before

    @property
    def end(self) -> int:
        """The end, including the extent."""
        return self.latest if self.after is None else self.after

    @property
    def records(self) -> int:
        """The number of readings that are not missing."""
        return sum(not reading.missing for reading in self.readings)

    @property
    def values(self) -> list[int]:
        """The values of the readings, without missing ones."""
        return [reading.value for reading in self.readings if reading.value is not None]

    def length(self, every: int) -> int:
        """Return its length without the liberal extent, in microseconds."""
        return self.latest - self.first + every

    def long_enough(self, framing: FrameSpec) -> bool:
        """Return whether it may be reported while it is open."""
        return self.length(framing.every) >= framing.min_time and self.records >= framing.required_records

    def is_valid(self, framing: FrameSpec) -> bool:
        """Return whether it counts when closed: it is long enough, and a minimal one meets its condition."""
        kind = framing.kind
        unmet = isinstance(kind, Aggregate) and kind.minimal and not _holds(kind, self.values)
        return self.long_enough(framing) and not unmet


class FrameReport(NamedTuple):
    """The report of a frame in an hour.

    Attributes:
        hour: the start of the hour, in microseconds.
        state: `partial` while the frame is open.
        fragment: the number of the report of this frame, from 1.
        frame: the frame at the end of the hour.
    """

    hour: int
    state: Literal["partial", "final"]
    fragment: int
    frame: FramedReadings


@dataclass
class _Framer:
    """The framing function and its state (`C` in definition 5)."""

    framing: FrameSpec
    open: FramedReadings | None = None
    nulls: list[int] = field(default_factory=list)
    previous: Reading | None = None
    last_present: int | None = None

    def take(self, reading: Reading) -> Iterator[FramedReadings]:
        """Yield the frames that the next reading closes."""
        yield from self.pass_to(reading.time)
        if not reading.missing:
            self.last_present = reading.time
            yield from self._present(reading)
        elif not self.framing.scheduled:
            # With a schedule a null reading is the same as a missing one.
            self.nulls.append(reading.time)
            if self.framing.missing == "breaks":
                yield from self._close(reading.time)

    def pass_to(self, time: int) -> Iterator[FramedReadings]:
        """Yield the frames that close by the passing of time up to a moment."""
        framing = self.framing
        if framing.begins and self.last_present is not None and self.previous is not None:
            known = min(time, self.last_present + framing.idle)
            for turn in range(self.previous.time + framing.every, known, framing.every):
                yield from self._pass_by(turn)
                yield from self._present(Reading(turn, missing=True))
        yield from self._pass_by(time)

    def _pass_by(self, time: int) -> Iterator[FramedReadings]:
        framing = self.framing
        if self.open is None or self.last_present is None:
            return
        closed = self.last_present + framing.idle
        if framing.max_time is not None:
            closed = min(closed, self.open.first + framing.max_time)
        missed = self.last_present + framing.every
        if framing.scheduled and framing.missing == "breaks" and missed < min(time, closed):
            closed = missed
        if closed <= time:
            yield from self._close(closed)

    def _present(self, reading: Reading) -> Iterator[FramedReadings]:
        framing, missed = self.framing, self._missed(reading)
        if (frame := self.open) is not None:
            length = reading.time - frame.first + framing.every
            fits = framing.max_time is None or length <= framing.max_time
            extends = fits and _joins(framing.kind, frame.values, reading)
            meets = reading.starts and framing.when_open != "continue"
            if extends and meets and framing.when_open == "drop":
                self.open = None
            elif not extends or meets:
                if framing.missing == "satisfies" and missed:
                    frame = replace(frame, latest=missed[-1], missing=frame.missing + len(missed))
                self.open = replace(frame, after=self._beside(reading, frame.readings[-1]))
                yield from self._close(reading.time)
            else:
                missing = frame.missing + len(missed) + reading.missing
                self.open = FramedReadings((*frame.readings, reading), reading.time, missing, frame.before)
        if self.open is None and reading.starts and _joins(framing.kind, [], reading):
            before = self._beside(self.previous, reading)
            self.open = FramedReadings((reading,), reading.time, int(reading.missing), before)
        if (frame := self.open) is not None:
            full = frame.readings[-1].ends or len(frame.readings) == framing.max_records
            if full or (framing.minimal and frame.is_valid(framing)):
                yield from self._close(reading.time)
        self.previous, self.nulls = reading, []

    def _missed(self, reading: Reading) -> list[int]:
        """Return the times of missing readings between the last reading and this one."""
        if not self.framing.scheduled or self.previous is None:
            return self.nulls
        return [*range(self.previous.time + self.framing.every, reading.time, self.framing.every)]

    def _beside(self, neighbour: Reading | None, reading: Reading) -> int | None:
        """Return the time of a reading's neighbour if a liberal extent reaches to it."""
        if not self.framing.liberal or neighbour is None or neighbour.holds:
            return None
        return neighbour.time if abs(reading.time - neighbour.time) < self.framing.idle else None

    def _close(self, time: int) -> Iterator[FramedReadings]:
        if self.open is not None:
            yield replace(self.open, closed=time)
        self.open = None


def framed(framing: FrameSpec, readings: Iterable[Reading], until: int) -> list[FramedReadings]:
    """Return the frames of a key's readings up to `until`; the open one comes last.

    Args:
        readings: ascending, all before `until`.
        until: in microseconds, a multiple of `every`.

    >>> slow = [Reading(time, holds=time in (1, 2, 5)) for time in range(7)]
    >>> [(frame.start, frame.end) for frame in framed(FrameSpec(Threshold()), slow, 7)]
    [(1, 2), (5, 5)]
    """
    framer = _Framer(framing)
    frames = [frame for reading in readings for frame in framer.take(reading)]
    # A frame that closes exactly at `until` is closed by later readings.
    frames += framer.pass_to(until - 1)
    return frames if framer.open is None else [*frames, framer.open]


def frames_of_period(
    framing: FrameSpec, readings: Sequence[Reading], until: int, overlap: bool
) -> list[FramedReadings]:
    """Return the frames of a key's readings in a period, including those that are open at its end.

    Args:
        until: the end of the period, in microseconds.
        overlap: whether every reading may begin a frame (section 4.2: cover, unconstrained). A frame inside
            another one is dropped; if frames are minimal, the containing one is. If False, the first reading
            after a frame begins the next.
    """
    if not overlap:
        return [frame for frame in framed(framing, readings, until) if frame.is_valid(framing)]
    frames = [
        frame
        for place, reading in enumerate(readings)
        for frame in ([] if reading.missing else framed(framing, readings[place:], until)[:1])
        if frame.first == reading.time and frame.is_valid(framing)
    ]
    spans = [(frame.first, frame.readings[-1].time) for frame in frames]

    def redundant(start: int, end: int) -> bool:
        inner = [other for other in spans if start <= other[0] and other[1] <= end]
        outer = [other for other in spans if other[0] <= start and end <= other[1]]
        return len(inner if framing.minimal else outer) > 1

    return [frame for frame, span in zip(frames, spans, strict=True) if not redundant(*span)]


def reports(
    framing: FrameSpec, readings: list[Reading], hours: Iterable[int], hour: int
) -> Iterator[FrameReport]:
    """Yield the reports of a key's frames hour by hour.

    A frame is `final` in the hour in which it closes. An open frame that is long enough is `partial` in each
    hour in which it gets a reading.

    Args:
        hours: the starts of all hours, in microseconds, ascending.
        hour: the length of an hour, in microseconds.
    """
    fragments: dict[int, int] = {}
    for begin in hours:
        until = begin + hour
        for frame in framed(framing, [reading for reading in readings if reading.time < until], until):
            grown = frame.readings[-1].time >= begin and framing.reports_open
            partial = frame.closed is None and grown and frame.long_enough(framing)
            final = frame.closed is not None and frame.closed >= begin and frame.is_valid(framing)
            if partial or final:
                fragments[frame.first] = fragments.get(frame.first, 0) + 1
                yield FrameReport(begin, "final" if final else "partial", fragments[frame.first], frame)
