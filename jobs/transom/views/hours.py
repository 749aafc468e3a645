"""The state of each stage by hour, as a grid, and what there is to do. From the ledger alone."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np

from transom.charts.section import DataTable
from transom.core.exact_sums import Bools, Int64s
from transom.core.intervals import HOUR, Interval, format_hour, format_hours, moment_of, number_of
from transom.core.partitions import SOURCE_STAGE
from transom.core.terminal import counted
from transom.engine.gate_text import Cause, cause_of, format_cause
from transom.ledger.freshness import Freshness
from transom.ledger.hour_states import COLUMNS, RANKS, WORST, HourStates, Ranks
from transom.ledger.snapshot import LedgerSnapshot
from transom.spec.stream import Stream

DAY = timedelta(days=1)
MAX_RANGES = 5
"""The maximum number of ranges of hours in a row of the table."""
UNITS = (("hour", 7 * DAY), ("day", 200 * DAY))
"""The lengths of a cell, with the longest interval that has such cells; longer ones have cells of months."""
APART = 8
"""The smallest number of cells from a date below the grid to the next date or hour."""
BORDERS: Mapping[str, Callable[[datetime], bool]] = {
    "hour": lambda start: start.hour == 0,
    "day": lambda start: start.weekday() == 0,
    "month": lambda start: start.month == 1,
}
"""Whether a cell that starts at a time has its date below it, by the length of the cell."""
LAST = datetime(9999, 12, 31, 23, tzinfo=UTC)
"""The last time on the hour."""
MEANINGS = {
    "published": "computed and checked, with events",
    "empty": "computed and checked, without an event",
    "incomplete": "published, and something is missing",
    "stale": "published, and what it is computed from has changed",
    "missing": "requested, and not computed",
    "quarantined": "a check failed, and it is not published",
    "blocked": "an input is not published",
    "writing": "a run writes it now, or was killed",
    "damaged": "its rows are damaged",
    "none": "never requested",
}
WORDS = {"empty": "without events", "none": "not requested"}
"""The words for some states next to a number of hours."""


@dataclass(frozen=True)
class GridCell:
    """A cell of the grid.

    Attributes:
        interval: its hours.
        state: the worst state of its hours.
        text: the number of hours in each state.
        is_partial: whether some of its hours were never requested.
        target: the hours of a closer view of the cell: the whole month or day, or the hour.
    """

    interval: Interval
    state: str
    text: str
    is_partial: bool
    target: Interval


@dataclass(frozen=True)
class HourGrid:
    """The grid.

    Attributes:
        unit: the length of a cell: hour, day or month.
        stages: the cells of each stage, in order of time.
        states: the states that occur, with their meanings.
        counts: the number of hours of each stage in each state.
        attention: the hours that are not published, complete and fresh, with the cause and what to run.
        wider: the hours of a wider view: whole months of days, or whole years of months; None if there is
            none.
        newest: the newest of all requested hours that has an event; None if there is none.
        notes: sentences on the hours as a whole, such as which have no event, and why.
        notice: what a reader should know about the grid; None if nothing.
    """

    unit: str
    stages: Mapping[str, tuple[GridCell, ...]]
    states: Mapping[str, str]
    counts: DataTable
    attention: DataTable
    wider: Interval | None = None
    newest: datetime | None = None
    notes: tuple[str, ...] = ()
    notice: str | None = None

    @property
    def dates(self) -> list[str]:
        """The date or the hour below each cell; empty for most, as a date is as wide as several cells."""
        starts = [cell.interval.start for cell in next(iter(self.stages.values()), ())]
        places = [place for place, start in enumerate(starts) if BORDERS[self.unit](start)]
        if not places or places[0] >= APART:
            places.insert(0, 0)
        dates = [f"{start:%Y-%m-%d}" if place in places else "" for place, start in enumerate(starts)]
        if self.unit == "hour":
            for place, start in enumerate(starts):
                if start.hour % APART == 0 and not any(dates[max(place - APART + 1, 0) : place + 1]):
                    dates[place] = f"{start:%H:%M}"
        return dates


@dataclass(frozen=True, eq=False)
class StaleHours:
    """The stale hours of a stage, in arrays: a page keeps them for years of hours.

    Attributes:
        hours: the hours since the epoch, ascending.
        roots: the hour of the root of each.
        which: the index of the cause of each.
        causes: the causes.
    """

    hours: Int64s
    roots: Int64s
    which: Int64s
    causes: tuple[Cause, ...]

    def within(self, interval: Interval) -> list[datetime]:
        """Return the stale hours of an interval."""
        ends = number_of(interval.start), number_of(interval.end)
        first, end = np.searchsorted(self.hours, ends).tolist()
        return list(map(moment_of, self.hours[first:end].tolist()))

    def texts(self, hours: Int64s) -> dict[int, str]:
        """Return the cause of each of some stale hours as text."""
        inside = np.isin(self.hours, hours)
        texts: dict[int, str] = {}
        for index in np.unique(self.which[inside]).tolist():
            own = inside & (self.which == index)
            roots = map(moment_of, np.unique(self.roots[own]).tolist())
            texts |= dict.fromkeys(self.hours[own].tolist(), format_cause(self.causes[index], roots))
        return texts


Staleness = Mapping[str, StaleHours]
"""The stale hours of each stage."""


def staleness_of(stream: Stream, snapshot: LedgerSnapshot, freshness: Freshness) -> Staleness:
    """Return the stale hours of each stage of a stream.

    Args:
        stream: the stream.
        snapshot: the ledger.
        freshness: the freshness of its partitions.
    """
    staleness: dict[str, StaleHours] = {}
    for stage in stream.stages:
        roots = freshness.stale(stage)
        known = {root: cause_of(root, snapshot) for root in set(roots.values())}
        causes = {cause: index for index, cause in enumerate(sorted(set(known.values())))}
        rows = [(number_of(hour), number_of(root.hour), causes[known[root]]) for hour, root in roots.items()]
        own, of_roots, which = np.array(rows, dtype=np.int64).reshape(-1, 3).T
        staleness[stage] = StaleHours(own, of_roots, which, tuple(causes))
    return staleness


def hours(stream: Stream, snapshot: LedgerSnapshot, freshness: Freshness, interval: Interval) -> HourGrid:
    """Return the state of each stage by hour.

    Args:
        stream: the stream.
        snapshot: the ledger.
        freshness: the freshness of its partitions.
        interval: the hours.
    """
    states = HourStates(snapshot.columns(COLUMNS))
    return grid_of(stream, states, staleness_of(stream, snapshot, freshness), interval)


def grid_of(stream: Stream, states: HourStates, staleness: Staleness, interval: Interval) -> HourGrid:
    """Return the state of each stage by hour.

    Args:
        stream: the stream.
        states: the states by the ledger.
        staleness: the stale hours of each stage; those of a stage that it lacks count as fresh.
        interval: the hours.
    """
    unit = next((name for name, longest in UNITS if interval.end - interval.start <= longest), "month")
    cells = list(_cells(interval, unit))
    first, end = number_of(interval.start), number_of(interval.end)
    inside = states.required & (states.hours >= first) & (states.hours < end)
    numbers = states.hours[inside]
    edges = np.array([number_of(cell.start) for cell, _ in cells], dtype=np.int64)
    of_cell = np.searchsorted(edges, numbers, "right") - 1
    lengths = np.array([len(cell) for cell, _ in cells])
    stages: dict[str, tuple[GridCell, ...]] = {}
    counts: dict[str, list[int]] = {}
    attention: list[tuple[object, ...]] = []
    notes: list[str] = []
    for stage in stream.stages:
        ranks = _with_stale(states, stage, staleness.get(stage))
        is_empty = states.without_events & (ranks == RANKS["published"])
        ranks = np.where(is_empty, np.uint8(RANKS["empty"]), ranks)
        if stage == SOURCE_STAGE:
            notes += _without_events(states, inside & (ranks == RANKS["empty"]))
        of_hours = ranks[inside].astype(np.int64)
        by_cell = np.bincount(of_cell * len(WORST) + of_hours, minlength=len(cells) * len(WORST))
        by_cell = by_cell.reshape(len(cells), len(WORST))
        by_cell[:, RANKS["none"]] = lengths - by_cell.sum(axis=1)
        counts[stage] = by_cell.sum(axis=0).tolist()
        stages[stage] = tuple(map(_cell, cells, by_cell.tolist()))
        shown = (inside & (ranks < RANKS["published"])) | states.of_unknown_hour(stage)
        reasons = states.reasons(stage, first, end)
        attention += _attention(
            stream, stage, states.hours[shown], ranks[shown], reasons, staleness.get(stage)
        )
    attention.sort(key=lambda row: RANKS[str(row[1])])
    seen = {state for of in counts.values() for state, count in zip(WORST[:-1], of, strict=False) if count}
    seen |= {cell.state for of_stage in stages.values() for cell in of_stage}
    columns = [state for state in MEANINGS if state in seen and state != "none"]
    rows = ([stage, *(of[RANKS[state]] or None for state in columns)] for stage, of in counts.items())
    return HourGrid(
        unit,
        stages,
        {state: meaning for state, meaning in MEANINGS.items() if state in seen},
        DataTable.of(["stage", *columns], rows),
        DataTable.of(
            ["stage", "state", "hours", "which", "cause", "see"], attention, download=lambda: iter(attention)
        ),
        _wider(interval, unit),
        None if states.newest is None else moment_of(states.newest),
        (*_all_well(stream, not attention), *notes),
    )


def _all_well(stream: Stream, is_well: bool) -> Iterator[str]:
    """Yield whether every hour is published, complete and fresh, and whether a check finds missing files."""
    source = stream.source
    is_checked = bool(source.expected_files or source.periods_checked)
    if is_well:
        known = ", and nothing is known to be missing" if is_checked else ""
        yield f"Every requested hour is published and fresh{known}."
    if not is_checked:
        yield "No file is expected of this stream, so no check finds a missing one."


def _without_events(states: HourStates, empty: Bools) -> Iterator[str]:
    """Yield which hours have no event, with and without a file."""
    for which, files in (
        (empty & ~states.without_files, "as their files have none"),
        (empty & states.without_files, "as no file came"),
    ):
        if which.any():
            hours = states.hours[which]
            yield f"{counted(len(hours), 'hour')} without events, {files}: {format_ranges(hours)}."


def _with_stale(states: HourStates, stage: str, stale: StaleHours | None) -> Ranks:
    """Return the worst state of a stage in each hour; one that is not computed does not count as stale."""
    ranks = states.of(stage)
    if stale is None or not len(stale.hours):
        return ranks
    outdated = np.isin(states.hours, stale.hours) & (ranks != RANKS["missing"])
    outdated &= states.required | (ranks < RANKS["published"])
    result: Ranks = np.where(outdated, np.minimum(ranks, np.uint8(RANKS["stale"])), ranks)
    return result


def _cells(interval: Interval, unit: str) -> Iterator[tuple[Interval, Interval]]:
    """Yield the intervals of the cells, and those of the whole hours, days or months."""
    start = interval.start
    while start < interval.end:
        whole = Interval.of_hour(start) if unit == "hour" else _period(start, unit)
        yield Interval(start, min(whole.end, interval.end)), whole
        start = whole.end


def _period(hour: datetime, unit: str) -> Interval:
    """Return the day, the month or the year of an hour."""
    start = hour.replace(hour=0)
    try:
        if unit == "day":
            return Interval(start, start + DAY)
        start = start.replace(day=1)
        if unit == "year":
            start = start.replace(month=1)
            return Interval(start, start.replace(year=start.year + 1))
        return Interval(start, (start + 32 * DAY).replace(day=1))
    except (OverflowError, ValueError):
        return Interval(start, LAST)


def _wider(interval: Interval, unit: str) -> Interval | None:
    if unit == "month":
        return None
    longer = "month" if unit == "hour" else "year"
    return Interval(_period(interval.start, longer).start, _period(interval.end - HOUR, longer).end)


def _cell(cell: tuple[Interval, Interval], counts: Sequence[int]) -> GridCell:
    by_state = dict(zip(WORST, counts, strict=True))
    state = next(state for state, count in by_state.items() if count)
    text = WORDS.get(state, state) if len(cell[0]) == 1 else format_counts(by_state)
    return GridCell(cell[0], state, text, state != "none" and counts[-1] > 0, cell[1])


def format_counts(counts: Mapping[str, int]) -> str:
    """Return the number of hours in each state as text, the worst state first."""
    return ", ".join(f"{counts[state]} {WORDS.get(state, state)}" for state in WORST if counts[state])


def _attention(
    stream: Stream,
    stage: str,
    numbers: Int64s,
    ranks: Ranks,
    reasons: Mapping[tuple[int, int], str],
    stale: StaleHours | None,
) -> Iterator[tuple[object, ...]]:
    """Yield a row for each state and cause of a stage's hours: how many, which, and the command to run."""
    causes = stale.texts(numbers[np.isin(ranks, [RANKS["stale"], RANKS["missing"]])]) if stale else {}
    groups: dict[tuple[int, str], list[int]] = {}
    for number, rank in zip(numbers.tolist(), ranks.tolist(), strict=True):
        cause = reasons.get((number, rank)) or causes.get(number) or MEANINGS[WORST[rank]]
        groups.setdefault((rank, cause), []).append(number)
    for (rank, cause), of in sorted(groups.items(), key=lambda item: (item[0][0], item[1][0])):
        see = f"transom explain {stream.name} {format_hour(moment_of(of[0]))}"
        yield stage, WORST[rank], len(of), format_ranges(np.array(of)), cause, see


def format_ranges(numbers: Int64s) -> str:
    """Return sorted hours as text: the first ranges, and the number of the others."""
    starts = np.flatnonzero(np.diff(numbers, prepend=numbers[0] - 2) > 1)
    ends = np.append(starts[1:], len(numbers)) - 1
    pairs = zip(numbers[starts[:MAX_RANGES]].tolist(), numbers[ends[:MAX_RANGES]].tolist(), strict=True)
    texts = [
        format_hours([moment_of(first)])
        if first == last
        else f"{format_hour(moment_of(first))} to {format_hour(moment_of(last + 1))}"
        for first, last in pairs
    ]
    more = len(starts) - MAX_RANGES
    return ", ".join([*texts, *([f"and {more} more"] if more > 0 else [])])
