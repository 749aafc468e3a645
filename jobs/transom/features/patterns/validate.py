"""Validate patterns against the columns of the stream, and return the columns of events that they read."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

from transom.features.patterns.spec import Agreement, Pattern
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
"""Columns of `matches` without keys and kept values."""
EPISODE_COLUMNS = (
    "hour", "block", "episode_id", "start_time", "last_time", "matches", "new_matches", "detected_at",
    "level", "state", "joined",
)  # fmt: skip
"""Columns of `episodes` without keys."""
REPORTED_COLUMNS = ("start_time", "last_time", "matches")
"""Columns of an episode that a title may name, in addition to the key's."""
_BATCH_COLUMNS = ("stored", "step_mask", "truncated_after")
"""Columns of a pattern's records that matches lack: of the private table `batches`, or temporary."""
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
    """Return, as Spark SQL, the condition on events that a step or `absent` may take; None selects all."""
    where, any_of = stream.where_of(stream.blocks(Pattern)[name]), conditions(stream, name)
    either = " OR ".join(dict.fromkeys(condition.sql for condition in any_of))
    return " AND ".join([*([where.sql] if where else []), *([f"({either})"] if any_of else [])]) or None


def carried(stream: Stream, name: str) -> dict[str, FieldType]:
    """Return the columns, except the key's, that the records of a pattern carry; sorted, with their types."""
    return {c: stream.event_columns[c].type for c in sorted(_carried(stream.blocks(Pattern)[name]))}


def _carried(pattern: Pattern) -> set[str]:
    return {*pattern.carry, *pattern.columns}.union(*compared(pattern).values()).difference(pattern.key)


def compared(pattern: Pattern) -> dict[str, set[str]]:
    """Return the columns of each step's records that `distinct` and `by` compare, by the step's id."""
    columns = {step.id: set(step.distinct) for step in pattern.all_steps}
    for step in pattern.all_steps:
        for agreement in pattern.agreements(step):
            columns[step.id].add(agreement.column)
            columns[agreement.step].add(agreement.step_column)
    return columns


def problems(stream: Stream) -> Iterator[Issue]:
    """Yield the problems of a stream's patterns. Each pattern is valid by itself."""
    yield from _keys(stream)
    for name, pattern in stream.blocks(Pattern).items():
        for issue in _problems(pattern, stream):
            yield replace(issue, path=f"patterns.{name}.{issue.path}")


def _problems(pattern: Pattern, stream: Stream) -> Iterator[Issue]:
    columns, types = stream.event_columns, stream.event_types
    if pattern.title is not None:
        known = [*(column for column in pattern.key if column in types), *REPORTED_COLUMNS]
        rule = "a title names columns of the key, start_time, last_time and matches"
        yield from title_problems("title", pattern.title, known, rule)
    if pattern.where is not None and pattern.where != stream.where:
        yield from _condition("where", pattern.where, types)
    for field, names in (("carry", pattern.carry), ("columns", pattern.columns)):
        for index, name in enumerate(names):
            if name not in columns:
                yield no_column(f"{field}[{index}]", name, columns)
    for at, text in _texts(pattern):
        yield from _condition(f"{at}.where", text, types)
    for at, _, step in pattern.placed():
        for index, column in enumerate(step.distinct):
            if column not in columns:
                yield no_column(f"{at}.distinct{item_path(step.distinct, index)}", column, columns)
        values = 2 ** len(step.distinct)
        if step.times > values and {types.get(column) for column in step.distinct} == {"boolean"}:
            rule = f"is never met: true and false make {values}, and times is {step.times}"
            yield Issue(f"{at}.distinct", rule)
    for at, _, step in pattern.placed():
        yield from _agreements(f"{at}.by", pattern.agreements(step), stream)
    yield from _absent(pattern, types)


def _texts(pattern: Pattern) -> list[tuple[str, str]]:
    """Return the conditions as written, with their paths: of the steps, then of `absent`."""
    steps = [(path, step.where) for path, _, step in pattern.placed()]
    return steps + [(f"absent[{index}]", forbidden.where) for index, forbidden in enumerate(pattern.absent)]


def _keys(stream: Stream) -> Iterator[Issue]:
    patterns = stream.blocks(Pattern)
    used = {carried_column(c): f"a batch for values of {c}" for p in patterns.values() for c in _carried(p)}
    used |= {kept_column(c): f"a match for kept values of {c}" for p in patterns.values() for c in p.carry}
    reserved = {"match": MATCH_COLUMNS, "episode": EPISODE_COLUMNS, "batch of records": _BATCH_COLUMNS}
    # Patterns share their tables; the stream's own key is reported once.
    keys = {
        "key" if pattern.key == stream.key else f"patterns.{name}.key": pattern.key
        for name, pattern in patterns.items()
    }
    for path, key in keys.items():
        for index, name in enumerate(key):
            row = next((row for row, columns in reserved.items() if name in columns), None)
            if row is not None:
                rule = f"{name} is a column that every {row} has; choose another name"
                yield Issue(f"{path}[{index}]", rule)
            elif name in used:
                rule = f"{name} is the column of {used[name]}; choose another name"
                yield Issue(f"{path}[{index}]", rule)
            elif path != "key" and name not in stream.event_columns:
                yield no_column(f"{path}[{index}]", name, stream.event_columns)


def _agreements(path: str, agreements: Sequence[Agreement], stream: Stream) -> Iterator[Issue]:
    columns, types = stream.event_columns, stream.event_types
    for index, (column, other, other_column) in enumerate(agreements):
        at = path + item_path(agreements, index)
        unknown = [name for name in dict.fromkeys((column, other_column)) if name not in columns]
        for name in unknown:
            yield no_column(at, name, columns)
        if not unknown and types[column] != types[other_column]:
            own, its = (f"a{'n' * (types[c] == 'integer')} {types[c]}" for c in (column, other_column))
            yield Issue(at, f"must be of one type; {column} is {own}, {other}.{other_column} is {its}")


def _absent(pattern: Pattern, types: Mapping[str, FieldType]) -> Iterator[Issue]:
    """Yield an issue for each forbidden record that every instance has, as a step always takes one."""
    elements = {step.id: number for _, number, step in pattern.placed()}
    for index, forbidden in enumerate(pattern.absent):
        first, last = forbidden.between
        for _, number, step in pattern.placed():
            # The first record of the one step and the last record of the other are not between them.
            between = step.times > forbidden.between.count(step.id) and (
                elements[first] < number < elements[last] or step.id in forbidden.between
            )
            if between and _compiled(step.where, types) == _compiled(forbidden.where, types) is not None:
                rule = f"every {step.id} is one, and lies between {first} and {last}: nothing ever matches"
                yield Issue(f"absent[{index}].where", f"{rule}; got {forbidden.where!r}")


def _compiled(text: str, types: Mapping[str, FieldType]) -> str | None:
    with suppress(ExpressionError):  # reported by `_condition`
        return condition(text, types).sql
    return None


def _condition(path: str, text: str, types: Mapping[str, FieldType]) -> Iterator[Issue]:
    try:
        if condition(text, types).sql == _NEVER_MET:
            yield Issue(path, f"is never met; got {text!r}")
    except ExpressionError as error:
        yield of_expression(path, error)


def columns_read(stream: Stream) -> Iterator[BlockColumns]:
    """Yield the event columns that each pattern needs, with the conditions on the events that need them."""
    for name, pattern in stream.blocks(Pattern).items():
        where, any_step, steps = stream.where_of(pattern), takes(stream, name), conditions(stream, name)
        uses = [
            *tested(where),
            *(Use(frozenset(met.columns), both(where, met), decides=True) for met in steps),
        ]
        # A record of one step needs no column of another one.
        by_step = compared(pattern)
        for step, met in zip(pattern.all_steps, steps, strict=False):
            uses.append(Use(frozenset(by_step[step.id]), both(where, met)))
        uses.append(Use(frozenset({*pattern.carry, *pattern.columns}), any_step))
        yield BlockColumns(name, pattern.key, any_step, tuple(uses))


def lookback(stream: Stream) -> Iterator[tuple[str, timedelta]]:
    """Yield the time that the windows of each pattern reach back."""
    for name, pattern in stream.blocks(Pattern).items():
        yield f"the longest window of the pattern {name}", pattern.reach


def all_conditions(stream: Stream) -> Iterator[Tested]:
    """Yield the conditions of the patterns, of their steps and of `absent`."""
    for name, pattern in stream.blocks(Pattern).items():
        yield from own_where(stream, f"patterns.{name}", pattern.where)
        for path, text in _texts(pattern):
            yield Tested(f"patterns.{name}.{path}.where", text, event_domains(stream))
