"""Mark duplicate events, by `unique` and by `time.on_duplicate_time`.

Only events of the same hour are compared. So the rows of an hour depend on its own events, and a late record
makes no other hour stale. A total order of the rows decides which one stays, not the order of arrival.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from transom.core.durations import microseconds
from transom.spec.stream import Stream

IS_DUPLICATE = "__repeats"
ORDER = ("event_time", "source_id", "source_line")
"""The total order of events."""


def compares(stream: Stream) -> bool:
    """Return whether events are compared, which needs a shuffle."""
    return stream.unique is not None or _compares_times(stream)


def _compares_times(stream: Stream) -> bool:
    return stream.time is not None and stream.time.on_duplicate_time in ("first", "last")


def mark_duplicates(rows: DataFrame, stream: Stream) -> DataFrame:
    """Return all events with the column `IS_DUPLICATE`: by `unique`, and among the rest by
    `on_duplicate_time`."""
    rows = rows.withColumn(IS_DUPLICATE, F.lit(False) if stream.unique is None else _repeats_record(stream))
    if _compares_times(stream):
        rows = rows.withColumn(IS_DUPLICATE, F.col(IS_DUPLICATE) | _repeats_time(stream))
    return rows


def _repeats_record(stream: Stream) -> Column:
    """Return whether an event equals an earlier one in all unique columns.

    The event with the largest `longest` stays; of several, the first. An event with a null in a unique column
    equals no other.
    """
    unique = stream.unique
    assert unique is not None
    columns = [F.col(f"`{name}`") for name in unique.columns]
    lacks = F.greatest(*(column.isNull() for column in columns), F.lit(False))
    alone = [F.when(lacks, F.col(name)) for name in ("source_id", "source_line")]
    largest = [F.desc_nulls_last(f"`{unique.longest}`")] if unique.longest else []
    window = Window.partitionBy("hour", *columns, *alone).orderBy(*largest, *ORDER)
    return F.row_number().over(window) > 1


def _repeats_time(stream: Stream) -> Column:
    """Return whether an event is not the first (or the last) of its key and time slot.

    Duplicates by `unique` are a group of their own.
    """
    time = stream.time
    assert time is not None
    assert time.interval is not None
    since = F.unix_micros("event_time")
    slot = since - F.pmod(since, F.lit(microseconds(time.interval)))
    order = [F.desc(name) if time.on_duplicate_time == "last" else F.asc(name) for name in ORDER]
    key = [F.col(f"`{name}`") for name in stream.key]
    window = Window.partitionBy("hour", slot, *key, IS_DUPLICATE).orderBy(*order)
    return F.row_number().over(window) > 1
