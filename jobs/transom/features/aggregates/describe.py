"""A block of aggregates in words."""

from transom.core.durations import format_duration
from transom.features.aggregates.spec import Aggregation
from transom.spec.stream import Stream

LABELS = {
    "key": "`key`",
    "where": "`where`",
    "measures": "`measures`",
    "base": "the finest step of `levels`",
    "levels": "`levels`",
    "fit": "`fit`",
    "aging": "`aging`",
    "item": "`recurring`",
    "alerts": "`alert`",
    "ranges": "`levels`",
    "slide": "`levels`",
    "types": "the type or resolution of a column",
}
"""What the keys of fingerprints are called in the stream's file."""


def summary(stream: Stream, name: str) -> str:
    """Return the measures, the key and the windows of a block."""
    block = stream.blocks(Aggregation)[name]
    more = [option for option in ("fit", "aging", "recurring", "alert") if getattr(block, option)]
    windows = [format_duration(level.range) for level in block.levels]
    return (
        f"{', '.join(block.measures)} by {', '.join(block.key) or 'nothing'}, {', '.join([*windows, *more])}"
    )


def facts(stream: Stream, name: str) -> str:
    """Return the key of a block, its windows, lines through values, and alerts."""
    block = stream.blocks(Aggregation)[name]
    parts = [f"key {', '.join(block.key) or 'none'}", *map(str, block.levels)]
    if block.fit is not None:
        unit = f" by {format_duration(block.fit.unit)}" if block.fit.unit else ""
        parts.append(f"fit: lines of each {block.fit.value} against time{unit}")
    parts += [f"alert {name}: `{' '.join(alert.when.split())}`" for name, alert in block.alert.items()]
    return "; ".join(parts)
