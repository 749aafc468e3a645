"""What of a block shapes the tables of patterns, as canonical JSON."""

from typing import Any

from transom.core.durations import microseconds
from transom.features.patterns import detector_path as detectors
from transom.features.patterns import validate as pattern_columns
from transom.features.patterns.spec import Gap, Pattern
from transom.spec.fingerprints import canonical, types_of
from transom.spec.stream import Stream


def batches(stream: "Stream", name: str) -> str:
    """Return what shapes the batches of a pattern."""
    return canonical(_batches(stream, name))


def matches(stream: "Stream", name: str) -> str:
    """Return what shapes the matches of a pattern: its batches, and what is looked for in windows of them."""
    pattern = stream.blocks(Pattern)[name]
    return canonical(
        {
            **_batches(stream, name),
            "within": microseconds(pattern.within),
            "keep": sorted(pattern.carry),
            # Conditions are those of the batches, in the same order.
            "elements": [
                {
                    "steps": [
                        {
                            "id": step.id,
                            "times": step.times,
                            "distinct": sorted(step.distinct),
                            "by": sorted(pattern.agreements(step)),
                        }
                        for step in steps
                    ],
                    "within": None if element.within is None else microseconds(element.within),
                    "gap": _gap(element.gap),
                }
                for element, steps in zip(pattern.steps, pattern.elements, strict=True)
            ],
            "never": [never.between for never in pattern.absent],
            "detector": [pattern.detector, detectors.source_digest(pattern.detector)]
            if pattern.detector
            else None,
        }
    )


def episodes(stream: "Stream", name: str) -> str:
    """Return what shapes the episodes of a pattern, matches given."""
    pattern = stream.blocks(Pattern)[name]
    return canonical(
        {
            "key": list(pattern.key),
            "merge": microseconds(pattern.merge_gap),
            # When no match can join any more.
            "within": microseconds(pattern.within),
            "top": microseconds(pattern.top),
            "types": types_of(stream, pattern.key),
        }
    )


def _batches(stream: "Stream", name: str) -> dict[str, Any]:
    pattern, where = stream.blocks(Pattern)[name], stream.where_of(stream.blocks(Pattern)[name])
    conditions, carried = pattern_columns.conditions(stream, name), pattern_columns.carried(stream, name)
    read = {*pattern.key, *carried, *(where.columns if where else ())}
    read = read.union(*(met.columns for met in conditions))
    return {
        "key": list(pattern.key),
        "where": where.sql if where else None,
        "conditions": [met.sql for met in conditions],
        "all": pattern.counts_all,
        "batch": microseconds(pattern.batch),
        "max_records": pattern.max_records,
        "columns": list(carried),
        "types": types_of(stream, read - {"event_time"}),
    }


def _gap(gap: "Gap | None") -> list[int | None] | None:
    # A gap of nothing or more is none: records of one element come after those of the one before anyway.
    if gap is None or (not gap.min and gap.max is None):
        return None
    return [microseconds(gap.min), None if gap.max is None else microseconds(gap.max)]
