"""The only list of features, in the order in which their stages run."""

from transom.features.aggregates import feature as aggregates
from transom.features.fills import feature as fills
from transom.features.frames import feature as frames
from transom.features.frequency import feature as frequency
from transom.features.patterns import feature as patterns
from transom.features.persistence import feature as persistence
from transom.spec.feature import Feature
from transom.spec.stream import Stream
from transom.spec.stream_fields import built_in_of

FEATURES: tuple[Feature[Stream], ...] = (
    patterns.FEATURE,
    aggregates.FEATURE,
    frames.FEATURE,
    fills.FEATURE,
    persistence.FEATURE,
    frequency.FEATURE,
)
STAGES = ("ingest", *(feature.name for feature in FEATURES))
"""Every stage, in the order in which they run."""
BUILT_IN = built_in_of(FEATURES)
"""Every check that transom makes, by name."""
FINDING_ORDER = tuple(feature.finding_order for feature in FEATURES if feature.finding_order is not None)
"""Where the kinds of findings come that do not come with all others."""
OUTLETS = {feature.name: feature.outlets for feature in FEATURES}
"""The tables of results of each feature."""
INGEST_OUTLETS = ("events", "duplicates", "rejected", "files")
"""The tables of results that ingest writes."""
INGEST_COUNTERS = {
    "files_read": ("file read", "files read"),
    "lines_rejected": ("line rejected", "lines rejected"),
    "files_conflicting": (
        "conflicting file",
        "conflicting files",
    ),
    "files_missing": ("file missing", "files missing"),
    "files_waiting": ("file waiting", "files waiting"),
}
"""What runs of ingest count that a person sees where it is not zero: one of it, and several."""
