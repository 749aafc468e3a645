"""Metrics and filters of the checks of frequency."""

from collections.abc import Callable, Mapping
from math import log
from typing import Any

from transom.features.frequency.resolve import FrequencyBlock

MISCOUNTED, SUB_CELLS, WINDOW, TOTALS = "matrices_miscounted", "sub_cells", "cells_records", "totals_off"
UNSOUND = (
    "`low` IS NOT NULL AND NOT (`low` >= 0 AND `low` <= `estimate` AND `estimate` <= `high` "
    "AND `high` <= `window_records` AND `rank` >= 1)"
)
"""The condition, as Spark SQL, that an item's numbers contradict each other."""


def excess_sub_cells(blocks: Mapping[str, FrequencyBlock]) -> Callable[[Mapping[str, Any]], float]:
    """Return a metric: the number of sub-cells above the maximum of `splitter`.

    A row has at most `c2 / tau` complete sub-cells if the number of records in the window is constant (lemma
    1), and `(1 + ln M) c2 / tau` if it grows to M. Each cell also has an oldest and a newest one.
    """

    def of(row: Mapping[str, Any]) -> float:
        block = blocks[row["block"]]
        maximum = block.shape.cells * ((1 + log(max(row[WINDOW], 1))) / float(block.tau) + 2)
        return float(max(0.0, row[SUB_CELLS] - maximum))

    return of
