"""Compares two folders of lakes, table by table and row by row, under a mapping of names."""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

SHOWN = 3
"""Rows of a table that are shown of those that only one side has."""
LEFT_OUT: Mapping[str, frozenset[str]] = {
    "hours": frozenset({"run_id"}),
    "checks": frozenset({"run_id"}),
    "runs": frozenset({"run_id", "seconds", "peak_memory_mb", "code_version", "finished_at"}),
    "files": frozenset({"last_read_source_id", "size", "modified"}),
}
"""Columns that no promise is about, by table under its old name."""
TABLES: Mapping[str, str] = {}
"""New names of tables."""
COLUMNS: Mapping[str, Mapping[str, str]] = {}
"""New names of columns, by the table's old name."""


def compared(old: Path, new: Path) -> tuple[list[str], int]:
    """Return what differs, a few lines a table, and how many tables are equal."""
    lines, equal = [], 0
    for table in sorted(_tables(old)):
        name = table.rpartition("/")[2]
        there = f"{table.rpartition('/')[0]}/{TABLES.get(name, name)}"
        if not DeltaTable.is_deltatable(str(new / there)):
            lines.append(f"{table}: is not in {new}")
            continue
        ours = _rows(old / table, name, COLUMNS.get(name, {}), str(old))
        theirs = _rows(new / there, name, {}, str(new))
        missing, more = ours - theirs, theirs - ours
        if not missing and not more:
            equal += 1
            continue
        lines.append(f"{table}: {missing.total()} rows missing, {more.total()} unexpected of {ours.total()}")
        for sign, rows in (("-", missing), ("+", more)):
            lines += [f"  {sign} {row[:900]}" for row in sorted(rows)[:SHOWN]]
    known = {
        f"{t.rpartition('/')[0]}/{TABLES.get(t.rpartition('/')[2], t.rpartition('/')[2])}"
        for t in _tables(old)
    }
    lines += [f"{table}: is new" for table in sorted(set(_tables(new)) - known)]
    return lines, equal


def _tables(folder: Path) -> Iterator[str]:
    for log in folder.glob("**/_delta_log"):
        yield str(log.parent.relative_to(folder))


def _rows(table: Path, name: str, renamed: Mapping[str, str], folder: str) -> Counter[str]:
    left_out = LEFT_OUT.get(name, frozenset())
    found = QueryBuilder().register("t", DeltaTable(str(table))).execute("SELECT * FROM t")
    rows = pa.RecordBatchReader.from_stream(found).read_all()
    return Counter(repr(sorted(_named(row, renamed, left_out, folder).items())) for row in rows.to_pylist())


def _named(
    row: Mapping[str, Any], renamed: Mapping[str, str], left_out: frozenset[str], folder: str
) -> dict[str, Any]:
    return {
        renamed.get(column, column): value.replace(folder, "") if isinstance(value, str) else value
        for column, value in row.items()
        if column not in left_out
    }
