"""The registration of the feature: all that the rest of transom uses of it."""

from transom.features.aggregates import built_in_checks, describe, fingerprints, validate
from transom.features.aggregates.output_columns import aggregate_types, columns_read, sound
from transom.features.aggregates.spec import Aggregation
from transom.spec.feature import Feature, FindingOrder, lazy
from transom.spec.stream import Stream

FEATURE: Feature[Stream] = Feature(
    name="aggregates",
    block=Aggregation,
    meaning="Measures of each key over sliding windows of several granularities.",
    noun="aggregate",
    rows="figures",
    doc="Computes aggregates of events over sliding windows.",
    outlets=("aggregates", "recurring", "alerts"),
    optional_outlets={
        "recurring": lambda stream: any(block.recurring for block in stream.blocks(Aggregation).values()),
        "alerts": lambda stream: any(block.alert for block in stream.blocks(Aggregation).values()),
    },
    upstream=lambda stream: "ingest",
    problems=validate.problems,
    columns_read=columns_read,
    lookback=validate.lookback,
    conditions=validate.conditions,
    definition=lazy("transom.features.aggregates.stage:definition"),
    fingerprints={
        "granules": fingerprints.granules,
        "aggregates": fingerprints.aggregates,
        "item_granules": fingerprints.item_granules,
        "recurring": fingerprints.recurring,
        "alerts": fingerprints.alerts,
    },
    labels=describe.LABELS,
    checks=built_in_checks.CHECKS,
    summary=describe.summary,
    facts=describe.facts,
    findings="transom.features.aggregates.findings:SOURCE",
    subject=lambda stream, name: stream.blocks(Aggregation)[name].key,
    finding_order=FindingOrder("alert", place=3),
    queries={
        "horizon": "transom.features.aggregates.queries:horizon",
        "horizons": "transom.features.aggregates.queries:horizons",
    },
    render=lazy("transom.features.aggregates.render:print_aggregates"),
    view=lazy("transom.features.aggregates.view:section"),
    of_key=lazy("transom.features.aggregates.view:section_of_key"),
    input_table="granules",
    row_types=lambda stream, block: aggregate_types(stream, block) if sound(stream, block) else None,
    optional_keys={"aggregates": ("fit", "aging")},
)
