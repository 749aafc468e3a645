"""The digests of what tables hold, computed anew: one Spark job for all tables.

Tasks read the files with Arrow, each file apart: one that cannot be read says so, and hides nothing of the
others. Digests add up, so each is computed by file: which file has rows too many can be told.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from transom.storage import digest as digests
from transom.storage.file_faults import DamagedFile, StoredFile, batches
from transom.storage.filesystem import resolve_filesystem
from transom.storage.tables import Table

FILE, FAULT = "__file", "__fault"
FILES = 16
"""Files that a task reads, on average, up to the tasks that the session runs at a time."""


@dataclass(frozen=True)
class Recount:
    """What is counted of one table at one version.

    Attributes:
        uri: where the table is, as an executor finds it.
        files: the files to read.
        blocks: the columns that the digest of a block is over, by block; rows of others have no digest.
    """

    table: Table
    uri: str
    files: Sequence[StoredFile]
    blocks: Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Total:
    """Rows of one block in one file.

    Attributes:
        rows: how many; None of a file that cannot be read.
        total: the sum of the hashes of its rows.
        fault: why the file cannot be read.
    """

    block: str | None
    file: StoredFile
    rows: int | None
    total: int = 0
    fault: str | None = None


def recount(spark: SparkSession, counts: Sequence[Recount]) -> list[list[Total]]:
    """What each of some tables holds, by file and block."""
    frames = [_hashed(spark, number, of) for number, of in enumerate(counts) if of.files]
    found: list[list[Total]] = [[] for _ in counts]
    if not frames:
        return found
    by_file = reduce(DataFrame.unionAll, frames).groupBy("number", FILE, "block")
    rows = by_file.agg(
        F.sum(F.when(F.col(FAULT).isNull(), 1).otherwise(0)).alias("rows"),
        F.max(FAULT).alias("fault"),
        digests.total_hash(F.col(digests.HASH)).alias("total"),
    )
    for row in rows.toArrow().to_pylist():
        file = counts[row["number"]].files[row[FILE]]
        if row["fault"] is not None:
            found[row["number"]].append(Total(None, file, None, fault=row["fault"]))
        else:
            found[row["number"]].append(Total(row["block"], file, row["rows"], int(row["total"] or 0)))
    return found


def digest_text(totals: Iterable[Total]) -> str:
    """The digest of the rows of several files, as the ledger writes it."""
    totals = list(totals)
    return f"{sum(total.rows or 0 for total in totals)}:{sum(total.total for total in totals)}"


def _hashed(spark: SparkSession, number: int, of: Recount) -> DataFrame:
    """A row for each row of a table: the number of its file, its block and its hash."""
    blocked = "block" in of.table.columns
    used = {name for columns in of.blocks.values() for name in columns} | ({"block"} if blocked else set())
    columns = {name: kind for name, kind in of.table.columns.items() if name in used or name == "hour"}
    ddl = ", ".join(f"`{name}` {kind}" for name, kind in columns.items())
    tasks = min(math.ceil(len(of.files) / FILES), max(spark.sparkContext.defaultParallelism, 1) * 4)
    rows = spark.range(0, len(of.files), 1, tasks).mapInArrow(
        _reader(of, list(columns)), f"{ddl}, {FILE} int, {FAULT} string"
    )
    block = "block" if blocked else f"'{next(iter(of.blocks))}'"
    cases = " ".join(
        f"WHEN '{name}' THEN {digests.row_hash_sql(rows.schema, block_columns)}"
        for name, block_columns in of.blocks.items()
    )
    hashed = f"CASE {block} {cases} END" if of.blocks else "CAST(NULL AS bigint)"
    return rows.selectExpr(
        f"{number} AS number", FILE, f"{block} AS block", FAULT, f"{hashed} AS {digests.HASH}"
    )


def _reader(of: Recount, columns: Sequence[str]) -> "_Reader":
    whole = of.table.arrow_schema()
    return _Reader(of.uri, list(of.files), pa.schema([whole.field(name) for name in columns]))


@dataclass(frozen=True)
class _Reader:
    """What a task does: it reads the files whose numbers it is given."""

    uri: str
    files: Sequence[StoredFile]
    schema: pa.Schema

    def __call__(self, numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        system, folder = resolve_filesystem(self.uri)
        # The hour is the file's partition and not in it.
        stored = pa.schema([field for field in self.schema if field.name != "hour"])
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                file = self.files[number]
                try:
                    for rows in batches(system, folder, file, stored):
                        yield self._marked(rows, number, file.hour, None)
                except DamagedFile as error:
                    nothing = [pa.nulls(1, field.type) for field in stored]
                    none = pa.RecordBatch.from_arrays(nothing, schema=stored)
                    yield self._marked(none, number, file.hour, str(error))

    def _marked(
        self, rows: pa.RecordBatch, number: int, hour: datetime | None, fault: str | None
    ) -> pa.RecordBatch:
        count = rows.num_rows
        columns = [
            pa.array([hour and hour.astimezone(UTC)] * count, field.type)
            if field.name == "hour"
            else rows[field.name]
            for field in self.schema
        ]
        columns += [pa.array([number] * count, pa.int32()), pa.array([fault] * count, pa.string())]
        schema = self.schema.append(pa.field(FILE, pa.int32())).append(pa.field(FAULT, pa.string()))
        return pa.RecordBatch.from_arrays(columns, schema=schema)
