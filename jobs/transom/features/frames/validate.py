"""What frames read: the columns of their readings, their conditions, their value; and rules of these."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from fractions import Fraction

from transom.core.durations import format_duration
from transom.core.intervals import HOUR
from transom.features.aggregates import output_columns as figures
from transom.features.aggregates.spec import Aggregation
from transom.features.aggregates.validate import count_domains
from transom.features.frames.spec import Frame
from transom.formats.record_format import NUMERIC, FieldType
from transom.spec.block_columns import BlockColumns, Use, both, sql_of, tested
from transom.spec.errors import Issue, did_you_mean, no_column, of_expression
from transom.spec.expressions import Expression, ExpressionError, condition
from transom.spec.impossible_conditions import event_domains
from transom.spec.stream import Stream
from transom.spec.titles import title_problems
from transom.spec.value_domains import Tested, because

FRAME_COLUMNS = (
    "hour", "block", "frame_id", "start_time", "last_time", "length_s", "records", "missing", "fragment",
    "state", "peak", "peak_time", "mean", "new_records",
)  # fmt: skip
"""Columns of `frames` beside keys."""
REPORTED_COLUMNS = ("start_time", "last_time", "records", "length_s", "peak", "peak_time", "mean")
"""Columns of a frame that a title may name, beside the key's."""
BASELINE = "baseline"
_AT_KNOWN_TIMES = "needs readings at known times: of a block of `aggregates`, or with time.interval"
CONDITIONS = ("only", "where", "starts_when", "ends_when")
"""The fields of a kind of frame that are conditions on its readings."""


def key(stream: Stream, name: str) -> tuple[str, ...]:
    """Return the columns of which every value has frames of its own."""
    frame = stream.blocks(Frame)[name]
    return frame.key if frame.source is None else stream.blocks(Aggregation)[frame.source].key


def every(stream: Stream, name: str) -> timedelta | None:
    """Return how far apart readings are that come on a schedule; None where they come when they come."""
    over = stream.blocks(Frame)[name].source
    if over is not None:
        return stream.blocks(Aggregation)[over].base
    return stream.time.interval if stream.time else None


def types(stream: Stream, name: str) -> dict[str, FieldType]:
    """Return the types of the columns of readings."""
    frame = stream.blocks(Frame)[name]
    return source_types(stream, frame.source) | ({BASELINE: "number"} if frame.baseline else {})


def source_types(stream: Stream, over: str | None) -> dict[str, FieldType]:
    """Return the types of the columns of events, or of the granules of a block of aggregates: the key, and
    the measures of which a granule knows the figure."""
    if over is None:
        return dict(stream.event_types)
    block = stream.blocks(Aggregation)[over]
    found: dict[str, FieldType] = {column: stream.event_types[column] for column in block.key}
    for measure, of in block.measures.items():
        if of.function != "distinct":
            kind = stream.event_types[of.column] if of.column else "integer"
            found[measure] = "number" if of.function == "mean" else kind
    return found | {"event_time": "timestamp"}


def conditions(stream: Stream, name: str) -> dict[str, Expression]:
    """Return the compiled conditions of a kind of frame, by their fields."""
    said, known = stream.blocks(Frame)[name], types(stream, name)
    texts = {field: getattr(said, field) for field in CONDITIONS}
    if said.source is None and said.only is None:
        texts["only"] = stream.where
    return {field: condition(text, _known(known, field)) for field, text in texts.items() if text is not None}


def _known(types: dict[str, FieldType], field: str) -> dict[str, FieldType]:
    """The columns that a condition may read: a baseline is of readings, and `only` says which there are."""
    return {name: kind for name, kind in types.items() if field != "only" or name != BASELINE}


def value(stream: Stream, name: str) -> str | None:
    """Return the column whose value delimits a frame, and whose mean and peak are told; None if there is
    none."""
    said = stream.blocks(Frame)[name]
    if said.condition is not None:
        return said.condition.column
    if said.value is not None or said.kind != "threshold":
        return said.value
    known, read = types(stream, name), conditions(stream, name)["where"].columns
    numbers = [column for column in read if known[column] in NUMERIC and column != BASELINE]
    return numbers[0] if len(numbers) == 1 else None


def read(stream: Stream, name: str) -> list[str]:
    """Return the columns that a kind of frame reads beside its key, sorted."""
    found = {column for met in conditions(stream, name).values() for column in met.columns}
    found |= {column for column in (value(stream, name),) if column}
    baseline = stream.blocks(Frame)[name].baseline
    found |= {baseline.value} if baseline else set()
    return sorted(found - {"event_time", BASELINE, *key(stream, name)})


def problems(stream: Stream) -> Iterator[Issue]:
    """Yield what is wrong with the frames of a stream, each of which is sound by itself."""
    for name, said in stream.blocks(Frame).items():
        place = f"frames.{name}"
        if said.source is not None and said.source not in stream.blocks(Aggregation):
            known = list(stream.blocks(Aggregation))
            message = f"no block of aggregates {said.source!r}{did_you_mean(said.source, known)}"
            yield Issue(f"{place}.source", message, (("aggregates", said.source),))
            continue
        if said.source is not None and not figures.sound(stream, said.source):
            continue  # its readings are not known
        unsound = list(_key(place, name, said, stream))
        yield from unsound
        if unsound and said.source is not None:
            continue  # the key is among the columns of its readings
        yield from _conditions(place, name, said, stream)
        yield from _values(place, name, said, stream)
        yield from _known_for(place, name, said, stream)
        yield from _lengths(place, name, said, stream)
        if said.title is not None:
            told = [*key(stream, name), *REPORTED_COLUMNS]
            rule = (
                f"a title names columns of the key, {', '.join(REPORTED_COLUMNS[:-1])} and "
                f"{REPORTED_COLUMNS[-1]}"
            )
            yield from title_problems(f"{place}.title", said.title, told, rule)


def _key(place: str, name: str, said: Frame, stream: Stream) -> Iterator[Issue]:
    of_block = said.source is not None
    at = f"frames.{name}.source" if of_block else f"{place}.key"
    for index, column in enumerate(key(stream, name)):
        where = at if of_block else f"{at}[{index}]"
        if column not in stream.event_columns:
            if said.key != stream.key:
                yield no_column(where, column, stream.event_columns)
        elif column in FRAME_COLUMNS or column == BASELINE:
            yield Issue(where, f"{column} is a column that every frame has; name the column otherwise")


def _conditions(place: str, name: str, said: Frame, stream: Stream) -> Iterator[Issue]:
    known = types(stream, name)
    for field in CONDITIONS:
        text = getattr(said, field)
        if text is None:
            continue
        try:
            met = condition(text, _known(known, field))
        except ExpressionError as error:
            yield of_expression(f"{place}.{field}", error, ("key",))
            continue
        if field == "where" and not met.columns:
            yield Issue(f"{place}.where", f"must read a column, or all readings are alike; got {text!r}")
        if said.on_duplicate_time in ("min", "max", "sum", "mean"):
            for column in met.columns:
                if (
                    column not in (*key(stream, name), "event_time", BASELINE)
                    and known[column] not in NUMERIC
                ):
                    rule = (
                        f"reads {column}, a {known[column]}, and on_duplicate_time: "
                        f"{said.on_duplicate_time} is made of numbers"
                    )
                    yield Issue(f"{place}.{field}", rule)


def _values(place: str, name: str, said: Frame, stream: Stream) -> Iterator[Issue]:
    known = types(stream, name)
    numeric = [column for column, kind in known.items() if kind in NUMERIC and column != BASELINE]
    of = {"value": said.value, "condition": said.condition.column if said.condition else None}
    if said.baseline is not None:
        of["baseline.value"] = said.baseline.value
        yield from _shifts(place, name, said, stream)
    if said.value in numeric:
        yield from _step(place, said, stream)
    for field, column in of.items():
        if column is None or column in numeric:
            continue
        if column in known:
            yield Issue(f"{place}.{field}", f"takes an integer or a number; {column} is a {known[column]}")
        else:
            yield no_column(f"{place}.{field}", column, numeric)


def _known_for(place: str, name: str, said: Frame, stream: Stream) -> Iterator[Issue]:
    apart = every(stream, name)
    if said.known is None:
        return
    if apart is None:
        yield Issue(f"{place}.known", _AT_KNOWN_TIMES, (("time",),))
        return
    least = max(said.min_length or apart, apart) + apart
    if said.known < least:
        of = "twice as long as readings are apart" if least == 2 * apart else "min_length and a reading more"
        got = f"{format_duration(said.known)}, of readings {format_duration(apart)} apart"
        yield Issue(f"{place}.known", f"must be at least {of}, {format_duration(least)}; got {got}")


def _lengths(place: str, name: str, said: Frame, stream: Stream) -> Iterator[Issue]:
    """Lengths that readings on a schedule cannot have."""
    apart = every(stream, name)
    if apart is None:
        return
    fewest = 2 if said.kind == "trend" else said.min_records
    if said.max_length is not None and said.max_length < fewest * apart:
        rule = f"must be long enough for {'a reading' if fewest == 1 else f'{fewest} readings'}"
        got = f"{format_duration(said.max_length)}, of readings {format_duration(apart)} apart"
        yield Issue(f"{place}.max_length", f"{rule}; got {got}")
    breaks = said.missing == "breaks" or (said.missing is None and said.kind in ("threshold", "trend"))
    if said.max_records is not None and said.min_length is not None and breaks:
        longest = said.max_records * apart
        if longest < said.min_length:
            rule = f"must not be longer than max_records of readings {format_duration(apart)} apart"
            got = f"{format_duration(said.min_length)} and {said.max_records} of them"
            yield Issue(f"{place}.min_length", f"{rule}; got {got}")


def _step(place: str, said: Frame, stream: Stream) -> Iterator[Issue]:
    of = stream.blocks(Aggregation)[said.source].measures[str(said.value)] if said.source else None
    column = said.value if of is None else of.column
    if said.step is None or column is None or (of is not None and of.function == "mean"):
        return
    resolution = stream.event_columns[column].resolution
    if Fraction(str(said.step)) % Fraction(resolution):
        rule = f"must be a multiple of the resolution of {column}, {resolution}"
        yield Issue(f"{place}.step", f"{rule}; got {said.step:g}")


def _shifts(place: str, name: str, said: Frame, stream: Stream) -> Iterator[Issue]:
    apart = every(stream, name)
    if apart is None:
        yield Issue(f"{place}.baseline", _AT_KNOWN_TIMES, (("time",),))
        return
    assert said.baseline is not None
    for index, shift in enumerate(said.baseline.shift):
        if shift % apart:
            rule = f"must be a multiple of {format_duration(apart)}, by which readings are apart"
            yield Issue(f"{place}.baseline.shift[{index}]", f"{rule}; got {format_duration(shift)}")


def columns_read(stream: Stream) -> Iterator[BlockColumns]:
    """Yield what each kind of frame over events needs of them."""
    for name, frame in stream.blocks(Frame).items():
        if frame.source is not None:
            continue  # it reads granules
        tests = conditions(stream, name)
        only = tests.pop("only", None)
        read = {column for column in (value(stream, name),) if column is not None}
        read |= {frame.baseline.value} if frame.baseline is not None else set()
        uses = [*tested(only), Use(frozenset(read), sql_of(only))]
        for met in tests.values():
            columns = frozenset(met.columns) - {BASELINE}
            # A baseline is no column of the events: which of them meet the condition is not known here.
            by_itself = BASELINE not in met.columns
            uses.append(Use(columns, both(only, met) if by_itself else sql_of(only), decides=by_itself))
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
            # A reading that a known key misses satisfies `where`, whatever it says.
            if text is not None and (field != "where" or frame.known is None):
                counts = {} if frame.source is None else domains
                why = "a granule without a record is a missing reading, which has no value"
                if field == "where":
                    why += "; with missing: satisfies and known: 1 day it begins a frame"
                yield Tested(f"frames.{name}.{field}", text, domains, because(text, counts, why))
