"""Damage to a lake's tables, as disks, users and other programs cause it."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake

Damaging = Callable[[str, str, datetime | None], str]
"""Damages a table of a lake, in one hour if its files are partitioned by hour; returns the file's path."""


def file_of(root: str, table: str, hour: datetime | None = None) -> Path:
    """Return the largest data file of a table, or of one hour of it."""
    opened = DeltaTable(f"{root}/{table}")
    rows = pa.table(opened.get_add_actions(flatten=True)).to_pylist()
    rows = [row for row in rows if hour is None or row.get("partition.hour", hour) == hour]
    largest = max(rows, key=lambda row: (row["size_bytes"], row["path"]))
    return Path(root) / table / unquote(largest["path"])


def truncated(root: str, table: str, hour: datetime | None = None) -> str:
    """Cut a data file in half."""
    path = file_of(root, table, hour)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    return path.name


def missing(root: str, table: str, hour: datetime | None = None) -> str:
    """Delete a data file."""
    path = file_of(root, table, hour)
    path.unlink()
    return path.name


def flipped(root: str, table: str, hour: datetime | None = None) -> str:
    """Flip bits of a data file, in its first pages, without changing its size."""
    path = file_of(root, table, hour)
    content = bytearray(path.read_bytes())
    for at in range(8, min(len(content) - 8, 400), 7):
        content[at] ^= 0x55
    path.write_bytes(content)
    return path.name


def changed(root: str, table: str, hour: datetime | None = None) -> str:
    """Replace a data file by one of the same size and number of rows, of which the first differs, as after a
    bit flip in a value.
    """
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
    # The footer gives the offsets of the pages, so that the bytes between are not read.
    path.write_bytes(content[:footer] + bytes(before - len(content)) + content[footer:])
    return path.name


def _other(name: str, value: object) -> object:
    """Return another value of the same type, number or text."""
    if name == "block" or isinstance(value, bool):
        return value
    return value + 1 if isinstance(value, int | float) else f"{value}." if isinstance(value, str) else value


def added(root: str, table: str, hour: datetime | None = None) -> str:
    """Append an existing row twice, as another program might. A table without rows gets one with nothing but
    an hour. Appending once would copy a file of one row, which cannot be distinguished.
    """
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
    """Delete an entry in the middle of a table's log, so that it cannot be opened; of a log of two entries
    the first. With a checkpoint, the table needs no earlier entry, so checkpoints are deleted, too.
    """
    log = Path(root) / table / "_delta_log"
    for checkpoint in (*log.glob("*.checkpoint*"), *log.glob("_last_checkpoint")):
        checkpoint.unlink()
    entries = sorted(log.glob("*.json"))
    entry = entries[(len(entries) - 1) // 2]
    entry.unlink()
    return entry.name


def without_last_entry(root: str, table: str, hour: datetime | None = None) -> str:
    """Delete the last entry of a table's log, so that the table has its previous version."""
    entry = sorted((Path(root) / table / "_delta_log").glob("*.json"))[-1]
    entry.unlink()
    return entry.name
