"""The view of frequent items: the estimates of the last report with their bounds."""

from collections.abc import Iterator

from transom.charts.section import DataTable, Section
from transom.charts.specs import bounds, label
from transom.core.durations import format_duration
from transom.core.intervals import format_hour
from transom.core.terminal import counted
from transom.engine.selection import Selection
from transom.features.frequency.spec import Frequency
from transom.findings.text import key_text

ITEMS = 25
"""The maximum number of items in a chart."""
MAX_REPORT = 20_000
"""More than the rows of one report: `top` is at most 10,000, and there are a few watched items."""


def sections(selection: Selection) -> Iterator[Section]:
    """Yield a section for each block that has the selected key."""
    for name, block in selection.stream.blocks(Frequency).items():
        if selection.has_key(block.item):
            yield _section(selection, name, block)


def _section(selection: Selection, name: str, block: Frequency) -> Section:
    columns = ["rank", *block.item, "estimate", "low", "high", "watched", "change", "since"]
    title = f"{name}: most frequent {', '.join(block.item)}"
    if selection.key:
        columns.insert(0, "window_end")
        rows, total = selection.rows("frequency", name, "frequencies", order="window_end DESC, rank")
        note, chart = counted(total, "report"), None
    else:
        rows, _ = selection.rows(
            "frequency",
            name,
            "frequencies",
            where="low IS NOT NULL",
            order="window_end DESC, rank",
            limit=MAX_REPORT,
        )
        rows = [row for row in rows if row["window_end"] == rows[0]["window_end"]]
        total, note = len(rows), "No report"
        chart = bounds(
            {
                "label": label(key_text(block.item, row) or ""),
                **{name: row[name] for name in ("low", "high", "estimate")},
            }
            for row in rows[:ITEMS]
        )
        if rows:
            # Vanilla has no window.
            window = "" if block.variant == "vanilla" else f"The {format_duration(block.window)} up "
            last = rows[0]
            note = (
                f"{window or 'Up '}to {format_hour(last['window_end'])}: "
                f"{counted(last['window_records'], 'record')}. An item without a row has at most "
                f"{last['max_unreported']}"
            )
    return Section(
        title,
        f"{note}. The count is between low and high; estimate is that of the sketch.",
        DataTable.of(columns, ([row[column] for column in columns] for row in rows), total),
        chart if rows else None,
        name,
    )
