"""What the gate of sketches asks of frequency: whether every record is in every row of its matrix, and
whether what is told keeps to its bounds."""

from collections.abc import Callable, Mapping
from math import log
from typing import Any

from transom.engine.check_builders import built_in
from transom.features.frequency.check_list import SHORT
from transom.features.frequency.resolve import FrequencyBlock
from transom.features.items.tables import LONG
from transom.ledger.check import Check
from transom.spec.stream import Stream

MISCOUNTED, SUB_CELLS, WINDOW, TOTALS = "matrices_miscounted", "sub_cells", "cells_records", "totals_off"
UNSOUND = (
    "`low` IS NOT NULL AND NOT (`low` >= 0 AND `low` <= `estimate` AND `estimate` <= `high` "
    "AND `high` <= `window_records` AND `rank` >= 1)"
)
"""Whether the numbers of an item are beyond their bounds."""


def matrix_checks(stream: Stream) -> tuple[Check, ...]:
    """Those of matrices."""
    return (
        *built_in(stream, "rows_counted", metric=MISCOUNTED, at_most=0),
        *built_in(stream, SHORT, metric=LONG, at_most=0),
    )


def frequency_checks(stream: Stream) -> tuple[Check, ...]:
    """Those of the frequencies that are reported."""
    return (
        *built_in(stream, "frequency_bounded", metric="frequency_unsound", at_most=0),
        *built_in(stream, "totals_kept", metric=TOTALS, at_most=0),
    )


def cell_checks(stream: Stream) -> tuple[Check, ...]:
    """Those of what cells hold."""
    return built_in(stream, "sub_cells_bounded", metric="sub_cells_beyond", at_most=0)


def excess_sub_cells(blocks: Mapping[str, FrequencyBlock]) -> Callable[[Mapping[str, Any]], float]:
    """How many sub-cells there are besides what theory allows.

    A row has at most `c2 / tau` that have as many records as one has to have before another is begun, of a
    window whose records are as many all the time (lemma 1); of one that grows to M records, at most
    `(1 + ln M) c2 / tau`, as each then has a share `tau / c2` of all records up to its end. Besides these a
    cell has the oldest, part of which is taken away, and the newest.
    """

    def of(row: Mapping[str, Any]) -> float:
        block = blocks[row["block"]]
        most = block.shape.cells * ((1 + log(max(row[WINDOW], 1))) / float(block.tau) + 2)
        return float(max(0.0, row[SUB_CELLS] - most))

    return of
