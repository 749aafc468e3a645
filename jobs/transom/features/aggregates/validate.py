"""Validate blocks of aggregates against the columns of the stream and the other blocks."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta

from transom.core.intervals import HOUR
from transom.features.aggregates.output_columns import (
    AGGREGATE_COLUMNS,
    GRANULE_COLUMNS,
    ITEM_COLUMNS,
    aggregate_types,
    columns_of,
    sound,
    state_of,
)
from transom.features.aggregates.spec import UNNAMED, Aggregation
from transom.formats.record_format import NUMERIC, FieldType
from transom.spec.errors import Issue, find_duplicates, no_column, of_expression
from transom.spec.expressions import ExpressionError, condition
from transom.spec.expressions.compiler import type_with_article
from transom.spec.impossible_conditions import own_where
from transom.spec.stream import Stream
from transom.spec.titles import title_problems
from transom.spec.validate import condition_problems, key_problems
from transom.spec.value_domains import Domain, Tested, because


def problems(stream: Stream) -> Iterator[Issue]:
    """Yield the problems of a stream's blocks. Each block is valid by itself."""
    blocks = stream.blocks(Aggregation)
    if any(block.key == stream.key for block in blocks.values()):
        yield from _reserved("key", stream.key)
    for name, block in blocks.items():
        yield from _block(name, block, stream)
    yield from _ambiguous(stream)


def lookback(stream: Stream) -> Iterator[tuple[str, timedelta]]:
    """Yield the widest range of all windows."""
    blocks = stream.blocks(Aggregation).values()
    yield "the widest range", max((level.range for block in blocks for level in block.levels), default=HOUR)


def _block(name: str, block: Aggregation, stream: Stream) -> Iterator[Issue]:
    place = f"aggregates.{name}"
    # Problems of the stream's own key and condition are reported there, once.
    if block.key != stream.key:
        yield from key_problems(f"{place}.key", block.key, stream)
        yield from _reserved(f"{place}.key", block.key)
    if block.where is not None and block.where != stream.where:
        yield from condition_problems(f"{place}.where", block.where, stream.event_types)
    if block.recurring:
        yield from _recurring(f"{place}.recurring", block, stream)
    yield from _measures(f"{place}.measures", block, stream)
    # Without valid columns, the types of aggregates are unknown.
    if block.alert and sound(stream, name):
        yield from _alerts(f"{place}.alert", block, aggregate_types(stream, name))


def _reserved(place: str, key: Sequence[str]) -> Iterator[Issue]:
    for index, name in enumerate(key):
        if name in (*AGGREGATE_COLUMNS, *GRANULE_COLUMNS):
            table = "report" if name in AGGREGATE_COLUMNS else "granule"
            rule = f"{name} is a column that every {table} has; choose another name"
            yield Issue(f"{place}[{index}]", rule)


def _recurring(place: str, block: Aggregation, stream: Stream) -> Iterator[Issue]:
    for index, name in enumerate(block.recurring):
        if name not in stream.event_columns:
            yield no_column(f"{place}[{index}]", name, stream.event_columns)
        elif name in block.key:
            rule = f"{name} is a column of the key; every item of a key has the same"
            yield Issue(f"{place}[{index}]", rule)
    for name in dict.fromkeys([*block.key, *block.recurring]):
        if name in ITEM_COLUMNS:
            yield Issue(place, f"{name} is a column that every recurring item has; choose another name")
    yield from find_duplicates(place, block.recurring)


def _measures(place: str, block: Aggregation, stream: Stream) -> Iterator[Issue]:
    types = stream.event_types
    numeric = [name for name, kind in types.items() if kind in NUMERIC]
    for name, measure in block.measures.items():
        column, function = measure.column, measure.function
        known = list(stream.event_columns) if function == "distinct" else numeric
        if column is None or column in known:
            continue
        if column in stream.event_columns:
            rule = f"{function} takes an integer or a number; {column} is a {types[column]}"
            yield Issue(f"{place}.{name}", rule)
        else:
            yield no_column(f"{place}.{name}", column, known, f" in {str(measure)!r}")


def _alerts(place: str, block: Aggregation, types: Mapping[str, FieldType]) -> Iterator[Issue]:
    for name, alert in block.alert.items():
        bare = name == UNNAMED and alert.model_fields_set == {"when"}
        at = place if bare else f"{place}.{name}"
        if alert.level is not None and alert.level >= len(block.levels):
            rule = f"must be the number of a level, from 0 to {len(block.levels) - 1}"
            yield Issue(f"{at}.level", f"{rule}; got {alert.level}")
        try:
            columns = condition(alert.when, types).columns
        except ExpressionError as error:
            yield of_expression(at if bare else f"{at}.when", error, ("key",))
            continue
        if UNNAMED in (*block.key, *columns):
            yield Issue(at, f"{UNNAMED} is a column that every alert has; choose another name")
        if alert.title is not None:
            allowed = {*block.key, *columns, "level", "window_start", "window_end", "count"}
            rule = "a title names columns of the key and of its condition"
            yield from title_problems(f"{at}.title", alert.title, [n for n in types if n in allowed], rule)


def _ambiguous(stream: Stream) -> Iterator[Issue]:
    """Yield an issue for each column name with two meanings or two types."""
    blocks = stream.blocks(Aggregation)
    figures = {block: columns_of(stream, block) for block in blocks}
    seen: dict[str, tuple[str, FieldType]] = {}
    for block, measures in figures.items():
        for name, columns in measures.items():
            at = f"aggregates.{block}.measures.{name}"
            meanings = ["a column that every report has"] if name in AGGREGATE_COLUMNS else []
            meanings += [f"a column of the key{_of(b, block)}" for b in blocks if name in blocks[b].key]
            meanings += [
                f"a column of the measure {m}" for m in measures if m != name and name in measures[m]
            ]
            if meanings:
                yield Issue(at, f"{name} is {meanings[0]}; choose another name")
                continue
            for column, kind in columns.items():
                first, first_kind = seen.setdefault(column, (block, kind))
                if first_kind != kind:
                    own, other = type_with_article(kind), type_with_article(first_kind)
                    rule = f"{column} would be {own} here and {other} in block {first}"
                    yield Issue(at, f"{rule}; choose another name")
                    break
        for name in blocks[block].key:
            if meaning := next(_other_meanings(name, block, figures, blocks), None):
                yield Issue(f"aggregates.{block}.key", f"{name} is {meaning}; choose another name")


def _other_meanings(
    name: str,
    block: str,
    figures: Mapping[str, Mapping[str, Mapping[str, FieldType]]],
    blocks: Mapping[str, Aggregation],
) -> Iterator[str]:
    """Yield the other meanings of a column of a block's key, in any block."""
    for other, measures in figures.items():
        for measure, columns in measures.items():
            spec = blocks[other].measures[measure]
            if name in columns and name != measure:
                yield f"a column of the measure {measure}{_of(other, block)}"
            if columns and spec.column is not None and name in state_of(spec.function, spec.column):
                yield f"a column of the granules for {spec.column}{_of(other, block)}"


def _of(other: str, block: str) -> str:
    return "" if other == block else f" of block {other}"


COUNT = Domain(low=1, whole=True, null=False)
"""The domain of a count of records: a window or a granule has a row only if it has a record."""


def count_domains(stream: Stream, block: str) -> dict[str, Domain]:
    """Return the domains of a block's counts of records and of distinct values; none for an unknown block."""
    blocks = stream.blocks(Aggregation)
    domains = {"count": COUNT, "distinct": Domain(low=0, whole=True)}
    measures = blocks[block].measures if block in blocks else {}
    return {name: domains[m.function] for name, m in measures.items() if m.function in domains}


def conditions(stream: Stream) -> Iterator[Tested]:
    """Yield the conditions of the blocks."""
    for name, block in stream.blocks(Aggregation).items():
        yield from own_where(stream, f"aggregates.{name}", block.where)
        counts = count_domains(stream, name) | {"count": COUNT}
        for alert, spec in block.alert.items():
            low, high = (0, len(block.levels) - 1) if spec.level is None else (spec.level, spec.level)
            hint = (
                f"a window without a record is no row; frames over {name} find keys that are silent, with "
                "missing: satisfies and known: 1 day"
            )
            reason = because(spec.when, counts, hint)
            domains = counts | {"level": Domain(low, high, whole=True)}
            yield Tested(f"aggregates.{name}.alert.{alert}.when", spec.when, domains, reason)
