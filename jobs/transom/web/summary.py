"""A stream in the list of streams."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby
from typing import NamedTuple

from deltalake.exceptions import DeltaError

from transom.core.intervals import Interval, format_hour
from transom.core.terminal import counted
from transom.ledger.hour_states import WORST
from transom.spec.errors import SpecificationError
from transom.storage.tables import LakeError, one_line_message
from transom.views.findings import FindingFilter, findings_of
from transom.views.hours import MEANINGS, HourGrid, format_counts
from transom.views.open_stream import NothingToView
from transom.web.open_streams import OpenStreams

LATEST = timedelta(days=7)
"""The length of the interval of the list."""


GOOD = ("published", "empty")
"""The states of hours without trouble."""


class SummaryCell(NamedTuple):
    """An hour of a stream: the worst state of all stages, and the state as text."""

    hour: datetime
    state: str
    text: str


@dataclass(frozen=True)
class Summary:
    """A stream in the list of streams.

    Attributes:
        name: its name.
        title: its title.
        problem: why there is nothing to show; None if there is something.
        interval: the latest requested hours.
        grid: the state of each stage in these hours.
        findings: the number of their findings by severity, the worst first, without withdrawn ones.
        notices: what a reader should know about them.
        changed_at: when the newest entry of the ledger was made; None if this is not known.
    """

    name: str
    title: str = ""
    problem: str | None = None
    interval: Interval | None = None
    grid: HourGrid | None = None
    findings: Mapping[str, int] = field(default_factory=dict)
    notices: tuple[str, ...] = ()
    changed_at: datetime | None = None

    @property
    def cells(self) -> list[SummaryCell]:
        """The worst state of all stages in each hour."""
        rows = [] if self.grid is None else zip(*self.grid.stages.values(), strict=True)
        worst = (min(cells, key=lambda cell: WORST.index(cell.state)) for cells in rows)
        return [SummaryCell(cell.interval.start, cell.state, cell.text) for cell in worst]

    @property
    def days(self) -> list[list[SummaryCell]]:
        """The cells of each day."""
        return [[*cells] for _, cells in groupby(self.cells, key=lambda cell: cell.hour.date())]

    @property
    def counts(self) -> Counter[str]:
        """The number of hours in each state, by the worst state of all stages."""
        return Counter(cell.state for cell in self.cells)

    @property
    def text(self) -> str:
        """The number of hours in each state, as text."""
        return f"{counted(len(self.cells), 'hour')}: {format_counts(self.counts)}"

    @property
    def health(self) -> str:
        """Whether all requested hours are published and fresh, and which is the newest with events."""
        assert self.grid is not None
        assert self.interval is not None
        requested = self.counts.total() - self.counts["none"]
        good, end = sum(self.counts[state] for state in GOOD), format_hour(self.interval.end)
        fresh = "" if self.grid.notice else " and fresh"
        newest = self.grid.newest
        empty = f", {self.counts['empty']} of them without events" if self.counts["empty"] else ""
        events = (
            "no hour has an event" if newest is None else f"the newest events are of {format_hour(newest)}"
        )
        if good < requested:
            return f"{requested - good} of {counted(requested, 'hour')} up to {end} need attention; {events}"
        return f"All {counted(requested, 'hour')} up to {end} are published{fresh}{empty}; {events}"


def legend(summaries: Iterable[Summary]) -> dict[str, str]:
    """Return the states of the cells of all streams, with their meanings."""
    seen = {cell.state for summary in summaries for cell in summary.cells}
    return {state: meaning for state, meaning in MEANINGS.items() if state in seen}


def summary_of(streams: OpenStreams, name: str, patience: float | None) -> Summary:
    """Return a stream in the list of streams; a problem of one stream does not hide the others.

    Args:
        streams: the streams.
        name: the name of the stream.
        patience: as of `StreamHours.grid`.
    """
    try:
        opened, hours = streams.opened(name)
        title = opened.stream.title or opened.stream.source.path
        latest, _ = opened.interval_of(None, None)
        interval = Interval(max(latest.start, latest.end - LATEST), latest.end)
        grid = hours.grid(interval, patience)
        counts = findings_of(opened, FindingFilter(interval)).severities
        changed_at = opened.changed_at()
        notices = (*opened.notices(), *([grid.notice] if grid.notice else []))
    except SpecificationError as error:
        return Summary(name, problem=f"The stream file is wrong: {error}")
    except (NothingToView, LakeError, DeltaError) as error:
        return Summary(name, problem=f"{one_line_message(error)}.")
    return Summary(name, title, None, interval, grid, counts, notices, changed_at)
