"""What a drafted stream asks of its events at first: a key, a block of figures, what its gate lets pass."""

from datetime import timedelta
from typing import Any

import pyarrow.compute as pc

from transom.cli.guesses import Seen, figure_of, key_of
from transom.cli.naming import identifier
from transom.cli.sample_events import TOLERATED, Tried
from transom.stream import Stream

LONG = "RANGES 24 HOURS, 1 HOUR SLIDES 1 HOUR, 1 HOUR"
SHORT = "RANGES 1 HOUR, 5 MINUTES SLIDES 5 MINUTES, 5 MINUTES"
"""Levels for a log of days, and for one of minutes."""


def first_blocks(stream: Stream, found: Tried) -> dict[str, Any]:
    """A key, a first block of figures, and a tolerance where more lines are refused than by default."""
    seen = [
        Seen(
            name,
            field.type,
            found.events[name].null_count,
            int(pc.count_distinct(found.events[name], mode="only_valid").as_py()),
        )
        for name, field in stream.event_columns.items()
        if name in found.events.column_names
    ]
    key = key_of(seen, found.events.num_rows)
    # What Spark derives is not there yet.
    figure = figure_of(
        [*seen, *(Seen(name, stream.event_types[name], 0, 2) for name in stream.derived)],
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
    blocks["aggregate"] = {"activity": {"measures": measures, "levels": levels}}
    if found.share > TOLERATED:
        blocks["checks"] = {"rejected_share": {"at_most": min(1.0, round(found.share * 1.5 + 0.005, 2))}}
    return blocks
