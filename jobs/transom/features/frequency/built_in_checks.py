"""The checks of frequency, with their severities and rules."""

from transom.features.items.built_in_checks import item_checks

SHORT = "counted_items_short"
RULES = {
    "rows_counted": "every row of a tick's matrix holds all records of the tick, each once",
    "sub_cells_bounded": "cells have no more sub-cells than theory allows",
    "frequency_bounded": "each estimate lies within its bounds, and is at most the window's records",
    "totals_kept": "every row of a window's matrix adds up to the window's records; of splitter, may",
}
CHECKS = item_checks("frequency", SHORT, RULES)
