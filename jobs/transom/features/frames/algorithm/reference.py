"""Frames, record by record (Grossniklaus, Maier, Moorthy and Tufte, section 4).

A frame is a stretch of time that the data itself delimits. A framing function (definition 5) takes one
reading of a key at a time: it opens a frame, extends the open one, or closes it, as the kind of frame says;
one is open at most. Start and end of a frame are the times of its first and of its last reading; how long it
is counts the time that the last one stands for, too: `end - start + every`.

What is missing, a reading without a value or one that did not come when it was its turn, begins no frame,
unless the framing says so. Whether it closes the open one is said beside the kind, and so is how long a key
may be silent.

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
    """What a key said in one turn.

    Attributes:
        time: in microseconds, a multiple of `every`; later than that of the one before.
        value: in whole units; None where there is none, as there may be in a threshold frame.
        missing: whether it says nothing that the kind could go by.
        holds: whether a threshold's predicate holds.
        starts, ends: the conditions of a start and of an end of their own, where the framing has any.
    """

    time: int
    value: int | None = None
    missing: bool = False
    holds: bool = True
    starts: bool = True
    ends: bool = False


@dataclass(frozen=True)
class Threshold:
    """As long as a predicate holds.

    Attributes:
        liberal: whether a frame reaches from the last reading before it to the first one behind it that do
            not satisfy the predicate, where there are such.
    """

    liberal: bool = False

    def opens(self, reading: Reading) -> bool:
        """Whether a frame may begin with a reading."""
        return reading.holds

    def extends(self, values: list[int], reading: Reading) -> bool:
        """Whether a reading may join a frame of some values."""
        return reading.holds


@dataclass(frozen=True)
class Boundary:
    """Between two multiples of a step: cut wherever `floor(value / step)` changes."""

    step: Fraction

    def opens(self, reading: Reading) -> bool:
        """Whether a frame may begin with a reading."""
        return True

    def extends(self, values: list[int], reading: Reading) -> bool:
        """Whether a reading may join a frame of some values."""
        return _value(reading) // self.step == values[-1] // self.step


@dataclass(frozen=True)
class Delta:
    """As long as `max(value) - min(value) < below`."""

    below: int

    def opens(self, reading: Reading) -> bool:
        """Whether a frame may begin with a reading."""
        return True

    def extends(self, values: list[int], reading: Reading) -> bool:
        """Whether a reading may join a frame of some values."""
        values = [*values, _value(reading)]
        return max(values) - min(values) < self.below


@dataclass(frozen=True)
class Trend:
    """As long as each value is above the one before; below it, where it falls."""

    rising: bool = True

    def opens(self, reading: Reading) -> bool:
        """Whether a frame may begin with a reading."""
        return True

    def extends(self, values: list[int], reading: Reading) -> bool:
        """Whether a reading may join a frame of some values."""
        return _value(reading) > values[-1] if self.rising else _value(reading) < values[-1]


COMPARED: dict[Compared, Callable[[Fraction, Fraction], bool]] = {">": gt, ">=": ge, "<": lt, "<=": le}


@dataclass(frozen=True)
class Aggregate:
    """By `function(values) compared bound`.

    Attributes:
        bound: in the values' units.
        minimal: the frame ends with the first reading with which that holds and it is long enough; else it
            goes on as long as that holds.
    """

    function: Function
    compared: Compared
    bound: Fraction
    minimal: bool

    def opens(self, reading: Reading) -> bool:
        """Whether a frame may begin with a reading."""
        return self.minimal or self.holds([_value(reading)])

    def extends(self, values: list[int], reading: Reading) -> bool:
        """Whether a reading may join a frame of some values."""
        return self.minimal or self.holds([*values, _value(reading)])

    def holds(self, values: list[int]) -> bool:
        """Whether the condition holds of some values."""
        found = {
            "sum": Fraction(sum(values)),
            "count": Fraction(len(values)),
            "avg": Fraction(sum(values), len(values)),
            "min": Fraction(min(values)),
            "max": Fraction(max(values)),
        }[self.function]
        return COMPARED[self.compared](found, self.bound)


@dataclass(frozen=True)
class Marked:
    """From a start to an end, as conditions of their own say."""

    def opens(self, reading: Reading) -> bool:
        """Whether a frame may begin with a reading."""
        return True

    def extends(self, values: list[int], reading: Reading) -> bool:
        """Whether a reading may join a frame of some values."""
        return True


Kind = Threshold | Boundary | Delta | Trend | Aggregate | Marked


@dataclass(frozen=True)
class FrameSpec:
    """What delimits frames.

    Attributes:
        every: how long a reading stands for, in microseconds; 1 where they come when they come.
        scheduled: whether a turn of `every` without a reading is a missing one.
        missing: what a missing reading does to the open frame: it breaks it; or is bridged, if a reading
            behind it extends the frame; or satisfies what the others do, and belongs to the frame as well
            where it is the reading behind it that ends it.
        idle: a frame is closed where no reading has come for so long, in microseconds.
        least_time, least_records: what is shorter is not reported.
        most_time, most_records: what would become longer is closed before; None is any length.
        when_open: what becomes of an open frame that a reading meets which starts one (appendix A): it is
            reported, or dropped, and the reading opens the next one; or it goes on.
        begins: whether a missing reading, which satisfies, may begin a frame, too, and is in it like others:
            from the first reading of a key on, until it has been silent for `idle`. It needs a threshold,
            turns, no condition of a start and no number of readings.
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
        """How many readings a frame that is reported has at least: a trend shows in two, silence in none."""
        return 0 if self.begins else max(self.min_records, 2 if isinstance(self.kind, Trend) else 1)

    @property
    def minimal(self) -> bool:
        """Whether a frame ends as soon as its aggregate is what it is to be."""
        return isinstance(self.kind, Aggregate) and self.kind.minimal

    @property
    def reports_open(self) -> bool:
        """Whether a frame is told as long as it is open: one is not that may yet turn out to be none."""
        return self.when_open != "drop" and not self.minimal


@dataclass(frozen=True)
class FramedReadings:
    """A frame and what is in it.

    Attributes:
        readings: those that are not missing; where these may begin a frame, all.
        missing: how many are missing, between the others or with them; of null readings alone where there is
            no schedule.
        before, behind: the times of the neighbours that a liberal extent reaches to.
        last: the time of a missing reading that it ends with, where those satisfy.
        closed: when it was closed, in microseconds; None as long as it is open.
    """

    readings: tuple[Reading, ...]
    missing: int = 0
    before: int | None = None
    behind: int | None = None
    last: int | None = None
    closed: int | None = None

    @property
    def first(self) -> int:
        """The time of the first reading."""
        return self.readings[0].time

    @property
    def start(self) -> int:
        """Where it starts."""
        return self.first if self.before is None else self.before

    @property
    def latest(self) -> int:
        """The time of its last reading."""
        return self.readings[-1].time if self.last is None else self.last

    @property
    def end(self) -> int:
        """Where it ends."""
        return self.latest if self.behind is None else self.behind

    @property
    def records(self) -> int:
        """How many readings there are that are not missing."""
        return sum(not reading.missing for reading in self.readings)

    @property
    def values(self) -> list[int]:
        """The values that there are."""
        return [reading.value for reading in self.readings if reading.value is not None]

    def length(self, every: int) -> int:
        """How long it is, whatever lies around it, in microseconds."""
        return self.latest - self.first + every

    def long_enough(self, framing: FrameSpec) -> bool:
        """Whether it may be reported."""
        return self.length(framing.every) >= framing.min_time and self.records >= framing.fewest


class FrameReport(NamedTuple):
    """What is said of a frame in an hour.

    Attributes:
        fragment: its number among what is said of the frame, from 1.
    """

    hour: int
    state: State
    fragment: int
    frame: FramedReadings


@dataclass
class _Framer:
    """The framing function, with the state that it goes by (`C` in definition 5)."""

    framing: FrameSpec
    open: FramedReadings | None = None
    nulls: list[int] = field(default_factory=list)
    before: Reading | None = None
    heard: int | None = None

    def take(self, reading: Reading) -> Iterator[FramedReadings]:
        """The frames that are closed by what comes next."""
        yield from self.pass_to(reading.time)
        if not reading.missing:
            self.heard = reading.time
            yield from self._present(reading)
        elif not self.framing.scheduled:
            # In its turn of a schedule it is missing in the same way as if it had not come.
            self.nulls.append(reading.time)
            if self.framing.missing == "breaks":
                yield from self._close(reading.time)

    def pass_to(self, time: int) -> Iterator[FramedReadings]:
        """The frames that are closed by the passing of time up to a reading, or to where one looks."""
        framing = self.framing
        if framing.begins and self.heard is not None and self.before is not None:
            known = min(time, self.heard + framing.idle)
            for turn in range(self.before.time + framing.every, known, framing.every):
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
            before = self._beside(self.before, reading)
            self.open = FramedReadings((reading,), missing=int(reading.missing), before=before)
        if self.open is not None and self._completed(self.open):
            yield from self._close(reading.time)
        self.before, self.nulls = reading, []

    def _too_long(self, frame: FramedReadings, reading: Reading) -> bool:
        most = self.framing.max_time
        return most is not None and reading.time - frame.first + self.framing.every > most

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
        """The times at which something is missing between the last reading and one."""
        if not self.framing.scheduled or self.before is None:
            return self.nulls
        return [*range(self.before.time + self.framing.every, reading.time, self.framing.every)]

    def _beside(self, neighbour: Reading | None, reading: Reading) -> int | None:
        """The time of a reading's neighbour, where a liberal extent reaches to it."""
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
            behind=self._beside(reading, self.open.readings[-1]),
        )
        yield from self._close(reading.time, frame)

    def _close(self, time: int, frame: FramedReadings | None = None) -> Iterator[FramedReadings]:
        if (frame := frame or self.open) is not None:
            yield replace(frame, closed=time)
        self.open = None


def framed(framing: FrameSpec, readings: Iterable[Reading], until: int) -> list[FramedReadings]:
    """The frames of a key's readings, as they stand when time has come to `until`; the open one comes last.

    Args:
        readings: in order, all before `until`.
        until: in microseconds, a multiple of `every`.
    """
    framer = _Framer(framing)
    found = [frame for reading in readings for frame in framer.take(reading)]
    # What is closed at that very moment is closed by what comes.
    found += framer.pass_to(until - 1)
    return found if framer.open is None else [*found, framer.open]


def frames_of_period(
    framing: FrameSpec, readings: Sequence[Reading], until: int, overlap: bool
) -> list[FramedReadings]:
    """The frames of a key's readings in a stretch of time by itself; those open at its end are among them.

    Args:
        until: the end of the stretch.
        overlap: whether every reading may begin a frame (section 4.2: cover, unconstrained), of which those
            stay that lie inside no other one, of minimal ones those that hold no other one; else the first
            reading behind a frame begins the next.
    """
    if not overlap:
        return [frame for frame in framed(framing, readings, until) if _sound(framing, frame)]
    begun = (
        frame
        for place, one in enumerate(readings)
        for frame in ([] if one.missing else framed(framing, readings[place:], until)[:1])
        if frame.first == one.time and _sound(framing, frame)
    )
    found = [(frame.first, frame.readings[-1].time, frame) for frame in begun]

    def inside(inner: tuple[int, int, FramedReadings], outer: tuple[int, int, FramedReadings]) -> bool:
        return inner is not outer and outer[0] <= inner[0] and inner[1] <= outer[1]

    if framing.minimal:
        return [one[2] for one in found if not any(inside(other, one) for other in found)]
    return [one[2] for one in found if not any(inside(one, other) for other in found)]


def reports(
    framing: FrameSpec, readings: list[Reading], hours: Iterable[int], hour: int
) -> Iterator[FrameReport]:
    """What is said of a key's frames hour by hour: `final` in the hour of what closed one, and `partial` in
    each in which an open one has got a reading, if it is long enough.

    Args:
        hours: all that there are, ascending, by where they begin.
        hour: how long one is.
    """
    fragments: dict[int, int] = {}
    for begin in hours:
        until = begin + hour
        for frame in framed(framing, [one for one in readings if one.time < until], until):
            final = frame.closed is not None
            grown = frame.readings[-1].time >= begin and framing.reports_open
            told = frame.closed >= begin if frame.closed is not None else grown
            if told and (_sound(framing, frame) if final else frame.long_enough(framing)):
                fragments[frame.first] = fragments.get(frame.first, 0) + 1
                yield FrameReport(begin, "final" if final else "partial", fragments[frame.first], frame)


def _sound(framing: FrameSpec, frame: FramedReadings) -> bool:
    """Whether a frame that is over is one: it is long enough, and its aggregate what it is to come to."""
    kind = framing.kind
    unmet = isinstance(kind, Aggregate) and kind.minimal and not kind.holds(frame.values)
    return frame.long_enough(framing) and not unmet


def _value(reading: Reading) -> int:
    assert reading.value is not None, "a reading without a value is missing to this kind"
    return reading.value
