"""The checks of frames, with their severities and rules."""

from transom.spec.checks import BuiltIn

CHECKS = {
    "frames_keep_rules": BuiltIn(
        "frames", "error", "every frame satisfies its kind: its lengths, and the aggregate of its values"
    ),
    "frames_counted": BuiltIn(
        "frames",
        "error",
        "frames hold as many readings as lie between their ends, all of which meet a threshold",
    ),
    "sums_grow": BuiltIn(
        "frames",
        "warning",
        "in frames that end when their sum reaches a bound, no value leads away from it",
        advice="values of the other sign, with which the sum may never get there, are in the sample",
    ),
    "frames_apart": BuiltIn(
        "frames", "error", "no two frames of a key overlap, where they are of a kind that cannot"
    ),
    "frames_exact": BuiltIn(
        "frames",
        "error",
        "no mean is omitted; the mean of a sum that might not be exact is",
        advice="frames whose largest magnitude times their number of values reaches 2**62 steps of the "
        "column's resolution: a coarser one helps",
    ),
}
