"""The checks that transom makes of patterns, with their severities and bounds."""

from transom.spec.checks import BuiltIn

CHECKS = {
    "batches_within_bound": BuiltIn(
        "patterns", "error", "no batch above level 0 has more than 2 max_records"
    ),
    "windows_within_bound": BuiltIn(
        "patterns", "error", "no window of batches that keep to 2 max_records has more than 4 max_records"
    ),
    "work_within_bound": BuiltIn(
        "patterns",
        "error",
        "detectors are shown no more records than theory allows, those of windows at level 0 with longer "
        "batches apart",
    ),
    "detector_ran": BuiltIn(
        "patterns",
        "error",
        "a detector raises nowhere, and returns what it was shown",
        mended="mend the detector",
    ),
    "episodes_inside_hour": BuiltIn(
        "patterns", "error", "no episode that an hour tells of goes on after the hour"
    ),
    "matches_in_episodes": BuiltIn(
        "patterns", "error", "an hour's episodes take every match of the hour once"
    ),
}
