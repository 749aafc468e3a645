"""The quality of a stream: failed checks, rejected lines with samples, work with its bound."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from transom.charts.section import MAX_ROWS, MAX_TEXT, DataTable, Section
from transom.charts.specs import label, millis, stacked_bars
from transom.core.intervals import HOUR, UNKNOWN_HOUR, Interval
from transom.core.terminal import counted
from transom.engine.selection import Selection
from transom.storage.tables import instant
from transom.views.open_stream import OpenStream

SAMPLES = 3
"""The number of rejected lines that are shown of each reason."""
BARS = 750
"""The maximum number of hours in a chart; longer intervals have bars of days."""


def quality_of(opened: OpenStream, interval: Interval, page: int = 1) -> list[Section]:
    """Return the sections about checks, rejected lines and runs.

    Args:
        opened: the stream.
        interval: the hours.
        page: the page of each table, from 1.
    """
    return [*sections(opened.selection(interval, page=page))]


def sections(selection: Selection) -> Iterator[Section]:
    """Yield the sections about checks, rejected lines and runs."""
    yield _checks(selection)
    yield _rejected(selection)
    yield _work(selection)


def _of(interval: Interval) -> str:
    return f"hour >= {instant(interval.start)} AND hour < {instant(interval.end)}"


def _checks(selection: Selection) -> Section:
    """Return the failed checks; a result counts if the run that wrote the partition made it."""
    # A file without an hour may belong to any hour.
    of = f"({_of(selection.interval)} OR hour = {instant(UNKNOWN_HOUR)})"
    rows = [
        row
        for row in selection.ask("checks", f"SELECT * FROM t WHERE NOT success AND {of} ORDER BY hour DESC")
        if (state := selection.snapshot.series(row["stage"], row["block"], row["table"]).get(row["hour"]))
        and state.previous_run == row["run_id"]
    ]
    columns = [
        "stage", "block", "hour", "check", "column", "severity", "observed", "expected", "file", "accepted",
    ]  # fmt: skip
    bars = _bars(
        (row["hour"], f"{row['severity']}: {row['check']}", 1)
        for row in rows
        if row["hour"] in selection.interval
    )
    return Section(
        "Failed checks",
        f"{counted(len(rows), 'failed check')} of the rows as they are. After one of severity error that "
        "is not accepted, the hour is not published."
        if rows
        else "Every check of these hours passed.",
        DataTable.of(columns, ([row[column] for column in columns] for row in rows)) if rows else None,
        stacked_bars(_by_day(bars, selection.interval)) if bars else None,
        "checks",
    )


def _rejected(selection: Selection) -> Section:
    """Return the number of rejected lines, and the last ones of each reason."""
    of = _of(selection.interval)
    sums = selection.ask(
        "rejected", f"SELECT hour, reason, count(*) AS lines FROM t WHERE {of} GROUP BY hour, reason"
    )
    sums.sort(key=lambda row: (row["hour"], row["reason"]))
    place = "row_number() OVER (PARTITION BY reason ORDER BY hour DESC, source_id, source_line)"
    # A line may have megabytes.
    start = f'substr(raw, 1, {MAX_TEXT + 1}) AS raw, substr(detail, 1, {MAX_TEXT + 1}) AS detail, "column"'
    samples = selection.ask(
        "rejected",
        f"SELECT reason, hour, source_line, lines, {start} FROM "
        f"(SELECT *, {place} AS place, count(*) OVER (PARTITION BY reason) AS lines FROM t WHERE {of}) "
        f"WHERE place <= {SAMPLES} ORDER BY lines DESC, reason, place LIMIT {MAX_ROWS}",
    )
    total = sum(row["lines"] for row in sums)
    columns = ["reason", "lines", "hour", "source_line", "column", "detail", "raw"]
    bars = _by_day(_bars((row["hour"], row["reason"], row["lines"]) for row in sums), selection.interval)
    return Section(
        "Rejected lines",
        f"{counted(total, 'line')} of the files of these hours became no event. The last {SAMPLES} of each "
        "reason:"
        if total
        else "Every line of the files of these hours became an event.",
        DataTable.of(columns, ([row[column] for column in columns] for row in samples)) if samples else None,
        stacked_bars(bars) if total else None,
        "rejected",
    )


def _work(selection: Selection) -> Section:
    """Return the last runs over the hours, with the counters that have a bound."""
    rows = selection.ask(
        "runs",
        f'SELECT * FROM t WHERE "from" < {instant(selection.interval.end)} AND "to" > '
        f"{instant(selection.interval.start)} ORDER BY finished_at DESC LIMIT {MAX_ROWS}",
    )
    columns = ["stage", "from", "to", "trigger", "finished_at", "rows_read", "rows_out"]
    cells = [[*(row[column] for column in columns), *_costs(row)] for row in rows]
    return Section(
        "Runs",
        f"The last {counted(len(cells), 'run')} over these hours." if cells else "No run over these hours.",
        DataTable.of([*columns, "seconds", "work of its bound"], cells) if cells else None,
        None,
        "runs",
    )


def _costs(run: Mapping[str, Any]) -> tuple[float | None, str]:
    """Return the seconds of a run, and its counters with their bounds."""
    counters, limits = dict(run["counters"] or ()), dict(run["counter_limits"] or ())
    bounds = (f"{name} {counters.get(name, 0):,} of {limit:,}" for name, limit in sorted(limits.items()))
    return dict(run["phase_seconds"] or ()).get("total"), ", ".join(bounds)


def _bars(rows: Any) -> dict[tuple[datetime, str], int]:
    bars: dict[tuple[datetime, str], int] = {}
    for hour, series, count in rows:
        bars[hour, series] = bars.get((hour, series), 0) + count
    return bars


def _by_day(bars: dict[tuple[datetime, str], int], interval: Interval) -> Iterator[dict[str, Any]]:
    """Yield the rows of `stacked_bars`: of hours, or of days if there are too many hours."""
    length = HOUR if len(interval) <= BARS else 24 * HOUR
    sums = _bars(
        (hour if length == HOUR else hour.replace(hour=0), series, n) for (hour, series), n in bars.items()
    )
    for (start, series), value in sums.items():
        yield {"start": millis(start), "end": millis(start + length), "value": value, "series": label(series)}
