"""The checks that transom makes of persistence, with their severities and bounds."""

from transom.features.items.check_list import items_short
from transom.spec.checks import BuiltIn

SHORT = "tracked_items_short"

CHECKS = {
    SHORT: items_short("persistence"),
    "tuples_expected": BuiltIn(
        "persistence",
        "error",
        "an hour starts as many tuples as chance has it of its pairs of an item and a slot, at most six "
        "deviations off",
    ),
    "tuples_in_window": BuiltIn(
        "persistence", "error", "every tuple starts in the window that ends with its hour's slot"
    ),
    "slots_counted": BuiltIn("persistence", "error", "every tuple counts as many slots as it has bits"),
    "persistence_bounded": BuiltIn(
        "persistence",
        "error",
        "what is told of an item is in its bounds: seen in no more slots than the window has, and in as many "
        "as the guarantee asks for",
    ),
}
