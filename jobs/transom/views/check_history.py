"""Each check over time: the hours in which it passed or failed, and what it observed next to its limits."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby, islice
from operator import itemgetter
from typing import Any, NamedTuple

from transom.charts.section import MAX_ROWS, Cells, DataTable, Section, thin
from transom.charts.specs import labels, millis, panels, spans
from transom.core.intervals import HOUR, Interval
from transom.core.partitions import PartitionKey
from transom.core.terminal import counted
from transom.engine.reader import sql_name
from transom.engine.selection import MAX_READ, Row, Selection
from transom.ledger.check import bounds_of
from transom.storage.tables import instant, literal

OUTCOMES = ("passed", "accepted", "failed")
"""The outcomes of a check, the worst last."""
COLOURS = ("var(--gap)", "var(--odd)", "var(--bad)")
"""The colours of the outcomes: grey, amber and red, which differ for colour-blind readers, too."""
BARS, LINES, POINTS = 40, 6, 750
"""The maximum number of checks in each of the two charts, and of hours of a line."""
HOURS = 7 * 24
"""The maximum number of hours with bars of their own; longer intervals have bars of days."""
SERIES = ("observed", "at least", "at most")
OF_CHECK = ("stage", "block", "table", "check", "column")


class CheckOf(NamedTuple):
    """A check of a block's table."""

    stage: str
    block: str
    table: str
    check: str
    column: str | None

    def __str__(self) -> str:
        on = f" on {self.column}" if self.column else ""
        of = f" of {self.block}" if self.block != self.table else ""
        return f"{self.check}{on}, {self.table}{of}"


@dataclass
class _History:
    """The results of a check.

    Attributes:
        hours: the number of hours with each outcome; the worst result of an hour counts.
        bars: the worst outcome of each hour or day, by its start.
        last: the last hour.
        least: the least observed value; None if none was observed.
        greatest: the greatest one.
    """

    hours: Counter[str] = field(default_factory=Counter)
    bars: dict[datetime, str] = field(default_factory=dict)
    last: Row = field(default_factory=dict)
    least: float | None = None
    greatest: float | None = None

    def add(self, row: Row, start: datetime) -> None:
        """Add the results of an hour to the bar with a start."""
        outcome = OUTCOMES[row["outcome"]]
        self.hours[outcome] += 1
        self.bars[start] = max(outcome, self.bars.get(start, outcome), key=OUTCOMES.index)
        if not self.last or self.last["hour"] < row["hour"]:
            self.last = row
        if row["least"] is not None:
            self.least = row["least"] if self.least is None else min(self.least, row["least"])
            self.greatest = row["greatest"] if self.greatest is None else max(self.greatest, row["greatest"])


def sections(selection: Selection, check: str | None = None) -> list[Section]:
    """Return the sections about the outcomes and the observed values of checks.

    Args:
        selection: the hours and the page.
        check: the name of the check whose values are shown. Default: those that failed most often, or whose
            values differ.
    """
    histories = _histories(selection, check)
    order = sorted(histories, key=lambda of: (_rank(histories[of]), *map(str, of)))
    shown = order if check else order[:LINES]
    drawn = [of for of in shown if check or not _is_flat(histories[of])][:LINES]
    flat = 0 if check else sum(map(_is_flat, histories.values()))
    none = "No check of these hours."
    if check:
        none = (
            f"The runs that wrote these hours have no result of {check}. If it failed in an earlier run, "
            "Solved checks has it."
        )
    return [
        _outcomes(selection, histories, order, none),
        _values(selection, shown, drawn, len(order), flat, none),
    ]


def _is_flat(history: _History) -> bool:
    """Return whether a check passed each time with the same value: a line of it shows nothing."""
    return history.hours.keys() <= {OUTCOMES[0]} and history.least == history.greatest


def _rank(history: _History) -> tuple[int, int, bool]:
    """Return the order of a check: by its failures, then whether its values differ."""
    return -history.hours["failed"], -history.hours["accepted"], history.least == history.greatest


def failures(selection: Selection, rows: Iterable[Row]) -> Iterator[tuple[Row, bool]]:
    """Yield the failures of checks, and whether they are solved.

    A failure is solved if it is of an earlier run, and the run that wrote the partition has none of the same
    check. What a run has found that has not yet published the partition is neither.

    Args:
        selection: the state of the lake.
        rows: the failures; those of the same check, file and partition are neighbours.
    """
    for _, group in groupby(rows, itemgetter("hour", "stage", "block", "check", "column", "file", "table")):
        results = [*group]
        first = results[0]
        partition = PartitionKey(first["stage"], first["block"], first["table"], first["hour"])
        state = selection.snapshot.get(partition)
        now = [row for row in results if state and row["run_id"] == state.previous_run]
        yield from ((row, False) for row in now)
        if state and not now:
            earlier = (row for row in results if row["run_id"] != state.run_id and row["accepted"] is None)
            yield from ((row, True) for row in earlier)


def current(selection: Selection, rows: Iterable[Row]) -> Iterator[Row]:
    """Yield the results of checks that the run that wrote the partition made."""
    runs: dict[tuple[Any, ...], str | None] = {}
    for row in rows:
        partition = row["stage"], row["block"], row["table"], row["hour"]
        if partition not in runs:
            # A partition has dozens of results.
            state = selection.snapshot.get(PartitionKey(*partition))
            runs[partition] = state.previous_run if state else None
        if runs[partition] == row["run_id"]:
            yield row


def _of(interval: Interval, check: str | None) -> str:
    of_check = "TRUE" if check is None else f'"check" = {literal(check)}'
    return f"hour >= {instant(interval.start)} AND hour < {instant(interval.end)} AND {of_check}"


def _histories(selection: Selection, check: str | None) -> dict[CheckOf, _History]:
    """Return the results of each check in the interval."""
    names = ", ".join(map(sql_name, (*OF_CHECK, "hour", "run_id")))
    outcome = "max(CASE WHEN accepted IS NOT NULL THEN 1 WHEN success THEN 0 ELSE 2 END) AS outcome"
    rows = selection.each(
        "checks",
        f"SELECT {names}, {outcome}, min(observed) AS least, max(observed) AS greatest, "
        "max(severity) AS severity, max(expected) AS expected "
        f"FROM t WHERE {_of(selection.interval, check)} GROUP BY {names}",
    )
    histories: dict[CheckOf, _History] = {}
    is_short = len(selection.interval) <= HOURS
    for row in current(selection, rows):
        start = row["hour"] if is_short else row["hour"].replace(hour=0)
        histories.setdefault(CheckOf(*(row[name] for name in OF_CHECK)), _History()).add(row, start)
    return histories


def _outcomes(
    selection: Selection, histories: Mapping[CheckOf, _History], order: list[CheckOf], none: str
) -> Section:
    """Return a bar over time for each check, and a row with its values."""
    skipped = (selection.page - 1) * MAX_ROWS
    shown = order[skipped : skipped + MAX_ROWS]
    length = HOUR if len(selection.interval) <= HOURS else 24 * HOUR
    named = labels({of: str(of) for of in shown[:BARS]})
    bars = [bar for of, text in named.items() for bar in _bars(histories[of].bars, length, text)]
    columns = [*OF_CHECK, "severity", *OUTCOMES, "least", "greatest", "expected", "last_hour"]

    def cells(of: CheckOf) -> Cells:
        history = histories[of]
        counts, last = (history.hours[name] for name in OUTCOMES), history.last
        values = history.least, history.greatest, last["expected"], last["hour"]
        return *of, last["severity"], *counts, *values

    drawn = f", {len(named)} of them in the chart" if len(named) < len(order) else ""
    return Section(
        "Checks over time",
        f"{counted(len(order), 'check')}{drawn}, those that failed most often first, with the hours in which "
        "each passed, failed, or failed and was accepted. Each result is that of the run that wrote "
        f"the hour; a bar has the worst one of {'an hour' if length == HOUR else 'a day'}. Exact."
        if order
        else none,
        DataTable.of(columns, map(cells, shown), len(order), 1 + skipped, lambda: map(cells, order))
        if order
        else None,
        spans(bars, OUTCOMES, colours=COLOURS) if bars else None,
        "outcomes",
    )


def _bars(outcomes: Mapping[datetime, str], length: timedelta, text: str) -> Iterator[dict[str, Any]]:
    """Yield bars of equal neighbouring outcomes."""
    starts = sorted(outcomes)
    first = 0
    for place, start in enumerate(starts, 1):
        following = starts[place] if place < len(starts) else None
        if following != start + length or outcomes[following] != outcomes[start]:
            state = outcomes[start]
            yield {
                "label": text,
                "start": millis(starts[first]),
                "end": millis(start + length),
                "state": state,
            }
            first = place


def _values(
    selection: Selection, checks: list[CheckOf], drawn: list[CheckOf], known: int, flat: int, none: str
) -> Section:
    """Return the observed values of some of the known checks next to their limits, as lines and results.

    Args:
        selection: the hours and the page.
        checks: the checks of the table.
        drawn: those of the chart.
        known: the number of all checks.
        flat: how many of them passed each time with the same value.
        none: the answer if there is no result.
    """
    columns = (
        "hour",
        *OF_CHECK,
        "file",
        "observed",
        "at_least",
        "at_most",
        "outcome",
        "severity",
        "accepted",
    )
    read = ("hour", *OF_CHECK, "file", "observed", "expected", "success", "severity", "accepted", "run_id")
    of_checks = " OR ".join(f"({selection.equals(OF_CHECK, of._asdict())})" for of in checks) or "FALSE"
    order = ", ".join(map(sql_name, OF_CHECK))
    sql = (
        f"SELECT {', '.join(map(sql_name, read))} FROM t "
        f"WHERE {_of(selection.interval, None)} AND ({of_checks}) ORDER BY hour DESC, {order}, file"
    )

    def results() -> Iterator[Row]:
        return current(selection, selection.each("checks", sql))

    def cells(row: Row) -> Cells:
        at_least, at_most = bounds_of(row["expected"])
        outcome = OUTCOMES[1] if row["accepted"] is not None else OUTCOMES[0 if row["success"] else 2]
        own = row | {"at_least": at_least, "at_most": at_most, "outcome": outcome}
        return tuple(own[name] for name in columns)

    skipped, total = (selection.page - 1) * MAX_ROWS, 0
    page, hours = list[Row](), dict[CheckOf, dict[datetime, Row]]()
    for row in results() if checks else ():
        page += [row] if skipped <= total < skipped + MAX_ROWS else []
        total += 1
        of = CheckOf(*(row[name] for name in OF_CHECK))
        if of in drawn:
            # Of the files of an hour, the one that comes nearest to its limit.
            worst, sign = hours.setdefault(of, {}).setdefault(row["hour"], row), _sign(row)
            if sign * (row["observed"] or 0) > sign * (worst["observed"] or 0):
                hours[of][row["hour"]] = row
    points = [point for of in drawn if of in hours for point in _points(str(of), hours[of])]
    some = f"{len(checks)} of " if len(checks) < known else ""
    few = f"The chart has {len(drawn)} of them. " if len(drawn) < len(checks) else ""
    few += (
        f"{counted(flat, 'check')} passed each time with the same value: no line is drawn. " if flat else ""
    )
    return Section(
        "Observed values",
        f"{counted(total, 'result')} of {some}{counted(known, 'check')}, the last first, each with the "
        f"limits that counted then. {few}Of several files of an hour, it has the worst value. Exact."
        if total
        else none,
        DataTable.of(
            columns, map(cells, page), total, 1 + skipped, lambda: map(cells, islice(results(), MAX_READ))
        )
        if total
        else None,
        panels(points, SERIES) if points else None,
        "observed",
    )


def _sign(row: Row) -> int:
    """Return 1 if a greater value is the worse one, else -1."""
    at_least, at_most = bounds_of(row["expected"])
    return -1 if at_most is None and at_least is not None else 1


def _points(panel: str, hours: Mapping[datetime, Row]) -> Iterator[dict[str, Any]]:
    """Yield the points of a check's lines."""
    rows = [hours[hour] for hour in sorted(hours)]
    for row in thin(rows, POINTS, "observed"):
        for series, value in zip(SERIES, (row["observed"], *bounds_of(row["expected"])), strict=True):
            if value is not None:
                yield {"time": millis(row["hour"]), "value": value, "series": series, "panel": panel}
