"""All about one finding: evidence, raw lines, and what else is known about its key."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from transom.charts.section import Cells, DataTable, Section
from transom.core.intervals import HOUR, MICROSECOND, UNKNOWN_HOUR, Interval, hour_of
from transom.core.partitions import SOURCE_STAGE, PartitionKey
from transom.core.terminal import counted
from transom.core.terminal_tables import plain
from transom.engine.selection import Selection
from transom.features.registry import FINDING_ORDER
from transom.findings.from_ledger import KINDS, Finding
from transom.findings.store import NAME, about_sql, finding_of_row, rank_sql
from transom.findings.text import key_values
from transom.spec.notify import SilenceSpec
from transom.storage.tables import instant, literal
from transom.stream import Stream
from transom.views import events
from transom.views.events import CUT
from transom.views.finding_text import FindingText
from transom.views.findings import Withdrawal, withdrawn_by_id
from transom.views.open_stream import OpenStream
from transom.views.silences import Silences

RAW = "Raw lines"

RAW_LINES = 20
"""The maximum number of raw lines of a finding."""
OTHERS = 20
"""The maximum number of other findings of the same key."""


@dataclass(frozen=True)
class FindingDetail:
    """A finding with all that belongs to it.

    Attributes:
        finding: the finding.
        withdrawal: why it was withdrawn; None if it is true.
        key: the text of each column of its key or item; empty if it is about none.
        hours: its hours, up to its end; None if it belongs to no hour.
        evidence_hours: the hours of the events that it follows from: of an item, also those of its window.
        raw: its raw lines, or the failing rows of its check; without a table if there are none.
        others: other findings of its key, the worst first.
        more_others: how many of them are not in `others`.
        silence: the silence that holds back its messages now; None if there is none.
        before: the last count of an item that has left, with its window; None if there is none.
        picture: the chart of its evidence; None if there is none.
    """

    finding: Finding
    withdrawal: Withdrawal | None
    key: Mapping[str, str]
    hours: Interval | None
    evidence_hours: Interval | None
    raw: Section
    others: list[Finding]
    more_others: int
    silence: SilenceSpec | None
    before: str | None
    picture: Section | None


def finding_of(opened: OpenStream, finding_id: str) -> FindingDetail | None:
    """Return a finding with all that belongs to it; None if there is no such finding."""
    table, withdrawal = opened.tables.pin(NAME), None
    rows = table.rows(f"SELECT * FROM t WHERE finding_id = {literal(finding_id)} LIMIT 1") if table else []
    finding = finding_of_row(rows[0]) if rows else None
    if finding is None:
        gone = withdrawn_by_id(opened, finding_id)
        if gone is None:
            return None
        finding, withdrawal = gone.finding, gone.withdrawal
    key = subject_of(opened.stream, finding)
    others, more = list[Finding](), 0
    if key and table:
        about = f"{about_sql(opened.stream, key)} AND finding_id <> {literal(finding_id)}"
        of_key = table.rows(
            f"SELECT * FROM t WHERE {about} ORDER BY {rank_sql(FINDING_ORDER)} LIMIT {OTHERS}"
        )
        others = [*map(finding_of_row, of_key)]
        (count,) = table.rows(f"SELECT count(*) AS total FROM t WHERE {about}")
        more = count["total"] - len(others)
    silence = Silences(opened.stream).of(finding)
    picture = FindingText(opened.stream, opened.snapshot()).picture(finding)
    raw, hours = _raw(opened, finding, key, withdrawal is not None), _hours(opened, finding)
    evidence, before = hours and _evidence_hours(opened, finding, hours), _before(opened, finding, key)
    return FindingDetail(
        finding, withdrawal, key, hours, evidence, raw, others, more, silence, before, picture
    )


def _hours(opened: OpenStream, finding: Finding) -> Interval | None:
    """Return the hours of a finding, up to its end; None if it belongs to no hour."""
    starts = [time for time in (finding.first_hour, finding.start_time) if time is not None]
    if not starts:
        return None
    first = hour_of(min(starts))
    end = FindingText(opened.stream, opened.snapshot()).end(finding)
    last = [finding.hour, *([end - MICROSECOND] if end else [])]
    return Interval(first, max(first, hour_of(max(last))) + HOUR)


def _evidence_hours(opened: OpenStream, finding: Finding, hours: Interval) -> Interval:
    """Return the hours of a finding and of the window before it, from a requested hour on."""
    before = hours.start - _window(opened.stream, finding)
    requested = opened.snapshot().required_hours.first_from(before)
    return Interval(min(hours.start, hour_of(requested or before)), hours.end)


def _window(stream: Stream, finding: Finding) -> timedelta:
    """Return how far the events of an item begin before its finding, as a window ends with its start."""
    feature = next((of for of in stream.features if of.name == finding.stage), None)
    if feature is None or finding.item is None:
        return timedelta(0)
    return max((length for _, length in feature.lookback(stream)), default=HOUR)


def subject_of(stream: Stream, finding: Finding) -> dict[str, str]:
    """Return the text of each column of a finding's key or item; empty if it is about none.

    The text of the finding is parsed by the columns of its block.
    """
    text = finding.key if finding.key is not None else finding.item
    feature = next((of for of in stream.features if of.name == finding.stage), None)
    block = finding.block
    if text is None or feature is None or block is None or block not in stream.blocks(feature.block):
        return {}
    return key_values(feature.subject(stream, block), text)


def _before(opened: OpenStream, finding: Finding, key: Mapping[str, str]) -> str | None:
    """Return, as text, the last count of an item that has left."""
    text, start, end = FindingText(opened.stream, opened.snapshot()), finding.start_time, finding.end_time
    feature = text.feature(finding) if text.has_left(finding) else None
    if start is None or end is None or feature is None or feature.last_report is None:
        return None
    # A report is of the hour with which its window ends; `finding.hour` is that of the first one.
    interval = Interval(hour_of(start) - HOUR, hour_of(end) + HOUR)
    row = feature.last_report(opened.selection(interval, key), finding.block, start)
    if row is None:
        return None
    return f"{text.number(finding, row['low'], row['high'])} in the window up to {plain(row['window_end'])}"


def _raw(opened: OpenStream, finding: Finding, key: Mapping[str, str], is_withdrawn: bool) -> Section:
    """Return the raw lines of a finding."""
    text = FindingText(opened.stream, opened.snapshot())
    start, end = finding.start_time, text.end(finding)
    if finding.kind in KINDS:
        interval = Interval.of_hour(UNKNOWN_HOUR)
        if start is not None and end is not None:
            interval = Interval(hour_of(start), hour_of(end - MICROSECOND) + HOUR)
        return _failing_rows(opened.selection(interval), finding, is_withdrawn)
    feature, block = text.feature(finding), finding.block
    if start is None or end is None or feature is None or block is None:
        return Section(RAW, "This finding is about no single line.", subject="raw")
    of, order = f"events {'of its key ' if key else ''}in its time", events.OLDEST_FIRST
    if finding.item is not None:
        of, order = "events of its item up to its end, the last first", events.LATEST_FIRST
        start -= _window(opened.stream, finding)
    interval = Interval(hour_of(start), hour_of(end - MICROSECOND) + HOUR)
    where = f"event_time >= {instant(start)} AND event_time < {instant(end)}"
    records: Mapping[str, list[int]] = {}
    if feature.records is not None:
        # A match may be reported later than its last record.
        later = Interval(interval.start, max(interval.end, finding.hour + HOUR))
        records = feature.records(opened.selection(later, key), block, start, end, RAW_LINES)
    if records:
        where = " OR ".join(
            f"(source_id = {literal(source)} AND source_line IN ({', '.join(map(str, lines))}))"
            for source, lines in records.items()
        )
        of = "records of its matches, the first ones"
    query = events.events(opened.selection(interval, key), where, order)
    rows = query.rows(RAW_LINES)
    total = query.count() if len(rows) == RAW_LINES and not records else len(rows)
    note = f"{len(rows)} of {total:,} {of}." if total > len(rows) else f"{counted(total, 'line')}: {of}."
    return events.section(query, RAW, note if rows else f"No {of} is published.", rows, total)


def _failing_rows(selection: Selection, finding: Finding, is_withdrawn: bool) -> Section:
    """Return the rows that fail the checks of a finding, or lines that were rejected in its hours.

    Of a withdrawn finding it is those of earlier runs: the runs that wrote its hours since have no such rows.
    """
    block = "" if finding.block is None else f" AND block = {literal(finding.block)}"
    start, end = instant(selection.interval.start), instant(selection.interval.end)
    found = selection.each(
        "checks",
        'SELECT hour, "check", "column", file, failing_rows, "table", block, run_id FROM t WHERE '
        f"NOT success AND stage = {literal(finding.stage)}{block} AND hour >= {start} AND hour < {end} "
        'ORDER BY hour, block, "check", "column", file, "table"',
    )
    columns = ("hour", "check", "column", "file", "row")
    failing: list[Cells] = []
    for row in found:
        state = selection.snapshot.get(PartitionKey(finding.stage, row["block"], row["table"], row["hour"]))
        on = f" on {row['column']}" if row["column"] else ""
        named = f"check {row['check']}{on} "
        is_current = state is not None and state.previous_run == row["run_id"]
        if is_current != is_withdrawn and named in f"{finding.title} ":
            failing += (
                (*(row[name] for name in columns[:-1]), text[:CUT]) for text in row["failing_rows"] or ()
            )
        if len(failing) >= RAW_LINES:
            break
    if failing:
        shown = failing[:RAW_LINES]
        return Section(
            RAW,
            f"{counted(len(shown), 'row')} that failed the check{' in an earlier run' * is_withdrawn}.",
            DataTable.of(columns, shown),
            subject="raw",
        )
    columns = ("hour", "source_line", "reason", "detail", "raw")
    rejected = []
    if finding.stage == SOURCE_STAGE and finding.kind == "check_failed" and not is_withdrawn:
        texts = f"substr(detail, 1, {CUT}) AS detail, substr(raw, 1, {CUT}) AS raw"
        rejected = selection.ask(
            "rejected",
            f"SELECT hour, source_line, reason, {texts} FROM t WHERE hour >= {start} AND hour < {end} "
            f"ORDER BY hour, source_id, source_line LIMIT {RAW_LINES}",
        )
    if not rejected:
        return Section(RAW, "This finding is about no single line.", subject="raw")
    lines = [tuple(row[name] for name in columns) for row in rejected]
    note = f"The first {counted(len(lines), 'line')} of its hours that became no event."
    return Section(RAW, note, DataTable.of(columns, lines), subject="raw")
