"""What patterns read of the events: their conditions, the columns that records carry, and rules of both."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import timedelta

from transom.features.patterns.spec import Pattern
from transom.formats.record_format import FieldType
from transom.spec.block_columns import BlockColumns, Use, both, tested
from transom.spec.errors import Issue, item_path, no_column, of_expression
from transom.spec.expressions import Expression, ExpressionError, condition
from transom.spec.impossible_conditions import event_domains, own_where
from transom.spec.stream import Stream
from transom.spec.titles import title_problems
from transom.spec.value_domains import Tested

MATCH_COLUMNS = (
    "hour", "block", "match_id", "level", "first_time", "last_time", "detected_at", "detection_delay_s",
    "steps", "bindings", "records",
)  # fmt: skip
"""Columns of `matches` beside keys and kept values."""
EPISODE_COLUMNS = (
    "hour", "block", "episode_id", "start_time", "last_time", "matches", "new_matches", "detected_at",
    "level", "state", "joined",
)  # fmt: skip
"""Columns of `episodes` beside keys."""
REPORTED_COLUMNS = ("start_time", "last_time", "matches")
"""Columns of an episode that a title may name, beside the key's."""
_BATCH_COLUMNS = ("stored", "step_mask", "truncated_after")
"""Columns of a pattern's records beside those of matches: of the private table `batches`, or in passing."""
_NEVER_MET = "FALSE"


def kept_column(name: str) -> str:
    """Return the column of `matches` that holds a column's values in the records of a match."""
    return f"kept_{name}"


def carried_column(name: str) -> str:
    """Return the column of `batches` that holds a column of the events."""
    return f"of_{name}"


def conditions(stream: Stream, name: str) -> list[Expression]:
    """Return the compiled condition of each step in the order of the file, then of each absent record."""
    return [condition(text, stream.event_types) for _, text in _texts(stream.blocks(Pattern)[name])]


def takes(stream: Stream, name: str) -> str | None:
    """Return, as Spark SQL, which events a step or one of `absent` may take; None is any."""
    where, met = stream.where_of(stream.blocks(Pattern)[name]), conditions(stream, name)
    either = " OR ".join(dict.fromkeys(one.sql for one in met))
    parts = ([where.sql] if where else []) + ([f"({either})"] if met else [])
    return " AND ".join(parts) or None


def carried(stream: Stream, name: str) -> dict[str, FieldType]:
    """Return the columns beside the key's that the records of a pattern carry, sorted, with their types."""
    read = _carried(stream.blocks(Pattern)[name])
    return {column: stream.event_columns[column].type for column in sorted(read)}


def _carried(pattern: Pattern) -> set[str]:
    read = {*pattern.carry, *pattern.columns}
    return read.union(*compared(pattern).values()).difference(pattern.key)


def compared(pattern: Pattern) -> dict[str, set[str]]:
    """Return the columns of each step's records that `distinct` and `by` compare, by the step's id."""
    columns = {step.id: set(step.distinct) for step in pattern.all_steps}
    for step in pattern.all_steps:
        for agreement in pattern.agreements(step):
            columns[step.id].add(agreement.column)
            columns[agreement.step].add(agreement.step_column)
    return columns


def problems(stream: Stream) -> Iterator[Issue]:
    """Yield what is wrong with the patterns of a stream, each of which is sound by itself."""
    yield from _keys(stream)
    for name, pattern in stream.blocks(Pattern).items():
        place, types = f"patterns.{name}", stream.event_types
        if pattern.title is not None:
            told = [*(column for column in pattern.key if column in types), *REPORTED_COLUMNS]
            rule = "a title names columns of the key, start_time, last_time and matches"
            yield from title_problems(f"{place}.title", pattern.title, told, rule)
        if pattern.where is not None and pattern.where != stream.where:
            yield from _condition(f"{place}.where", pattern.where, types)
        for field in ("carry", "columns"):
            yield from _unknown(f"{place}.{field}", getattr(pattern, field), stream)
        for at, text in _texts(pattern):
            yield from _condition(f"{place}.{at}.where", text, types)
        for at, _, step in pattern.placed():
            for index, column in enumerate(step.distinct):
                if column not in stream.event_columns:
                    yield _no_column(
                        f"{place}.{at}.distinct{item_path(step.distinct, index)}", column, stream
                    )
            most = 2 ** len(step.distinct)
            if step.times > most and {types.get(column) for column in step.distinct} == {"boolean"}:
                rule = f"is never met: true and false make {most}"
                yield Issue(f"{place}.{at}.distinct", f"{rule}, and times is {step.times}")
        yield from _agreements(place, pattern, stream)
        yield from _absent(place, pattern, types)


def _texts(pattern: Pattern) -> list[tuple[str, str]]:
    """Return the conditions as written, with their paths: of the steps, then of `absent`."""
    steps = [(place, step.where) for place, _, step in pattern.placed()]
    return steps + [(f"absent[{index}]", forbidden.where) for index, forbidden in enumerate(pattern.absent)]


def _keys(stream: Stream) -> Iterator[Issue]:
    patterns = stream.blocks(Pattern).values()
    held = {carried_column(c): f"a batch for values of {c}" for p in patterns for c in _carried(p)}
    held |= {kept_column(c): f"a match for kept values of {c}" for p in patterns for c in p.carry}
    # Patterns share their tables, and a key that they have from the stream is told of once, there.
    keys = {
        "key" if pattern.key == stream.key else f"patterns.{name}.key": pattern.key
        for name, pattern in stream.blocks(Pattern).items()
    }
    for place, key in keys.items():
        for index, name in enumerate(key):
            of = {"match": MATCH_COLUMNS, "episode": EPISODE_COLUMNS, "batch of records": _BATCH_COLUMNS}
            what = next((one for one, columns in of.items() if name in columns), None)
            if what is not None:
                rule = f"{name} is a column that every {what} has; name the column otherwise"
                yield Issue(f"{place}[{index}]", rule)
            elif name in held:
                rule = f"{name} is the column of {held[name]}"
                yield Issue(f"{place}[{index}]", f"{rule}; name the column otherwise")
            elif place != "key" and name not in stream.event_columns:
                yield _no_column(f"{place}[{index}]", name, stream)


def _unknown(place: str, names: tuple[str, ...], stream: Stream) -> Iterator[Issue]:
    for index, name in enumerate(names):
        if name not in stream.event_columns:
            yield _no_column(f"{place}[{index}]", name, stream)


def _no_column(place: str, name: str, stream: Stream) -> Issue:
    return no_column(place, name, stream.event_columns)


def _agreements(place: str, pattern: Pattern, stream: Stream) -> Iterator[Issue]:
    for at, _, step in pattern.placed():
        agreements = pattern.agreements(step)
        for index, (column, other, other_column) in enumerate(agreements):
            by = f"{place}.{at}.by{item_path(agreements, index)}"
            unknown = [
                name for name in dict.fromkeys((column, other_column)) if name not in stream.event_columns
            ]
            for name in unknown:
                yield _no_column(by, name, stream)
            if unknown:
                continue
            own, its = stream.event_types[column], stream.event_types[other_column]
            if own != its:
                rule = f"must be of one type; {column} is {_a(own)}, {other}.{other_column} is {_a(its)}"
                yield Issue(by, rule)


def _absent(place: str, pattern: Pattern, types: Mapping[str, FieldType]) -> Iterator[Issue]:
    """Yield where a record of a step is always one that may not be there."""
    elements = {step.id: number for _, number, step in pattern.placed()}
    for index, forbidden in enumerate(pattern.absent):
        first, last = forbidden.between
        for _, number, step in pattern.placed():
            # The first record of the one step and the last one of the other are not in between.
            between = step.times > forbidden.between.count(step.id) and (
                elements[first] < number < elements[last] or step.id in forbidden.between
            )
            if between and _compiled(step.where, types) == _compiled(forbidden.where, types) is not None:
                rule = f"every {step.id} is one, and lies between {first} and {last}: nothing ever matches"
                yield Issue(f"{place}.absent[{index}].where", f"{rule}; got {forbidden.where!r}")


def _compiled(text: str, types: Mapping[str, FieldType]) -> str | None:
    with suppress(ExpressionError):  # is told of by itself
        return condition(text, types).sql
    return None


def _condition(place: str, text: str, types: Mapping[str, FieldType]) -> Iterator[Issue]:
    try:
        met = condition(text, types)
    except ExpressionError as error:
        yield of_expression(place, error)
        return
    if met.sql == _NEVER_MET:
        yield Issue(place, f"is never met; got {text!r}")


def _a(kind: FieldType) -> str:
    return "an integer" if kind == "integer" else f"a {kind}"


def columns_read(stream: Stream) -> Iterator[BlockColumns]:
    """Yield what each pattern needs of the events."""
    for name, pattern in stream.blocks(Pattern).items():
        where, any_step, steps = stream.where_of(pattern), takes(stream, name), conditions(stream, name)
        uses = list(tested(where))
        uses += [Use(frozenset(met.columns), both(where, met), decides=True) for met in steps]
        # A record of one step needs no column of another one.
        by_step = compared(pattern)
        for step, met in zip(pattern.all_steps, steps, strict=False):
            uses.append(Use(frozenset(by_step[step.id]), both(where, met)))
        uses.append(Use(frozenset({*pattern.carry, *pattern.columns}), any_step))
        yield BlockColumns(name, pattern.key, any_step, tuple(uses))


def lookback(stream: Stream) -> Iterator[tuple[str, timedelta]]:
    """Yield how far back windows reach."""
    for name, pattern in stream.blocks(Pattern).items():
        yield f"the longest window of the pattern {name}", pattern.reach


def all_conditions(stream: Stream) -> Iterator[Tested]:
    """Yield the conditions of the patterns."""
    for name, pattern in stream.blocks(Pattern).items():
        yield from own_where(stream, f"patterns.{name}", pattern.where)
        for index, step in enumerate(pattern.all_steps):
            yield Tested(f"patterns.{name}.steps[{index}].where", step.where, event_domains(stream))
