"""Events as they were read, with the file and the line of each."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from transom.charts.section import RAW_ROWS, Cells, DataTable, Section
from transom.core.partitions import SOURCE_STAGE
from transom.core.terminal import counted
from transom.engine.selection import Query, Row, Selection
from transom.findings.text import as_time
from transom.spec.external_source import EVENTS
from transom.storage.tables import literal, meanings

CUT = 2_000
"""The maximum number of characters of a text of an event."""
LATEST_HOURS = 24
"""The number of last hours to search first for the latest events; the next search has eight times as many."""
LATEST_FIRST = "event_time DESC, source_id, source_line"
OLDEST_FIRST = "event_time, source_id, source_line"
AT_ONCE = 1_000
"""The number of events whose files are looked up at once."""


def of_key(selection: Selection, limit: int = RAW_ROWS) -> Section:
    """Return the last events of the selected key, up to a maximum number on a page."""
    query = events(selection)
    rows, total = _latest(query, limit)
    note = f"{counted(total, 'event')}, the last first. Texts are cut to {CUT:,} characters."
    coverage = selection.coverage(SOURCE_STAGE, EVENTS, [EVENTS])
    note = f"{note if total else 'No event in these hours.'} {coverage}"
    return section(query, "Events of the key", note, rows, total, limit)


def has_events(selection: Selection) -> bool:
    """Return whether there is an event of the selected key."""
    return bool(_latest_rows(events(selection), 1))


def _latest(query: Query, limit: int) -> tuple[list[Row], int]:
    """Return the page of the latest events, and the number of all events."""
    if query.selection.page > 1:
        return query.page(limit)
    rows = _latest_rows(query, limit)
    return rows, len(rows) if len(rows) < limit else query.count()


def _latest_rows(query: Query, limit: int) -> list[Row]:
    """Return the latest events, up to a maximum number.

    They are searched from the last hour backwards: opening the files of a year takes longer than reading
    them.
    """
    rows, hours, count = list[Row](), query.hours, LATEST_HOURS
    while hours and len(rows) < limit:
        hours, latest = hours[:-count], hours[-count:]
        rows += replace(query, hours=latest).rows(limit - len(rows))
        count *= 8
    return rows


def of_hour(selection: Selection) -> Section:
    """Return the first events of the selected hour."""
    query = events(selection, order=OLDEST_FIRST)
    rows = query.rows(RAW_ROWS)
    total = len(rows) if len(rows) < RAW_ROWS else query.count()
    first = f", the first {len(rows)} of them" if len(rows) < total else ""
    note = f"{counted(total, 'event')}{first}." if total else "No event."
    coverage = selection.coverage(SOURCE_STAGE, EVENTS, [EVENTS])
    return section(query, "Events", f"{note} {coverage}", rows, total)


def events(selection: Selection, where: str = "TRUE", order: str = LATEST_FIRST) -> Query:
    """Return the query of events that meet an SQL condition."""
    columns = ("event_time", *selection.stream.event_columns, "source_id", "source_line")
    query = selection.query(SOURCE_STAGE, EVENTS, EVENTS, columns, where=where, order=order, cut=CUT)
    stored = selection.pinned(EVENTS)
    # A column that only the stream file has is in no event yet.
    return (
        query
        if stored is None
        else replace(query, columns=tuple(name for name in columns if name in stored.columns))
    )


def section(
    query: Query, title: str, note: str, rows: Sequence[Row], total: int, limit: int = RAW_ROWS
) -> Section:
    """Return the section of some events, without columns that add nothing in the rows of this page.

    The section lists these columns, and a download has them.

    Args:
        query: the events.
        title: the heading.
        note: what they are.
        rows: those of this page.
        total: the number of all of them.
        limit: the maximum number of rows of a page.
    """
    columns = [*(name for name in query.columns if name != "source_id"), "file"]
    omitted = _omitted(query.columns, rows)
    shown = [name for name in columns if name not in omitted]
    texts = ", ".join(f"{name} ({why})" for name, why in omitted.items())

    def cells(events: Iterable[Row], names: Sequence[str]) -> Iterator[Cells]:
        return (tuple(_cell(row, name) for name in names) for row in with_files(query.selection, events))

    file = DataTable(tuple(columns), (), total, download=lambda: cells(query.stream(), columns))
    first = 1 + (query.selection.page - 1) * limit
    table = DataTable.of(shown, cells(rows, shown), total, first, meanings=meanings(EVENTS))
    table = replace(table, per_page=limit, is_raw=True)
    without = f"Columns that add nothing are omitted: {texts}." if omitted else ""
    if not total:
        return Section(title, note, None, None, EVENTS)
    return Section(title, note, table, None, EVENTS, guarantee=without, file=file)


def _cell(row: Row, name: str) -> object:
    # Without its seconds, a full minute looks like another kind of time.
    return as_time(row[name]) if name == "event_time" else row[name]


def _omitted(columns: Sequence[str], rows: Sequence[Row]) -> dict[str, str]:
    """Return the columns that are empty in all rows, or a word of another column in each, with the reason."""
    reasons: dict[str, str] = {}
    for name in columns:
        values = [row[name] for row in rows]
        if rows and all(value in (None, "") for value in values):
            reasons[name] = "empty"
        elif rows and all(isinstance(value, str) and value for value in values):
            others = (other for other in columns if other != name and other not in reasons)
            holds = (other for other in others if all(_has_word(row[other], row[name]) for row in rows))
            if (other := next(holds, None)) is not None:
                reasons[name] = f"in {other}"
    return reasons


def _has_word(text: object, word: str) -> bool:
    return isinstance(text, str) and text != word and word in text.split()


def with_files(selection: Selection, events: Iterable[Row]) -> Iterator[Row]:
    """Yield events with the path of the file of each; the identity of its content if no file is known."""
    rows = iter(events)
    while part := [*islice(rows, AT_ONCE)]:
        ids = ", ".join(map(literal, dict.fromkeys(row["source_id"] for row in part)))
        found = selection.ask(
            "files", f"SELECT source_id, path FROM t WHERE source_id IN ({ids}) ORDER BY path"
        )
        files = {row["source_id"]: row["path"] for row in found}
        yield from (row | {"file": files.get(row["source_id"], row["source_id"])} for row in part)
