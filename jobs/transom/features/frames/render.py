"""Print the frames of a try: the longest of each block."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import typer
from deltalake import DeltaTable

from transom.core.durations import format_duration_long
from transom.core.terminal_tables import table
from transom.features.frames import input_columns
from transom.features.frames.spec import Frame
from transom.spec.stream import Stream
from transom.storage.tables import query

ROWS = 5
"""Frames shown for each block."""
LATEST = (
    "SELECT *, row_number() OVER (PARTITION BY frame_id ORDER BY hour DESC, fragment DESC) AS place FROM t"
)


def print_frames(stream: Stream, root: str) -> None:
    """Print the longest frames of each block, each by its last fragment."""
    for name, frame in stream.blocks(Frame).items():
        key, value = input_columns.key(stream, name), input_columns.value(stream, name)
        count, rows = longest_frames(f"{root}/frames", key, name)
        if not rows:
            typer.echo(f"\n{name}: no frame {frame.reported_rule}")
            continue
        values = [f"peak {value}", f"mean {value}"] if value else []
        cells = [
            [
                *(row[column] for column in key), row["start_time"], row["last_time"],
                _length(row["length_s"]), row["records"], row["missing"],
                *([row["peak"], row["mean"]] if value else []), "open" if row["state"] == "partial" else "",
            ]
            for row in rows
        ]  # fmt: skip
        columns = [*key, "start_time", "last_time", "length", "readings", "missing", *values, ""]
        which = f"the longest {len(rows)} of {count} frames"
        which = which if count > len(rows) else "frames, the longest first"
        table(f"{name}, {frame.reported_rule}: {which}", columns, cells)


def longest_frames(uri: str, key: Sequence[str], name: str) -> tuple[int, list[dict[str, Any]]]:
    """Return the number of frames of a block, and the longest, each by its last fragment."""
    if not DeltaTable.is_deltatable(uri):
        return 0, []
    order = ", ".join(["length_s DESC", "start_time", *(f'"{column}"' for column in key)])
    sql = (
        f"SELECT *, count(*) OVER () AS many FROM ({LATEST} WHERE block = '{name}') "
        f"WHERE place = 1 ORDER BY {order} LIMIT {ROWS}"
    )
    rows = query(DeltaTable(uri), sql).to_pylist()
    return (rows[0]["many"] if rows else 0), rows


def _length(seconds: float) -> str:
    length = timedelta(seconds=seconds)
    return format_duration_long(length) if length >= timedelta(seconds=1) else f"{seconds:g} s"
