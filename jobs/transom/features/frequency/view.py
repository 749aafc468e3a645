"""The view of frequent items: the estimates of the last report with their bounds, or those of an item."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from transom.charts.section import DataTable, Section, thin
from transom.charts.specs import bounds, label, labels, millis, panels
from transom.core.durations import format_duration
from transom.core.intervals import Interval, format_hour
from transom.core.terminal import counted
from transom.engine.reader import Reader
from transom.engine.selection import Query, Row, Selection
from transom.features.frequency.spec import Frequency
from transom.findings.text import bounds_text, key_text
from transom.storage.tables import instant

ITEMS, POINTS = 25, 750
"""The maximum number of items in a chart, and of reports of one item."""
FIRST = 3
"""The number of items that the text names."""
BOUNDS = ("high", "estimate", "low")
COUNTED = (
    "The count is certainly between low and high: where they are equal, it is exact. estimate is that of the "
    "sketch within these bounds"
)


def section(selection: Selection, name: str) -> Section:
    """Return the section of a block."""
    block = selection.stream.blocks(Frequency)[name]
    columns = ["rank", *block.item, "estimate", "low", "high", "error_bound", "watched", "change", "since"]
    query = selection.query("frequency", name, "frequencies", columns, order="window_end DESC, rank")
    return (_of_item if set(block.item) <= selection.key.keys() else _of_last_report)(query, name, block)


def _of_item(query: Query, name: str, block: Frequency) -> Section:
    """Return the reports of the selected item, the last one first."""
    query = replace(query, columns=("window_end", *query.columns))
    rows, page, total = query.all_and_page(["window_end", *BOUNDS])
    points = [
        {"time": millis(row["window_end"]), "value": row[bound], "series": bound, "panel": "count"}
        for bound in BOUNDS
        for row in thin(rows[::-1], POINTS, bound)
    ]
    note = "No report."
    if total:
        count = bounds_text(rows[0]["low"], rows[0]["high"])
        window = "" if block.variant == "vanilla" else f"in the {format_duration(block.window)} "
        until = f"up to {format_hour(rows[0]['window_end'])}"
        note = f"{counted(total, 'report')}, the last first: {count} {window}{until}."
    return Section(
        f"{name}: most frequent {', '.join(block.item)}",
        note,
        query.data_table(page, total, _cells),
        panels(points, BOUNDS) if rows else None,
        name,
        guarantee=_exactness(block) if total else "",
    )


def _cells(row: Row) -> tuple[object, ...]:
    """Return the values of a row, without a bound of the error of an exact count."""
    return tuple((row | {"error_bound": None} if row["low"] == row["high"] else row).values())


def _exactness(block: Frequency) -> str:
    over = (
        f"{COUNTED}. Where they differ, it is too large by more than error_bound with a probability "
        f"of at most {block.delta:g}"
    )
    match block.variant:
        case "simple" | "proportional":
            often = "mostly too small" if block.variant == "simple" else "too small or too large"
            return f"{COUNTED}. It is {often}, without another bound."
        case "splitter":
            return f"{over}, and may be too small."
        case "vanilla":
            return f"{over}, and never too small; it counts from the start, and low only the window."
    return f"{over}, and never too small."


def _of_last_report(query: Query, name: str, block: Frequency) -> Section:
    (last,) = query.ask("SELECT max(window_end) AS last FROM r WHERE low IS NOT NULL") or [{"last": None}]
    columns = ("window_records", "max_unreported")
    end = last["last"]
    where = f"low IS NOT NULL AND window_end = {instant(end)}" if end else "FALSE"
    query = replace(query, where=where, order="rank")
    rows, total = query.page()
    named = labels({place: key_text(block.item, row) or "" for place, row in enumerate(rows[:ITEMS])})
    chart = bounds(
        {"label": text, **{bound: rows[place][bound] for bound in BOUNDS}} for place, text in named.items()
    )
    note, guarantee = "No report in these hours.", ""
    for report in replace(query, columns=columns).rows(limit=1):
        # Vanilla has no window.
        window = "Up" if block.variant == "vanilla" else f"The {format_duration(block.window)} up"
        records = counted(report["window_records"], "record")
        most = ", ".join(
            f"{label(key_text(block.item, row) or '')} ({bounds_text(row['low'], row['high'])})"
            for row in rows[:FIRST]
        )
        note = (
            f"{counted(total, 'item')}{query.drawn(rows[:ITEMS], total)}. {window} to {format_hour(end)}: "
            f"{records}{f', of which {most}' if most and query.selection.page == 1 else ''}."
        )
        guarantee = f"An item without a row has at most {report['max_unreported']}. {_exactness(block)}"
    return Section(
        f"{name}: most frequent {', '.join(block.item)}",
        note,
        query.data_table(rows, total, _cells),
        chart if rows else None,
        name,
        guarantee=guarantee,
    )


def section_of_item(reader: Reader, name: str, key: Mapping[str, Any], interval: Interval) -> Section | None:
    """Return the section of the frequency of an item in the last window; None if the block has other items.

    Raises:
        ValueError, LookupError: as of `queries.frequency`.
    """
    from transom.features.frequency.queries import frequency  # which takes long to import

    block = reader.stream.blocks(Frequency)[name]
    if {*block.item} != key.keys():
        return None
    answer = frequency(reader, name, tuple(key[column] for column in block.item), interval.end)
    figures: Row = {"error_bound" if name == "margin" else name: of for name, of in vars(answer).items()}
    more = (
        "Both are equal, so it is exact."
        if answer.low == answer.high
        else "It is below the estimate by more than error_bound with a probability of at most "
        f"{block.delta:g}."
        if answer.margin is not None
        else "There is no other bound."
    )
    note = f"The window ends at {format_hour(interval.end)}. The count is certainly from low to high. {more}"
    values = DataTable.of(("figure", "value"), zip(figures, _cells(figures), strict=True))
    return Section(f"{name}: how often in the last window", note, values)
