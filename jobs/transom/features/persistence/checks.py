"""What the gate of sketches asks of persistence: whether what is remembered is what chance and the window
allow, and whether what is told keeps to its bounds."""

from collections.abc import Callable, Mapping
from math import sqrt
from typing import Any

import numpy as np

from transom.core.intervals import HOUR_LENGTH
from transom.engine.check_builders import built_in
from transom.features.items.tables import LONG
from transom.features.persistence.algorithm.vectorised import Tuples
from transom.features.persistence.check_list import SHORT
from transom.features.persistence.resolve import PersistenceBlock
from transom.ledger.check import Check
from transom.spec.stream import Stream

PAIRS, STARTS, MISCOUNTED = "pairs", "tuples_started", "tuples_miscounted"
DEVIATIONS = 6
"""Standard deviations, and as many more, that as many tuples may be started besides what is expected: in an
hour more are with a probability of 10^-8 or less."""


def tuple_checks(stream: Stream) -> tuple[Check, ...]:
    """Those of what is remembered."""
    return (
        *built_in(stream, "tuples_expected", metric="tuples_beyond", at_most=0),
        *built_in(stream, "tuples_in_window", metric="tuples_outside", at_most=0),
        *built_in(stream, "slots_counted", metric="tuples_miscounted", at_most=0),
        *built_in(stream, SHORT, metric=LONG, at_most=0),
    )


def excess_tuples(blocks: Mapping[str, PersistenceBlock]) -> Callable[[Mapping[str, Any]], float]:
    """How many tuples besides what chance allows an hour has started, or too few."""

    def of(row: Mapping[str, Any]) -> float:
        tracking = blocks[row["block"]].tracking
        tau, many = float(tracking.params.tau), row[PAIRS] * tracking.params.instances
        allowed = DEVIATIONS * (sqrt(many * tau * (1 - tau)) + 1)
        off = row[STARTS] - many * tau
        # Of a slot that has begun in an earlier hour nobody has noted that it was counted there.
        return float(max(0.0, (abs(off) if tracking.length <= HOUR_LENGTH else off) - allowed))

    return of


def miscounted(tuples: Tuples) -> int:
    """How many tuples have counted another number of slots than they have bits, or one behind the last."""
    bits = np.bitwise_count(tuples.slots).sum(axis=1)
    return int(np.count_nonzero((bits != tuples.counted) | (tuples.latest < tuples.start)))


def outside(blocks: Mapping[str, PersistenceBlock]) -> str:
    """Return whether a tuple does not start in the window that ends with its hour's slot; null of other
    rows."""
    cases = []
    for name, block in blocks.items():
        length, slots = block.tracking.length, block.tracking.params.slots
        latest = f"((unix_micros(`hour`) + {HOUR_LENGTH - 1}L) div {length}L * {length}L)"
        start = "unix_micros(`start`)"
        inside = f"{start} > {latest} - {slots * length} AND {start} <= {latest}"
        cases.append(f"(`block` = '{name}' AND NOT ({inside}))")
    return f"`row_kind` = 'tuple' AND ({' OR '.join(cases) or 'false'})"


def violates_window(blocks: Mapping[str, PersistenceBlock]) -> str:
    """Return whether the numbers of an item are beyond what its window allows, or not enough to report it."""
    cases = []
    for name, block in blocks.items():
        asked = block.tracking.params
        rules = (
            "`low` >= 1",
            "`low` <= `high`",
            f"`high` <= {asked.slots}",
            "`estimate` >= `low`",
            "`estimate` <= `high`",
            f"(`watched` OR `low` >= {asked.min_reported})",
            f"length(`slots`) = {asked.slots}",
            "length(regexp_replace(`slots`, '[^1]', '')) = `low`",
        )
        cases.append(f"(`block` = '{name}' AND NOT ({' AND '.join(rules)}))")
    return f"`low` IS NOT NULL AND ({' OR '.join(cases) or 'false'})"
