"""Digest the rows of stored data files in one Spark job; `verify` compares the digests with the ledger.

Tasks read each file separately with Arrow, so an unreadable file does not hide others. Digests add up, so
they are computed by file, which shows the file with surplus rows.
"""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from transom.core.partitions import format_digest
from transom.storage.digest import sums_of_hashes
from transom.storage.file_faults import DamagedFile, StoredFile, batches
from transom.storage.filesystem import resolve_filesystem
from transom.storage.row_hashes import row_hashes
from transom.storage.session import parallelism
from transom.storage.tables import ARROW_TYPES, Table

FILES = 16
"""The average number of files of a task; more if otherwise there were over four tasks for each core."""
DDL = "number int, file int, block string, rows bigint, total string, fault string"
"""The columns of a task's digests; a sum of hashes may exceed 64 bits."""
SCHEMA = pa.schema([(name, ARROW_TYPES[kind]) for name, kind in map(str.split, DDL.split(", "))])
FIRST_ROW = np.zeros(1, dtype=np.int64)


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
    frames = [_digested(spark, number, table, most) for number, table in enumerate(tables) if table.files]
    digests: list[list[FileDigest]] = [[] for _ in tables]
    if not frames:
        return digests
    for row in reduce(DataFrame.unionAll, frames).toArrow().to_pylist():
        file = tables[row["number"]].files[row["file"]]
        digest = FileDigest(row["block"], file, row["rows"], int(row["total"]), row["fault"])
        digests[row["number"]].append(digest)
    return digests


def digest_text(digests: Iterable[FileDigest]) -> str:
    """Return the digest of the rows of several files, in the format of the ledger."""
    digests = list(digests)
    return format_digest(sum(of.rows or 0 for of in digests), sum(of.total for of in digests))


def _digested(spark: SparkSession, number: int, table: FilesToDigest, most: int) -> DataFrame:
    """Return the digests of a table with its number; at most `most` tasks read the files."""
    tasks = min(math.ceil(len(table.files) / FILES), most)
    return spark.range(0, len(table.files), 1, tasks).mapInArrow(_reader(number, table), DDL)


def _reader(
    number: int, table: FilesToDigest
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function of a task, which digests the files with the given numbers, by block.

    It yields a row for an unreadable file, with the fault.
    """
    blocks, files, uri = dict(table.blocks), list(table.files), table.uri
    used, schema = {"block", "hour"}.union(*blocks.values()), table.table.arrow_schema()
    schema = pa.schema([field for field in schema if field.name in used])

    def digest(file: StoredFile) -> Iterator[tuple[str | None, int | None, str, str | None]]:
        system, folder = resolve_filesystem(uri)
        sums: dict[str, tuple[int, int]] = {}
        try:
            for rows in batches(system, folder, file, schema):
                for block, of_block in _split_by_block(_with_hour(rows, file), blocks):
                    count, total = sums.get(block, (0, 0))
                    if block in blocks:
                        total += sum(sums_of_hashes(row_hashes(of_block, blocks[block]), FIRST_ROW))
                    sums[block] = count + of_block.num_rows, total
        except DamagedFile as error:
            yield None, None, "0", str(error)
        for block, (count, total) in sums.items():
            yield block, count, str(total), None

    def read(numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for place in chain.from_iterable(batch.column(0).to_pylist() for batch in numbers):
            rows = [dict(zip(SCHEMA.names, (number, place, *of), strict=True)) for of in digest(files[place])]
            if rows:
                yield pa.RecordBatch.from_pylist(rows, SCHEMA)

    return read


def _with_hour(rows: pa.RecordBatch, file: StoredFile) -> pa.RecordBatch:
    """Return rows with the hour of their file, which is its partition; the file does not contain it."""
    place = rows.schema.get_field_index("hour")
    hour = pa.scalar(file.hour, rows.schema.field(place).type)
    return rows.set_column(place, rows.schema.field(place), pa.repeat(hour, rows.num_rows))


def _split_by_block(rows: pa.RecordBatch, blocks: Collection[str]) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield each block and its rows; a table without the column `block` has one block."""
    if "block" not in rows.schema.names:
        yield next(iter(blocks)), rows
        return
    values = rows.column("block")
    for block in values.unique().to_pylist():
        yield block, rows.filter(pc.equal(values, block))
