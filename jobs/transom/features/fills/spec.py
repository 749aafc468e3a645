"""Fills: the rows within frames (Grossniklaus, Maier, Moorthy and Tufte, section 4.5).

A fill has the rows of `source` with `start - lead - shift <= time(row) < end + lag - shift`, of the frame's
key or of all. `end = last_time + interval` is the end of what the last reading covers.
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
"""Maximum of `lead`, `lag` and `shift`."""


class Fill(Model):
    """A block of `fills`: the rows within the frames of one kind, and their aggregates."""

    frame: Name
    """The block of `frames` whose frames are filled."""
    source: Filler = Filler(block=EVENTS)
    """Where the rows come from: `events`, the finest granules of a block of `aggregates`, another stream
    ({stream: NAME, columns: ...}), or a Delta table ({table: PATH, time: COLUMN, columns: ...})."""
    join_on: tuple[str, ...] | None = None
    """Columns of the frame's key in which a frame and its rows agree. Default: all of the key; [] for
    none."""
    where: NonEmptyStr | None = None
    """A condition on the rows, such as loss > 1.5. Default for the stream's own events: the stream's
    `where`."""
    lead: Duration = timedelta(0)
    """How long before the frame's start rows count, up to 3,660 days. A longer `lead` reads more hours."""
    lag: Duration = timedelta(0)
    """How long after the frame's end rows count, up to 3,660 days. A longer `lag` reads more hours."""
    shift: Shifts = (timedelta(0),)
    """How long ago the rows were, such as 24 hours, up to 3,660 days: one or several. Each shift gives a row
    of `fills`, and reads its hours."""
    combine: Combination | None = None
    """With several shifts: how their values are combined into one more row of `fills`. Only shifts that are
    covered completely count."""
    measures: dict[Name, MeasureText] = Field(default_factory=dict)
    """Aggregates of the rows, by the names of their columns: `sum`, `mean`, `min` or `max` of a column, such
    as sum(bytes). The number of rows is always in `rows_matched`."""
    reach: Duration | None = None
    """Of a longer frame, only this last part is filled; `lead` and `lag` stay. Whole hours. Default: the
    maximal length of a frame, or 7 days if there is none. A longer `reach` reads more hours."""

    def _rules(self) -> Iterator[Issue]:
        shifts = [format_duration(shift) for shift in self.shift]
        yield from find_duplicates("join_on", self.join_on or ())
        yield from find_duplicates("shift", shifts)
        if self.combine is not None and len(shifts) == 1:
            yield Issue("combine", f"needs several shifts; got {shifts[0]}")
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
