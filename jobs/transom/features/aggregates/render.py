"""The first rows of aggregates, for `transom try`."""

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from transom.core.durations import format_duration
from transom.core.terminal_tables import table
from transom.features.aggregates.output_columns import columns_of
from transom.features.aggregates.spec import Aggregation
from transom.spec.stream import Stream
from transom.storage.tables import query

ROWS = 5
"""Rows of each result that are shown."""


def print_figures(stream: Stream, root: str) -> None:
    """Prints the first rows of each block of figures."""
    for name, block in stream.blocks(Aggregation).items():
        for number, level in enumerate(reversed(block.levels)):
            figures = _shown(stream, name)
            shown = ["window_end", *block.key, *figures]
            rows = _first(f"{root}/aggregates", block.key, figures, name, number)
            if rows:
                span = f"{format_duration(level.range)} every {format_duration(level.slide)}"
                which = f"of each {', '.join(block.key)} the window" if block.key else "the windows"
                table(f"{block.title or name}: {span}, {which} with most events", shown, rows)
        shown = ["window_end", *block.key, *block.recurring, "counts"]
        rows = _recurring(f"{root}/recurring", shown, name) if block.recurring else []
        if rows:
            ranges = ", ".join(format_duration(level.range) for level in reversed(block.levels))
            table(f"{block.title or name}: who comes back in every ring of {ranges}, the latest", shown, rows)


def _shown(stream: Stream, block: str) -> list[str]:
    """The measures of a block, and what it has asked for beside them."""
    more = [
        f"{figure}_{name}" for figure in ("error", "aged_mean", "slope") for name in columns_of(stream, block)
    ]
    there = {column for columns in columns_of(stream, block).values() for column in columns}
    return [*stream.blocks(Aggregation)[block].measures, *(column for column in more if column in there)]


def _first(uri: str, key: Sequence[str], measures: Iterable[str], block: str, level: int) -> list[list[Any]]:
    """The rows of one level with most events, of each key the first."""
    if not DeltaTable.is_deltatable(uri):
        return []
    columns = ["window_end", *key, *measures]
    names = ", ".join(f'"{name}"' for name in columns)
    order = '"count" DESC, window_end'
    each = ", ".join(f'"{name}"' for name in key) or "window_end"
    found = (
        QueryBuilder()
        .register("t", DeltaTable(uri))
        .execute(
            f"SELECT {names} FROM (SELECT *, row_number() OVER (PARTITION BY {each} ORDER BY {order}) "
            f"AS place FROM t WHERE block = '{block}' AND level = {level}) WHERE place = 1 "
            f"ORDER BY {order}, {names} LIMIT {ROWS}"
        )
    )
    rows = pa.RecordBatchReader.from_stream(found).read_all().to_pylist()
    return [[row[name] for name in columns] for row in rows]


def _recurring(uri: str, columns: Sequence[str], block: str) -> list[list[Any]]:
    """The recurring items that were reported last, those first that came most often."""
    if not DeltaTable.is_deltatable(uri):
        return []
    names = ", ".join(f'"{name}"' for name in columns)
    last = f"window_end = (SELECT max(window_end) FROM t WHERE block = '{block}')"
    found = query(DeltaTable(uri), f"SELECT {names} FROM t WHERE block = '{block}' AND {last}").to_pylist()
    found.sort(key=lambda row: (-sum(row["counts"]), *(str(row[name]) for name in columns)))
    return [[row[name] for name in columns] for row in found[:ROWS]]
