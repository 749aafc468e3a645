"""Digest the rows of stored data files in one Spark job; `verify` compares the digests with the ledger.

Tasks read each file separately with Arrow, so an unreadable file does not hide others. Digests add up, so
they are computed by file, which shows the file with surplus rows.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from functools import reduce
from itertools import chain

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from transom.storage.digest import HASH, row_hash_sql, total_hash
from transom.storage.file_faults import DamagedFile, StoredFile, batches
from transom.storage.filesystem import resolve_filesystem
from transom.storage.session import parallelism
from transom.storage.tables import Table

FILE, FAULT = "__file", "__fault"
FILES = 16
"""The average number of files of a task; more if otherwise there were over four tasks for each core."""


@dataclass(frozen=True)
class FilesToDigest:
    """Files of one table at one version.

    Attributes:
        table: the table.
        uri: the URI or absolute path of the table, valid on an executor.
        blocks: the columns of the digest, by block; rows of other blocks have no digest.
        files: the files.
    """

    table: Table
    uri: str
    blocks: Mapping[str, Sequence[str]]
    files: Sequence[StoredFile]


@dataclass(frozen=True)
class FileDigest:
    """The rows of one block in one file.

    Attributes:
        block: the block; None if the file cannot be read.
        file: the file.
        rows: the number of rows; None if the file cannot be read.
        total: the sum of the hashes of the rows.
        fault: why the file cannot be read.
    """

    block: str | None
    file: StoredFile
    rows: int | None
    total: int = 0
    fault: str | None = None


def file_digests(spark: SparkSession, tables: Sequence[FilesToDigest]) -> list[list[FileDigest]]:
    """Return the digests of each table, by file and block."""
    most = parallelism(spark) * 4
    frames = [_hashed(spark, number, table, most) for number, table in enumerate(tables) if table.files]
    digests: list[list[FileDigest]] = [[] for _ in tables]
    if not frames:
        return digests
    by_file = reduce(DataFrame.unionAll, frames).groupBy("number", FILE, "block")
    rows = by_file.agg(
        F.sum(F.when(F.col(FAULT).isNull(), 1).otherwise(0)).alias("rows"),
        F.max(FAULT).alias("fault"),
        total_hash(F.col(HASH)).alias("total"),
    )
    for row in rows.toArrow().to_pylist():
        file, fault = tables[row["number"]].files[row[FILE]], row["fault"]
        if fault is None:
            digest = FileDigest(row["block"], file, row["rows"], int(row["total"] or 0))
        else:
            digest = FileDigest(None, file, None, fault=fault)
        digests[row["number"]].append(digest)
    return digests


def digest_text(digests: Iterable[FileDigest]) -> str:
    """Return the digest of the rows of several files, in the format of the ledger."""
    digests = list(digests)
    return f"{sum(digest.rows or 0 for digest in digests)}:{sum(digest.total for digest in digests)}"


def _hashed(spark: SparkSession, number: int, table: FilesToDigest, most: int) -> DataFrame:
    """Return a row for each row of a table: the number of its file, its block and its hash; at most `most`
    tasks read the files."""
    has_block = "block" in table.table.columns
    used = {"hour", *(["block"] if has_block else [])}.union(*table.blocks.values())
    columns = {name: kind for name, kind in table.table.columns.items() if name in used}
    ddl = ", ".join(f"`{name}` {kind}" for name, kind in columns.items())
    tasks = min(math.ceil(len(table.files) / FILES), most)
    whole = table.table.arrow_schema()
    read = _reader(table.uri, list(table.files), pa.schema([whole.field(name) for name in columns]))
    rows = spark.range(0, len(table.files), 1, tasks).mapInArrow(read, f"{ddl}, {FILE} int, {FAULT} string")
    block = "block" if has_block else f"'{next(iter(table.blocks))}'"
    cases = " ".join(
        f"WHEN '{name}' THEN {row_hash_sql(rows.schema, names)}" for name, names in table.blocks.items()
    )
    hashed = f"CASE {block} {cases} END" if table.blocks else "CAST(NULL AS bigint)"
    return rows.selectExpr(f"{number} AS number", FILE, f"{block} AS block", FAULT, f"{hashed} AS {HASH}")


def _reader(
    uri: str, files: Sequence[StoredFile], schema: pa.Schema
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function of a task, which reads the files with the given numbers.

    It yields one row for an unreadable file, with the fault.
    """
    # The hour is the partition of a file, so the file does not contain it.
    stored = pa.schema([field for field in schema if field.name != "hour"])
    output = pa.schema([*schema, pa.field(FILE, pa.int32()), pa.field(FAULT, pa.string())])

    def mark(rows: pa.RecordBatch, number: int, fault: str | None) -> pa.RecordBatch:
        hour = files[number].hour
        added = {"hour": hour and hour.astimezone(UTC), FILE: number, FAULT: fault}
        columns = {name: [value] * rows.num_rows for name, value in added.items()}
        columns |= dict(zip(rows.schema.names, rows.columns, strict=True))
        return pa.RecordBatch.from_pydict(columns, schema=output)

    def read(numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        system, folder = resolve_filesystem(uri)
        for number in chain.from_iterable(batch.column(0).to_pylist() for batch in numbers):
            try:
                for rows in batches(system, folder, files[number], stored):
                    yield mark(rows, number, None)
            except DamagedFile as error:
                yield mark(pa.RecordBatch.from_pylist([{}], schema=stored), number, str(error))

    return read
