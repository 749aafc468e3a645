"""The feature `fills`, as the rest of transom sees it."""

from transom.features.fills import built_in_checks, describe, fingerprints, input_columns, validate
from transom.features.fills.spec import Fill
from transom.features.frames import input_columns as frame_columns
from transom.spec.feature import Feature, lazy
from transom.spec.stream import Stream

FEATURE: Feature[Stream] = Feature(
    name="fills",
    block=Fill,
    meaning="The rows within frames, or within the same period some time ago, and their aggregates.",
    noun="fill",
    rows="fills",
    doc="Frames are filled with what lies between their ends, in the log or in its past.",
    outlets=("fills",),
    upstream=lambda stream: "frames",
    problems=validate.problems,
    columns_read=input_columns.columns_read,
    lookback=input_columns.lookback,
    conditions=input_columns.all_conditions,
    definition=lazy("transom.features.fills.stage:definition"),
    fingerprints={"fills": fingerprints.fills},
    labels=describe.LABELS,
    checks=built_in_checks.CHECKS,
    summary=describe.summary,
    facts=describe.facts,
    render=lazy("transom.features.fills.render:print_fills"),
    view=lazy("transom.features.fills.view:section"),
    part_of=lambda stream, block: ("frames", stream.blocks(Fill)[block].frame),
    subject=lambda stream, block: frame_columns.key(stream, stream.blocks(Fill)[block].frame),
    inherits=lambda block: frozenset(),
)
