"""The first rows of aggregates, for `transom try`."""

from collections.abc import Sequence
from typing import Any

from deltalake import DeltaTable

from transom.core.durations import format_duration
from transom.core.terminal_tables import table
from transom.features.aggregates.output_columns import columns_of
from transom.features.aggregates.spec import Aggregation
from transom.spec.stream import Stream
from transom.storage.tables import query

ROWS = 5
"""The number of printed rows of each result."""


def print_aggregates(stream: Stream, root: str) -> None:
    """Print the first rows of each block."""
    for name, block in stream.blocks(Aggregation).items():
        title = block.title or name
        measures = columns_of(stream, name)
        more = [f"{figure}_{m}" for figure in ("error", "aged_mean", "slope") for m in measures]
        existing = {column for columns in measures.values() for column in columns}
        columns = ["window_end", *block.key, *measures, *(column for column in more if column in existing)]
        which = f"of each {', '.join(block.key)} the window" if block.key else "the windows"
        for number, level in enumerate(reversed(block.levels)):
            rows = _busiest(f"{root}/aggregates", columns, block.key or ["window_end"], name, number)
            if rows:
                span = f"{format_duration(level.range)} every {format_duration(level.slide)}"
                table(f"{title}: {span}, {which} with most events", columns, rows)
        columns = ["window_end", *block.key, *block.recurring, "counts"]
        rows = _recurring(f"{root}/recurring", columns, name) if block.recurring else []
        if rows:
            ranges = ", ".join(format_duration(level.range) for level in reversed(block.levels))
            table(f"{title}: items that recur in every ring of {ranges}, the latest", columns, rows)


def _busiest(
    uri: str, columns: Sequence[str], each: Sequence[str], block: str, level: int
) -> list[list[Any]]:
    """Return the rows of a level with the most events, at most one for the values of `each`."""
    names, order = _quoted(columns), '"count" DESC, window_end'
    return _rows(
        uri,
        columns,
        f"SELECT {names} FROM (SELECT *, row_number() OVER (PARTITION BY {_quoted(each)} ORDER BY {order}) "
        f"AS place FROM t WHERE block = '{block}' AND level = {level}) WHERE place = 1 "
        f"ORDER BY {order}, {names} LIMIT {ROWS}",
    )


def _recurring(uri: str, columns: Sequence[str], block: str) -> list[list[Any]]:
    """Return the recurring items of the last window, the most frequent first."""
    last = f"window_end = (SELECT max(window_end) FROM t WHERE block = '{block}')"
    rows = _rows(uri, columns, f"SELECT {_quoted(columns)} FROM t WHERE block = '{block}' AND {last}")
    return sorted(rows, key=lambda row: (-sum(row[-1]), *map(str, row)))[:ROWS]


def _rows(uri: str, columns: Sequence[str], sql: str) -> list[list[Any]]:
    """Return the result of a query over a table; an empty list if there is no table."""
    if not DeltaTable.is_deltatable(uri):
        return []
    return [[row[name] for name in columns] for row in query(DeltaTable(uri), sql).to_pylist()]


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)
