"""The quality of a stream: checks, lines that are quarantined or rejected, and work next to its bound."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from operator import itemgetter
from typing import Any

from transom.charts.section import MAX_ROWS, Cells, DataTable, Section
from transom.charts.specs import labels, millis, segments, stacked_bars
from transom.core.intervals import HOUR, UNKNOWN_HOUR, Interval, format_hour
from transom.core.partitions import SOURCE_STAGE, PartitionKey, PartitionState, TableKey
from transom.core.terminal import counted
from transom.engine.reader import sql_name
from transom.engine.selection import MAX_READ, Selection
from transom.ledger.run_records import name_of
from transom.spec.external_source import EVENTS
from transom.storage.tables import in_hours_sql, instant, literal
from transom.views import check_history, runs
from transom.views.events import CUT, with_files
from transom.views.file_remarks import replaced_lines
from transom.views.runs import HourName, RunName

SAMPLES = 3
"""The number of rejected lines that are shown of each reason."""
UNPUBLISHED = ("quarantined", "blocked")
"""The states of hours whose rows are not published."""
BARS = 750
"""The maximum number of hours in a chart; longer intervals have bars of days."""


def sections(selection: Selection, check: str | None = None) -> list[Section]:
    """Return the sections about checks, lines and runs; `check` as of `check_history.sections`."""
    return [
        *_failed(selection, check),
        *_rejected(selection),
        *check_history.sections(selection, check),
        _lines(selection),
        _unpublished(selection),
        _work(selection),
        runs.section(selection),
    ]


def _of(interval: Interval) -> str:
    return f"hour >= {instant(interval.start)} AND hour < {instant(interval.end)}"


def _failed(selection: Selection, check: str | None) -> list[Section]:
    """Return the failed checks, also those that a waiver lets pass, and those that are solved.

    Args:
        selection: the hours and the page.
        check: the name of the only check; None is all of them.
    """
    columns = [
        "stage", "block", "hour", "check", "column", "severity", "observed", "expected", "file", "accepted",
    ]  # fmt: skip
    # A file without an hour may belong to any hour.
    of = f"({_of(selection.interval)} OR hour = {instant(UNKNOWN_HOUR)})"
    if check is not None:
        of += f' AND "check" = {literal(check)}'
    failed = "(NOT success OR accepted IS NOT NULL)"
    names = ", ".join(map(sql_name, [*columns, "table", "run_id"]))
    order = 'hour DESC, stage, block, "check", "column" NULLS FIRST, file NULLS FIRST, "table", run_id'
    sql = f"SELECT {names} FROM t WHERE {failed} AND {of} ORDER BY {order}"

    def read(solved: bool) -> Iterator[Cells]:
        results = check_history.failures(selection, selection.each("checks", sql))
        return (cells(row, solved) for row, is_solved in results if is_solved == solved)

    def cells(row: Mapping[str, Any], solved: bool) -> Cells:
        values = tuple(row[column] for column in columns)
        return _solved_cells(row, values) if solved else values

    bars, waived = Counter[tuple[datetime, str]](), 0
    skipped, totals = (selection.page - 1) * MAX_ROWS, {False: 0, True: 0}
    pages: dict[bool, list[Cells]] = {False: [], True: []}
    # Years of failed checks are counted one by one, and only those of a page are kept.
    for row, solved in check_history.failures(selection, selection.each("checks", sql)):
        pages[solved] += [cells(row, solved)] if skipped <= totals[solved] < skipped + MAX_ROWS else []
        totals[solved] += 1
        if not solved:
            waived += row["accepted"] is not None
            if row["hour"] in selection.interval:
                kind = row["severity"] if row["accepted"] is None else "accepted"
                bars[row["hour"], f"{kind}: {row['check']}"] += 1
    total, past = totals[False], totals[True]
    before = f" {counted(past, 'failure')} of earlier runs {'is' if past == 1 else 'are'} solved: see below."
    only = f" Only {check}: choose any check to see all." if check else ""
    sections = [
        Section(
            "Failed checks",
            f"{counted(total, 'failed check')} of the rows as they are, {waived} of them accepted in the "
            "stream file. After one of severity error that is not accepted, the hour is not published."
            f"{before * (past > 0)}{only}"
            if total
            else f"{check or 'No check of these hours'} {'does not fail' if check else 'fails'} now."
            f"{before * (past > 0)}{only} "
            + selection.coverage(SOURCE_STAGE, EVENTS, ["events", "rejected"]),
            DataTable.of(columns, pages[False], total, 1 + skipped, lambda: islice(read(False), MAX_READ))
            if total
            else None,
            stacked_bars(_by_day(bars, selection.interval), selection.interval) if bars else None,
            "checks",
        )
    ]
    if past:
        named = [*columns[:-1], "run"]
        table = DataTable.of(named, pages[True], past, 1 + skipped, lambda: islice(read(True), MAX_READ))
        note = (
            f"{counted(past, 'failure')} of earlier runs: in the run that has written the hour since, the "
            f"check does not fail. The hour leads to its history, with what solved it. Exact.{only}"
        )
        sections.append(Section("Solved checks", note, table, None, "solved"))
    return sections


def _solved_cells(row: Mapping[str, Any], values: Cells) -> Cells:
    """Return the cells of a solved failure: the hour and the run are links, and it is not accepted."""
    known = row["hour"] != UNKNOWN_HOUR
    hour = HourName(format_hour(row["hour"])) if known else row["hour"]
    return *values[:2], hour, *values[3:-1], RunName(name_of(row["run_id"], row["stage"]))


def _rejected(selection: Selection) -> list[Section]:
    """Return the rejected lines of published hours, the last ones of each reason, and replaced ones."""
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
    columns = ["reason", "lines", "hour", "file", "source_line", "column", "detail", "raw"]
    samples: list[Cells] = []
    for reason in reasons[: MAX_ROWS // SAMPLES]:
        lines = sum(lines for _, lines in hours[reason])
        for row in with_files(selection, _samples(selection, reason, hours[reason])):
            hour = HourName(format_hour(row["hour"]))
            samples.append((reason, lines, hour, *(row[column] for column in columns[3:])))
    more = (
        f" Only the {MAX_ROWS // SAMPLES} most frequent reasons are listed."
        if len(reasons) > MAX_ROWS // SAMPLES
        else ""
    )
    note = "Every line of the files of published hours, as they are now, became an event."
    if total:
        events = sum(
            state.rows
            for hour in selection.hours(SOURCE_STAGE, EVENTS, EVENTS)
            if (state := selection.snapshot.get(PartitionKey(SOURCE_STAGE, EVENTS, EVENTS, hour)))
        )
        note = (
            f"{counted(total, 'line')} of the files of published hours became no event, next to "
            f"{counted(events, 'event')}: {100 * total / (total + events):.2g} % of all; the last {SAMPLES} "
            f"of each reason are listed.{more}"
        )
    replaced = replaced_lines(selection)
    if replaced:
        note += f" {replaced.note}"
    rejected = Section(
        "Rejected lines",
        # The lines of a quarantined hour are in no table.
        f"{note} {selection.coverage(SOURCE_STAGE, EVENTS, ['rejected'])}",
        DataTable.of(columns, samples) if samples else None,
        stacked_bars(_by_day(bars, selection.interval), selection.interval) if total else None,
        "rejected",
    )
    return [rejected, *([replaced] if replaced else [])]


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
        f'SELECT hour, source_id, source_line, "column", {texts} FROM (SELECT * FROM t WHERE '
        f"{in_hours_sql(read)} AND reason = {literal(reason)} "
        f"ORDER BY hour DESC, source_id, source_line LIMIT {SAMPLES})",
    )


def _work(selection: Selection) -> Section:
    """Return the work of runs over the hours next to the greatest work that theory allows."""
    columns = ("from", "to", "stage", "counter", "work", "bound", "share", "finished_at")
    rows = selection.each(
        "runs",
        'SELECT "from", "to", stage, finished_at, counters, counter_limits FROM t '
        f"WHERE {runs.requested(selection.interval)} AND counter_limits IS NOT NULL "
        "ORDER BY finished_at DESC, run_id",
    )
    work: list[dict[str, Any]] = []
    for row in rows:
        done = dict(row["counters"] or ())
        for counter, bound in sorted(dict(row["counter_limits"]).items()):
            share = done.get(counter, 0) / bound if bound else None
            work.append(
                row | {"counter": counter, "work": done.get(counter, 0), "bound": bound, "share": share}
            )
    skipped = (selection.page - 1) * MAX_ROWS
    cells = [tuple(row[column] for column in columns) for row in work]
    texts = {
        (feature.name, counter): several
        for feature in selection.stream.features
        for counter, (_, several) in feature.counters.items()
    }
    drawn = [
        {
            "start": millis(row["from"]),
            "end": millis(row["to"]),
            "value": row["share"],
            "series": f"{row['stage']}: {texts.get((row['stage'], row['counter']), row['counter'])}",
        }
        for row in work[:BARS]
        if row["share"] is not None
    ]
    return Section(
        "Work and its bound",
        f"{counted(len(work), 'count')} of the work of runs over these hours, the last first, next to the "
        "greatest one that theory allows. A line is a run, from its first hour to its last, at its share of "
        f"the bound; at most {BARS} are drawn. Exact."
        if work
        else "No run over these hours has work with a bound.",
        DataTable.of(columns, cells[skipped:], len(cells), 1 + skipped, lambda: iter(cells[:MAX_READ]))
        if work
        else None,
        segments(drawn) if drawn else None,
        "work",
    )


def _lines(selection: Selection) -> Section:
    """Return the events of each hour next to the lines of its quarantined files."""
    files = selection.ask(
        "files",
        "SELECT hour, count(*) AS files, sum(lines) AS lines, max(status_reason) AS reason FROM t "
        f"WHERE {_of(selection.interval)} AND status = 'quarantined' GROUP BY hour",
    )
    quarantined = {row["hour"]: row for row in files}
    required = selection.snapshot.required_hours
    bars, rows, without = Counter[tuple[datetime, str]](), list[Cells](), list[datetime]()
    for hour in sorted(
        {*quarantined, *(hour for hour in required if hour in selection.interval)}, reverse=True
    ):
        state = selection.snapshot.get(PartitionKey(SOURCE_STAGE, EVENTS, EVENTS, hour))
        status, events = (state.status, state.rows) if state else (None, 0)
        of = quarantined.get(hour, {"files": 0, "lines": 0, "reason": None})
        is_published = status == "published"
        bars[hour, "published events"] = events if is_published else 0
        bars[hour, "lines of quarantined files"] = of["lines"] or 0
        reason = of["reason"] or (state.reason if state else None)
        shown = (events, None) if is_published else (0, events)
        without += [hour] if is_published and not events else []
        rows.append((hour, status, *shown, of["files"], of["lines"], reason))
    rows.sort(key=lambda row: row[1] == "published" and not row[4])
    columns = (
        "hour",
        "state",
        "events",
        "earlier_events",
        "files_quarantined",
        "lines_quarantined",
        "reason",
    )
    total, lines = sum(bars.values()), sum(row["lines"] or 0 for row in files)
    is_short = len(selection.interval) <= BARS
    skipped = (selection.page - 1) * MAX_ROWS
    return Section(
        "Published and quarantined lines",
        f"{counted(total - lines, 'published event')} next to {counted(lines, 'line')} of quarantined files; "
        f"hours with quarantined ones first. {_without(without, is_short)}Where an hour is not published, "
        "earlier_events are those of an earlier run that stay in the table; no page shows them. Exact.",
        DataTable.of(columns, rows[skipped:], len(rows), 1 + skipped, lambda: iter(rows)) if rows else None,
        stacked_bars(
            _by_day(+bars, selection.interval),
            selection.interval,
            [{"start": millis(hour), "end": millis(hour + HOUR)} for hour in without if is_short],
            ("var(--c1)", "var(--bad)") if total > lines else ("var(--bad)",),
        )
        if total
        else None,
        "lines",
    )


def _without(hours: Sequence[datetime], drawn: bool) -> str:
    """Return a sentence on the published hours without events; nothing if there are none."""
    if not hours:
        return ""
    mark = ", with a grey mark at zero" if drawn else ""
    return f"{counted(len(hours), 'published hour')} without events{mark}. "


def _unpublished(selection: Selection) -> Section:
    """Return the hours of later stages that are quarantined or blocked, next to those that are published."""
    hours: dict[TableKey, list[tuple[datetime, PartitionState]]] = {}
    for partition, state in selection.snapshot.troubled():
        is_unpublished = state.status in UNPUBLISHED and partition.stage != SOURCE_STAGE
        if is_unpublished and partition.hour in selection.interval:
            hours.setdefault(partition.series, []).append((partition.hour, state))
    rows: list[Cells] = []
    for series, of in sorted(hours.items()):
        counts = selection.snapshot.count_statuses(series, selection.interval)
        last, state = max(of, key=itemgetter(0))
        published = (counts.get("published", 0), counts.get("incomplete", 0))
        rows.append((*series, *published, *(counts.get(name, 0) for name in UNPUBLISHED), last, state.reason))
    columns = ("stage", "block", "table", "published", "incomplete", *UNPUBLISHED, "last_hour", "reason")
    return Section(
        "Published and quarantined results",
        f"{counted(len(rows), 'table')} with such hours, next to the hours that are published. Exact."
        if rows
        else "No hour of a later stage is quarantined or blocked.",
        DataTable.of(columns, rows, download=lambda: iter(rows)) if rows else None,
        None,
        "unpublished",
    )


def _by_day(bars: Mapping[tuple[datetime, str], int], interval: Interval) -> Iterator[dict[str, Any]]:
    """Yield the rows of `stacked_bars`: of hours, or of days if there are too many hours."""
    length = HOUR if len(interval) <= BARS else 24 * HOUR
    sums = Counter[tuple[datetime, str]]()
    for (hour, series), count in bars.items():
        sums[hour if length == HOUR else hour.replace(hour=0), series] += count
    named = labels({series: series for _, series in sums})
    for (start, series), value in sums.items():
        yield {"start": millis(start), "end": millis(start + length), "value": value, "series": named[series]}
