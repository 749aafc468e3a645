"""The view of fills: the rows that fill the longest frames, with those of the history before them."""

from dataclasses import replace
from datetime import datetime, timedelta

from transom.charts.section import Cells, Section
from transom.charts.specs import grouped_bars, labels
from transom.core.durations import format_duration, format_duration_long
from transom.core.intervals import MICROSECOND
from transom.core.terminal import counted
from transom.core.terminal_tables import plain
from transom.engine.selection import MAX_READ, Row, Selection
from transom.features.fills import comparison, input_columns
from transom.features.fills.spec import Fill
from transom.features.frames import input_columns as frame_columns
from transom.features.frames.spec import Frame
from transom.findings.text import key_text
from transom.spec.stream import Stream
from transom.storage.tables import literal

FRAMES = 10
"""The maximum number of frames in a chart."""
MEANINGS = {
    "frame_start": "the start of the frame",
    "shift": "how long before the frame the rows were",
    "rows_from": "the start of their period, inclusive",
    "rows_to": "the end of their period, exclusive",
}
"""What the columns mean that the table does not have."""


def section(selection: Selection, name: str) -> Section:
    """Return the section of a block."""
    fill = selection.stream.blocks(Fill)[name]
    key = frame_columns.key(selection.stream, fill.frame)
    measures = [*fill.measures] or ["rows_matched"]
    figures = ["rows_matched", *fill.measures, "coverage", "state"]
    # The interval of the combined row begins with that of the longest shift, and ends with the shortest's.
    longest = max(fill.shift)
    spread = (longest - min(fill.shift)) // MICROSECOND
    start = f"CAST(start_time AS BIGINT) + CAST(coalesce(shift_s, {longest.total_seconds()}) * 1e6 AS BIGINT)"
    query = selection.query(
        "fills", name, "fills", [*key, "frame_id", "shift_s", "start_time", "end_time", *figures],
        each="frame_id, shift_s", best="hour DESC, fragment DESC",
        order="CAST(end_time AS BIGINT) - CAST(start_time AS BIGINT) - "
        f"CASE WHEN shift_s IS NULL THEN {spread} ELSE 0 END DESC NULLS LAST, "
        f"{start}, frame_id, shift_s NULLS LAST",
    )  # fmt: skip
    rows, total = query.page()

    def frame_start(row: Row) -> datetime:
        shift = longest if row["shift_s"] is None else timedelta(seconds=row["shift_s"])
        start: datetime = row["start_time"] + fill.lead + shift
        return start

    def cells(row: Row) -> Cells:
        of_frame = (frame_start(row), *(row[column] for column in key), _shift(fill, row))
        return (
            *of_frame,
            row["start_time"],
            row["end_time"],
            *(row[name] for name in figures),
            row["frame_id"],
        )

    frames = {row["frame_id"]: row for row in rows}
    named = labels(
        {
            frame: f"{plain(frame_start(row))} {key_text(key, row) or ''}".strip()
            for frame, row in [*frames.items()][:FRAMES]
        }
    )
    # A page may end between the rows of a frame.
    of_frames = replace(query, where=f"frame_id IN ({', '.join(map(literal, named)) or 'NULL'})")
    drawn = of_frames.rows(MAX_READ) if named else []
    bars = [
        {
            "label": named[row["frame_id"]], "value": row[m], "series": _shift(fill, row), "panel": m,
            "text": text, "is_whole": row["coverage"] == 1,
        }
        for m in measures
        for row, text in comparison.texts(drawn, m)
    ]  # fmt: skip
    columns = ["frame_start", *key, "shift", "rows_from", "rows_to", *figures, "frame_id"]
    answer = comparison.answer(drawn, measures[0], lambda row: _shift(fill, row))
    unknown = comparison.unknown(drawn, lambda row: f"{_shift(fill, row)} {named[row['frame_id']]}")
    return Section(
        f"{name}: {' and '.join(measures)} {_periods(fill)} {fill.frame}",
        f"{answer}{counted(total, 'row')}, those of the longest frames first; the chart has the first "
        f"{counted(len(named), 'frame')} of this page.{unknown}{query.limit_note}"
        if total
        else "No frame is filled in these hours.",
        query.data_table(rows, total, cells, columns, MEANINGS),
        grouped_bars(bars) if bars else None,
        name,
        guarantee=_exactness(selection.stream, name) if total else "",
    )


def _periods(fill: Fill) -> str:
    """Return the periods of the rows of a fill, as a heading has them."""
    of_frame = ["in"] if timedelta(0) in fill.shift else []
    before = [f"{format_duration(shift)} before" for shift in fill.shift if shift]
    return f"{' and '.join(of_frame + before)} each frame of"


def _shift(fill: Fill, row: Row) -> str:
    """Return how long before the frame the rows of a fill were."""
    if row["shift_s"] is None:
        return f"{fill.combine} of all"
    return (
        f"{format_duration_long(timedelta(seconds=row['shift_s']))} before" if row["shift_s"] else "the frame"
    )


def _exactness(stream: Stream, name: str) -> str:
    fill = stream.blocks(Fill)[name]
    frame, reach = stream.blocks(Frame)[fill.frame], format_duration(input_columns.reach(stream, name))
    is_whole = fill.reach is None and (frame.period or frame.max_length)
    cut = "" if is_whole else f" Of a frame longer than {reach}, only that last part counts."
    combined = (
        f" The {fill.combine} is that of the shifts with coverage 1, and its coverage is their share."
        if fill.combine
        else ""
    )
    return (
        f"Each row is about {fill.source.called} from rows_from to rows_to, exclusive. Exact where coverage "
        "is 1: the share of this time that is requested and published; without any, the values are unknown. "
        f"A partial row may still change.{combined}{cut}"
    )
