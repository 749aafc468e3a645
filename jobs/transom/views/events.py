"""Events as they were read, with the file and the line of each."""

from collections.abc import Sequence
from dataclasses import replace

from transom.charts.section import MAX_ROWS, Cells, Section
from transom.core.partitions import SOURCE_STAGE
from transom.core.terminal import counted
from transom.engine.selection import Query, Row, Selection
from transom.spec.external_source import EVENTS
from transom.storage.tables import literal

CUT = 2_000
"""The maximum number of characters of a text of an event."""
LATEST_FIRST = "event_time DESC, source_id, source_line"
OLDEST_FIRST = "event_time, source_id, source_line"


def of_key(selection: Selection) -> Section:
    """Return the last events of the selected key."""
    query = events(selection)
    rows, total = query.page()
    note = f"{counted(total, 'event')}, the last first. Texts are cut to {CUT:,} characters."
    coverage = selection.coverage(SOURCE_STAGE, EVENTS, [EVENTS])
    return section(
        query, "Events of the key", f"{note if total else 'No event in these hours.'} {coverage}", rows, total
    )


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


def section(query: Query, title: str, note: str, rows: Sequence[Row], total: int) -> Section:
    """Return the section of some events; `total` is the number of all of them."""
    files = _files(query.selection, rows)
    columns = [*(name for name in query.columns if name != "source_id"), "file"]

    def cells(row: Row) -> Cells:
        own = row | {"file": files.get(row["source_id"], row["source_id"])}
        return tuple(own[column] for column in columns)

    table = query.data_table(rows, total, cells, columns) if total else None
    return Section(title, note, table, None, EVENTS)


def _files(selection: Selection, rows: Sequence[Row]) -> dict[str, str]:
    """Return the path of the file of each of some events, by the identity of its content."""
    ids = {row["source_id"]: None for row in rows[:MAX_ROWS]}
    if not ids:
        return {}
    found = selection.ask(
        "files",
        f"SELECT source_id, path FROM t WHERE source_id IN ({', '.join(map(literal, ids))}) ORDER BY path",
    )
    return {row["source_id"]: row["path"] for row in found}
