"""What delimits frames: the kinds of frames, and their limits."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from operator import ge, gt, le, lt
from typing import Any, Literal

Missing = Literal["breaks", "bridged", "satisfies"]
Function = Literal["sum", "count", "avg", "min", "max"]
Compared = Literal[">", ">=", "<", "<="]
WhenOpen = Literal["report", "drop", "continue"]
COMPARED: dict[Compared, Callable[[Any, Any], bool]] = {">": gt, ">=": ge, "<": lt, "<=": le}


@dataclass(frozen=True)
class Threshold:
    """A frame lasts while a predicate holds. A liberal one extends to the neighbours that do not satisfy it,
    the last reading before it and the first one after it."""

    liberal: bool = False


@dataclass(frozen=True)
class Boundary:
    """A frame lies between two multiples of a step: cut where `floor(value / step)` changes."""

    step: Fraction


@dataclass(frozen=True)
class Delta:
    """A frame lasts while `max(value) - min(value) < below`."""

    below: int


@dataclass(frozen=True)
class Trend:
    """A frame lasts while each value is above the previous one, or below it if `rising` is False."""

    rising: bool = True


@dataclass(frozen=True)
class Aggregate:
    """A frame depends on `function(values) compared bound`.

    In whole numbers: the measure, `sign` times the value of the function, is at least `min_measure`.
    Sums and counts add up, and so does `q sum - p count`, for an average that is compared with `p / q`.

    Attributes:
        bound: in the values' units.
        minimal: the frame ends with the first reading with which this holds and the frame is long enough;
            else it lasts while this holds.
    """

    function: Function
    compared: Compared
    bound: Fraction
    minimal: bool

    @property
    def adds(self) -> bool:
        """Whether the measure of a frame is the sum of its readings' measures."""
        return self.function in ("sum", "count", "avg")

    @property
    def sign(self) -> int:
        """-1 if the condition bounds the function from above, else 1."""
        return 1 if self.compared in (">", ">=") else -1

    @property
    def is_existential(self) -> bool:
        """Whether a condition on an extreme holds as soon as one reading meets it; else all must meet it."""
        return (self.function == "max") is (self.sign > 0)

    @property
    def min_measure(self) -> int:
        """The smallest measure that meets the condition."""
        bound = Fraction(0) if self.function == "avg" else self.sign * self.bound
        return math.floor(bound) + 1 if self.compared in (">", "<") else math.ceil(bound)


@dataclass(frozen=True)
class Marked:
    """A frame lasts from a start to an end, each with a condition of its own."""


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
    def required_records(self) -> int:
        """The minimum number of readings of a reported frame: two for a trend, none for silence."""
        return 0 if self.begins else max(self.min_records, 2 if isinstance(self.kind, Trend) else 1)

    @property
    def minimal(self) -> bool:
        """Whether a frame ends as soon as its aggregate meets the condition."""
        return isinstance(self.kind, Aggregate) and self.kind.minimal

    @property
    def liberal(self) -> bool:
        """Whether a frame extends to neighbours that do not satisfy the predicate."""
        return isinstance(self.kind, Threshold) and self.kind.liberal

    @property
    def reports_open(self) -> bool:
        """Whether open frames are reported; not if they may still be dropped."""
        return self.when_open != "drop" and not self.minimal
