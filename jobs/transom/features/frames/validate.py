"""Validate blocks of frames against the columns of the stream and the blocks of aggregates."""

from collections.abc import Iterator
from datetime import timedelta
from fractions import Fraction

from transom.core.durations import format_duration
from transom.features.aggregates import output_columns
from transom.features.aggregates.spec import Aggregation
from transom.features.frames.input_columns import BASELINE, CONDITIONS, every, key, types
from transom.features.frames.spec import Frame
from transom.formats.record_format import NUMERIC
from transom.spec.errors import Issue, did_you_mean, no_column, of_expression
from transom.spec.expressions import ExpressionError, condition
from transom.spec.stream import Stream
from transom.spec.titles import title_problems

FRAME_COLUMNS = (
    "hour", "frame_id", "start_time", "last_time", "length_s", "records", "missing", "new_records",
    "fragment", "state", "peak", "peak_time", "mean",
)  # fmt: skip
"""Columns of `frames`, without block and key."""
OPEN_FRAME_COLUMNS = (
    "row_kind", "first", "last", "value", "held", "before", "start", "end", "length", "values", "total",
    "low", "high", "exact", "new", "nulls", "first_null", "last_null",
)  # fmt: skip
"""Columns of `open_frames` that `frames` does not have."""
REPORTED_COLUMNS = ("start_time", "last_time", "records", "length_s", "peak", "peak_time", "mean")
"""Columns of a frame that a title may name, besides the key's."""
_AT_KNOWN_TIMES = "needs readings at known times: of a block of `aggregates`, or with time.interval"


def problems(stream: Stream) -> Iterator[Issue]:
    """Yield the problems of the blocks of a stream, each of which is valid by itself."""
    blocks = stream.blocks(Aggregation)
    for name, frame in stream.blocks(Frame).items():
        place, source = f"frames.{name}", frame.source
        if source is not None and source not in blocks:
            message = f"no block of aggregates {source!r}{did_you_mean(source, list(blocks))}"
            yield Issue(f"{place}.source", message, (("aggregates", source),))
            continue
        if source is not None and not output_columns.sound(stream, source):
            continue  # the columns of its readings are unknown
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
            yield Issue(where, f"{column} is a column that every frame has; choose another name")
        elif column in OPEN_FRAME_COLUMNS:
            yield Issue(where, f"{column} is a column that every open frame has; choose another name")


def _conditions(place: str, name: str, frame: Frame, stream: Stream) -> Iterator[Issue]:
    own, known = (*key(stream, name), "event_time", BASELINE), types(stream, name)
    for field in CONDITIONS:
        text = getattr(frame, field)
        if text is None:
            continue
        try:
            test = condition(text, types(stream, name, field))
        except ExpressionError as error:
            yield of_expression(f"{place}.{field}", error, ("key",))
            continue
        if field == "where" and not test.columns:
            yield Issue(f"{place}.where", f"must read a column, or all readings are alike; got {text!r}")
        if frame.on_duplicate_time in ("min", "max", "sum", "mean"):
            for column in test.columns:
                if column not in own and known[column] not in NUMERIC:
                    combined = f"on_duplicate_time: {frame.on_duplicate_time} needs numbers"
                    yield Issue(f"{place}.{field}", f"reads {column}, a {known[column]}, and {combined}")


def _values(place: str, name: str, frame: Frame, stream: Stream) -> Iterator[Issue]:
    known = types(stream, name)
    numeric = [column for column, kind in known.items() if kind in NUMERIC and column != BASELINE]
    columns = {"value": frame.value, "condition": frame.condition.column if frame.condition else None}
    if frame.baseline is not None:
        columns["baseline.value"] = frame.baseline.value
        apart = every(stream, name)
        if apart is None:
            yield Issue(f"{place}.baseline", _AT_KNOWN_TIMES, (("time",),))
        for index, shift in enumerate(frame.baseline.shift):
            if apart is not None and shift % apart:
                rule = f"must be a multiple of {format_duration(apart)}, by which readings are apart"
                yield Issue(f"{place}.baseline.shift[{index}]", f"{rule}; got {format_duration(shift)}")
    if frame.step is not None and frame.value in numeric:
        measure = stream.blocks(Aggregation)[frame.source].measures[frame.value] if frame.source else None
        column = measure.column if measure else frame.value
        if column is not None and (measure is None or measure.function != "mean"):
            resolution = stream.event_columns[column].resolution
            if Fraction(str(frame.step)) % Fraction(resolution):
                rule = f"must be a multiple of the resolution of {column}, {resolution}"
                yield Issue(f"{place}.step", f"{rule}; got {frame.step:g}")
    for field, column in columns.items():
        if column is None or column in numeric:
            continue
        if column in known:
            yield Issue(f"{place}.{field}", f"takes an integer or a number; {column} is a {known[column]}")
        else:
            yield no_column(f"{place}.{field}", column, numeric)


def _scheduled(place: str, frame: Frame, apart: timedelta | None) -> Iterator[Issue]:
    """Yield problems of lengths that are impossible at the interval of the readings.

    Args:
        place: the path of the block.
        frame: the block.
        apart: the interval of the readings; None without a schedule.
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
