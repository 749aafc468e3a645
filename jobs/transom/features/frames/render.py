"""What frames a try has found, and what fills them, printed: of each kind the longest."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import typer
from deltalake import DeltaTable

from transom.core.durations import format_duration_long
from transom.core.terminal_tables import table
from transom.features.fills.spec import Fill
from transom.features.frames import validate as frame_columns
from transom.features.frames.spec import Frame
from transom.spec.stream import Stream
from transom.storage.tables import query

ROWS = 5
"""Frames of each kind that are shown."""
LATEST = (
    "SELECT *, row_number() OVER (PARTITION BY frame_id ORDER BY hour DESC, fragment DESC) AS place FROM t"
)


def print_frames(stream: Stream, root: str) -> None:
    """Prints the longest frames of each kind as last told, and then what fills them."""
    for name, frame in stream.blocks(Frame).items():
        key, value = frame_columns.key(stream, name), frame_columns.value(stream, name)
        many, rows = _frames(f"{root}/frames", key, name)
        if not rows:
            typer.echo(f"\n{name}: no frame {frame.rule}")
            continue
        figures = [f"peak {value}", f"mean {value}"] if value else []
        shown = [
            [
                *(row[column] for column in key), row["start"], row["end"], _length(row["length_s"]),
                row["records"], row["missing"], *([row["peak"], row["mean"]] if value else []),
                "open" if row["state"] == "partial" else "",
            ]
            for row in rows
        ]  # fmt: skip
        columns = [*key, "start", "end", "length", "readings", "missing", *figures, ""]
        which = (
            f"the longest {len(rows)} of {many} frames" if many > len(rows) else "frames, the longest first"
        )
        table(f"{name}, {frame.rule}: {which}", columns, shown)
        for fill, said in stream.blocks(Fill).items():
            if said.frame == name:
                _print_fill(stream, root, fill, key, rows)


def _frames(uri: str, key: Sequence[str], name: str) -> tuple[int, list[dict[str, Any]]]:
    """How many frames of a kind there are, and the longest of them, as last told."""
    if not DeltaTable.is_deltatable(uri):
        return 0, []
    order = ", ".join(["length_s DESC", "start", *(f'"{column}"' for column in key)])
    found = query(
        DeltaTable(uri),
        f"SELECT *, count(*) OVER () AS many FROM ({LATEST} WHERE block = '{name}') "
        f"WHERE place = 1 ORDER BY {order} LIMIT {ROWS}",
    ).to_pylist()
    return (found[0]["many"] if found else 0), found


def _print_fill(
    stream: Stream, root: str, name: str, key: Sequence[str], frames: Sequence[dict[str, Any]]
) -> None:
    """Prints what fills some frames, by each shift and by all of them."""
    uri = f"{root}/fills"
    ids = ", ".join(f"'{frame['frame_id']}'" for frame in frames)
    found = (
        query(DeltaTable(uri), f"SELECT * FROM t WHERE block = '{name}' AND frame_id IN ({ids})").to_pylist()
        if DeltaTable.is_deltatable(uri)
        else []
    )
    measures, shown = stream.blocks(Fill)[name].measures, []
    for frame in frames:
        of_row = [
            row
            for row in found
            if (row["frame_id"], row["fragment"]) == (frame["frame_id"], frame["fragment"])
        ]
        # The row of all shifts comes last.
        for row in sorted(of_row, key=lambda row: (row["shift_s"] is None, -(row["shift_s"] or 0))):
            shift = (
                f"{stream.blocks(Fill)[name].take} of all" if row["shift_s"] is None else _ago(row["shift_s"])
            )
            figures = [row["rows_matched"], *(row[measure] for measure in measures)]
            # Where nothing is covered, that is no zero.
            told = figures if row["covered"] > 0 else [None] * len(figures)
            covered = f"{row['covered']:.0%}"
            shown.append([*(frame[column] for column in key), frame["start"], shift, *told, covered])
    if shown:
        columns = [*key, "start", "shifted", "rows", *measures, "covered"]
        table(f"{name}: what fills them, from {stream.blocks(Fill)[name].from_.called}", columns, shown)


def _ago(seconds: float) -> str:
    return f"-{format_duration_long(timedelta(seconds=-seconds))}" if seconds else "not"


def _length(seconds: float) -> str:
    length = timedelta(seconds=seconds)
    return format_duration_long(length) if length >= timedelta(seconds=1) else f"{seconds:g} s"
