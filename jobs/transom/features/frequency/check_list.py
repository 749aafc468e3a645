"""The checks that transom makes of frequency, with their severities and bounds."""

from transom.features.items import check_list as items
from transom.spec.checks import BuiltIn

CHECKS = {
    **items.CHECKS,
    "rows_counted": BuiltIn(
        "sketch", "error", "every row of a tick's matrix holds all records of the tick, each once"
    ),
    "sub_cells_bounded": BuiltIn("sketch", "error", "cells have no more sub-cells than theory allows"),
    "frequency_bounded": BuiltIn(
        "sketch", "error", "what is told of an item is in its bounds, and no more than the window's records"
    ),
    "totals_kept": BuiltIn(
        "sketch", "error", "every row of a window's matrix adds up to the window's records; of splitter, may"
    ),
}
