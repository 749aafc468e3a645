"""The part of a pattern that determines the rows of each table, as canonical JSON."""

from typing import Any

from transom.core.durations import microseconds
from transom.features.patterns import validate
from transom.features.patterns.custom_detector import source_digest
from transom.features.patterns.spec import AnyOrder, Pattern, Step
from transom.spec.fingerprints import canonical, types_of
from transom.spec.stream import Stream


def batches(stream: Stream, name: str) -> str:
    """Return the fingerprint of the batches of a pattern."""
    return canonical(_batches(stream, name))


def matches(stream: Stream, name: str) -> str:
    """Return the fingerprint of the matches of a pattern, which includes that of its batches."""
    pattern = stream.blocks(Pattern)[name]

    def element(element: Step | AnyOrder, steps: tuple[Step, ...]) -> dict[str, Any]:
        within, gap = element.within, element.gap
        return {
            # The conditions are in the fingerprint of the batches, in the same order.
            "steps": [
                {
                    "id": s.id,
                    "times": s.times,
                    "distinct": sorted(s.distinct),
                    "by": sorted(pattern.agreements(s)),
                }
                for s in steps
            ],
            "within": None if within is None else microseconds(within),
            # A gap of (0, None) is no limit: elements follow each other anyway.
            "gap": None if gap is None or gap.bounds == (0, None) else gap.bounds,
        }

    specific = {
        "within": microseconds(pattern.within),
        "keep": sorted(pattern.carry),
        "elements": list(map(element, pattern.steps, pattern.elements)),
        "never": [never.between for never in pattern.absent],
        "detector": [pattern.detector, source_digest(pattern.detector)] if pattern.detector else None,
    }
    return canonical(_batches(stream, name) | specific)


def episodes(stream: Stream, name: str) -> str:
    """Return the fingerprint of the episodes of a pattern, without that of its matches."""
    pattern = stream.blocks(Pattern)[name]
    return canonical(
        {
            "key": list(pattern.key),
            "merge": microseconds(pattern.merge_gap),
            # These two determine when an episode is final.
            "within": microseconds(pattern.within),
            "top": microseconds(pattern.top),
            "types": types_of(stream, pattern.key),
        }
    )


def _batches(stream: Stream, name: str) -> dict[str, Any]:
    pattern = stream.blocks(Pattern)[name]
    where = stream.where_of(pattern)
    conditions, carried = validate.conditions(stream, name), validate.carried(stream, name)
    columns = {*pattern.key, *carried, *(where.columns if where else ())}
    columns = columns.union(*(condition.columns for condition in conditions))
    return {
        "key": list(pattern.key),
        "where": where.sql if where else None,
        "conditions": [condition.sql for condition in conditions],
        "all": pattern.counts_all,
        "batch": microseconds(pattern.batch),
        "max_records": pattern.max_records,
        "columns": list(carried),
        "types": types_of(stream, columns - {"event_time"}),
    }
