"""The view of frames: bars on a time axis."""

from collections.abc import Iterator
from datetime import timedelta

from transom.charts.section import DataTable, Section
from transom.charts.specs import label, millis, spans
from transom.core.terminal import counted
from transom.engine.selection import Selection
from transom.features.frames import input_columns
from transom.features.frames.spec import Frame
from transom.findings.text import key_text

BARS, LINES = 300, 25
"""The maximum number of frames, and of keys, in a chart."""
STATES = {"final": "closed", "partial": "open at the end of these hours"}


def sections(selection: Selection) -> Iterator[Section]:
    """Yield a section for each block that has the selected key."""
    for name, frame in selection.stream.blocks(Frame).items():
        key = input_columns.key(selection.stream, name)
        if not selection.has_key(key):
            continue
        rows, total = selection.rows(
            "frames", name, "frames", each="frame_id", best="hour DESC, fragment DESC",
            order="length_s DESC, start_time, frame_id", limit=BARS,
        )  # fmt: skip
        value = input_columns.value(selection.stream, name)
        figures = {"peak": f"peak {value}", "mean": f"mean {value}"} if value else {}
        columns = ["start_time", "last_time", *key, "length_s", "records", "missing", "state", *figures]
        labels = list(dict.fromkeys(label(key_text(key, row) or name) for row in rows))[:LINES]
        bars = [
            {
                "label": label(key_text(key, row) or name),
                "start": millis(row["start_time"]),
                "end": millis(row["start_time"] + timedelta(seconds=row["length_s"])),
                "state": STATES[row["state"]],
            }
            for row in rows
        ]
        some = f", of which the longest {len(rows)} are shown" if total > len(rows) else ""
        yield Section(
            f"{name}: frames {frame.rule}",
            f"{counted(total, 'frame')}{some}, each as the last hour reports it. Exact."
            if rows
            else "No frame in these hours.",
            DataTable.of(
                [figures.get(column, column) for column in columns],
                ([row[column] for column in columns] for row in rows),
                total,
            ),
            spans((bar for bar in bars if bar["label"] in labels), [*STATES.values()]) if bars else None,
            name,
        )
