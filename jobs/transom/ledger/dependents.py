"""Which hours are computed from an hour of a stage."""

from collections.abc import Callable, Iterable
from datetime import datetime

import numpy as np

from transom.core.exact_sums import Int64s
from transom.core.hour_sets import HourSet
from transom.core.intervals import number_of
from transom.core.partitions import TableKey
from transom.ledger.hour_arrays import first_in_ranges, spread_along_chain
from transom.ledger.stage import InputRange, Stage


def dependents_of(
    stages: Iterable[Stage],
    numbers: Int64s,
    spans: Callable[[InputRange], tuple[Int64s, Int64s]],
    source: Iterable[TableKey],
    stage: str,
    hour: datetime,
) -> dict[str, HourSet]:
    """Return the required hours of each stage that are computed from an hour of a stage, directly or not.

    Args:
        stages: the stages, in the order in which they run, without the source stage.
        numbers: the hours since the epoch that every table must have, ascending.
        spans: returns the first and the last hour that each of them reads.
        source: the tables of the source stage.
        stage: the stage.
        hour: the hour; it is no dependent in its own stage.
    """
    changed = np.array([number_of(hour)])
    reached: dict[TableKey, Int64s] = {table: changed for table in source if table[0] == stage}
    dependents: dict[str, HourSet] = {}
    for other in stages:
        of_stage = np.zeros(len(numbers), dtype=bool)
        for step in other.steps:
            outputs = {(other.name, block, step.table.name): part for block, part in step.outputs.items()}
            for table, part in outputs.items():
                which = (numbers == changed[0]) & (other.name == stage)
                for reads in part.reads:
                    if len(of := reached.get(reads.series, changed[:0])):
                        which |= first_in_ranges(of, *spans(reads))[0]
                for reads in part.reads:
                    if reads.series == table:
                        which = spread_along_chain(which, numbers, reads.back)
                reached[table] = numbers[which]
                of_stage |= which
        of_stage &= (numbers != changed[0]) | (other.name != stage)
        if of_stage.any():
            dependents[other.name] = HourSet.of_numbers(numbers[of_stage])
    return dependents
