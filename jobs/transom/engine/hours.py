"""Hours of a request, granules of events, and columns by their names."""

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np

from transom.core.exact_sums import Int64s
from transom.core.intervals import HOUR, MICROSECOND, Interval, merge_hours, micros
from transom.ledger.stage import StepRequest

if TYPE_CHECKING:
    from pyspark.sql import Column


def hours_of(request: StepRequest) -> list[datetime]:
    """Every hour that some block computes, in order."""
    return sorted({hour for targets in request.targets.values() for hour in targets})


def granule(length: int) -> "Column":
    """The start of an event's granule.

    Args:
        length: in microseconds.
    """
    from pyspark.sql import functions as F

    time = F.unix_micros("event_time")
    return F.timestamp_micros(time - F.pmod(time, F.lit(length))).alias("granule")


def quoted(names: Iterable[str]) -> "list[Column]":
    """Columns by their names, whatever these are."""
    from pyspark.sql import functions as F

    return [F.col(f"`{name}`") for name in names]


def to_ranges(targets: Iterable[datetime]) -> list[tuple[int, int]]:
    """Hours as `Granules.windows` takes them."""
    return [(micros(stretch.start), micros(stretch.end)) for stretch in merge_hours(targets)]


def extend_back(targets: Iterable[datetime], back: int) -> set[datetime]:
    """Hours, and as many before each of them."""
    stretches = (Interval(stretch.start - back * HOUR, stretch.end) for stretch in merge_hours(targets))
    return {hour for stretch in stretches for hour in stretch.hours()}


def incomplete_hours(request: StepRequest, block: str) -> Int64s:
    """The hours of what a block reads in which something is missing, in microseconds, ordered."""
    return np.array(sorted(map(micros, request.incomplete[block])), dtype=np.int64)


def hour_number() -> "Column":
    """The number of a row's hour since 1970."""
    from pyspark.sql import functions as F

    return F.expr(f"unix_micros(hour) div {HOUR // MICROSECOND}L").alias("hour")
