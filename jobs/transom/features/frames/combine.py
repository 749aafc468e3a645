"""What is made of several values, which are few and of one time: the same whatever their order was."""

from pyspark.sql import Column
from pyspark.sql import functions as F

from transom.features.frames.spec import Combination


def reduce_values(values: Column, take: Combination) -> Column:
    """What is made of ordered values; null of none.

    Args:
        values: arrays, as `array_sort` leaves them, without nulls.
    """
    many = F.size(values)
    match take:
        case "min":
            found = F.element_at(values, 1)
        case "max":
            found = F.element_at(values, -1)
        case "mean":
            total = F.aggregate(values, F.lit(0.0), lambda total, value: total + value.cast("double"))
            found = total / many
        case "median":
            low, high = (F.get(values, F.floor((many - one) / 2).cast("int")) for one in (1, 0))
            found = (low + high) / 2
    return F.when(many > 0, found)
