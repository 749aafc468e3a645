"""Print the fills of a try: those of the longest frames."""

from datetime import timedelta

from deltalake import DeltaTable

from transom.core.durations import format_duration_long
from transom.core.terminal_tables import table
from transom.features.fills.spec import Fill
from transom.features.frames import input_columns as frame_columns
from transom.features.frames.render import longest_frames
from transom.spec.stream import Stream
from transom.storage.tables import query


def print_fills(stream: Stream, root: str) -> None:
    """Print the fills of the longest frames: a row for each shift, and the combined row."""
    uri = f"{root}/fills"
    for name, fill in stream.blocks(Fill).items():
        key = frame_columns.key(stream, fill.frame)
        _, frames = longest_frames(f"{root}/frames", key, fill.frame)
        if not frames or not DeltaTable.is_deltatable(uri):
            continue
        ids = ", ".join(f"'{frame['frame_id']}'" for frame in frames)
        sql = f"SELECT * FROM t WHERE block = '{name}' AND frame_id IN ({ids})"
        # The combined row comes last.
        fills = sorted(
            query(DeltaTable(uri), sql).to_pylist(),
            key=lambda row: (row["shift_s"] is None, row["shift_s"] or 0),
        )
        cells = []
        for frame in frames:
            for row in fills:
                if (row["frame_id"], row["fragment"]) != (frame["frame_id"], frame["fragment"]):
                    continue
                shift = f"{fill.combine} of all" if row["shift_s"] is None else _ago(row["shift_s"])
                figures = [row["rows_matched"], *(row[measure] for measure in fill.measures)]
                # Without coverage the number of rows is unknown, not 0.
                figures = figures if row["coverage"] > 0 else [None] * len(figures)
                of_frame = [*(frame[column] for column in key), frame["start_time"]]
                cells.append([*of_frame, shift, *figures, f"{row['coverage']:.0%}"])
        if cells:
            columns = [*key, "start_time", "shifted", "rows", *fill.measures, "coverage"]
            table(f"{name}: what fills them, from {fill.source.called}", columns, cells)


def _ago(seconds: float) -> str:
    return f"{format_duration_long(timedelta(seconds=seconds))} ago" if seconds else "not"
