"""The built-in checks of patterns, with their severities and bounds."""

from dataclasses import replace

from transom.spec.checks import BuiltIn

_MEANINGS = {
    "batches_within_bound": "no batch above level 0 has more than 2 max_records",
    "windows_within_bound": "no window of batches that keep to 2 max_records has more than 4 max_records",
    "work_within_bound": "detectors are shown no more records than theory allows, "
    "those of windows at level 0 with longer batches apart",
    "detector_ran": "a detector raises nowhere, and returns what it was shown",
    "episodes_inside_hour": "no episode reported in an hour ends after the hour",
    "matches_in_episodes": "an hour's episodes take every match of the hour once",
}
CHECKS = {name: BuiltIn("patterns", "error", meaning) for name, meaning in _MEANINGS.items()}
CHECKS["detector_ran"] = replace(CHECKS["detector_ran"], remedy="fix the detector")
