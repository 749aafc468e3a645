"""The view of frames: bars on a time axis."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from transom.charts.section import Section
from transom.charts.specs import label, labels, millis, spans
from transom.core.durations import format_duration_long
from transom.core.terminal import counted
from transom.core.terminal_tables import plain
from transom.engine.selection import Row, Selection
from transom.features.frames import input_columns
from transom.features.frames.spec import Frame
from transom.findings.text import key_text
from transom.storage.tables import meanings as described

LINES = 25
"""The maximum number of keys in a chart."""
END = "the end of what its last reading covers, exclusive; the table has the time of this reading, last_time"
"""What the column means that the table does not have."""
STATES = {"final": "closed", "partial": "open at the end of these hours"}


def section(selection: Selection, name: str) -> Section:
    """Return the section of a block."""
    frame, key = selection.stream.blocks(Frame)[name], input_columns.key(selection.stream, name)
    value = input_columns.value(selection.stream, name)
    figures = {"peak": f"peak {value}", "mean": f"mean {value}"} if value else {}
    columns = ["start_time", *key, "length_s", "records", "missing", "state", *figures]
    titles = ["start_time", "end_time", *(figures.get(column, column) for column in columns[1:])]
    query = selection.query(
        "frames", name, "frames", columns, each="frame_id", best="hour DESC, fragment DESC",
        order="length_s DESC, start_time, frame_id",
    )  # fmt: skip
    rows, total = query.page()
    texts = [key_text(key, row) or name for row in rows]
    named = labels(dict(zip(texts, texts, strict=True)))
    bars = [
        {
            "label": named[text],
            "start": millis(row["start_time"]),
            "end": millis(_end(row)),
            "state": STATES[row["state"]],
        }
        for text, row in zip(texts, rows, strict=True)
    ]
    keys = list(dict.fromkeys(bar["label"] for bar in bars))
    longest = ""
    if rows and selection.page == 1:
        longest = f" {_longest(key, rows, total)}"
    meanings = {figures[name]: text for name, text in described("frames").items() if name in figures}
    meanings["end_time"] = END
    some = f", those of the first {LINES} of {len(keys)} keys" if len(keys) > LINES else ""
    return Section(
        f"{name}: frames {frame.reported_rule}",
        f"{counted(total, 'frame')}, the longest first{query.drawn(rows, total)}{some}.{longest}"
        f"{query.limit_note}"
        if total
        else "No frame in these hours.",
        query.data_table(
            rows,
            total,
            lambda row: (row["start_time"], _end(row), *[*row.values()][1:]),
            titles,
            meanings,
        ),
        spans((bar for bar in bars if bar["label"] in keys[:LINES]), [*STATES.values()]) if bars else None,
        name,
        guarantee="Each is as the last of these hours reports it; one that is partial may go on. Exact: the "
        f"frames of the whole history of {', '.join(key) or 'the stream'}, over the borders of hours."
        if total
        else "",
    )


def _end(row: Row) -> datetime:
    """Return the end of what the last reading of a frame covers, exclusive."""
    end: datetime = row["start_time"] + timedelta(seconds=row["length_s"])
    return end


def _longest(key: Sequence[str], rows: Sequence[Row], total: int) -> str:
    """Return a sentence on the longest frame, or on the first of several that are equally long."""
    first = rows[0]
    of = label(key_text(key, first) or "")
    length = format_duration_long(timedelta(seconds=round(first["length_s"])))
    begins = f"{f'{of}, ' if of else ''}{{}}from {plain(first['start_time'])}."
    equal = sum(row["length_s"] == first["length_s"] for row in rows)
    if equal == 1:
        return f"The longest: {begins.format(f'{length} ')}"
    number = "All" if equal == total else f"{equal}{' or more' if equal == len(rows) else ''}"
    return f"{number} are equally long, {length} each; the first of them: {begins.format('')}"
