"""Frames, record by record (Grossniklaus, Maier, Moorthy and Tufte, section 4).

A frame is a time interval that the data itself delimits. A framing function (definition 5) takes one reading
of a key at a time. It opens a frame, extends the open one, or closes it, depending on the kind of frame; at
most one is open. Start and end of a frame are the times of its first and its last reading. Its length
includes the time that the last reading covers: `end - start + every`.

A reading is missing if it has no value, or did not come in its turn. A missing reading begins no frame unless
the specification allows it. Whether it closes the open frame, and how long a key may be silent, are
parameters beside the kind.

The form that is fast is `transom.features.frames.algorithm.vectorised`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from operator import ge, gt, le, lt
from typing import Literal, NamedTuple

Missing = Literal["breaks", "bridged", "satisfies"]
Function = Literal["sum", "count", "avg", "min", "max"]
Compared = Literal[">", ">=", "<", "<="]
WhenOpen = Literal["report", "drop", "continue"]
State = Literal["partial", "final"]


class Reading(NamedTuple):
    """The reading of a key in one turn.

    Attributes:
        time: in microseconds, a multiple of `every`; later than the previous reading's.
        value: in whole units; None for no value, which a threshold frame allows.
        missing: whether it has nothing that the kind can use.
        holds: whether a threshold's predicate holds.
        starts, ends: whether separate conditions of a start and of an end hold, if there are any.
    """

    time: int
    value: int | None = None
    missing: bool = False
    holds: bool = True
    starts: bool = True
    ends: bool = False


@dataclass(frozen=True)
class Threshold:
    """A frame lasts while a predicate holds.

    Attributes:
        liberal: whether a frame extends to its neighbours that do not satisfy the predicate, the last reading
            before it and the first one after it.
    """

    liberal: bool = False

    def opens(self, reading: Reading) -> bool:
        """Return whether a frame may begin with a reading."""
        return reading.holds

    def extends(self, values: list[int], reading: Reading) -> bool:
        """Return whether a reading may join a frame of some values."""
        return reading.holds


@dataclass(frozen=True)
class Boundary:
    """A frame lies between two multiples of a step: cut where `floor(value / step)` changes."""

    step: Fraction

    def opens(self, reading: Reading) -> bool:
        """Return whether a frame may begin with a reading."""
        return True

    def extends(self, values: list[int], reading: Reading) -> bool:
        """Return whether a reading may join a frame of some values."""
        return _value(reading) // self.step == values[-1] // self.step


@dataclass(frozen=True)
class Delta:
    """A frame lasts while `max(value) - min(value) < below`."""

    below: int

    def opens(self, reading: Reading) -> bool:
        """Return whether a frame may begin with a reading."""
        return True

    def extends(self, values: list[int], reading: Reading) -> bool:
        """Return whether a reading may join a frame of some values."""
        values = [*values, _value(reading)]
        return max(values) - min(values) < self.below


@dataclass(frozen=True)
class Trend:
    """A frame lasts while each value is above the previous one, or below it if `rising` is False."""

    rising: bool = True

    def opens(self, reading: Reading) -> bool:
        """Return whether a frame may begin with a reading."""
        return True

    def extends(self, values: list[int], reading: Reading) -> bool:
        """Return whether a reading may join a frame of some values."""
        return _value(reading) > values[-1] if self.rising else _value(reading) < values[-1]


COMPARED: dict[Compared, Callable[[Fraction, Fraction], bool]] = {">": gt, ">=": ge, "<": lt, "<=": le}


@dataclass(frozen=True)
class Aggregate:
    """A frame depends on `function(values) compared bound`.

    Attributes:
        bound: in the values' units.
        minimal: the frame ends with the first reading with which this holds and the frame is long enough;
            else it lasts while this holds.
    """

    function: Function
    compared: Compared
    bound: Fraction
    minimal: bool

    def opens(self, reading: Reading) -> bool:
        """Return whether a frame may begin with a reading."""
        return self.minimal or self.holds([_value(reading)])

    def extends(self, values: list[int], reading: Reading) -> bool:
        """Return whether a reading may join a frame of some values."""
        return self.minimal or self.holds([*values, _value(reading)])

    def holds(self, values: list[int]) -> bool:
        """Return whether the condition holds for some values."""
        measure = {
            "sum": Fraction(sum(values)),
            "count": Fraction(len(values)),
            "avg": Fraction(sum(values), len(values)),
            "min": Fraction(min(values)),
            "max": Fraction(max(values)),
        }[self.function]
        return COMPARED[self.compared](measure, self.bound)


@dataclass(frozen=True)
class Marked:
    """A frame lasts from a start to an end, each with a condition of its own."""

    def opens(self, reading: Reading) -> bool:
        """Return whether a frame may begin with a reading."""
        return True

    def extends(self, values: list[int], reading: Reading) -> bool:
        """Return whether a reading may join a frame of some values."""
        return True


Kind = Threshold | Boundary | Delta | Trend | Aggregate | Marked


@dataclass(frozen=True)
class FrameSpec:
    """Parameters that delimit frames.

    Attributes:
        every: the time that a reading covers, in microseconds; 1 without a schedule.
        scheduled: whether a turn of `every` without a reading is a missing reading.
        missing: the effect of a missing reading on the open frame. It breaks it; or is bridged, if a later
            reading extends the frame; or satisfies the condition, and belongs to the frame even if the next
            reading ends it.
        idle: a frame closes if no reading comes for this time, in microseconds.
        min_time, min_records: shorter frames are not reported.
        max_time, max_records: a frame closes before it would become longer; None is any length.
        when_open: what happens to an open frame when a reading starts another one (appendix A): it is
            reported or dropped, and the reading opens the next one; or it continues.
        begins: whether a missing reading that satisfies may also begin a frame and count in it, from the
            first reading of a key until it was silent for `idle`. Requires a threshold, a schedule, no
            condition of a start and no number of readings.
    """

    kind: Kind
    every: int = 1
    scheduled: bool = False
    missing: Missing = "bridged"
    idle: int = 24 * 3600 * 10**6
    min_time: int = 0
    min_records: int = 1
    max_time: int | None = None
    max_records: int | None = None
    when_open: WhenOpen = "continue"
    begins: bool = False

    @property
    def fewest(self) -> int:
        """The minimum number of readings of a reported frame: two for a trend, none for silence."""
        return 0 if self.begins else max(self.min_records, 2 if isinstance(self.kind, Trend) else 1)

    @property
    def minimal(self) -> bool:
        """Whether a frame ends as soon as its aggregate meets the condition."""
        return isinstance(self.kind, Aggregate) and self.kind.minimal

    @property
    def reports_open(self) -> bool:
        """Whether open frames are reported; not if they may still be dropped."""
        return self.when_open != "drop" and not self.minimal


@dataclass(frozen=True)
class FramedReadings:
    """A frame and its contents.

    Attributes:
        readings: those that are not missing; all of them if missing ones may begin a frame.
        missing: the number of missing readings; without a schedule only null readings count.
        before, after: the times of the neighbours that a liberal extent reaches to.
        last: the time of a final missing reading, if missing ones satisfy.
        closed: when it was closed, in microseconds; None while it is open.
    """

    readings: tuple[Reading, ...]
    missing: int = 0
    before: int | None = None
    after: int | None = None
    last: int | None = None
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
    def latest(self) -> int:
        """The time of its last reading."""
        return self.readings[-1].time if self.last is None else self.last

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
        """Return whether it may be reported."""
        return self.length(framing.every) >= framing.min_time and self.records >= framing.fewest


class FrameReport(NamedTuple):
    """The report of a frame in an hour.

    Attributes:
        fragment: the number of the report of this frame, from 1.
    """

    hour: int
    state: State
    fragment: int
    frame: FramedReadings


@dataclass
class _Framer:
    """The framing function and its state (`C` in definition 5)."""

    framing: FrameSpec
    open: FramedReadings | None = None
    nulls: list[int] = field(default_factory=list)
    previous: Reading | None = None
    heard: int | None = None

    def take(self, reading: Reading) -> Iterator[FramedReadings]:
        """Yield the frames that the next reading closes."""
        yield from self.pass_to(reading.time)
        if not reading.missing:
            self.heard = reading.time
            yield from self._present(reading)
        elif not self.framing.scheduled:
            # With a schedule a null reading is the same as a missing one.
            self.nulls.append(reading.time)
            if self.framing.missing == "breaks":
                yield from self._close(reading.time)

    def pass_to(self, time: int) -> Iterator[FramedReadings]:
        """Yield the frames that close by the passing of time up to a moment."""
        framing = self.framing
        if framing.begins and self.heard is not None and self.previous is not None:
            known = min(time, self.heard + framing.idle)
            for turn in range(self.previous.time + framing.every, known, framing.every):
                yield from self._pass_by(turn)
                yield from self._present(Reading(turn, missing=True))
        yield from self._pass_by(time)

    def _pass_by(self, time: int) -> Iterator[FramedReadings]:
        framing = self.framing
        if self.open is None or self.heard is None:
            return
        turns = [self.heard + framing.idle]
        if framing.max_time is not None:
            turns.append(self.open.first + framing.max_time)
        closed = min(turns)
        missed = self.heard + framing.every
        if framing.scheduled and framing.missing == "breaks" and missed < min(time, closed):
            closed = missed
        if closed <= time:
            yield from self._close(closed)

    def _present(self, reading: Reading) -> Iterator[FramedReadings]:
        framing, kind = self.framing, self.framing.kind
        if self.open is not None:
            extends = kind.extends(self.open.values, reading) and not self._too_long(self.open, reading)
            meets = reading.starts and framing.when_open != "continue"
            if extends and meets and framing.when_open == "drop":
                self.open = None
            elif not extends or meets:
                yield from self._close_by(reading)
            else:
                self.open = replace(
                    self.open,
                    readings=(*self.open.readings, reading),
                    missing=self.open.missing + len(self._missed(reading)) + reading.missing,
                )
        if self.open is None and reading.starts and kind.opens(reading):
            neighbour = self._beside(self.previous, reading)
            self.open = FramedReadings((reading,), missing=int(reading.missing), before=neighbour)
        if self.open is not None and self._completed(self.open):
            yield from self._close(reading.time)
        self.previous, self.nulls = reading, []

    def _too_long(self, frame: FramedReadings, reading: Reading) -> bool:
        max_time = self.framing.max_time
        return max_time is not None and reading.time - frame.first + self.framing.every > max_time

    def _completed(self, frame: FramedReadings) -> bool:
        kind = self.framing.kind
        return (
            frame.readings[-1].ends
            or len(frame.readings) == self.framing.max_records
            or (
                isinstance(kind, Aggregate)
                and kind.minimal
                and frame.long_enough(self.framing)
                and kind.holds(frame.values)
            )
        )

    def _missed(self, reading: Reading) -> list[int]:
        """Return the times of missing readings between the last reading and this one."""
        if not self.framing.scheduled or self.previous is None:
            return self.nulls
        return [*range(self.previous.time + self.framing.every, reading.time, self.framing.every)]

    def _beside(self, neighbour: Reading | None, reading: Reading) -> int | None:
        """Return the time of a reading's neighbour if a liberal extent reaches to it."""
        liberal = isinstance(self.framing.kind, Threshold) and self.framing.kind.liberal
        if not liberal or neighbour is None or neighbour.holds:
            return None
        return neighbour.time if abs(reading.time - neighbour.time) < self.framing.idle else None

    def _close_by(self, reading: Reading) -> Iterator[FramedReadings]:
        assert self.open is not None
        missed = self._missed(reading) if self.framing.missing == "satisfies" else []
        frame = replace(
            self.open,
            missing=self.open.missing + len(missed),
            last=missed[-1] if missed else None,
            after=self._beside(reading, self.open.readings[-1]),
        )
        yield from self._close(reading.time, frame)

    def _close(self, time: int, frame: FramedReadings | None = None) -> Iterator[FramedReadings]:
        if (frame := frame or self.open) is not None:
            yield replace(frame, closed=time)
        self.open = None


def framed(framing: FrameSpec, readings: Iterable[Reading], until: int) -> list[FramedReadings]:
    """Return the frames of a key's readings as of `until`; the open one comes last.

    Args:
        readings: ascending, all before `until`.
        until: in microseconds, a multiple of `every`.
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
        until: the end of the period.
        overlap: whether every reading may begin a frame (section 4.2: cover, unconstrained). Frames inside
            another one are left out; of minimal ones those that contain another one. If False, the first
            reading after a frame begins the next.
    """
    if not overlap:
        return [frame for frame in framed(framing, readings, until) if _is_valid(framing, frame)]
    candidates = (
        frame
        for place, reading in enumerate(readings)
        for frame in ([] if reading.missing else framed(framing, readings[place:], until)[:1])
        if frame.first == reading.time and _is_valid(framing, frame)
    )
    spans = [(frame.first, frame.readings[-1].time, frame) for frame in candidates]

    def inside(inner: tuple[int, int, FramedReadings], outer: tuple[int, int, FramedReadings]) -> bool:
        return inner is not outer and outer[0] <= inner[0] and inner[1] <= outer[1]

    if framing.minimal:
        return [span[2] for span in spans if not any(inside(other_span, span) for other_span in spans)]
    return [span[2] for span in spans if not any(inside(span, other_span) for other_span in spans)]


def reports(
    framing: FrameSpec, readings: list[Reading], hours: Iterable[int], hour: int
) -> Iterator[FrameReport]:
    """Yield the reports of a key's frames hour by hour: `final` in the hour in which a frame closes,
    `partial` in each hour in which an open frame gets a reading, if it is long enough.

    Args:
        hours: the starts of all hours, ascending.
        hour: the length of an hour.
    """
    fragments: dict[int, int] = {}
    for begin in hours:
        until = begin + hour
        for frame in framed(framing, [reading for reading in readings if reading.time < until], until):
            final = frame.closed is not None
            grown = frame.readings[-1].time >= begin and framing.reports_open
            reported = frame.closed >= begin if frame.closed is not None else grown
            if reported and (_is_valid(framing, frame) if final else frame.long_enough(framing)):
                fragments[frame.first] = fragments.get(frame.first, 0) + 1
                yield FrameReport(begin, "final" if final else "partial", fragments[frame.first], frame)


def _is_valid(framing: FrameSpec, frame: FramedReadings) -> bool:
    """Return whether a closed frame counts: it is long enough, and its aggregate meets the condition."""
    kind = framing.kind
    unmet = isinstance(kind, Aggregate) and kind.minimal and not kind.holds(frame.values)
    return frame.long_enough(framing) and not unmet


def _value(reading: Reading) -> int:
    assert reading.value is not None, "a reading without a value is missing to this kind"
    return reading.value
