"""Rules of blocks of frequency beside others: their names, the columns of their items, and memory."""

import math
from collections.abc import Iterator
from datetime import timedelta

from transom.core.durations import format_bytes, format_duration
from transom.core.intervals import HOUR
from transom.features.frequency.spec import CHAINED, KEPT, Frequency
from transom.features.items import validate as item_rules
from transom.spec.block_columns import BlockColumns
from transom.spec.errors import Issue
from transom.spec.impossible_conditions import own_where
from transom.spec.stream import Stream
from transom.spec.value_domains import Tested

COLUMNS = (
    "hour", "block", "window_end", "spell_id", "rank", "estimate", "low", "high", "window_records",
    "error_bound", "max_unreported", "watched", "change", "state", "entered", "since", "row_kind", "tick",
    "records", "other_item_count", "cells", "long", "place", "counters", "number", "least", "most",
)  # fmt: skip
"""Columns of `frequencies` and `tick_matrices` beside those of the item; and what is computed with them."""

NUMBER, SUB_CELL, ITEM = 8, 56, 100
"""Bytes: of a cell of a matrix, of a sub-cell, and about of an item that is kept."""


def problems(stream: Stream) -> Iterator[Issue]:
    """Yield what is wrong with the blocks of a stream, each of which is sound by itself."""
    for name, said in stream.blocks(Frequency).items():
        place = f"frequency.{name}"
        yield from item_rules.problems(place, said, stream, COLUMNS, "frequent item")
        yield from _memory(place, said, stream)


def _memory(place: str, said: Frequency, stream: Stream) -> Iterator[Issue]:
    """A task looks at the ticks of an hour, or at the hours of a run and of the window before them; one of a
    chain at all ticks of a run, and at what its cells hold at one hour's end, then at what they come to at
    the ends of all of them. A run may have stale hours to see to on either side of its chunk."""
    ticks, hours = HOUR // said.tick, (stream.chunk + 2 * stream.repair_window) // HOUR
    of_run = [f"a chunk of {format_duration(stream.chunk)}"]
    if stream.repair_window:
        of_run.append(f"{format_duration(stream.repair_window)} on either side")
    with_window = f"{hours + said.back} hours ({', '.join([*of_run, 'the window before'])})"
    ways = [(ticks, f"{ticks} ticks of an hour")]
    if said.variant not in CHAINED:
        ways.append((hours + said.back, with_window))
    elif said.variant == "vanilla":
        ways.append((hours, f"{hours} hours ({', '.join(of_run)})"))
    else:
        ways.append((ticks * hours, f"{ticks * hours} ticks ({', '.join(of_run)})"))
        ways.append((3 * hours, f"{hours} hours ({', '.join(of_run)}), with two bounds each"))
    many, of = max(ways)
    shape = said.shape
    # As many as a stream has whose rates stay: one that grows to M records has up to 1 + ln M times as many.
    sub_cells = math.ceil(shape.cells * (1 / said.exact_tau + 2)) if said.variant == "splitter" else 0
    matrices = shape.cells * NUMBER * many + sub_cells * SUB_CELL
    items = said.kept * (hours + said.back) * ITEM
    if matrices + items > said.memory * 2**20:
        field = "epsilon" if matrices >= items else "top" if said.kept == KEPT * said.top else "min_share"
        more = f", and {sub_cells:,} sub-cells" if sub_cells else ""
        what = (
            f"matrices of {shape.rows} rows and {shape.columns:,} columns for each of {of}{more}"
            if field == "epsilon"
            else f"{said.kept:,} items kept of each of {with_window}"
        )
        total = f"{format_bytes(matrices + items)} in all; memory is {said.memory} MiB"
        needs = (("chunk",), ("repair_window",))
        yield Issue(f"{place}.{field}", f"does not fit: {what}, {total}", needs)


def columns_read(stream: Stream) -> Iterator[BlockColumns]:
    """Yield what each block needs of the events."""
    return item_rules.columns_read(stream, stream.blocks(Frequency))


def lookback(stream: Stream) -> Iterator[tuple[str, timedelta]]:
    """Yield how far back each window reaches."""
    for name, block in stream.blocks(Frequency).items():
        yield f"the window of frequency {name}", (block.back + 1) * HOUR


def conditions(stream: Stream) -> Iterator[Tested]:
    """Yield the conditions of the blocks."""
    for name, block in stream.blocks(Frequency).items():
        yield from own_where(stream, f"frequency.{name}", block.where)
