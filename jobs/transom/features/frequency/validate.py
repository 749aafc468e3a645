"""Validate blocks of frequency: the columns of their items, and their memory."""

import math
from collections.abc import Iterator
from datetime import timedelta

from transom.core.durations import format_bytes, format_duration
from transom.core.intervals import HOUR
from transom.features.frequency.spec import CAPACITY_FACTOR, CHAINED, Frequency
from transom.features.items import validate as item_rules
from transom.spec.errors import Issue
from transom.spec.stream import Stream

RESERVED = (
    # Columns of `frequencies` and `tick_matrices`, without the item.
    "hour", "block", "window_end", "spell_id", "rank", "estimate", "low", "high", "window_records",
    "error_bound", "max_unreported", "watched", "change", "state", "entered", "since", "row_kind", "tick",
    "records", "other_item_count", "cells",
    # Columns of intermediate rows.
    "long", "place", "counters", "number", "least", "most",
)  # fmt: skip
NUMBER, SUB_CELL, ITEM = 8, 56, 100
"""Bytes of a cell of a matrix, of a sub-cell, and approximately of a kept item."""


def problems(stream: Stream) -> Iterator[Issue]:
    """Yield the problems of the blocks of a stream, each of which is valid by itself."""
    for name, block in stream.blocks(Frequency).items():
        place = f"frequency.{name}"
        yield from item_rules.problems(place, block, stream, RESERVED, "frequent item")
        yield from _memory(place, block, stream)


def _memory(place: str, block: Frequency, stream: Stream) -> Iterator[Issue]:
    """Yield a problem if a task needs too much memory.

    A task has the matrices of the ticks of an hour, or of the hours of a run and of the window before them.
    If hours form a chain, a task has all ticks of a run and the cells at the end of one hour. Another one has
    the values of the cells at the end of each hour.
    """
    ticks, hours = HOUR // block.tick, (stream.chunk + 2 * stream.repair_window) // HOUR
    run = f"a chunk of {format_duration(stream.chunk)}"
    if stream.repair_window:
        run += f", {format_duration(stream.repair_window)} on either side"
    with_window = f"{hours + block.back} hours ({run}, the window before)"
    matrix_counts = [(ticks, f"{ticks} ticks of an hour")]
    if block.variant not in CHAINED:
        matrix_counts.append((hours + block.back, with_window))
    elif block.variant == "vanilla":
        matrix_counts.append((hours, f"{hours} hours ({run})"))
    else:
        matrix_counts.append((ticks * hours, f"{ticks * hours} ticks ({run})"))
        matrix_counts.append((3 * hours, f"{hours} hours ({run}), with two bounds each"))
    count, of = max(matrix_counts)
    shape = block.shape
    # For constant rates: a stream that grows to M records has up to 1 + ln M times as many.
    sub_cells = math.ceil(shape.cells * (1 / block.exact_tau + 2)) if block.variant == "splitter" else 0
    matrices = shape.cells * NUMBER * count + sub_cells * SUB_CELL
    items = block.capacity * (hours + block.back) * ITEM
    if matrices + items <= block.memory * 2**20:
        return
    if matrices >= items:
        field, more = "epsilon", f", and {sub_cells:,} sub-cells" if sub_cells else ""
        what = f"matrices of {shape.rows} rows and {shape.columns:,} columns for each of {of}{more}"
    else:
        field = "top" if block.capacity == CAPACITY_FACTOR * block.top else "min_share"
        what = f"{block.capacity:,} items kept of each of {with_window}"
    total = f"{format_bytes(matrices + items)} in all; memory is {block.memory} MiB"
    yield Issue(f"{place}.{field}", f"does not fit: {what}, {total}", (("chunk",), ("repair_window",)))


def lookback(stream: Stream) -> Iterator[tuple[str, timedelta]]:
    """Yield how far back each window reaches, with a text for why."""
    for name, block in stream.blocks(Frequency).items():
        yield f"the window of frequency {name}", (block.back + 1) * HOUR
