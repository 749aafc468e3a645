"""The feature `persistence`, as the rest of transom sees it."""

from functools import partial

from transom.features.items import validate as item_rules
from transom.features.persistence import built_in_checks, describe, fingerprints, validate
from transom.features.persistence.spec import Persistence
from transom.spec.feature import Feature, FindingMeaning, lazy
from transom.spec.stream import Stream

FEATURE: Feature[Stream] = Feature(
    name="persistence",
    block=Persistence,
    meaning="Items that appear in most slots of a window, however rarely in each.",
    noun="persistence",
    rows="sketches",
    doc="Events become items that appear all the time, in little memory.",
    outlets=("persistent_items",),
    upstream=lambda stream: "ingest",
    problems=validate.problems,
    columns_read=lambda stream: item_rules.columns_read(stream, stream.blocks(Persistence)),
    lookback=validate.lookback,
    conditions=lambda stream: item_rules.conditions(stream, "persistence", stream.blocks(Persistence)),
    definition=lazy("transom.features.persistence.stage:definition"),
    fingerprints={"tuples": fingerprints.tuples, "persistent_items": fingerprints.persistent_items},
    labels=describe.LABELS,
    optional_keys={"persistent_items": ("ignore_left",)},
    checks=built_in_checks.CHECKS,
    summary=describe.summary,
    facts=describe.facts,
    findings="transom.features.persistence.findings:SOURCE",
    finding_meaning=FindingMeaning(
        window=lambda stream, name: stream.blocks(Persistence)[name].window,
        unit=describe.unit,
        evidence=describe.evidence,
        picture=lazy("transom.features.persistence.view:picture"),
    ),
    subject=lambda stream, name: stream.blocks(Persistence)[name].item,
    render=lazy("transom.features.persistence.render:print_persistent_items"),
    view=lazy("transom.features.persistence.view:section"),
    last_report=partial(
        lazy("transom.features.items.last_report:last_report"), "persistence", "persistent_items"
    ),
    audit=lazy("transom.features.persistence.audit:audit"),
    gauges=lazy("transom.features.persistence.stage:epsilons"),
    inherits=lambda block: frozenset(("where",)),
)
