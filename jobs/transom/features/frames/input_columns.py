"""The columns, conditions and values that a block of frames reads."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

from transom.core.intervals import HOUR
from transom.features.aggregates.spec import Aggregation
from transom.features.aggregates.validate import count_domains
from transom.features.frames.spec import Frame
from transom.formats.record_format import NUMERIC, FieldType
from transom.spec.block_columns import BlockColumns, Use, both, sql_of, tested
from transom.spec.expressions import Expression, condition
from transom.spec.impossible_conditions import event_domains
from transom.spec.stream import Stream
from transom.spec.value_domains import Tested, because

BASELINE = "baseline"
CONDITIONS = ("only", "where", "starts_when", "ends_when")
"""The fields of a block that are conditions on its readings."""


def key(stream: Stream, name: str) -> tuple[str, ...]:
    """Return the columns for whose values frames are computed separately."""
    frame = stream.blocks(Frame)[name]
    return frame.key if frame.source is None else stream.blocks(Aggregation)[frame.source].key


def every(stream: Stream, name: str) -> timedelta | None:
    """Return the interval of the readings; None without a schedule."""
    source = stream.blocks(Frame)[name].source
    if source is not None:
        return stream.blocks(Aggregation)[source].base
    return stream.time.interval if stream.time else None


def covered(stream: Stream, name: str) -> timedelta | None:
    """Return the time that the last reading of a frame covers; None without a schedule.

    The last reading of a liberal extent is the one after the frame.
    """
    return None if stream.blocks(Frame)[name].extent == "liberal" else every(stream, name)


def types(stream: Stream, name: str, field: str = "") -> dict[str, FieldType]:
    """Return the types of the columns of readings, for one of `CONDITIONS` or the values.

    `only` selects the readings, so it cannot read a baseline, which is computed from readings.
    """
    frame = stream.blocks(Frame)[name]
    baseline: dict[str, FieldType] = {BASELINE: "number"} if frame.baseline and field != "only" else {}
    return source_types(stream, frame.source) | baseline


def source_types(stream: Stream, source: str | None) -> dict[str, FieldType]:
    """Return the types of the columns of events, or of the granules of a block of aggregates.

    Granules have the key, and the measures that a single granule determines: all but `distinct`.
    """
    if source is None:
        return dict(stream.event_types)
    block = stream.blocks(Aggregation)[source]
    columns: dict[str, FieldType] = {column: stream.event_types[column] for column in block.key}
    for name, measure in block.measures.items():
        if measure.function != "distinct":
            kind = stream.event_types[measure.column] if measure.column else "integer"
            columns[name] = "number" if measure.function == "mean" else kind
    return columns | {"event_time": "timestamp"}


def conditions(stream: Stream, name: str) -> dict[str, Expression]:
    """Return the compiled conditions of a block, by their fields."""
    frame = stream.blocks(Frame)[name]
    texts = {field: getattr(frame, field) for field in CONDITIONS}
    if frame.source is None and frame.only is None:
        texts["only"] = stream.where
    return {
        field: condition(text, types(stream, name, field))
        for field, text in texts.items()
        if text is not None
    }


def value(stream: Stream, name: str) -> str | None:
    """Return the column whose value delimits frames, and whose mean and peak are reported, if any."""
    frame = stream.blocks(Frame)[name]
    if frame.condition is not None:
        return frame.condition.column
    if frame.value is not None or frame.kind != "threshold":
        return frame.value
    known, read = types(stream, name), conditions(stream, name)["where"].columns
    numbers = [column for column in read if known[column] in NUMERIC and column != BASELINE]
    return numbers[0] if len(numbers) == 1 else None


def read(stream: Stream, name: str) -> list[str]:
    """Return the columns that a block reads besides its key, sorted."""
    columns = {column for test in conditions(stream, name).values() for column in test.columns}
    columns |= _values_read(stream, name)
    return sorted(columns - {"event_time", BASELINE, *key(stream, name)})


def _values_read(stream: Stream, name: str) -> set[str]:
    """Return the columns of the value and of the baseline."""
    baseline = stream.blocks(Frame)[name].baseline
    return {*filter(None, [value(stream, name), baseline.value if baseline else None])}


def columns_read(stream: Stream) -> Iterator[BlockColumns]:
    """Yield the columns of events that each block of frames over events reads."""
    for name, frame in stream.blocks(Frame).items():
        if frame.source is not None:
            continue  # it reads granules
        tests = conditions(stream, name)
        only = tests.pop("only", None)
        uses = [*tested(only), Use(frozenset(_values_read(stream, name)), sql_of(only))]
        for test in tests.values():
            columns = frozenset(test.columns) - {BASELINE}
            # A baseline is no column of the events, so which of them meet the condition is unknown here.
            decides = BASELINE not in test.columns
            uses.append(Use(columns, both(only, test) if decides else sql_of(only), decides=decides))
        yield BlockColumns(name, frame.key, sql_of(only), tuple(uses))


def lookback(stream: Stream) -> Iterator[tuple[str, timedelta]]:
    """Yield how far back each block reads, with a text for why."""
    for name, frame in stream.blocks(Frame).items():
        yield f"the idle time of the frames {name}", frame.silence
        if frame.source is not None:
            shift = max(frame.baseline.shift) if frame.baseline else timedelta(0)
            yield f"the readings of the frames {name}", (frame.period or HOUR) + shift


def all_conditions(stream: Stream) -> Iterator[Tested]:
    """Yield the conditions of the blocks."""
    for name, frame in stream.blocks(Frame).items():
        # The columns of a missing reading are null.
        of_granules = count_domains(stream, frame.source).items() if frame.source is not None else ()
        domains = {name: replace(of, null=True) for name, of in of_granules} or event_domains(stream)
        for field in CONDITIONS:
            text = getattr(frame, field)
            # A reading that a known key misses satisfies `where`, with any condition.
            if text is not None and (field != "where" or frame.known is None):
                counts = {} if frame.source is None else domains
                why = "a granule without a record is a missing reading, which has no value"
                if field == "where":
                    why += "; with missing: satisfies and known: 1 day it begins a frame"
                yield Tested(f"frames.{name}.{field}", text, domains, because(text, counts, why))
