"""The checks that transom makes of frequency, with their severities and bounds."""

from transom.features.items.check_list import items_short
from transom.spec.checks import BuiltIn

SHORT = "counted_items_short"

CHECKS = {
    SHORT: items_short("frequency"),
    "rows_counted": BuiltIn(
        "frequency", "error", "every row of a tick's matrix holds all records of the tick, each once"
    ),
    "sub_cells_bounded": BuiltIn("frequency", "error", "cells have no more sub-cells than theory allows"),
    "frequency_bounded": BuiltIn(
        "frequency",
        "error",
        "what is told of an item is in its bounds, and no more than the window's records",
    ),
    "totals_kept": BuiltIn(
        "frequency",
        "error",
        "every row of a window's matrix adds up to the window's records; of splitter, may",
    ),
}
