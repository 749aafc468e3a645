"""What a drafted stream asks of its events at first: a key, a block of figures, what its gate lets pass."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from transom.cli.init.infer_columns import ColumnValues, figure_of, key_of, unique_of
from transom.cli.init.infer_path import identifier
from transom.cli.init.try_draft import TOLERATED, DraftTrial
from transom.spec.stream import Stream

LOOSEST = 0.1
"""The largest share of refused lines that a draft lets pass by itself."""
LONG = "RANGES 24 HOURS, 1 HOUR SLIDES 1 HOUR, 1 HOUR"
SHORT = "RANGES 1 HOUR, 5 MINUTES SLIDES 5 MINUTES, 5 MINUTES"
"""Levels for a log of days, and for one of minutes."""


def column_values(stream: Stream, found: DraftTrial) -> list[ColumnValues]:
    """What the events hold in each column that is read."""
    return [
        ColumnValues(
            name,
            field.type,
            found.events[name].null_count,
            int(pc.count_distinct(found.events[name], mode="only_valid").as_py()),
            field.type == "string" and _structured(found.events[name]),
        )
        for name, field in stream.event_columns.items()
        if name in found.events.column_names
    ]


def _structured(texts: pa.ChunkedArray) -> bool:
    """Whether all texts are lists or objects of JSON."""
    return pc.all(pc.match_substring_regex(texts, r'^(\[|\{").*[\]}]$|^\{\}$')).as_py() is True


def repeats(seen: Sequence[ColumnValues], found: DraftTrial) -> tuple[str, int] | None:
    """A column that names each event, and how many events have a name that another one has; None where there
    is no such column, or each name is there once."""
    rows = found.events.select(["event_time", *(column.name for column in seen)])
    different = rows.group_by(rows.column_names).aggregate([]).num_rows
    column = unique_of(seen, rows.num_rows, different)
    return None if column is None else (column.name, rows.num_rows - column.distinct)


def first_blocks(stream: Stream, seen: Sequence[ColumnValues], found: DraftTrial) -> dict[str, Any]:
    """A key, a first block of figures, and a tolerance where more lines are refused than by default."""
    key = key_of(seen, found.events.num_rows)
    # What Spark derives is not there yet.
    figure = figure_of(
        [*seen, *(ColumnValues(name, stream.event_types[name], 0, 2) for name in stream.derived)],
        found.events.num_rows,
    )
    measures = {"n": "count"}
    if figure is not None:
        function, column = figure
        name = f"{'total' if function == 'sum' else function}_{column}"
        measures[identifier(name, [*stream.event_columns, "n"])] = f"{function}({column})"
    first, last = found.extent
    blocks: dict[str, Any] = {"key": [key.name]} if key is not None else {}
    levels = LONG if last - first > timedelta(hours=12) else SHORT
    blocks["aggregates"] = {"activity": {"measures": measures, "levels": levels}}
    at_most = tolerance_of(found)
    if at_most is not None and at_most <= LOOSEST:
        blocks["checks"] = {"rejected_share": {"at_most": at_most}}
    return blocks


def tolerance_of(found: DraftTrial) -> float | None:
    """Return the share of refused lines that lets such files pass; None where the default does."""
    return min(1.0, round(found.share * 1.5 + 0.005, 2)) if found.share > TOLERATED else None
