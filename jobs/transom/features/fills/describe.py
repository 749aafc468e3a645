"""Texts for a block of fills."""

from datetime import timedelta

from transom.core.durations import format_duration
from transom.features.fills.spec import Fill
from transom.spec.stream import Stream

LABELS = {
    "frame": "`frame`",
    "from": "`source`",
    "key": "the key of the frames",
    "by": "`join_on`",
    "where": "`where`",
    "stretch": "`lead`, `lag` or `shift`",
    "every": "how far apart readings are",
    "take": "`combine`",
    "measures": "`measures`",
    "of": "the measures that it reads",
    "reach": "`reach`",
    "types": "the type or resolution of a column",
}
"""The fields of the stream file, by the keys of fingerprints."""


def summary(stream: Stream, name: str) -> str:
    """Return the text for the frames of a fill, its source, shifts and measures."""
    fill = stream.blocks(Fill)[name]
    measures = ", ".join(fill.measures) or "how many rows"
    shifts = " and ".join(map(format_duration, fill.shift))
    ago = "" if fill.shift == (timedelta(0),) else f", {shifts} ago"
    return f"{fill.frame}, from {fill.source.called}{ago}: {measures}"


def facts(stream: Stream, name: str) -> str:
    """Return the text for the frames of a fill and its source."""
    fill = stream.blocks(Fill)[name]
    return f"{fill.frame}, from {fill.source}"
