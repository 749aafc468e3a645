"""Kinds of frames and their parameters (Grossniklaus, Maier, Moorthy and Tufte, sections 4.1 to 4.4)."""

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
    """A frame lasts while a predicate holds.

    Attributes:
        liberal: whether the frame extends to the last reading before it and the first one after it, if these
            do not satisfy the predicate.
    """

    liberal: bool = False


@dataclass(frozen=True)
class Boundary:
    """A frame lasts while `floor(value / step)` stays the same.

    Attributes:
        step: above 0, in whole units of the values.
    """

    step: Fraction


@dataclass(frozen=True)
class Delta:
    """A frame lasts while `max(value) - min(value) < below`.

    Attributes:
        below: above 0, in whole units of the values.
    """

    below: int


@dataclass(frozen=True)
class Trend:
    """A frame lasts while each value is above the previous one.

    Attributes:
        rising: if False, each value is below the previous one.
    """

    rising: bool = True


@dataclass(frozen=True)
class Aggregate:
    """A frame depends on a condition: `function(values) compared bound`.

    In whole numbers the condition is `sign * function(values) >= min_measure`. For an average that is
    compared with `p / q`, the function is `q * sum - p * count`, which adds up as sums and counts do.

    Attributes:
        function: the aggregate of the frame's values.
        compared: the comparison with the bound.
        bound: in whole units of the values; for a count, a number of readings.
        minimal: if True, the frame ends with the first reading with which the condition holds and the frame
            is long enough; else it lasts while the condition holds.

    >>> Aggregate("sum", "<", Fraction(7, 2), minimal=False).min_measure  # -sum >= -3
    -3
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
        """Whether one reading that meets a condition on an extreme is enough; else all must meet it."""
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
        kind: the kind of frame.
        every: the time that a reading covers, in microseconds; 1 without a schedule.
        scheduled: whether a turn of `every` without a reading is a missing reading.
        missing: the effect of a missing reading on the open frame. `breaks` closes it; `bridged` skips the
            reading if a later one extends the frame; `satisfies` counts it as one that meets the condition,
            so it belongs to the frame even if the next reading ends it.
        idle: a frame closes after this time without a reading, in microseconds. A longer time reads state of
            more hours.
        min_time: shorter frames are not reported; in microseconds, 0 or more.
        min_records: frames with fewer readings are not reported; 1 or more.
        max_time: a frame closes before it gets longer, in microseconds; None for any length.
        max_records: a frame closes with this number of readings; None for any number.
        when_open: the effect of a reading that starts a frame on an open one (appendix A). `report` and
            `drop` let it open the next frame, and report or drop the open one; `continue` has no effect.
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
