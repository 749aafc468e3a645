"""Texts for a block of frames."""

from transom.features.frames.input_columns import key
from transom.features.frames.spec import Frame
from transom.spec.stream import Stream

LABELS = {
    "key": "`key`",
    "conditions": "a condition on readings",
    "value": "the value, by `value` or a condition",
    "measures": "the measures that it reads",
    "every": "how far apart readings are",
    "ties": "`on_duplicate_time`",
    "baseline": "`baseline`",
    "kind": "`kind` or an option of it",
    "meeting": "`when_open`",
    "lengths": "`min_length` or `max_length`",
    "records": "`min_records` or `max_records`",
    "missing": "`missing`",
    "idle": "`idle`",
    "known": "`known`",
    "stretch": "`period`, `scheme` or `longest`",
    "types": "the type or resolution of a column",
}
"""The fields of the stream file, by the keys of fingerprints."""


def summary(stream: Stream, name: str) -> str:
    """Return the text for the rule of a block, its key and its source."""
    frame, by = stream.blocks(Frame)[name], ", ".join(key(stream, name)) or "nothing"
    return f"{frame.kind}, {frame.reported_rule}, by {by}, of {frame.source or 'events'}"


def facts(stream: Stream, name: str) -> str:
    """Return the text for the kind and the rule of a block."""
    frame = stream.blocks(Frame)[name]
    return f"{frame.kind}: {frame.reported_rule}"


def evidence(stream: Stream, name: str, line: str, exactness: str) -> str:
    """Return a line of evidence for a page: the rule with the least length."""
    frame, prefix = stream.blocks(Frame)[name], "the rule: "
    return f"{prefix}{frame.reported_rule}" if line == f"{prefix}{frame.rule}" else line
