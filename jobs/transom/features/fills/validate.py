"""What fills read: the columns of what fills frames, their conditions and measures; and rules of these."""

from collections.abc import Iterator
from datetime import timedelta

from transom.core.intervals import HOUR
from transom.features.aggregates import output_columns as figures
from transom.features.aggregates.spec import Aggregation
from transom.features.aggregates.validate import count_domains
from transom.features.fills.spec import REACH, Fill
from transom.features.frames import validate as frame_columns
from transom.features.frames.spec import Frame
from transom.formats.record_format import NUMERIC, FieldType
from transom.spec.block_columns import BlockColumns, Use, sql_of, tested
from transom.spec.errors import Issue, did_you_mean, no_column, of_expression
from transom.spec.expressions import Expression, ExpressionError, condition
from transom.spec.external_source import EVENTS
from transom.spec.impossible_conditions import event_domains
from transom.spec.stream import Stream
from transom.spec.value_domains import Tested

FILL_COLUMNS = (
    "hour", "block", "frame_id", "fragment", "shift_s", "start_time", "end_time", "rows_matched", "coverage",
    "state",
)  # fmt: skip
"""Columns of `fills` beside keys and measures."""


def over(fill: Fill) -> str | None:
    """Return the block of aggregates whose granules fill frames; None where something else does."""
    return None if fill.source.block == EVENTS else fill.source.block


def types(stream: Stream, fill: Fill) -> dict[str, FieldType]:
    """Return the types of the columns of what fills frames."""
    return fill.source.types if fill.source.outside else frame_columns.source_types(stream, over(fill))


def by(stream: Stream, name: str) -> tuple[str, ...]:
    """Return the columns in which a frame and what fills it agree."""
    fill = stream.blocks(Fill)[name]
    return frame_columns.key(stream, fill.frame) if fill.join_on is None else fill.join_on


def where(stream: Stream, name: str) -> Expression | None:
    """Return the compiled condition on what fills frames, None where there is none."""
    fill = stream.blocks(Fill)[name]
    text = fill.where
    if text is None and fill.source.block == EVENTS:
        text = stream.where
    return None if text is None else condition(text, types(stream, fill))


def measures(stream: Stream, name: str) -> dict[str, FieldType]:
    """Return the types of what is told of the rows."""
    fill = stream.blocks(Fill)[name]
    known = types(stream, fill)
    between = fill.combine in ("mean", "median")
    return {
        measure: "number" if between or of.function == "mean" else known[of.column or ""]
        for measure, of in fill.measures.items()
    }


def reach(stream: Stream, name: str) -> timedelta:
    """Return how much of a frame is filled, in whole hours."""
    fill = stream.blocks(Fill)[name]
    frame = stream.blocks(Frame)[fill.frame]
    longest = frame.period
    if longest is None and frame.max_length is not None:
        # With its neighbours, which are nearer than what it would be idle for.
        longest = frame.max_length + (2 * frame.gap if frame.extent == "liberal" else timedelta(0))
    return fill.reach or -(-(longest or REACH) // HOUR) * HOUR


def problems(stream: Stream) -> Iterator[Issue]:
    """Yield what is wrong with the fills of a stream, each of which is sound by itself."""
    seen: dict[str, tuple[str, FieldType]] = {}
    for name, fill in stream.blocks(Fill).items():
        place = f"fills.{name}"
        yield from _frame(place, fill, stream)
        unsound = list(_source(place, fill, stream))
        yield from unsound
        if unsound or not _is_known(over(fill), stream):
            continue  # the columns of what fills are not known
        keyed = fill.frame in stream.blocks(Frame) and _is_known(
            stream.blocks(Frame)[fill.frame].source, stream
        )
        of_frame = frame_columns.key(stream, fill.frame) if keyed else ()
        if keyed:
            yield from _by(place, name, fill, stream)
        unsound = list(_measures(place, fill, of_frame, stream))
        yield from unsound
        if fill.where is not None:
            try:
                condition(fill.where, types(stream, fill))
            except ExpressionError as error:
                yield of_expression(f"{place}.where", error)
        if unsound:
            continue
        for measure, kind in measures(stream, name).items():
            other, kind_there = seen.setdefault(measure, (name, kind))
            if kind_there != kind:
                rule = f"is {kind_there} in {other} and {kind} here; choose another name"
                yield Issue(f"{place}.measures.{measure}", rule)


def _is_known(block: str | None, stream: Stream) -> bool:
    """Whether the columns of granules, or of events, are known; else the block's own problems say why not."""
    return block is None or (block in stream.blocks(Aggregation) and figures.sound(stream, block))


def _frame(place: str, fill: Fill, stream: Stream) -> Iterator[Issue]:
    if fill.frame not in stream.blocks(Frame):
        message = f"no kind of frame {fill.frame!r}{did_you_mean(fill.frame, stream.blocks(Frame))}"
        yield Issue(f"{place}.frame", message, (("frames", fill.frame),))


def _source(place: str, fill: Fill, stream: Stream) -> Iterator[Issue]:
    block = over(fill)
    if block is not None and block not in stream.blocks(Aggregation):
        known = [EVENTS, *stream.blocks(Aggregation)]
        rule = f"must be events or a block of aggregates; no {block!r}{did_you_mean(block, known)}"
        yield Issue(f"{place}.source", rule, (("aggregates", block),))
    elif fill.source.stream == stream.name:
        yield Issue(f"{place}.source.stream", f"{stream.name} is this stream; its rows are {EVENTS}")


def _by(place: str, name: str, fill: Fill, stream: Stream) -> Iterator[Issue]:
    of_frame, known = frame_columns.key(stream, fill.frame), types(stream, fill)
    for index, column in enumerate(by(stream, name)):
        at = f"{place}.join_on[{index}]" if fill.join_on is not None else f"{place}.source"
        if column not in of_frame:
            rule = f"must be of the key of {fill.frame}; no column {column!r}{did_you_mean(column, of_frame)}"
            yield Issue(at, rule, (("key",), ("frames", fill.frame)))
        elif column not in known:
            rest = "" if fill.join_on is not None else "; join_on: [] takes the rows of any key"
            rule = f"{fill.source.called} has no column {column!r}{did_you_mean(column, known)}{rest}"
            yield Issue(at, rule, (("columns", column), ("key",)))
        elif known[column] != stream.event_types[column]:
            both = f"{stream.event_types[column]} of the frames and {known[column]} of {fill.source.called}"
            yield Issue(at, f"{column} must be of one type; it is {both}")
    for column in of_frame:
        if column in FILL_COLUMNS:
            yield Issue(place, f"{column} is a column that every fill has; name that of the key otherwise")


def _measures(place: str, fill: Fill, of_frame: tuple[str, ...], stream: Stream) -> Iterator[Issue]:
    known = types(stream, fill)
    numeric = [column for column, kind in known.items() if kind in NUMERIC]
    for measure, of in fill.measures.items():
        at = f"{place}.measures.{measure}"
        if measure in (*FILL_COLUMNS, *of_frame):
            yield Issue(at, f"{measure} is a column that every fill has; choose another name")
        if of.column in known and of.column not in numeric:
            yield Issue(
                at, f"{of.function} takes an integer or a number; {of.column} is a {known[of.column]}"
            )
        elif of.column not in known:
            yield no_column(at, str(of.column), numeric, f" in {str(of)!r}")


def columns_read(stream: Stream) -> Iterator[BlockColumns]:
    """Yield what each fill from events needs of them."""
    for name, fill in stream.blocks(Fill).items():
        if fill.source.block != EVENTS:
            continue  # it reads granules, or what is not the stream's own
        met = where(stream, name)
        measured = {measure.column for measure in fill.measures.values() if measure.column is not None}
        uses = (*tested(met), Use(frozenset(measured), sql_of(met)))
        yield BlockColumns(name, by(stream, name), sql_of(met), uses)


def lookback(stream: Stream) -> Iterator[tuple[str, timedelta]]:
    """Yield how far back each fill reads."""
    frames = stream.blocks(Frame)
    for name, fill in stream.blocks(Fill).items():
        if fill.frame in frames and fill.source.block in stream.blocks(Aggregation):
            frame = frames[fill.frame]
            of_frame = (frame.period or frame.gap) + reach(stream, name)
            yield f"what the fill {name} looks back", of_frame + fill.lead + max(fill.shift)


def all_conditions(stream: Stream) -> Iterator[Tested]:
    """Yield the conditions of the fills."""
    for name, fill in stream.blocks(Fill).items():
        if fill.where is not None:
            of_events = fill.source.block == EVENTS
            outside = {} if fill.source.outside else count_domains(stream, str(fill.source.block))
            known = event_domains(stream) if of_events else outside
            yield Tested(f"fills.{name}.where", fill.where, known)
