"""Damage to a lake's tables, as disks, hands and other programs do it."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake

Damaging = Callable[[str, str, datetime | None], str]
"""Damages the table of a lake, in one hour where its files are by hours; returns the file's path."""


def file_of(root: str, table: str, hour: datetime | None = None) -> Path:
    """A data file of a table, the largest; of an hour, where one is given."""
    opened = DeltaTable(f"{root}/{table}")
    rows = pa.table(opened.get_add_actions(flatten=True)).to_pylist()
    rows = [row for row in rows if hour is None or row.get("partition.hour", hour) == hour]
    largest = max(rows, key=lambda row: (row["size_bytes"], row["path"]))
    return Path(root) / table / unquote(largest["path"])


def truncated(root: str, table: str, hour: datetime | None = None) -> str:
    """Cuts a data file in half."""
    path = file_of(root, table, hour)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    return path.name


def missing(root: str, table: str, hour: datetime | None = None) -> str:
    """Deletes a data file."""
    path = file_of(root, table, hour)
    path.unlink()
    return path.name


def flipped(root: str, table: str, hour: datetime | None = None) -> str:
    """Flips bits of a data file, in its first pages, under the same size."""
    path = file_of(root, table, hour)
    content = bytearray(path.read_bytes())
    for at in range(8, min(len(content) - 8, 400), 7):
        content[at] ^= 0x55
    path.write_bytes(content)
    return path.name


def changed(root: str, table: str, hour: datetime | None = None) -> str:
    """Writes a data file of the same size with as many rows, of which the first is another, as a bit that
    flips in a value does."""
    path = file_of(root, table, hour)
    before = path.stat().st_size
    rows = pq.ParquetFile(path).read().replace_schema_metadata(None)
    first = {name: _other(name, value) for name, value in rows.slice(0, 1).to_pylist()[0].items()}
    rows = pa.concat_tables([pa.Table.from_pylist([first], schema=rows.schema), rows.slice(1)])
    pq.write_table(
        rows, path, compression="zstd", compression_level=19, write_statistics=False, store_schema=False
    )
    content = path.read_bytes()
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    assert len(content) <= before, "nothing can be put in to make it as long"
    # Pages are found by their offsets, the footer from the end: nobody reads what lies between.
    path.write_bytes(content[:footer] + bytes(before - len(content)) + content[footer:])
    return path.name


def _other(name: str, value: object) -> object:
    """Another value of the same type, of a number or a text."""
    if name == "block" or isinstance(value, bool):
        return value
    return value + 1 if isinstance(value, int | float) else f"{value}." if isinstance(value, str) else value


def added(root: str, table: str, hour: datetime | None = None) -> str:
    """Appends a row that is there already, twice, as another program might; of a table without rows one that
    has an hour and else nothing. Once would make a copy of a file of one row, which nothing distinguishes."""
    opened = DeltaTable(f"{root}/{table}")
    schema = pa.schema(opened.schema().to_arrow())
    before = set(opened.file_uris())
    if before:
        path = file_of(root, table, hour)
        rows = pq.ParquetFile(path).read().slice(0, 1).to_pylist()
        stored = next(row for row in _actions(opened) if unquote(str(row["path"])).endswith(path.name))
        partition = {
            name.removeprefix("partition."): value
            for name, value in stored.items()
            if name.startswith("partition.")
        }
        rows = [{**row, **partition} for row in rows] * 2
    else:
        rows = [{"hour": hour or datetime(2020, 1, 1, tzinfo=UTC)}]
    write_deltalake(opened, pa.Table.from_pylist(rows, schema=schema), mode="append")
    (name,) = set(DeltaTable(f"{root}/{table}").file_uris()) - before
    return name.rpartition("/")[2]


def _actions(table: DeltaTable) -> list[dict[str, object]]:
    actions: list[dict[str, object]] = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    return actions


def without_entry(root: str, table: str, hour: datetime | None = None) -> str:
    """Deletes an entry in the middle of a table's log, so that it cannot be opened; of a log of two entries
    the first."""
    entries = sorted((Path(root) / table / "_delta_log").glob("*.json"))
    entry = entries[(len(entries) - 1) // 2]
    entry.unlink()
    return entry.name


def without_last_entry(root: str, table: str, hour: datetime | None = None) -> str:
    """Deletes the last entry of a table's log, so that it stands as it was before."""
    entry = sorted((Path(root) / table / "_delta_log").glob("*.json"))[-1]
    entry.unlink()
    return entry.name
