"""Validate fills against the columns of the stream, the frames and the blocks of aggregates."""

from collections.abc import Iterator

from transom.features.aggregates import output_columns
from transom.features.aggregates.spec import Aggregation
from transom.features.fills.input_columns import by, measures, over, types
from transom.features.fills.spec import Fill
from transom.features.frames import input_columns as frame_columns
from transom.features.frames.spec import Frame
from transom.formats.record_format import NUMERIC, FieldType
from transom.spec.errors import Issue, did_you_mean, no_column
from transom.spec.external_source import EVENTS
from transom.spec.stream import Stream
from transom.spec.validate import condition_problems

FILL_COLUMNS = (
    "hour", "frame_id", "fragment", "shift_s", "start_time", "end_time", "rows_matched", "coverage", "state",
)  # fmt: skip
"""Columns of `fills`, without block, key and measures."""
RESERVED = ("block", *FILL_COLUMNS)
"""Names that no measure and no column of the key may have."""


def problems(stream: Stream) -> Iterator[Issue]:
    """Yield the problems of the fills of a stream, each of which is valid by itself."""
    seen: dict[str, tuple[str, FieldType]] = {}
    frames, blocks = stream.blocks(Frame), stream.blocks(Aggregation)
    for name, fill in stream.blocks(Fill).items():
        place, frame = f"fills.{name}", frames.get(fill.frame)
        if frame is None:
            message = f"no kind of frame {fill.frame!r}{did_you_mean(fill.frame, frames)}"
            yield Issue(f"{place}.frame", message, (("frames", fill.frame),))
        block = over(fill)
        if block is not None and block not in blocks:
            nearest = did_you_mean(block, [EVENTS, *blocks])
            rule = f"must be events or a block of aggregates; no {block!r}{nearest}"
            yield Issue(f"{place}.source", rule, (("aggregates", block),))
        elif fill.source.stream == stream.name:
            yield Issue(f"{place}.source.stream", f"{stream.name} is this stream; its rows are {EVENTS}")
            continue
        if not _is_known(block, stream):
            continue  # the columns of the source are unknown
        key: tuple[str, ...] = ()
        if frame is not None and _is_known(frame.source, stream):
            key = frame_columns.key(stream, fill.frame)
            yield from _by(place, name, fill, key, stream)
        unsound = list(_measures(place, fill, key, stream))
        yield from unsound
        if fill.where is not None:
            yield from condition_problems(f"{place}.where", fill.where, types(stream, fill))
        if unsound:
            continue
        for measure, kind in measures(stream, name).items():
            other, kind_there = seen.setdefault(measure, (name, kind))
            if kind_there != kind:
                rule = f"is {kind_there} in {other} and {kind} here; choose another name"
                yield Issue(f"{place}.measures.{measure}", rule)


def _is_known(block: str | None, stream: Stream) -> bool:
    """Return whether the columns of granules, or of events, are known; if not, the block has problems of its
    own."""
    return block is None or (block in stream.blocks(Aggregation) and output_columns.sound(stream, block))


def _by(place: str, name: str, fill: Fill, key: tuple[str, ...], stream: Stream) -> Iterator[Issue]:
    known, called = types(stream, fill), fill.source.called
    for index, column in enumerate(by(stream, name)):
        at = f"{place}.join_on[{index}]" if fill.join_on is not None else f"{place}.source"
        if column not in key:
            rule = f"must be of the key of {fill.frame}; no column {column!r}{did_you_mean(column, key)}"
            yield Issue(at, rule, (("key",), ("frames", fill.frame)))
        elif column not in known:
            rest = "" if fill.join_on is not None else "; join_on: [] takes the rows of any key"
            rule = f"{called} has no column {column!r}{did_you_mean(column, known)}{rest}"
            yield Issue(at, rule, (("columns", column), ("key",)))
        elif known[column] != stream.event_types[column]:
            both = f"{stream.event_types[column]} of the frames and {known[column]} of {called}"
            yield Issue(at, f"{column} must be of one type; it is {both}")
    for column in key:
        if column in RESERVED:
            yield Issue(
                place, f"{column} is a column that every fill has; choose another name for that of the key"
            )


def _measures(place: str, fill: Fill, key: tuple[str, ...], stream: Stream) -> Iterator[Issue]:
    known = types(stream, fill)
    numeric = [column for column, kind in known.items() if kind in NUMERIC]
    for name, measure in fill.measures.items():
        at, column = f"{place}.measures.{name}", measure.column
        if name in (*RESERVED, *key):
            yield Issue(at, f"{name} is a column that every fill has; choose another name")
        if column not in known:
            yield no_column(at, str(column), numeric, f" in {str(measure)!r}")
        elif column not in numeric:
            yield Issue(at, f"{measure.function} takes an integer or a number; {column} is a {known[column]}")
