"""The checks of persistence, with their severities and rules."""

from transom.features.items.built_in_checks import item_checks

SHORT = "tracked_items_short"
RULES = {
    "tuples_expected": (
        "an hour starts as many tuples as chance has it of its pairs of an item and a slot, at most six "
        "deviations off"
    ),
    "tuples_in_window": "every tuple starts in the window that ends with its hour's slot",
    "slots_counted": "every tuple counts as many slots as it has bits",
    "persistence_bounded": (
        "what is reported of an item is in its bounds: seen in no more slots than the window has, and in as "
        "many as the guarantee requires"
    ),
}
CHECKS = item_checks("persistence", SHORT, RULES)
