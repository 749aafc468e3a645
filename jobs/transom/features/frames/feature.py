"""The feature `frames`, as the rest of transom sees it."""

from transom.features.aggregates.spec import Aggregation
from transom.features.frames import (
    built_in_checks,
    describe,
    fingerprints,
    input_columns,
    spec_rules,
    validate,
)
from transom.features.frames.spec import Frame
from transom.spec.feature import Feature, FindingMeaning, lazy
from transom.spec.stream import Stream

FEATURE: Feature[Stream] = Feature(
    name="frames",
    block=Frame,
    meaning="Periods of time that the data of each key delimits.",
    noun="frames",
    rows="frames",
    doc="Readings become frames: periods of time that the data delimits.",
    outlets=("frames",),
    upstream=lambda stream: "aggregates" if stream.blocks(Aggregation) else "ingest",
    block_problems=spec_rules.problems,
    problems=validate.problems,
    columns_read=input_columns.columns_read,
    lookback=input_columns.lookback,
    conditions=input_columns.all_conditions,
    definition=lazy("transom.features.frames.stage:definition"),
    fingerprints={"open_frames": fingerprints.open_frames, "frames": fingerprints.frames},
    labels=describe.LABELS,
    checks=built_in_checks.CHECKS,
    summary=describe.summary,
    facts=describe.facts,
    findings="transom.features.frames.findings:SOURCE",
    finding_meaning=FindingMeaning(covered=input_columns.covered, evidence=describe.evidence),
    subject=input_columns.key,
    render=lazy("transom.features.frames.render:print_frames"),
    view=lazy("transom.features.frames.view:section"),
    input_table="frames",
    # Frames over an aggregation have its key, and `where` is their own.
    inherits=lambda block: frozenset() if "source" in block else frozenset(("key",)),
)
