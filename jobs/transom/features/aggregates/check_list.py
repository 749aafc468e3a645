"""The checks that transom makes of aggregates, with their severities and bounds."""

from transom.spec.checks import BuiltIn

CHECKS = {
    "ends_inside_hour": BuiltIn("aggregates", "error", "every window ends inside the hour that reports it"),
    "wide_covers_narrow": BuiltIn(
        "aggregates", "error", "a window counts at least what a narrower one with the same end counts"
    ),
    "wide_holds_extremes": BuiltIn(
        "aggregates", "error", "a window's extremes are at least those of a narrower one with the same end"
    ),
    "granules_add_up": BuiltIn(
        "aggregates", "error", "an hour's granules count every event of the hour that the block takes"
    ),
    "sums_exact": BuiltIn(
        "aggregates",
        "error",
        "no sum is left out, which one is where it might not be exact",
        advice="rows whose largest magnitude times their number of values reaches 2**62 units: a coarser "
        "resolution or unit helps",
    ),
    "lines_exact": BuiltIn(
        "aggregates",
        "error",
        "no line is left out, which one is where it might not be exact",
        advice="windows with a unit whose value reaches 2**42 steps of its column's resolution: a coarser "
        "resolution helps",
    ),
    "recurring_in_every_ring": BuiltIn(
        "aggregates", "error", "no item is recurring that is missing in a ring between neighbouring levels"
    ),
    "lines_of_two": BuiltIn("aggregates", "error", "no line goes through fewer than two units"),
}
