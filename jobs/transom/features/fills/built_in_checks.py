"""The checks of fills, with their severities and rules."""

from transom.spec.checks import BuiltIn

CHECKS = {
    "fills_counted": BuiltIn(
        "fills", "error", "a few fills have as many rows as a plain filter finds between their ends"
    ),
}
