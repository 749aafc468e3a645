"""What the rest of transom knows of the feature."""

from transom.features.persistence import check_list, describe, fingerprints, validate
from transom.features.persistence.spec import Persistence
from transom.spec.feature import Feature, lazy
from transom.spec.stream import Stream

FEATURE: Feature[Stream] = Feature(
    name="persistence",
    block=Persistence,
    meaning="Items that are there all the time, however rarely each time.",
    noun="persistence",
    rows="sketches",
    doc="Events become items that are there all the time, in little memory.",
    outlets=("persistent_items",),
    upstream=lambda stream: "ingest",
    problems=validate.problems,
    columns_read=validate.columns_read,
    lookback=validate.lookback,
    conditions=validate.conditions,
    definition=lazy("transom.features.persistence.stage:definition"),
    fingerprints={
        "tuples": fingerprints.tuples,
        "persistent_items": fingerprints.persistent_items,
    },
    labels=describe.LABELS,
    checks=check_list.CHECKS,
    summary=describe.summary,
    facts=describe.facts,
    findings="transom.features.persistence.findings:SOURCE",
    render=lazy("transom.features.persistence.render:print_persistent_items"),
    audit=lazy("transom.features.persistence.audit:audit"),
    gauges=lazy("transom.features.persistence.stage:epsilons"),
    inherits=lambda block: frozenset(("where",)),
)
