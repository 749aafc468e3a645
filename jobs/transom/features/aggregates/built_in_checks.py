"""The built-in checks of aggregates, with their severities and bounds."""

from functools import partial

from transom.spec.checks import BuiltIn

_error = partial(BuiltIn, "aggregates", "error")

CHECKS = {
    "ends_inside_hour": _error("every window ends inside the hour that reports it"),
    "wide_covers_narrow": _error("a window counts at least what a narrower one with the same end counts"),
    "wide_holds_extremes": _error(
        "a window's extremes are at least those of a narrower one with the same end"
    ),
    "granules_add_up": _error("an hour's granules count every event of the hour that the block takes"),
    "sums_exact": _error(
        "no sum is omitted; a sum that might not be exact is",
        advice="rows whose largest magnitude times their number of values reaches 2**62 units: a coarser "
        "resolution or unit helps",
    ),
    "lines_exact": _error(
        "no line is omitted; a line that might not be exact is",
        advice="windows with a unit whose value reaches 2**42 steps of its column's resolution: a coarser "
        "resolution helps",
    ),
    "recurring_in_every_ring": _error(
        "no item is recurring that is missing in a ring between neighbouring levels"
    ),
    "lines_of_two": _error("no line goes through fewer than two units"),
}
