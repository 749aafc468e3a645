"""Fills: the rows between the ends of frames (Grossniklaus, Maier, Moorthy and Tufte).

A fill has the rows of `source` in `[start - lead, end + interval + lag)`, of the frame's key or of all, or in
the same period of an earlier day.
"""

from collections.abc import Iterator
from datetime import timedelta

from pydantic import Field

from transom.core.durations import Duration, Shifts, format_duration
from transom.core.intervals import HOUR
from transom.features.aggregates.spec import MeasureText
from transom.features.frames.spec import Combination
from transom.spec.base import Model, Name, NonEmptyStr
from transom.spec.errors import Issue, find_duplicates
from transom.spec.external_source import EVENTS, Filler

REACH = timedelta(days=7)
"""The default of `reach` for frames of any length."""
LONGEST = timedelta(days=3660)


class Fill(Model):
    """A block of `fill`: what fills the frames of one kind."""

    frame: Name
    """The kind of frame."""
    source: Filler = Filler(block=EVENTS)
    """What fills it: events, or a block of `aggregates`, by its finest granules; or what is not the stream's
    own: {stream: NAME, columns: ...}, {table: PATH, time: COLUMN, columns: ...}."""
    join_on: tuple[str, ...] | None = None
    """The columns in which a frame and what fills it agree, of the frame's key; all of these where nothing is
    said, [] for none."""
    where: NonEmptyStr | None = None
    """A condition on what fills it, as loss > 1.5; of the stream's own events the stream's where nothing is
    said."""
    lead: Duration = timedelta(0)
    """How long before a frame's start what fills it begins."""
    lag: Duration = timedelta(0)
    """How long after its end what fills it goes on."""
    shift: Shifts = (timedelta(0),)
    """How long ago what fills it is looked for, as 24 hours: one, or several, each of which makes a row."""
    combine: Combination | None = None
    """What is made of the rows of several shifts, as one more row; of those whose stretch is covered."""
    measures: dict[Name, MeasureText] = Field(default_factory=dict)
    """What is told of the rows beside how many they are: sum, mean, min or max of a column, as sum(bytes)."""
    reach: Duration | None = None
    """How much of a long frame is filled, the last of it; it shortens neither `lead` nor `lag`. Whole hours;
    where nothing is said, as much as the frame can be long, or 7 days where it can be of any length."""

    def _rules(self) -> Iterator[Issue]:
        shifts = [format_duration(shift) for shift in self.shift]
        yield from find_duplicates("join_on", self.join_on or ())
        yield from find_duplicates("shift", shifts)
        if self.combine is not None and len(shifts) == 1:
            yield Issue("combine", f"is made of several shifts; got {shifts[0]}")
        if self.reach is not None and (self.reach < HOUR or self.reach % HOUR):
            rule = "must be whole hours, at least one"
            yield Issue("reach", f"{rule}; got {format_duration(self.reach)}")
        for name, length in (("lead", self.lead), ("lag", self.lag), ("shift", max(self.shift))):
            if length > LONGEST:
                got = format_duration(length)
                yield Issue(name, f"must be at most {format_duration(LONGEST)}; got {got}")
        for name, measure in self.measures.items():
            if measure.function in ("count", "distinct"):
                known = "sum, mean, min or max; how many rows there are is rows_matched"
                yield Issue(f"measures.{name}", f"takes {known}; got {measure.function}")
