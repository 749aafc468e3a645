"""Rules of blocks of frequency beside others: their names, the columns of their items, and memory."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from transom.intervals import HOUR
from transom.stream import item_rules
from transom.stream.errors import Problem
from transom.stream.frequency import CHAINED, Frequency
from transom.units import format_bytes, format_duration

if TYPE_CHECKING:
    from transom.stream.model import Stream

COLUMNS = (
    "hour", "block", "window_end", "heavy_id", "rank", "estimate", "low", "high", "window_records", "margin",
    "others", "watched", "change", "state", "entered", "since",
    "row", "tick", "records", "items", "cells", "long", "place", "counters", "number",
)  # fmt: skip
"""Columns of `frequencies` and `tick_matrices` beside those of the item; and what is computed with them."""

NUMBER, SUB_CELL = 8, 56
"""Bytes: of a cell of a matrix, and of a sub-cell."""


def problems(stream: "Stream") -> Iterator[Problem]:
    """Yield what is wrong with the blocks of a stream, each of which is sound by itself."""
    for name, said in stream.frequency.items():
        place = f"frequency.{name}"
        if name in stream.persistence:
            yield Problem(place, f"persistence.{name} has the same name, in the same stage")
        yield from item_rules.problems(place, said, stream, COLUMNS, "frequent item")
        yield from _memory(place, said, stream)


def _memory(place: str, said: Frequency, stream: "Stream") -> Iterator[Problem]:
    """A task looks at the ticks of an hour, or at the hours of a chunk and of the window before it; one of a
    chain at all ticks of a chunk, and at what its cells hold at one hour's end, then at what they come to at
    the ends of all of them."""
    shape, ticks, chunk = said.shape, HOUR // said.tick, stream.chunk // HOUR
    of_hour, of_chunk = f"{ticks} ticks of an hour", f"a chunk of {format_duration(stream.chunk)}"
    ways = [(ticks, of_hour)]
    if said.variant not in CHAINED:
        ways.append((said.back + chunk, f"{said.back + chunk} hours of {of_chunk} and the window before it"))
    elif said.variant == "vanilla":
        ways.append((chunk, f"{chunk} hours of {of_chunk}"))
    else:
        ways.append((ticks * chunk, f"{ticks * chunk} ticks of {of_chunk}"))
        ways.append((3 * chunk, f"{chunk} hours of {of_chunk}, with two bounds each"))
    many, of = max(ways)
    sub_cells = round(shape.cells / said.tau) if said.variant == "splitter" else 0
    needed = shape.cells * NUMBER * many + sub_cells * SUB_CELL
    if needed > said.memory * 2**20:
        beside = f", and {sub_cells:,} sub-cells" if sub_cells else ""
        yield Problem(
            f"{place}.epsilon",
            f"gives matrices that do not fit: of {shape.rows} rows and {shape.columns:,} columns, for each "
            f"of {of}{beside}, {format_bytes(needed)}; memory is {said.memory} MiB",
        )
