"""The columns, conditions and measures that a fill reads."""

from collections.abc import Iterator
from datetime import timedelta

from transom.core.intervals import HOUR
from transom.features.aggregates.spec import Aggregation
from transom.features.aggregates.validate import count_domains
from transom.features.fills.spec import REACH, Fill
from transom.features.frames import input_columns as frame_columns
from transom.features.frames.spec import Frame
from transom.formats.record_format import FieldType
from transom.spec.block_columns import BlockColumns, Use, sql_of, tested
from transom.spec.expressions import Expression, condition
from transom.spec.external_source import EVENTS
from transom.spec.impossible_conditions import event_domains
from transom.spec.stream import Stream
from transom.spec.value_domains import Tested


def over(fill: Fill) -> str | None:
    """Return the block of aggregates whose granules fill frames; None for another source."""
    return None if fill.source.block == EVENTS else fill.source.block


def types(stream: Stream, fill: Fill) -> dict[str, FieldType]:
    """Return the types of the columns of the source."""
    return fill.source.types if fill.source.outside else frame_columns.source_types(stream, over(fill))


def by(stream: Stream, name: str) -> tuple[str, ...]:
    """Return the columns that must be equal in a frame and its rows."""
    fill = stream.blocks(Fill)[name]
    return frame_columns.key(stream, fill.frame) if fill.join_on is None else fill.join_on


def where(stream: Stream, name: str) -> Expression | None:
    """Return the compiled condition on the rows, if there is one."""
    fill = stream.blocks(Fill)[name]
    text = stream.where if fill.where is None and fill.source.block == EVENTS else fill.where
    return None if text is None else condition(text, types(stream, fill))


def measures(stream: Stream, name: str) -> dict[str, FieldType]:
    """Return the types of the measures."""
    fill = stream.blocks(Fill)[name]
    known, between = types(stream, fill), fill.combine in ("mean", "median")
    return {
        name: "number" if between or measure.function == "mean" else known[measure.column or ""]
        for name, measure in fill.measures.items()
    }


def reach(stream: Stream, name: str) -> timedelta:
    """Return the length of the last part of a frame that is filled, in whole hours."""
    fill = stream.blocks(Fill)[name]
    frame = stream.blocks(Frame)[fill.frame]
    longest = frame.period
    if longest is None and frame.max_length is not None:
        # A liberal extent adds the time to the neighbours on both sides.
        longest = frame.max_length + (2 * frame.gap if frame.extent == "liberal" else timedelta(0))
    return fill.reach or -(-(longest or REACH) // HOUR) * HOUR


def columns_read(stream: Stream) -> Iterator[BlockColumns]:
    """Yield the columns of events that each fill from events reads."""
    for name, fill in stream.blocks(Fill).items():
        if fill.source.block != EVENTS:
            continue  # it reads granules or an external table
        test = where(stream, name)
        measured = {measure.column for measure in fill.measures.values() if measure.column is not None}
        uses = (*tested(test), Use(frozenset(measured), sql_of(test)))
        yield BlockColumns(name, by(stream, name), sql_of(test), uses)


def lookback(stream: Stream) -> Iterator[tuple[str, timedelta]]:
    """Yield how far back each fill reads, with a text for why."""
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
            outside = {} if fill.source.outside else count_domains(stream, str(fill.source.block))
            known = event_domains(stream) if fill.source.block == EVENTS else outside
            yield Tested(f"fills.{name}.where", fill.where, known)
