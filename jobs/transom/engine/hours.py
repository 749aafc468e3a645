"""Hours of a request, events and their granules, and columns by name."""

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np

from transom.core.exact_sums import Int64s
from transom.core.intervals import HOUR, HOUR_LENGTH, Interval, merge_hours, micros
from transom.ledger.stage import StepRequest

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from transom.storage.store import PinnedTables


def hours_of(request: StepRequest) -> list[datetime]:
    """Return every hour that some block computes, in order."""
    return sorted({hour for targets in request.targets.values() for hour in targets})


def read_events(
    pins: "PinnedTables", hours: Iterable[datetime], columns: Iterable[str], *conditions: str | None
) -> "DataFrame":
    """Return the events of some hours, with the columns that a block needs and perhaps more.

    Args:
        pins: the tables.
        hours: the hours.
        columns: the columns that the block names.
        conditions: its SQL. What it may mention is needed, too: each column whose name is in the text, and
            all columns if it has an asterisk.
    """
    text = "\n".join(filter(None, conditions)).casefold()
    mentioned = (name for name in pins.columns("events") if "*" in text or name.casefold() in text)
    return pins.read("events", hours, {"hour", *columns, *mentioned})


def granule(length: int) -> "Column":
    """Return the start of an event's granule.

    Args:
        length: the length of a granule, in microseconds.
    """
    from pyspark.sql import functions as F

    time = F.unix_micros("event_time")
    return F.timestamp_micros(time - F.pmod(time, F.lit(length))).alias("granule")


def quoted(names: Iterable[str]) -> "list[Column]":
    """Return columns by their names, which may contain any characters."""
    from pyspark.sql import functions as F

    return [F.col(f"`{name}`") for name in names]


def to_ranges(targets: Iterable[datetime]) -> list[tuple[int, int]]:
    """Return hours as ranges `(start, stop)` in microseconds since the epoch."""
    return [(micros(interval.start), micros(interval.end)) for interval in merge_hours(targets)]


def extend_back(targets: Iterable[datetime], back: int) -> set[datetime]:
    """Return hours and the `back` hours before each."""
    intervals = (Interval(interval.start - back * HOUR, interval.end) for interval in merge_hours(targets))
    return {hour for interval in intervals for hour in interval.hours()}


def incomplete_hours(request: StepRequest, block: str) -> Int64s:
    """Return the incomplete hours that a block reads, in microseconds since the epoch, sorted."""
    return np.array(sorted(map(micros, request.incomplete[block])), dtype=np.int64)


def hour_number() -> "Column":
    """Return the number of a row's hour since the epoch, as the column `hour`."""
    from pyspark.sql import functions as F

    return F.expr(f"unix_micros(hour) div {HOUR_LENGTH}L").alias("hour")
