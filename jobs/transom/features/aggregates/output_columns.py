"""The columns of aggregates' tables: how the key, the figures and the state of a block are called there.

All blocks of a stream stand in one table, so that a column must not mean two things: not within a
block, where one would overwrite the other, and not between blocks, which may share a figure's column
as long as it is of one type.
"""

from collections.abc import Collection, Iterator

from transom.features.aggregates.spec import Aggregation
from transom.formats.record_format import NUMERIC, FieldType
from transom.spec.block_columns import BlockColumns, Use, sql_of, tested
from transom.spec.stream import Stream

GRANULE_COLUMNS = ("hour", "block", "granule", "records")
"""Columns of `granules` beside keys and state."""

REPORT_COLUMNS = ("hour", "block", "level", "window_start", "window_end", "count", "complete")
"""Columns of `aggregates` beside keys and figures."""

ITEM_COLUMNS = ("hour", "block", "window_end", "counts", "complete", "granule", "records")
"""Columns of `recurring` and `item_granules` beside keys and items."""


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
    types, spec = stream.event_types, stream.blocks(Aggregation)[block]
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
    known = all(name in stream.event_columns for name in stream.blocks(Aggregation)[block].key)
    return known and all(columns_of(stream, block).values())


def state_of(function: str, column: str) -> Collection[str]:
    """Return the columns of `granules` that a measure needs."""
    return {hash_column(column)} if function == "distinct" else state_columns(column)


def report_types(stream: Stream, block: str) -> dict[str, FieldType]:
    """Return the types that checks of a block's reports see.

    They are the key, `level`, `window_start`, `window_end`, `count`, and the columns of each measure.
    """
    types: dict[str, FieldType] = {
        "level": "integer",
        "window_start": "timestamp",
        "window_end": "timestamp",
        "count": "integer",
    }
    types |= {name: stream.event_types[name] for name in stream.blocks(Aggregation)[block].key}
    for columns in columns_of(stream, block).values():
        types |= columns
    return types


def columns_read(stream: Stream) -> Iterator[BlockColumns]:
    """Yield what each block needs of the events."""
    for name, block in stream.blocks(Aggregation).items():
        where = stream.where_of(block)
        measured = {measure.column for measure in block.measures.values() if measure.column is not None}
        read = Use(frozenset({*block.recurring, *measured}), sql_of(where))
        yield BlockColumns(name, block.key, sql_of(where), (*tested(where), read))
