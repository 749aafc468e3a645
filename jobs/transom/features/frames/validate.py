"""The columns, conditions and values that frames read, and the rules of these."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from fractions import Fraction

from transom.core.durations import format_duration
from transom.core.intervals import HOUR
from transom.features.aggregates import output_columns
from transom.features.aggregates.spec import Aggregation
from transom.features.aggregates.validate import count_domains
from transom.features.frames.spec import Baseline, Frame
from transom.formats.record_format import NUMERIC, FieldType
from transom.spec.block_columns import BlockColumns, Use, both, sql_of, tested
from transom.spec.errors import Issue, did_you_mean, no_column, of_expression
from transom.spec.expressions import Expression, ExpressionError, condition
from transom.spec.impossible_conditions import event_domains
from transom.spec.stream import Stream
from transom.spec.titles import title_problems
from transom.spec.value_domains import Tested, because

FRAME_COLUMNS = (
    "hour", "frame_id", "start_time", "last_time", "length_s", "records", "missing", "new_records",
    "fragment", "state", "peak", "peak_time", "mean",
)  # fmt: skip
"""Columns of `frames` besides block and key."""
OPEN_FRAME_COLUMNS = (
    "row_kind", "first", "last", "value", "held", "before", "start", "end", "length", "values", "total",
    "low", "high", "exact", "new", "nulls", "first_null", "last_null",
)  # fmt: skip
"""Columns of `open_frames` besides these."""
REPORTED_COLUMNS = ("start_time", "last_time", "records", "length_s", "peak", "peak_time", "mean")
"""Columns of a frame that a title may name, besides the key's."""
BASELINE = "baseline"
_AT_KNOWN_TIMES = "needs readings at known times: of a block of `aggregates`, or with time.interval"
CONDITIONS = ("only", "where", "starts_when", "ends_when")
"""The fields of a kind of frame that are conditions on its readings."""


def key(stream: Stream, name: str) -> tuple[str, ...]:
    """Return the columns whose values have frames of their own."""
    frame = stream.blocks(Frame)[name]
    return frame.key if frame.source is None else stream.blocks(Aggregation)[frame.source].key


def every(stream: Stream, name: str) -> timedelta | None:
    """Return the interval of the readings; None without a schedule."""
    source = stream.blocks(Frame)[name].source
    if source is not None:
        return stream.blocks(Aggregation)[source].base
    return stream.time.interval if stream.time else None


def types(stream: Stream, name: str) -> dict[str, FieldType]:
    """Return the types of the columns of readings."""
    frame = stream.blocks(Frame)[name]
    return source_types(stream, frame.source) | ({BASELINE: "number"} if frame.baseline else {})


def source_types(stream: Stream, source: str | None) -> dict[str, FieldType]:
    """Return the types of the columns of events, or of the granules of a block of aggregates: the key, and
    the measures whose value a single granule has."""
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
    """Return the compiled conditions of a kind of frame, by their fields."""
    frame = stream.blocks(Frame)[name]
    texts = {field: getattr(frame, field) for field in CONDITIONS}
    if frame.source is None and frame.only is None:
        texts["only"] = stream.where
    return {
        field: condition(text, _condition_types(stream, name, field))
        for field, text in texts.items()
        if text is not None
    }


def _condition_types(stream: Stream, name: str, field: str) -> dict[str, FieldType]:
    """Return the types of the columns that a condition may read. `only` selects the readings, so it cannot
    read a baseline, which is made of readings."""
    columns = types(stream, name)
    if field == "only":
        columns.pop(BASELINE, None)
    return columns


def value(stream: Stream, name: str) -> str | None:
    """Return the column whose value delimits a frame, and whose mean and peak are reported; None if there is
    none."""
    frame = stream.blocks(Frame)[name]
    if frame.condition is not None:
        return frame.condition.column
    if frame.value is not None or frame.kind != "threshold":
        return frame.value
    known, read = types(stream, name), conditions(stream, name)["where"].columns
    numbers = [column for column in read if known[column] in NUMERIC and column != BASELINE]
    return numbers[0] if len(numbers) == 1 else None


def read(stream: Stream, name: str) -> list[str]:
    """Return the columns that a kind of frame reads besides its key, sorted."""
    columns = {column for test in conditions(stream, name).values() for column in test.columns}
    columns |= _values_read(stream, name)
    return sorted(columns - {"event_time", BASELINE, *key(stream, name)})


def _values_read(stream: Stream, name: str) -> set[str]:
    """Return the columns of the value and of the baseline."""
    baseline = stream.blocks(Frame)[name].baseline
    return {*filter(None, [value(stream, name), baseline.value if baseline else None])}


def problems(stream: Stream) -> Iterator[Issue]:
    """Yield what is wrong with the frames of a stream, each of which is sound by itself."""
    blocks = stream.blocks(Aggregation)
    for name, frame in stream.blocks(Frame).items():
        place, source = f"frames.{name}", frame.source
        if source is not None and source not in blocks:
            message = f"no block of aggregates {source!r}{did_you_mean(source, list(blocks))}"
            yield Issue(f"{place}.source", message, (("aggregates", source),))
            continue
        if source is not None and not output_columns.sound(stream, source):
            continue  # its readings are not known
        unsound = list(_key(place, name, frame, stream))
        yield from unsound
        if unsound and source is not None:
            continue  # the key is among the columns of its readings
        yield from _conditions(place, name, frame, stream)
        yield from _values(place, name, frame, stream)
        yield from _scheduled(place, frame, every(stream, name))
        if frame.title is not None:
            names = f"{', '.join(REPORTED_COLUMNS[:-1])} and {REPORTED_COLUMNS[-1]}"
            known = [*key(stream, name), *REPORTED_COLUMNS]
            rule = f"a title names columns of the key, {names}"
            yield from title_problems(f"{place}.title", frame.title, known, rule)


def _key(place: str, name: str, frame: Frame, stream: Stream) -> Iterator[Issue]:
    for index, column in enumerate(key(stream, name)):
        where = f"{place}.key[{index}]" if frame.source is None else f"{place}.source"
        if column not in stream.event_columns:
            if frame.key != stream.key:
                yield no_column(where, column, stream.event_columns)
        elif column in (*FRAME_COLUMNS, "block", BASELINE):
            yield Issue(where, f"{column} is a column that every frame has; name the column otherwise")
        elif column in OPEN_FRAME_COLUMNS:
            yield Issue(where, f"{column} is a column that every open frame has; name the column otherwise")


def _conditions(place: str, name: str, frame: Frame, stream: Stream) -> Iterator[Issue]:
    own, known = (*key(stream, name), "event_time", BASELINE), types(stream, name)
    for field in CONDITIONS:
        text = getattr(frame, field)
        if text is None:
            continue
        try:
            test = condition(text, _condition_types(stream, name, field))
        except ExpressionError as error:
            yield of_expression(f"{place}.{field}", error, ("key",))
            continue
        if field == "where" and not test.columns:
            yield Issue(f"{place}.where", f"must read a column, or all readings are alike; got {text!r}")
        if frame.on_duplicate_time in ("min", "max", "sum", "mean"):
            for column in test.columns:
                if column not in own and known[column] not in NUMERIC:
                    combined = f"on_duplicate_time: {frame.on_duplicate_time} is made of numbers"
                    yield Issue(f"{place}.{field}", f"reads {column}, a {known[column]}, and {combined}")


def _values(place: str, name: str, frame: Frame, stream: Stream) -> Iterator[Issue]:
    known = types(stream, name)
    numeric = [column for column, kind in known.items() if kind in NUMERIC and column != BASELINE]
    columns = {"value": frame.value, "condition": frame.condition.column if frame.condition else None}
    if frame.baseline is not None:
        columns["baseline.value"] = frame.baseline.value
        yield from _shifts(place, frame.baseline, every(stream, name))
    if frame.value in numeric:
        yield from _step(place, frame, stream)
    for field, column in columns.items():
        if column is None or column in numeric:
            continue
        if column in known:
            yield Issue(f"{place}.{field}", f"takes an integer or a number; {column} is a {known[column]}")
        else:
            yield no_column(f"{place}.{field}", column, numeric)


def _scheduled(place: str, frame: Frame, apart: timedelta | None) -> Iterator[Issue]:
    """Yield lengths that readings on a schedule cannot have.

    Args:
        apart: the interval of the readings.
    """
    if apart is None:
        if frame.known is not None:
            yield Issue(f"{place}.known", _AT_KNOWN_TIMES, (("time",),))
        return
    spaced = f"readings {format_duration(apart)} apart"
    shortest = max(frame.min_length or apart, apart) + apart
    if frame.known is not None and frame.known < shortest:
        of = (
            "twice as long as readings are apart"
            if shortest == 2 * apart
            else "min_length and a reading more"
        )
        rule = f"must be at least {of}, {format_duration(shortest)}"
        yield Issue(f"{place}.known", f"{rule}; got {format_duration(frame.known)}, of {spaced}")
    records = 2 if frame.kind == "trend" else frame.min_records
    if frame.max_length is not None and frame.max_length < records * apart:
        rule = f"must be long enough for {'a reading' if records == 1 else f'{records} readings'}"
        yield Issue(f"{place}.max_length", f"{rule}; got {format_duration(frame.max_length)}, of {spaced}")
    breaks = frame.missing == "breaks" or (frame.missing is None and frame.kind in ("threshold", "trend"))
    longest = frame.max_records and frame.max_records * apart
    if breaks and longest and frame.min_length and longest < frame.min_length:
        got = f"{format_duration(frame.min_length)} and {frame.max_records} of them"
        yield Issue(f"{place}.min_length", f"must not be longer than max_records of {spaced}; got {got}")


def _step(place: str, frame: Frame, stream: Stream) -> Iterator[Issue]:
    measure = stream.blocks(Aggregation)[frame.source].measures[str(frame.value)] if frame.source else None
    column = measure.column if measure else frame.value
    if frame.step is None or column is None or (measure is not None and measure.function == "mean"):
        return
    resolution = stream.event_columns[column].resolution
    if Fraction(str(frame.step)) % Fraction(resolution):
        rule = f"must be a multiple of the resolution of {column}, {resolution}"
        yield Issue(f"{place}.step", f"{rule}; got {frame.step:g}")


def _shifts(place: str, baseline: Baseline, apart: timedelta | None) -> Iterator[Issue]:
    if apart is None:
        yield Issue(f"{place}.baseline", _AT_KNOWN_TIMES, (("time",),))
        return
    for index, shift in enumerate(baseline.shift):
        if shift % apart:
            rule = f"must be a multiple of {format_duration(apart)}, by which readings are apart"
            yield Issue(f"{place}.baseline.shift[{index}]", f"{rule}; got {format_duration(shift)}")


def columns_read(stream: Stream) -> Iterator[BlockColumns]:
    """Yield the columns of events that each kind of frame over events reads."""
    for name, frame in stream.blocks(Frame).items():
        if frame.source is not None:
            continue  # it reads granules
        tests = conditions(stream, name)
        only = tests.pop("only", None)
        uses = [*tested(only), Use(frozenset(_values_read(stream, name)), sql_of(only))]
        for test in tests.values():
            columns = frozenset(test.columns) - {BASELINE}
            # A baseline is no column of the events: which of them meet the condition is not known here.
            decides = BASELINE not in test.columns
            uses.append(Use(columns, both(only, test) if decides else sql_of(only), decides=decides))
        yield BlockColumns(name, frame.key, sql_of(only), tuple(uses))


def lookback(stream: Stream) -> Iterator[tuple[str, timedelta]]:
    """Yield how far back each kind of frame reads."""
    for name, frame in stream.blocks(Frame).items():
        yield f"the idle time of the frames {name}", frame.silence
        if frame.source is not None:
            shift = max(frame.baseline.shift) if frame.baseline else timedelta(0)
            yield f"what the frames {name} are made of", (frame.period or HOUR) + shift


def all_conditions(stream: Stream) -> Iterator[Tested]:
    """Yield the conditions of the kinds of frames."""
    for name, frame in stream.blocks(Frame).items():
        # A reading that is missing is a null.
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
