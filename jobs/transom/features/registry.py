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
INGEST_OUTLETS = ("events", "duplicates", "rejected", "files")
"""The tables of results that ingest writes."""
