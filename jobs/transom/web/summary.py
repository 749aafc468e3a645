"""A stream in the list of streams."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from deltalake.exceptions import DeltaError

from transom.core.intervals import Interval, format_hour
from transom.ledger.hour_states import WORST
from transom.spec.errors import SpecificationError
from transom.storage.tables import LakeError, one_line_message
from transom.views.findings import FindingFilter, findings_of
from transom.views.hours import HourGrid
from transom.views.open_stream import NothingToView
from transom.web.open_streams import OpenStreams

LATEST = timedelta(days=7)
"""The length of the interval of the list."""


@dataclass(frozen=True)
class Summary:
    """A stream in the list of streams.

    Attributes:
        name: its name.
        title: its title.
        problem: why there is nothing to show; None if there is something.
        interval: the latest requested hours.
        grid: the state of each stage in these hours.
        findings: the number of their findings by severity, without withdrawn ones.
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
    def cells(self) -> list[tuple[str, str]]:
        """The worst state of all stages in each hour, and the hour with it as text."""
        rows = [] if self.grid is None else zip(*self.grid.stages.values(), strict=True)
        worst = (min(cells, key=lambda cell: WORST.index(cell.state)) for cells in rows)
        return [(cell.state, f"{format_hour(cell.interval.start)}: {cell.state}") for cell in worst]

    @property
    def text(self) -> str:
        """The number of hours in each state."""
        counts = Counter(state for state, _ in self.cells)
        return ", ".join(f"{counts[state]} {state}" for state in WORST if counts[state]) + " hours"


def summary_of(streams: OpenStreams, name: str) -> Summary:
    """Return a stream in the list of streams; a problem of one stream does not hide the others."""
    try:
        opened, hours = streams.opened(name)
        title = opened.stream.title or opened.stream.source.path
        latest, _ = opened.interval_of(None, None)
        interval = Interval(max(latest.start, latest.end - LATEST), latest.end)
        grid = hours.grid(interval, patience=0)
        counts = findings_of(opened, FindingFilter(interval)).severities
        changed_at = opened.changed_at()
        notices = (*opened.notices(), *([grid.notice] if grid.notice else []))
    except SpecificationError as error:
        return Summary(name, problem=f"The stream file is wrong: {error}")
    except (NothingToView, LakeError, DeltaError) as error:
        return Summary(name, problem=f"{one_line_message(error)}.")
    return Summary(name, title, None, interval, grid, counts, notices, changed_at)
