"""What fills the frames that a try shows, printed."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from deltalake import DeltaTable

from transom.core.durations import format_duration_long
from transom.core.terminal_tables import table
from transom.features.fills.spec import Fill
from transom.features.frames import validate as frame_columns
from transom.features.frames.render import longest_frames
from transom.spec.stream import Stream
from transom.storage.tables import query


def print_fills(stream: Stream, root: str) -> None:
    """Prints what fills the frames that are shown."""
    for name, fill in stream.blocks(Fill).items():
        key = frame_columns.key(stream, fill.frame)
        _, frames = longest_frames(f"{root}/frames", key, fill.frame)
        if frames:
            _print_fill(stream, root, name, key, frames)


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
        for row in sorted(of_row, key=lambda row: (row["shift_s"] is None, row["shift_s"] or 0)):
            shift = (
                f"{stream.blocks(Fill)[name].combine} of all"
                if row["shift_s"] is None
                else _ago(row["shift_s"])
            )
            figures = [row["rows_matched"], *(row[measure] for measure in measures)]
            # Where nothing is covered, that is no zero.
            told = figures if row["coverage"] > 0 else [None] * len(figures)
            covered = f"{row['coverage']:.0%}"
            shown.append([*(frame[column] for column in key), frame["start_time"], shift, *told, covered])
    if shown:
        columns = [*key, "start_time", "shifted", "rows", *measures, "coverage"]
        table(f"{name}: what fills them, from {stream.blocks(Fill)[name].source.called}", columns, shown)


def _ago(seconds: float) -> str:
    return f"{format_duration_long(timedelta(seconds=seconds))} ago" if seconds else "not"
