"""The columns of aggregate's tables: how the key, the figures and the state of a block are called there.

All blocks of a stream stand in one table, so that a column must not mean two things: not within a
block, where one would overwrite the other, and not between blocks, which may share a figure's column
as long as it is of one type.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING

from transom.formats.record_format import FieldType
from transom.spec.errors import Problem

if TYPE_CHECKING:
    from transom.spec.stream import Stream

GRANULE_COLUMNS = ("hour", "block", "granule", "records")
"""Columns of `granules` beside keys and state."""

REPORT_COLUMNS = ("hour", "block", "level", "window_start", "window_end", "count", "complete")
"""Columns of `aggregates` beside keys and figures."""

ITEM_COLUMNS = ("hour", "block", "window_end", "counts", "complete", "granule", "records")
"""Columns of `recurring` and `item_granules` beside keys and items."""

NUMERIC: tuple[FieldType, ...] = ("integer", "number")


def state_columns(column: str) -> dict[str, FieldType]:
    """Return the columns of `granules` that hold the sums of a measured column, in whole units."""
    return {f"{figure}_{column}": "integer" for figure in ("values", "sum", "min", "max")}


def hash_column(column: str) -> str:
    """Return the column of `granules` that holds hashes of a column whose distinct values are counted."""
    return f"hashes_{column}"


def line_columns(name: str) -> dict[str, FieldType]:
    """Return the columns of `aggregates` that hold the line of a measure."""
    return {
        f"units_{name}": "integer",
        f"slope_{name}": "number",
        f"slope_per_second_{name}": "number",
        f"intercept_{name}": "number",
    }


def measure_columns(
    name: str, function: str, kind: FieldType | None, fitted: bool, aged: bool
) -> dict[str, FieldType]:
    """Return the columns of `aggregates` that hold a measure: itself first, then what goes with it.

    Args:
        kind: the type of the measured column, integer or number unless its values are counted; None where
            records are counted.
        fitted: whether it has a line.
        aged: whether its mean is also told with levels weighed.
    """
    if function == "distinct":
        return {name: "integer", f"error_{name}": "number"}
    line = line_columns(name) if fitted else {}
    if kind is None:
        return {name: "integer", **line}
    return {
        name: "number" if function == "mean" else kind,
        f"values_{name}": "integer",
        f"sum_{name}": kind,
        f"mean_{name}": "number",
        f"min_{name}": kind,
        f"max_{name}": kind,
        **({f"aged_mean_{name}": "number"} if aged else {}),
        **line,
    }


def columns_of(stream: "Stream", block: str) -> dict[str, dict[str, FieldType]]:
    """Return the columns of each measure of a block.

    They are none for one whose column is not there, or no number where it takes one."""
    types, spec = stream.event_types, stream.aggregate[block]
    found: dict[str, dict[str, FieldType]] = {}
    for name, measure in spec.measures.items():
        kind = None if measure.column is None else types.get(measure.column)
        sound = measure.column is None or kind in (
            NUMERIC if measure.function != "distinct" else types.values()
        )
        columns = measure_columns(name, measure.function, kind, spec.fit is not None, spec.aging is not None)
        found[name] = columns if sound else {}
    return found


def sound(stream: "Stream", block: str) -> bool:
    """Return whether the columns of a block are known; else its own problems say what is wrong."""
    known = all(name in stream.event_columns for name in stream.aggregate[block].key)
    return known and all(columns_of(stream, block).values())


def problems(stream: "Stream") -> Iterator[Problem]:
    """Yield each name by which a column would mean two things."""
    by_block = {block: columns_of(stream, block) for block in stream.aggregate}
    seen: dict[str, tuple[str, FieldType]] = {}
    for block, measures in by_block.items():
        for name in measures:
            at = f"aggregate.{block}.measures.{name}"
            meaning = _meaning(name, block, measures, stream)
            if meaning:
                yield Problem(at, f"{name} is {meaning}; choose another name")
                continue
            for column, kind in measures[name].items():
                other, known = seen.setdefault(column, (block, kind))
                if known != kind:
                    kinds = f"{_a(kind)} here and {_a(known)} in block {other}"
                    yield Problem(at, f"{column} would be {kinds}; choose another name")
                    break
        for name in stream.aggregate[block].key:
            yield from _key(name, block, by_block, stream)


def _meaning(
    name: str, block: str, measures: Mapping[str, Mapping[str, FieldType]], stream: "Stream"
) -> str | None:
    """What else a measure's name means, None where nothing."""
    if name in REPORT_COLUMNS:
        return "a column that every report has"
    for other, aggregation in stream.aggregate.items():
        if name in aggregation.key:
            return f"a column of the key{_of(other, block)}"
    owners = (owner for owner, columns in measures.items() if owner != name and name in columns)
    return next((f"a figure of {owner}" for owner in owners), None)


def _key(
    name: str, block: str, by_block: Mapping[str, Mapping[str, Mapping[str, FieldType]]], stream: "Stream"
) -> Iterator[Problem]:
    """What a column of a key would mean as well, in whichever block."""
    at = f"aggregate.{block}.key"
    for other, measures in by_block.items():
        for measure, columns in measures.items():
            of = stream.aggregate[other].measures[measure]
            if name in columns and name != measure:
                yield Problem(at, f"{name} is a figure of {measure}{_of(other, block)}; choose another name")
                return
            if columns and of.column is not None and name in _state_of(of.function, of.column):
                what = f"a column of the granules for {of.column}{_of(other, block)}"
                yield Problem(at, f"{name} is {what}; choose another name")
                return


def _state_of(function: str, column: str) -> Collection[str]:
    return {hash_column(column)} if function == "distinct" else state_columns(column)


def _of(other: str, block: str) -> str:
    return "" if other == block else f" of block {other}"


def _a(kind: FieldType) -> str:
    return "an integer" if kind == "integer" else f"a {kind}"
