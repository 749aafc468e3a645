"""Lines of value against time: what of a block says how its series are made."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Literal, Protocol

from transom.core.durations import Duration, format_duration
from transom.spec.base import ShorthandModel
from transom.spec.errors import Issue

MAX_FIT_UNITS = 2**15
"""Of a window: the sums of its line are exact then (`transom.features.aggregates.algorithm.linear_fit`)."""
_SECOND = timedelta(seconds=1)


class Sliding(Protocol):
    """A level of windows."""

    @property
    def range(self) -> timedelta:
        """How long a window is."""

    @property
    def slide(self) -> timedelta:
        """How far apart windows are."""


class Fit(ShorthandModel):
    """A line through the values of each window, one value a unit of time. A bare duration in the file is its
    `unit`."""

    SHORT = ("unit", (str,), {"type": "string", "description": "how long a unit is, such as 1 hour"})

    unit: Duration | None = None
    """How long a unit is; it divides every slide. The finest slide where nothing is said."""
    value: Literal["mean", "sum", "min", "max"] = "mean"
    """What a unit's value is made of the values in it."""
    missing: Literal["last", "zero"] = "last"
    """The value of a unit that has none: the last one before it in the window, or 0. Where records are
    counted it is 0."""


def problems(unit: timedelta, levels: Sequence[Sliding]) -> Iterator[Issue]:
    """Yield what is wrong with a unit.

    Args:
        levels: the coarsest first.
    """
    if unit < _SECOND or unit % _SECOND:
        yield Issue("fit.unit", f"must be whole seconds, at least one; got {format_duration(unit)}")
        return
    for number, level in enumerate(reversed(levels)):
        if level.range > MAX_FIT_UNITS * unit:
            most = f"a window has at most {MAX_FIT_UNITS} units"
            yield Issue("fit.unit", f"{most}, level {number} ({level}) has {level.range // unit}")
        elif level.slide % unit:
            yield Issue(
                "fit.unit", f"must divide the slide of level {number} ({level}); got {format_duration(unit)}"
            )
