"""Compares two folders of lakes, table by table and row by row, under a mapping of names."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from reference.names import as_now, comparable, table_now

SHOWN = 3
"""Rows of a table that are shown of those that only one side has."""


def compared(old: Path, new: Path) -> tuple[list[str], int]:
    """Return what differs, a few lines a table, and how many tables are equal."""
    lines, equal = [], 0
    for table in sorted(_tables(old)):
        folder, _, name = table.rpartition("/")
        there = f"{folder}/{table_now(name)}"
        if not DeltaTable.is_deltatable(str(new / there)):
            lines.append(f"{table}: is not in {new}")
            continue
        now = table_now(name)
        ours = _counted(now, (as_now(name, row) for row in _rows(old / table)), str(old))
        theirs = _counted(now, _rows(new / there), str(new))
        missing, more = ours - theirs, theirs - ours
        if not missing and not more:
            equal += 1
            continue
        lines.append(f"{table}: {missing.total()} rows missing, {more.total()} unexpected of {ours.total()}")
        for sign, rows in (("-", missing), ("+", more)):
            lines += [f"  {sign} {row[:1500]}" for row in sorted(rows)[:SHOWN]]
    known = {f"{table.rpartition('/')[0]}/{table_now(table.rpartition('/')[2])}" for table in _tables(old)}
    lines += [f"{table}: is new" for table in sorted(set(_tables(new)) - known)]
    return lines, equal


def _tables(folder: Path) -> Iterator[str]:
    for log in folder.glob("**/_delta_log"):
        yield str(log.parent.relative_to(folder))


def _rows(table: Path) -> list[dict[str, Any]]:
    found = QueryBuilder().register("t", DeltaTable(str(table))).execute("SELECT * FROM t")
    rows: list[dict[str, Any]] = pa.RecordBatchReader.from_stream(found).read_all().to_pylist()
    return rows


def _counted(table: str, rows: Iterable[Mapping[str, Any]], folder: str) -> Counter[str]:
    kept = (comparable(table, row) for row in rows)
    return Counter(
        repr(sorted(
            (column, value.replace(folder, "") if isinstance(value, str) else value)
            for column, value in row.items()
        ))
        for row in kept
        if row is not None
    )  # fmt: skip
