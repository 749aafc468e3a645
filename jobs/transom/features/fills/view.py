"""The view of fills: the rows that fill the longest frames, with those of the history before them."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from transom.charts.section import DataTable, Section
from transom.charts.specs import grouped_bars, label
from transom.core.durations import format_duration_long
from transom.core.terminal import counted
from transom.engine.selection import Selection
from transom.features.fills.spec import Fill
from transom.features.frames import input_columns as frame_columns
from transom.findings.text import key_text
from transom.storage.tables import literal

FRAMES = 10
"""The number of frames in a chart."""
TO_THE_SECOND = "%Y-%m-%d %H:%M:%S"
"""The format of times in labels: frames of a key that start in the same minute have their own bars."""


def sections(selection: Selection) -> Iterator[Section]:
    """Yield a section for each block that has the selected key."""
    for name, fill in selection.stream.blocks(Fill).items():
        key = frame_columns.key(selection.stream, fill.frame)
        if selection.has_key(key):
            yield _section(selection, name, fill, key)


def _section(selection: Selection, name: str, fill: Fill, key: tuple[str, ...]) -> Section:
    frames, total = selection.rows(
        "frames", fill.frame, "frames", each="frame_id", best="hour DESC, fragment DESC",
        order="length_s DESC, start_time, frame_id", limit=FRAMES,
    )  # fmt: skip
    ids = ", ".join(literal(frame["frame_id"]) for frame in frames)
    rows, _ = selection.rows(
        "fills", name, "fills", where=f"frame_id IN ({ids})" if ids else "FALSE",
        each="frame_id, shift_s", best="hour DESC, fragment DESC", order="shift_s NULLS LAST, start_time",
    )  # fmt: skip
    names = {
        frame["frame_id"]: label(
            f"{frame['start_time']:{TO_THE_SECOND}} {key_text(key, frame) or ''}".strip()
        )
        for frame in frames
    }
    rows.sort(key=lambda row: [*names].index(row["frame_id"]))
    bars = [
        {"label": names[row["frame_id"]], "value": row[m], "series": _shift(fill, row), "panel": m}
        for m in fill.measures
        for row in rows
        if row[m] is not None
    ]
    columns = [*key, "start_time", "end_time", "rows_matched", *fill.measures, "coverage", "state"]
    cells = (
        [names[row["frame_id"]], _shift(fill, row), *(row[column] for column in columns)] for row in rows
    )
    note = (
        f"The longest {len(frames)} of {counted(total, 'frame')} of {fill.frame}, with "
        f"{fill.source.called} of the same time or before. Exact where coverage is 1: the share of the "
        "interval that is published."
    )
    if not rows:
        note = "No frame is filled in these hours."
    elif not bars:
        note += " No interval of these frames is covered."
    return Section(
        f"{name}: what fills {fill.frame}",
        note,
        DataTable.of(["frame", "shift", *columns], cells),
        grouped_bars(bars) if bars else None,
        name,
    )


def _shift(fill: Fill, row: dict[str, Any]) -> str:
    """Return how long before the frame the rows of a fill were."""
    if row["shift_s"] is None:
        return f"{fill.combine} of all"
    return (
        f"{format_duration_long(timedelta(seconds=row['shift_s']))} before" if row["shift_s"] else "the frame"
    )
