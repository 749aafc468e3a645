"""The columns of the feature's tables: keys, measures, state, and those that conditions of alerts read.

A table has the rows of all blocks of a stream. So a column has one meaning in a block, and one type in all
blocks.
"""

from collections.abc import Collection, Iterator, Mapping

from transom.features.aggregates.spec import Aggregation, Measure
from transom.formats.record_format import NUMERIC, FieldType
from transom.spec.block_columns import BlockColumns, Use, sql_of, tested
from transom.spec.expressions import Expression, condition
from transom.spec.stream import Stream

GRANULE_COLUMNS = ("hour", "block", "granule", "records")
"""Columns of `granules` without keys and state."""

AGGREGATE_COLUMNS = ("hour", "block", "level", "window_start", "window_end", "count", "complete")
"""Columns of `aggregates` without keys and measures."""

ALERT_COLUMNS = ("hour", "block", "alert", "level", "window_start", "window_end", "count", "complete")
"""Columns of `alerts` without keys and measures."""

ITEM_COLUMNS = ("hour", "block", "window_end", "counts", "complete", "granule", "records")
"""Columns of `recurring` and `item_granules` without keys and items."""


def state_columns(column: str) -> dict[str, FieldType]:
    """Return the columns of `granules` with the sums of a measured column, in units of its resolution."""
    return {f"{figure}_{column}": "integer" for figure in ("values", "sum", "min", "max")}


def hash_column(column: str) -> str:
    """Return the column of `granules` with hashes of a column whose distinct values are counted."""
    return f"hashes_{column}"


def state_of(function: str, column: str) -> Collection[str]:
    """Return the columns of `granules` that a measure needs."""
    return {hash_column(column)} if function == "distinct" else state_columns(column)


def columns_of(stream: Stream, block: str) -> dict[str, dict[str, FieldType]]:
    """Return the columns of `aggregates` for each measure of a block: itself, then those derived from it.

    A measure has no columns if its event column is unknown, or if its function needs a number and it is none.
    """
    types, spec = stream.event_types, stream.blocks(Aggregation)[block]
    return {name: _columns(name, measure, types, spec) for name, measure in spec.measures.items()}


def _columns(
    name: str, measure: Measure, types: Mapping[str, FieldType], spec: Aggregation
) -> dict[str, FieldType]:
    line: dict[str, FieldType] = {
        f"units_{name}": "integer",
        f"slope_{name}": "number",
        f"slope_per_second_{name}": "number",
        f"intercept_{name}": "number",
    }
    line = line if spec.fit else {}
    if measure.column is None:
        return {name: "integer", **line}
    kind = types.get(measure.column)
    if kind is not None and measure.function == "distinct":
        return {name: "integer", f"error_{name}": "number"}
    if kind is None or kind not in NUMERIC:
        return {}
    return {
        name: "number" if measure.function == "mean" else kind,
        f"values_{name}": "integer",
        f"sum_{name}": kind,
        f"mean_{name}": "number",
        f"min_{name}": kind,
        f"max_{name}": kind,
        **({f"aged_mean_{name}": "number"} if spec.aging else {}),
        **line,
    }


def sound(stream: Stream, block: str) -> bool:
    """Return whether the key and all measures of a block have known columns; if not, it has issues."""
    known = all(name in stream.event_columns for name in stream.blocks(Aggregation)[block].key)
    return known and all(columns_of(stream, block).values())


def aggregate_types(stream: Stream, block: str) -> dict[str, FieldType]:
    """Return the types of a block's aggregates: level, window, count, key, and columns of each measure."""
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


def alert_conditions(stream: Stream, block: str) -> dict[str, Expression]:
    """Return the compiled conditions of a block's alerts, by name."""
    types, spec = aggregate_types(stream, block), stream.blocks(Aggregation)[block]
    return {name: condition(alert.when, types) for name, alert in spec.alert.items()}


def alert_figures(stream: Stream, block: str) -> dict[str, FieldType]:
    """Return the columns that the conditions of a block read, except for key and `ALERT_COLUMNS`."""
    read = {column for met in alert_conditions(stream, block).values() for column in met.columns}
    read -= {*ALERT_COLUMNS, *stream.blocks(Aggregation)[block].key}
    return {name: kind for name, kind in aggregate_types(stream, block).items() if name in read}


def columns_read(stream: Stream) -> Iterator[BlockColumns]:
    """Yield the event columns that each block needs."""
    for name, block in stream.blocks(Aggregation).items():
        where = stream.where_of(block)
        read = Use(frozenset(block.measured.union(block.recurring)), sql_of(where))
        yield BlockColumns(name, block.key, sql_of(where), (*tested(where), read))
