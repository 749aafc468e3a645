"""The events that a block of aggregates takes."""

from collections.abc import Sequence
from datetime import datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from transom.features.aggregates.resolve import AggregateBlock
from transom.storage.store import in_hours


def select_events(
    events: DataFrame, block: AggregateBlock, targets: Sequence[datetime], hours: Sequence[datetime]
) -> DataFrame:
    """The events of some hours that a block takes.

    Args:
        events: those of `hours`, of which `targets` are the block's.
    """
    if list(targets) != list(hours):
        events = events.where(in_hours(targets))
    return events if block.where is None else events.where(F.expr(block.where))
