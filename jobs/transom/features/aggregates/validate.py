"""The rules of blocks of aggregates beside the columns of the stream and other blocks."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta

from transom.core.intervals import HOUR
from transom.features.aggregates import alerts
from transom.features.aggregates.output_columns import (
    GRANULE_COLUMNS,
    ITEM_COLUMNS,
    REPORT_COLUMNS,
    columns_of,
    sound,
    state_of,
)
from transom.features.aggregates.spec import Aggregation
from transom.formats.record_format import NUMERIC, FieldType
from transom.spec.errors import Issue, find_duplicates, no_column
from transom.spec.impossible_conditions import own_where
from transom.spec.stream import Stream
from transom.spec.validate import condition_problems, key_problems
from transom.spec.value_domains import Domain, Tested, because


def problems(stream: Stream) -> Iterator[Issue]:
    """Yield what is wrong with the blocks of a stream, each of which is sound by itself."""
    blocks = stream.blocks(Aggregation)
    if any(block.key == stream.key for block in blocks.values()):
        yield from _reserved("key", stream.key)
    for name, block in blocks.items():
        yield from _block(name, block, stream)
    yield from _ambiguous(stream)


def lookback(stream: Stream) -> Iterator[tuple[str, timedelta]]:
    """Yield how far back windows reach."""
    blocks = stream.blocks(Aggregation).values()
    yield "the widest range", max((level.range for block in blocks for level in block.levels), default=HOUR)


def _block(name: str, block: Aggregation, stream: Stream) -> Iterator[Issue]:
    place = f"aggregates.{name}"
    # What a block has from the stream is reported once, there.
    if block.key != stream.key:
        yield from key_problems(f"{place}.key", block.key, stream)
        yield from _reserved(f"{place}.key", block.key)
    if block.where is not None and block.where != stream.where:
        yield from condition_problems(f"{place}.where", block.where, stream.event_types)
    yield from _recurring(f"{place}.recurring", block, stream)
    yield from _measures(place, block, stream)
    if block.alert and sound(stream, name):
        # Else its types are not known; the block's own problems say so.
        yield from alerts.problems(place, name, stream)


def _reserved(place: str, key: Sequence[str]) -> Iterator[Issue]:
    for index, name in enumerate(key):
        if name in (*REPORT_COLUMNS, *GRANULE_COLUMNS):
            what = "report" if name in REPORT_COLUMNS else "granule"
            rule = f"{name} is a column that every {what} has; name the column otherwise"
            yield Issue(f"{place}[{index}]", rule)


def _recurring(place: str, block: Aggregation, stream: Stream) -> Iterator[Issue]:
    if not block.recurring:
        return
    for index, name in enumerate(block.recurring):
        if name not in stream.event_columns:
            yield no_column(f"{place}[{index}]", name, stream.event_columns)
        elif name in block.key:
            yield Issue(
                f"{place}[{index}]", f"{name} is a column of the key; every item of a key has the same"
            )
    for name in dict.fromkeys([*block.key, *block.recurring]):
        if name in ITEM_COLUMNS:
            yield Issue(place, f"{name} is a column that every recurring item has; name the column otherwise")
    yield from find_duplicates(place, block.recurring)


def _measures(place: str, block: Aggregation, stream: Stream) -> Iterator[Issue]:
    types = stream.event_types
    numeric = [name for name, kind in types.items() if kind in NUMERIC]
    for name, measure in block.measures.items():
        at, column = f"{place}.measures.{name}", measure.column
        if column is None or column in numeric:
            continue
        if measure.function == "distinct":
            if column not in stream.event_columns:
                known = stream.event_columns
                yield no_column(at, column, known, f" in {str(measure)!r}")
            continue
        if column in stream.event_columns:
            yield Issue(at, f"{measure.function} takes an integer or a number; {column} is a {types[column]}")
        else:
            yield no_column(at, column, numeric, f" in {str(measure)!r}")


def _ambiguous(stream: Stream) -> Iterator[Issue]:
    """Yield each name by which a column would mean two things."""
    by_block = {block: columns_of(stream, block) for block in stream.blocks(Aggregation)}
    seen: dict[str, tuple[str, FieldType]] = {}
    for block, measures in by_block.items():
        for name in measures:
            at = f"aggregates.{block}.measures.{name}"
            meaning = _meaning(name, block, measures, stream)
            if meaning:
                yield Issue(at, f"{name} is {meaning}; choose another name")
                continue
            for column, kind in measures[name].items():
                other, known = seen.setdefault(column, (block, kind))
                if known != kind:
                    kinds = f"{_a(kind)} here and {_a(known)} in block {other}"
                    yield Issue(at, f"{column} would be {kinds}; choose another name")
                    break
        for name in stream.blocks(Aggregation)[block].key:
            yield from _key(name, block, by_block, stream)


def _meaning(
    name: str, block: str, measures: Mapping[str, Mapping[str, FieldType]], stream: Stream
) -> str | None:
    """What else a measure's name means, None where nothing."""
    if name in REPORT_COLUMNS:
        return "a column that every report has"
    for other, aggregation in stream.blocks(Aggregation).items():
        if name in aggregation.key:
            return f"a column of the key{_of(other, block)}"
    owners = (owner for owner, columns in measures.items() if owner != name and name in columns)
    return next((f"a figure of {owner}" for owner in owners), None)


def _key(
    name: str, block: str, by_block: Mapping[str, Mapping[str, Mapping[str, FieldType]]], stream: Stream
) -> Iterator[Issue]:
    """What a column of a key would mean as well, in whichever block."""
    at = f"aggregates.{block}.key"
    for other, measures in by_block.items():
        for measure, columns in measures.items():
            of = stream.blocks(Aggregation)[other].measures[measure]
            if name in columns and name != measure:
                yield Issue(at, f"{name} is a figure of {measure}{_of(other, block)}; choose another name")
                return
            if columns and of.column is not None and name in state_of(of.function, of.column):
                what = f"a column of the granules for {of.column}{_of(other, block)}"
                yield Issue(at, f"{name} is {what}; choose another name")
                return


def _of(other: str, block: str) -> str:
    return "" if other == block else f" of block {other}"


def _a(kind: FieldType) -> str:
    return "an integer" if kind == "integer" else f"a {kind}"


COUNT = Domain(low=1, whole=True, null=False)
"""A window, or a granule, is a row only where it has a record."""


def count_domains(stream: Stream, block: str) -> dict[str, Domain]:
    """Return what is known of the measures of a block: how many records there are, and how many values."""
    blocks = stream.blocks(Aggregation)
    if block not in blocks:
        return {}
    known = {"count": COUNT, "distinct": Domain(low=0, whole=True)}
    measures = blocks[block].measures.items()
    return {name: known[measure.function] for name, measure in measures if measure.function in known}


def conditions(stream: Stream) -> Iterator[Tested]:
    """Yield the conditions of the blocks."""
    for name, block in stream.blocks(Aggregation).items():
        yield from own_where(stream, f"aggregates.{name}", block.where)
        counts, levels = count_domains(stream, name), len(block.levels) - 1
        for alert, declared in block.alert.items():
            low, high = (0, levels) if declared.level is None else (declared.level, declared.level)
            domains = counts | {"count": COUNT, "level": Domain(low, high, whole=True)}
            why = (
                f"a window without a record is no row; frames over {name} find keys that are silent, with "
                "missing: satisfies and known: 1 day"
            )
            why = because(declared.when, counts | {"count": COUNT}, why)
            yield Tested(f"aggregates.{name}.alert.{alert}.when", declared.when, domains, why)
