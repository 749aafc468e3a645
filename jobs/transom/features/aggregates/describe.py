"""Descriptions of blocks of aggregates as text."""

from transom.core.durations import format_duration
from transom.features.aggregates.spec import Aggregation
from transom.spec.stream import Stream

LABELS = {
    **{name: f"`{name}`" for name in ("key", "where", "measures", "levels", "fit", "aging")},
    "base": "the finest step of `levels`",
    "item": "`recurring`",
    "alerts": "`alert`",
    "ranges": "`levels`",
    "slide": "`levels`",
    "types": "the type or resolution of a column",
}
"""The names of the fingerprints' keys in the stream file."""


def summary(stream: Stream, name: str) -> str:
    """Return the measures, the key, the windows and the options of a block."""
    block = stream.blocks(Aggregation)[name]
    parts = [f"{', '.join(block.measures)} by {', '.join(block.key) or 'nothing'}"]
    parts += [format_duration(level.range) for level in block.levels]
    parts += [option for option in ("fit", "aging", "recurring", "alert") if getattr(block, option)]
    return ", ".join(parts)


def facts(stream: Stream, name: str) -> str:
    """Return the key of a block, its windows, lines through values, and alerts."""
    block = stream.blocks(Aggregation)[name]
    parts = [f"key {', '.join(block.key) or 'none'}", *map(str, block.levels)]
    if block.fit is not None:
        unit = f" by {format_duration(block.fit.unit)}" if block.fit.unit else ""
        parts.append(f"fit: lines of each {block.fit.value} against time{unit}")
    parts += [f"alert {name}: `{' '.join(alert.when.split())}`" for name, alert in block.alert.items()]
    return "; ".join(parts)
