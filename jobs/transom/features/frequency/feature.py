"""The feature `frequency`, as the rest of transom sees it."""

from functools import partial

from transom.features.frequency import built_in_checks, describe, fingerprints, validate
from transom.features.frequency.spec import Frequency
from transom.features.items import validate as item_rules
from transom.spec.feature import Feature, FindingMeaning, lazy
from transom.spec.stream import Stream

FEATURE: Feature[Stream] = Feature(
    name="frequency",
    block=Frequency,
    meaning="The most frequent items of a sliding window, by a Count-Min sketch.",
    noun="frequency",
    rows="sketches",
    doc="Events become how often items are seen, in little memory.",
    outlets=("frequencies",),
    upstream=lambda stream: "ingest",
    problems=validate.problems,
    columns_read=lambda stream: item_rules.columns_read(stream, stream.blocks(Frequency)),
    lookback=validate.lookback,
    conditions=lambda stream: item_rules.conditions(stream, "frequency", stream.blocks(Frequency)),
    definition=lazy("transom.features.frequency.stage:definition"),
    fingerprints={
        "tick_matrices": fingerprints.tick_matrices,
        "cells": fingerprints.cells,
        "frequencies": fingerprints.frequencies,
    },
    labels=describe.LABELS,
    checks=built_in_checks.CHECKS,
    summary=describe.summary,
    facts=describe.facts,
    findings="transom.features.frequency.findings:SOURCE",
    finding_meaning=FindingMeaning(
        window=lambda stream, name: stream.blocks(Frequency)[name].window, evidence=describe.evidence
    ),
    of_key=lazy("transom.features.frequency.view:section_of_item"),
    subject=lambda stream, name: stream.blocks(Frequency)[name].item,
    queries={
        "frequency": "transom.features.frequency.queries:frequency",
        "sketch": "transom.features.frequency.queries:sketch",
    },
    render=lazy("transom.features.frequency.render:print_frequencies"),
    view=lazy("transom.features.frequency.view:section"),
    last_report=partial(lazy("transom.features.items.last_report:last_report"), "frequency", "frequencies"),
    audit=lazy("transom.features.frequency.audit:audit"),
    inherits=lambda block: frozenset(("where",)),
    optional_keys={"cells": ("splitter",), "frequencies": ("splitter",)},
)
