"""The registration of the feature: all that the rest of transom uses of it."""

from transom.features.patterns import built_in_checks, describe, fingerprints, spec_rules, validate
from transom.features.patterns.spec import Pattern
from transom.spec.feature import Feature, FindingMeaning, FindingOrder, lazy
from transom.spec.stream import Stream

FEATURE: Feature[Stream] = Feature(
    name="patterns",
    block=Pattern,
    meaning="Episodes of several steps, minutes or days apart, in the events of each key.",
    noun="pattern",
    rows="episodes",
    doc="Events become what patterns match in windows that widen, and episodes.",
    outlets=("matches", "episodes"),
    upstream=lambda stream: "ingest",
    block_problems=spec_rules.problems,
    problems=validate.problems,
    columns_read=validate.columns_read,
    lookback=validate.lookback,
    conditions=validate.all_conditions,
    definition=lazy("transom.features.patterns.stage:definition"),
    fingerprints={
        "batches": fingerprints.batches,
        "matches": fingerprints.matches,
        "episodes": fingerprints.episodes,
    },
    labels=describe.LABELS,
    checks=built_in_checks.CHECKS,
    summary=describe.summary,
    facts=describe.facts,
    findings="transom.features.patterns.findings:SOURCE",
    finding_meaning=FindingMeaning(growth=describe.growth),
    subject=lambda stream, name: stream.blocks(Pattern)[name].key,
    finding_order=FindingOrder("episode", place=2, urgent=True, latest_first=True),
    counters={"records_shown": ("record shown to detectors", "records shown to detectors")},
    render=lazy("transom.features.patterns.render:print_episodes"),
    view=lazy("transom.features.patterns.view:section"),
    records=lazy("transom.features.patterns.view:records"),
)
