"""Descriptions of patterns as text."""

from datetime import timedelta

from transom.core.durations import format_duration, format_duration_long
from transom.core.terminal import counted
from transom.features.patterns.spec import Pattern
from transom.spec.stream import Stream

LABELS = {
    **{name: f"`{name}`" for name in ("key", "where", "within", "batch", "max_records")},
    "conditions": "a `where` of its steps",
    "all": "`count_records`",
    "elements": "`steps`",
    "never": "`absent`",
    "detector": "the detector or its source",
    "columns": "the columns that its steps compare and `carry` names",
    "keep": "`carry`",
    "top": "`batch`",
    "merge": "`merge_gap`",
    "types": "the type or resolution of a column",
}
"""The names of the fingerprints' keys in the stream file."""


def summary(stream: Stream, name: str) -> str:
    """Return the steps or the detector of a pattern, its key, its duration and its levels."""
    pattern = stream.blocks(Pattern)[name]
    what = pattern.detector or counted(len(pattern.all_steps), "step")
    return (
        f"{what} by {', '.join(pattern.key) or 'nothing'}, within {format_duration(pattern.within)}, "
        f"{counted(pattern.widening.levels, 'level')} from batches of {format_duration(pattern.batch)}"
    )


def facts(stream: Stream, name: str) -> str:
    """Return the key of a pattern, its duration, and the lengths of its windows."""
    pattern = stream.blocks(Pattern)[name]
    windows = " to ".join(format_duration_long(2 * length) for length in (pattern.batch, pattern.top))
    key = ", ".join(pattern.key) or "none"
    return f"key {key}; within {format_duration(pattern.within)}; windows of {windows}"


def growth(stream: Stream, name: str) -> timedelta:
    """Return how long after its end an episode may still grow.

    A later match joins it if it begins at most `merge_gap` after the end, and takes `within` at most.
    """
    pattern = stream.blocks(Pattern)[name]
    return pattern.merge_gap + pattern.within
