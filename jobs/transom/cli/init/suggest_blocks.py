"""Suggest first blocks for a drafted stream: a key, a block of aggregates, a tolerance of its checks."""

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
"""The largest share of refused lines that a draft tolerates."""
LONG = "RANGES 24 HOURS, 1 HOUR SLIDES 1 HOUR, 1 HOUR"
SHORT = "RANGES 1 HOUR, 5 MINUTES SLIDES 5 MINUTES, 5 MINUTES"
"""Levels for a log of several days, and for one of minutes."""


def column_values(stream: Stream, trial: DraftTrial) -> list[ColumnValues]:
    """Return statistics of each column that is read."""
    return [
        ColumnValues(
            name,
            field.type,
            trial.events[name].null_count,
            int(pc.count_distinct(trial.events[name], mode="only_valid").as_py()),
            field.type == "string" and _structured(trial.events[name]),
        )
        for name, field in stream.event_columns.items()
        if name in trial.events.column_names
    ]


def _structured(texts: pa.ChunkedArray) -> bool:
    """Return whether all texts are JSON lists or objects."""
    return pc.all(pc.match_substring_regex(texts, r'^(\[|\{").*[\]}]$|^\{\}$')).as_py() is True


def repeats(values: Sequence[ColumnValues], trial: DraftTrial) -> tuple[str, int] | None:
    """Return a column that identifies events, and how many events repeat an identifier; None if there is no
    such column, or no identifier repeats."""
    rows = trial.events.select(["event_time", *(column.name for column in values)])
    different = rows.group_by(rows.column_names).aggregate([]).num_rows
    column = unique_of(values, rows.num_rows, different)
    return None if column is None else (column.name, rows.num_rows - column.distinct)


def first_blocks(stream: Stream, values: Sequence[ColumnValues], trial: DraftTrial) -> dict[str, Any]:
    """Return a key, a first block of aggregates, and a tolerance if more lines are refused than the default
    allows."""
    key = key_of(values, trial.events.num_rows)
    # Derived columns are computed by Spark, so they have no values yet.
    figure = figure_of(
        [*values, *(ColumnValues(name, stream.event_types[name], 0, 2) for name in stream.derived)],
        trial.events.num_rows,
    )
    measures = {"n": "count"}
    if figure is not None:
        function, column = figure
        name = f"{'total' if function == 'sum' else function}_{column}"
        measures[identifier(name, [*stream.event_columns, "n"])] = f"{function}({column})"
    first, last = trial.extent
    blocks: dict[str, Any] = {"key": [key.name]} if key is not None else {}
    levels = LONG if last - first > timedelta(hours=12) else SHORT
    blocks["aggregates"] = {"activity": {"measures": measures, "levels": levels}}
    at_most = tolerance_of(trial)
    if at_most is not None and at_most <= LOOSEST:
        blocks["checks"] = {"rejected_share": {"at_most": at_most}}
    return blocks


def tolerance_of(trial: DraftTrial) -> float | None:
    """Return a share of refused lines with which such files pass; None if the default is enough."""
    return min(1.0, round(trial.share * 1.5 + 0.005, 2)) if trial.share > TOLERATED else None
