"""The quality of a stream: failed checks, rejected lines with samples, work with its bound."""

import heapq
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import islice
from typing import Any

from transom.charts.section import MAX_ROWS, Cells, DataTable, Section
from transom.charts.specs import label, millis, stacked_bars
from transom.core.intervals import HOUR, UNKNOWN_HOUR, Interval
from transom.core.partitions import SOURCE_STAGE, PartitionKey
from transom.core.terminal import counted
from transom.engine.reader import sql_name
from transom.engine.selection import MAX_READ, Selection
from transom.spec.external_source import EVENTS
from transom.storage.tables import in_hours_sql, instant, literal
from transom.views.events import CUT
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
    return opened.consistent(interval, {}, page, sections)[0]


def sections(selection: Selection) -> list[Section]:
    """Return the sections about checks, rejected lines and runs."""
    return [_checks(selection), _rejected(selection), _work(selection)]


def _of(interval: Interval) -> str:
    return f"hour >= {instant(interval.start)} AND hour < {instant(interval.end)}"


def _checks(selection: Selection) -> Section:
    """Return the failed checks; a result counts if the run that wrote the partition made it."""
    columns = [
        "stage", "block", "hour", "check", "column", "severity", "observed", "expected", "file", "accepted",
    ]  # fmt: skip
    # A file without an hour may belong to any hour.
    of = f"({_of(selection.interval)} OR hour = {instant(UNKNOWN_HOUR)})"
    names = ", ".join(map(sql_name, [*columns, "table", "run_id"]))

    def counting() -> Iterator[dict[str, Any]]:
        for row in selection.each("checks", f"SELECT {names} FROM t WHERE NOT success AND {of}"):
            state = selection.snapshot.get(
                PartitionKey(row["stage"], row["block"], row["table"], row["hour"])
            )
            if state and state.previous_run == row["run_id"]:
                yield row

    def cells(row: Mapping[str, Any]) -> Cells:
        return tuple(row[column] for column in columns)

    bars, total = Counter[tuple[datetime, str]](), 0
    skipped = (selection.page - 1) * MAX_ROWS

    def counted_rows() -> Iterator[dict[str, Any]]:
        nonlocal total
        for row in counting():
            total += 1
            if row["hour"] in selection.interval:
                bars[row["hour"], f"{row['severity']}: {row['check']}"] += 1
            yield row

    # Years of failed checks are counted one by one, and only those of a page are kept.
    last = heapq.nsmallest(skipped + MAX_ROWS, counted_rows(), key=_latest_first)[skipped:]
    return Section(
        "Failed checks",
        f"{counted(total, 'failed check')} of the rows as they are. After one of severity error that "
        "is not accepted, the hour is not published."
        if total
        else "No check of these hours has failed. "
        + selection.coverage(SOURCE_STAGE, EVENTS, ["events", "rejected"]),
        DataTable.of(
            columns, map(cells, last), total, 1 + skipped, lambda: map(cells, islice(counting(), MAX_READ))
        )
        if total
        else None,
        stacked_bars(_by_day(bars, selection.interval)) if bars else None,
        "checks",
    )


def _latest_first(row: Mapping[str, Any]) -> tuple[object, ...]:
    return (
        -row["hour"].timestamp(),
        row["stage"],
        row["block"],
        row["check"],
        row["column"] or "",
        row["file"] or "",
    )


def _rejected(selection: Selection) -> Section:
    """Return the number of rejected lines of published hours, and the last ones of each reason."""
    of = in_hours_sql(selection.hours(SOURCE_STAGE, EVENTS, "rejected"))
    sums = selection.ask(
        "rejected", f"SELECT hour, reason, count(*) AS lines FROM t WHERE {of} GROUP BY hour, reason"
    )
    bars = Counter[tuple[datetime, str]]()
    hours: dict[str, list[tuple[datetime, int]]] = {}
    for row in sorted(sums, key=lambda row: (row["hour"], row["reason"])):
        bars[row["hour"], row["reason"]] = row["lines"]
        hours.setdefault(row["reason"], []).append((row["hour"], row["lines"]))
    total = sum(bars.values())
    reasons = sorted(hours, key=lambda reason: (-sum(lines for _, lines in hours[reason]), reason))
    columns = ["reason", "lines", "hour", "source_line", "column", "detail", "raw"]
    samples: list[Cells] = []
    for reason in reasons[: MAX_ROWS // SAMPLES]:
        lines = sum(lines for _, lines in hours[reason])
        for row in _samples(selection, reason, hours[reason]):
            samples.append((reason, lines, *(row[column] for column in columns[2:])))
    more = (
        f" Only the {MAX_ROWS // SAMPLES} most frequent reasons are listed."
        if len(reasons) > MAX_ROWS // SAMPLES
        else ""
    )
    note = "Every line of the files of published hours became an event."
    if total:
        note = (
            f"{counted(total, 'line')} of the files of published hours became no event; the last {SAMPLES} "
            f"of each reason are listed.{more}"
        )
    return Section(
        "Rejected lines",
        # The lines of a quarantined hour are in no table.
        f"{note} {selection.coverage(SOURCE_STAGE, EVENTS, ['rejected'])}",
        DataTable.of(columns, samples) if samples else None,
        stacked_bars(_by_day(bars, selection.interval)) if total else None,
        "rejected",
    )


def _samples(selection: Selection, reason: str, hours: list[tuple[datetime, int]]) -> list[dict[str, Any]]:
    """Return the last rejected lines of a reason; only the hours that have them are read."""
    read, lines = list[datetime](), 0
    for hour, count in reversed(hours):
        if lines >= SAMPLES:
            break
        read.append(hour)
        lines += count
    # A line may have megabytes.
    texts = f"substr(raw, 1, {CUT}) AS raw, substr(detail, 1, {CUT}) AS detail"
    return selection.ask(
        "rejected",
        f'SELECT hour, source_line, "column", {texts} FROM (SELECT * FROM t WHERE {in_hours_sql(read)} AND '
        f"reason = {literal(reason)} ORDER BY hour DESC, source_id, source_line LIMIT {SAMPLES})",
    )


def _work(selection: Selection) -> Section:
    """Return the last runs over the hours, with the counters that have a bound."""
    columns = ["stage", "from", "to", "trigger", "finished_at", "rows_read", "rows_out"]
    of = f'"from" < {instant(selection.interval.end)} AND "to" > {instant(selection.interval.start)}'
    counters = ["phase_seconds", "counters", "counter_limits"]
    names = ", ".join(map(sql_name, [*columns, *counters]))
    skipped = (selection.page - 1) * MAX_ROWS
    rows = selection.ask(
        "runs",
        f"SELECT {names} FROM t WHERE {of} ORDER BY finished_at DESC, run_id "
        f"LIMIT {MAX_ROWS} OFFSET {skipped}",
    )
    (total,) = [
        row["total"] for row in selection.ask("runs", f"SELECT count(*) AS total FROM t WHERE {of}")
    ] or [0]
    cells = [(*(row[column] for column in columns), *_costs(row)) for row in rows]
    return Section(
        "Runs",
        f"{counted(total, 'run')} over these hours, the last first." if total else "No run over these hours.",
        DataTable.of([*columns, "seconds", "work of its bound"], cells, total, 1 + skipped)
        if total
        else None,
        None,
        "runs",
    )


def _costs(run: Mapping[str, Any]) -> tuple[float | None, str]:
    """Return the seconds of a run, and its counters with their bounds."""
    counters, limits = dict(run["counters"] or ()), dict(run["counter_limits"] or ())
    bounds = (f"{name} {counters.get(name, 0):,} of {limit:,}" for name, limit in sorted(limits.items()))
    return dict(run["phase_seconds"] or ()).get("total"), ", ".join(bounds)


def _by_day(bars: Mapping[tuple[datetime, str], int], interval: Interval) -> Iterator[dict[str, Any]]:
    """Yield the rows of `stacked_bars`: of hours, or of days if there are too many hours."""
    length = HOUR if len(interval) <= BARS else 24 * HOUR
    sums = Counter[tuple[datetime, str]]()
    for (hour, series), count in bars.items():
        sums[hour if length == HOUR else hour.replace(hour=0), series] += count
    for (start, series), value in sums.items():
        yield {"start": millis(start), "end": millis(start + length), "value": value, "series": label(series)}
