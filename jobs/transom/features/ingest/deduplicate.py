"""Which events say again what another one of their hour says, by `unique` and by `time.on_duplicate_time`.

Only events of one hour are compared, so that what an hour's rows are depends on that hour's events alone,
and a late record makes no other hour stale. Which one stays is a matter of the rows themselves: of a total
order, never of the order in which files came.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from transom.core.durations import microseconds
from transom.spec.stream import Stream

IS_DUPLICATE = "__repeats"
ORDER = ("event_time", "source_id", "source_line")
"""The total order of events."""


def compares(stream: Stream) -> bool:
    """Whether events are compared at all, which takes a shuffle."""
    return stream.unique is not None or _has_ties(stream)


def _has_ties(stream: Stream) -> bool:
    return stream.time is not None and stream.time.on_duplicate_time in ("first", "last")


def mark_duplicates(rows: DataFrame, stream: Stream) -> DataFrame:
    """Rows with a column that says which of them repeat others: by `unique`, and of those that are left, by
    `on_duplicate_time`.

    Args:
        rows: events, and all of an hour's where there is one of it.
    """
    repeats = F.lit(False)
    if stream.unique is not None:
        repeats = _repeats_record(stream)
    marked = rows.withColumn(IS_DUPLICATE, repeats)
    if _has_ties(stream):
        marked = marked.withColumn(IS_DUPLICATE, F.col(IS_DUPLICATE) | _repeats_turn(stream))
    return marked


def _repeats_record(stream: Stream) -> Column:
    """Whether an event agrees with an earlier one, or one of a larger value, in all unique columns. One
    that lacks one of them is in a group of its own."""
    unique = stream.unique
    assert unique is not None
    columns = [F.col(f"`{name}`") for name in unique.columns]
    lacks = F.greatest(*(column.isNull() for column in columns), F.lit(False))
    alone = [F.when(lacks, F.col(name)) for name in ("source_id", "source_line")]
    largest = [F.desc_nulls_last(f"`{unique.longest}`")] if unique.longest else []
    window = Window.partitionBy("hour", *columns, *alone).orderBy(*largest, *ORDER)
    return F.row_number().over(window) > 1


def _repeats_turn(stream: Stream) -> Column:
    """Whether an event is not the first, or the last, of its key and turn. Those that are out already are in
    groups of their own."""
    time = stream.time
    assert time is not None
    assert time.interval is not None
    since = F.unix_micros("event_time")
    turn = since - F.pmod(since, F.lit(microseconds(time.interval)))
    order = [F.desc(name) if time.on_duplicate_time == "last" else F.asc(name) for name in ORDER]
    key = [F.col(f"`{name}`") for name in stream.key]
    window = Window.partitionBy("hour", turn, *key, IS_DUPLICATE).orderBy(*order)
    return F.row_number().over(window) > 1
