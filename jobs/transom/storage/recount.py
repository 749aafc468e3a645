"""The digests of what tables hold, computed anew: one Spark job for all tables.

Tasks read each file by itself with Arrow, so that an unreadable file hides no other. Digests add up, so each
is computed by file, which shows the file that has too many rows.
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

from transom.storage import digest as digests
from transom.storage.file_faults import DamagedFile, StoredFile, batches
from transom.storage.filesystem import resolve_filesystem
from transom.storage.tables import Table

FILE, FAULT = "__file", "__fault"
FILES = 16
"""Mean number of files of a task, while there are fewer tasks than four times those that run at a time."""


@dataclass(frozen=True)
class Recount:
    """What to count of one table at one version.

    Attributes:
        uri: where the table is, for an executor.
        files: the files to read.
        blocks: the columns of the digest, by block; rows of other blocks have no digest.
    """

    table: Table
    uri: str
    files: Sequence[StoredFile]
    blocks: Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Total:
    """Rows of one block in one file.

    Attributes:
        rows: their number; None if the file cannot be read.
        total: the sum of their hashes.
        fault: why the file cannot be read.
    """

    block: str | None
    file: StoredFile
    rows: int | None
    total: int = 0
    fault: str | None = None


def recount(spark: SparkSession, counts: Sequence[Recount]) -> list[list[Total]]:
    """Return the totals of each table, by file and block."""
    frames = [_hashed(spark, number, count) for number, count in enumerate(counts) if count.files]
    totals: list[list[Total]] = [[] for _ in counts]
    if not frames:
        return totals
    by_file = reduce(DataFrame.unionAll, frames).groupBy("number", FILE, "block")
    rows = by_file.agg(
        F.sum(F.when(F.col(FAULT).isNull(), 1).otherwise(0)).alias("rows"),
        F.max(FAULT).alias("fault"),
        digests.total_hash(F.col(digests.HASH)).alias("total"),
    )
    for row in rows.toArrow().to_pylist():
        file = counts[row["number"]].files[row[FILE]]
        if row["fault"] is not None:
            total = Total(None, file, None, fault=row["fault"])
        else:
            total = Total(row["block"], file, row["rows"], int(row["total"] or 0))
        totals[row["number"]].append(total)
    return totals


def digest_text(totals: Iterable[Total]) -> str:
    """Return the digest of the rows of several files, as the ledger has it."""
    totals = list(totals)
    return f"{sum(total.rows or 0 for total in totals)}:{sum(total.total for total in totals)}"


def _hashed(spark: SparkSession, number: int, count: Recount) -> DataFrame:
    """Return a row for each row of a table: the number of its file, its block and its hash."""
    has_block = "block" in count.table.columns
    used = {"hour", *(["block"] if has_block else [])}.union(*count.blocks.values())
    columns = {name: kind for name, kind in count.table.columns.items() if name in used}
    ddl = ", ".join(f"`{name}` {kind}" for name, kind in columns.items())
    tasks = min(math.ceil(len(count.files) / FILES), max(spark.sparkContext.defaultParallelism, 1) * 4)
    whole = count.table.arrow_schema()
    read = _reader(count.uri, list(count.files), pa.schema([whole.field(name) for name in columns]))
    rows = spark.range(0, len(count.files), 1, tasks).mapInArrow(read, f"{ddl}, {FILE} int, {FAULT} string")
    block = "block" if has_block else f"'{next(iter(count.blocks))}'"
    cases = " ".join(
        f"WHEN '{name}' THEN {digests.row_hash_sql(rows.schema, block_columns)}"
        for name, block_columns in count.blocks.items()
    )
    hashed = f"CASE {block} {cases} END" if count.blocks else "CAST(NULL AS bigint)"
    return rows.selectExpr(
        f"{number} AS number", FILE, f"{block} AS block", FAULT, f"{hashed} AS {digests.HASH}"
    )


def _reader(
    uri: str, files: Sequence[StoredFile], schema: pa.Schema
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function of a task, which reads the files whose numbers it gets.

    An unreadable file gives one row, with its fault.
    """
    # The hour is the partition of a file, and not in it.
    stored = pa.schema([field for field in schema if field.name != "hour"])
    output = pa.schema([*schema, pa.field(FILE, pa.int32()), pa.field(FAULT, pa.string())])

    def mark(rows: pa.RecordBatch, number: int, fault: str | None) -> pa.RecordBatch:
        hour = files[number].hour
        added = {"hour": hour and hour.astimezone(UTC), FILE: number, FAULT: fault}
        columns = [
            pa.array([added[field.name]] * rows.num_rows, field.type)
            if field.name in added
            else rows[field.name]
            for field in output
        ]
        return pa.RecordBatch.from_arrays(columns, schema=output)

    def read(numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        system, folder = resolve_filesystem(uri)
        for number in chain.from_iterable(batch.column(0).to_pylist() for batch in numbers):
            try:
                for rows in batches(system, folder, files[number], stored):
                    yield mark(rows, number, None)
            except DamagedFile as error:
                nulls = [pa.nulls(1, field.type) for field in stored]
                yield mark(pa.RecordBatch.from_arrays(nulls, schema=stored), number, str(error))

    return read
