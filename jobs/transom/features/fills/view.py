"""The view of fills: the rows that fill the longest frames, with those of the history before them."""

from dataclasses import replace
from datetime import timedelta

from transom.charts.section import Cells, DataTable, Section
from transom.charts.specs import grouped_bars, labels
from transom.core.durations import format_duration_long
from transom.core.terminal import counted
from transom.engine.selection import MAX_READ, Row, Selection
from transom.features.fills.spec import Fill
from transom.features.frames import input_columns as frame_columns
from transom.findings.text import key_text
from transom.storage.tables import literal

FRAMES = 10
"""The number of frames in a chart."""
TO_THE_SECOND = "%Y-%m-%d %H:%M:%S"
"""The format of times in labels."""
LAST_REPORT = "hour DESC, fragment DESC"


def section(selection: Selection, name: str) -> Section:
    """Return the section of a block."""
    fill = selection.stream.blocks(Fill)[name]
    key = frame_columns.key(selection.stream, fill.frame)
    of_frames = selection.query(
        "frames", fill.frame, "frames", ["frame_id", "start_time", *key], each="frame_id", best=LAST_REPORT,
        order="length_s DESC, start_time, frame_id",
    )  # fmt: skip
    frames, total = of_frames.page(FRAMES)
    columns = ["start_time", "end_time", "rows_matched", *fill.measures, "coverage", "state"]
    of_all = selection.query(
        "fills", name, "fills", [*key, "frame_id", "shift_s", *columns], each="frame_id, shift_s",
        best=LAST_REPORT, order="frame_id, shift_s NULLS LAST",
    )  # fmt: skip
    named = labels(
        {
            frame["frame_id"]: f"{frame['start_time']:{TO_THE_SECOND}} {key_text(key, frame) or ''}".strip()
            for frame in frames
        }
    )
    ids = ", ".join(map(literal, named)) or "''"
    rows = replace(of_all, where=f"frame_id IN ({ids})").rows(MAX_READ)
    places = {frame_id: place for place, frame_id in enumerate(named)}
    rows.sort(key=lambda row: places[row["frame_id"]])
    bars = [
        {"label": named[row["frame_id"]], "value": row[m], "series": _shift(fill, row), "panel": m}
        for m in fill.measures
        for row in rows
        if row[m] is not None
    ]

    def cells(row: Row) -> Cells:
        frame = named.get(row["frame_id"], row["frame_id"])
        return frame, _shift(fill, row), *(row[column] for column in (*key, *columns))

    note = (
        f"The longest {len(frames)} of {counted(total, 'frame')} of {fill.frame}, with "
        f"{fill.source.called} of the same time or before. Exact where coverage is 1: the share of the "
        f"interval that is published.{of_all.limit_note}"
    )
    if not rows:
        note = "No frame is filled in these hours."
    elif not bars:
        note += " No interval of these frames is covered."
    return Section(
        f"{name}: what fills {fill.frame}",
        note,
        DataTable.of(
            ["frame", "shift", *key, *columns], map(cells, rows), download=lambda: map(cells, of_all.stream())
        ),
        grouped_bars(bars) if bars else None,
        name,
    )


def _shift(fill: Fill, row: Row) -> str:
    """Return how long before the frame the rows of a fill were."""
    if row["shift_s"] is None:
        return f"{fill.combine} of all"
    return (
        f"{format_duration_long(timedelta(seconds=row['shift_s']))} before" if row["shift_s"] else "the frame"
    )
