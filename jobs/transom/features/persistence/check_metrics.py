"""Metrics and filters of the checks of persistence."""

from collections.abc import Callable, Mapping
from math import sqrt
from typing import Any

import numpy as np

from transom.core.intervals import HOUR_LENGTH
from transom.features.persistence.algorithm.vectorised import Tuples
from transom.features.persistence.resolve import PersistenceBlock

PAIRS, STARTS, MISCOUNTED = "pairs", "tuples_started", "tuples_miscounted"
DEVIATIONS = 6
"""Allowed difference from the expected number of tuples: this number of standard deviations, plus this
number. An hour exceeds it with a probability of at most 10^-8."""


def excess_tuples(blocks: Mapping[str, PersistenceBlock]) -> Callable[[Mapping[str, Any]], float]:
    """Return a metric: how far the number of tuples started in an hour is beyond the allowed difference."""

    def of(row: Mapping[str, Any]) -> float:
        tracking = blocks[row["block"]].tracking
        tau, trials = float(tracking.params.tau), row[PAIRS] * tracking.params.instances
        off = row[STARTS] - trials * tau
        # Pairs of a slot that began in an earlier hour may have started tuples there, so too few is no error.
        off = abs(off) if tracking.length <= HOUR_LENGTH else off
        return float(max(0.0, off - DEVIATIONS * (sqrt(trials * tau * (1 - tau)) + 1)))

    return of


def miscounted(tuples: Tuples) -> int:
    """Return the number of tuples whose count differs from their bits, or whose last slot precedes the
    first."""
    bits = np.bitwise_count(tuples.slots).sum(axis=1)
    return int(np.count_nonzero((bits != tuples.counted) | (tuples.latest < tuples.start)))


def _violated(blocks: Mapping[str, PersistenceBlock], rule: Callable[[PersistenceBlock], str]) -> str:
    """Return the condition, as Spark SQL, that a row of any block violates the block's rule."""
    cases = [f"(`block` = '{name}' AND NOT ({rule(block)}))" for name, block in blocks.items()]
    return f"({' OR '.join(cases) or 'false'})"


def outside(blocks: Mapping[str, PersistenceBlock]) -> str:
    """Return the condition, as Spark SQL, that a tuple does not start in the window that ends with its hour's
    slot."""

    def inside(block: PersistenceBlock) -> str:
        start, length = "unix_micros(`start`)", block.tracking.length
        latest = f"((unix_micros(`hour`) + {HOUR_LENGTH - 1}L) div {length}L * {length}L)"
        return f"{start} > {latest} - {block.tracking.params.slots * length} AND {start} <= {latest}"

    return f"`row_kind` = 'tuple' AND {_violated(blocks, inside)}"


def violates_window(blocks: Mapping[str, PersistenceBlock]) -> str:
    """Return the condition, as Spark SQL, that an item's values are impossible in its window, or too small
    for a report."""

    def sound(block: PersistenceBlock) -> str:
        slots, least = block.tracking.params.slots, block.tracking.params.min_reported
        return (
            f"`low` >= 1 AND `low` <= `high` AND `high` <= {slots} AND `estimate` >= `low` "
            f"AND `estimate` <= `high` AND (`watched` OR `low` >= {least}) AND length(`slots`) = {slots} "
            "AND length(regexp_replace(`slots`, '[^1]', '')) = `low`"
        )

    return f"`low` IS NOT NULL AND {_violated(blocks, sound)}"
