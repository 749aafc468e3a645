"""The digest of rows: equal for equal multisets of rows, in any order and any files.

It is `count : sum of row hashes : version of this definition`. A row's hash combines those of its columns:

    xxhash64(xxhash64(n1, c1) ^ xxhash64(n2, c2) ^ ...)

- n1 is `xxhash64` of the column's name: values under another name are other rows. The order in which a stream
  file declares columns changes no row, and `^` ignores it.
- `xxhash64` skips nulls. So null has the hash of its column's name, and no other value has.
- A column's hash depends on nothing else in the row. So it is computed once for equal texts, and a task that
  has the rows as Arrow columns computes all of them in one pass (`storage.row_hashes`).
- The outer `xxhash64` keeps the digest from being equal if rows exchange values of a column.
- An array is hashed as its size, and its elements combined in the same way, with their places as names. A
  struct is hashed as its fields, combined in the same way.
- Hashes are added, because xor cancels equal rows. The two halves of the hashes are summed separately,
  because a sum of 64-bit integers overflows and a sum of decimals is slow.

No value is converted to text. If another definition gives equal rows other digests, raise
`core.partitions.DIGEST_VERSION`.
"""

from collections.abc import Iterable

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BinaryType, DataType, DoubleType, StringType, StructType

from transom.core.exact_sums import Int64s
from transom.core.partitions import DIGEST_VERSION, EMPTY_DIGEST
from transom.storage.row_hashes import name_hash

HASH = "__hash"
HALF = 32
LOW = 2**HALF - 1
"""The mask of the lower half of a hash, which is never negative; the upper half has the sign."""


def row_hash(df: DataFrame, columns: Iterable[str]) -> Column:
    """Return a 64-bit hash of some columns of a row."""
    return F.expr(row_hash_sql(df.schema, columns))


def row_hash_sql(schema: StructType, columns: Iterable[str]) -> str:
    """Return the hash as Spark SQL, which takes one call to the JVM instead of one for each column."""
    return f"xxhash64({_combined({name: (f'`{name}`', schema[name].dataType) for name in columns})})"


def _combined(values: dict[str, tuple[str, DataType]]) -> str:
    """Return the combined hashes of the values of a row or a struct, each with its name."""
    hashes = (f"xxhash64({name_hash(name)}L, {_value(*value)})" for name, value in values.items())
    return " ^ ".join(hashes) or "0L"


def _value(value: str, kind: DataType) -> str:
    """Return what is hashed of a value; it is null if the value is."""
    if isinstance(kind, ArrayType):
        hashes = f"transform({value}, (e, i) -> xxhash64(CAST(i AS bigint), {_value('e', kind.elementType)}))"
        return f"CAST(size({value}) AS bigint), aggregate({hashes}, 0L, (all, of) -> all ^ of)"
    if isinstance(kind, StructType):
        fields = {field.name: (f"{value}.`{field.name}`", field.dataType) for field in kind.fields}
        return f"CASE WHEN {value} IS NOT NULL THEN {_combined(fields)} END"
    if isinstance(kind, StringType | BinaryType | DoubleType):
        return value
    # All whole numbers, truth values and times have 64 bits.
    return f"unix_micros({value})" if kind.typeName() == "timestamp" else f"CAST({value} AS bigint)"


def digest_of(count: Column, total: Column) -> Column:
    """Return the digest from the number and `total_hash` of rows, as `format_digest` does."""
    parts = F.concat_ws(":", count, total, F.lit(f"v{DIGEST_VERSION}"))
    return F.when(count > 0, parts).otherwise(EMPTY_DIGEST)


def total_hash(column: Column) -> Column:
    """Return the sum of row hashes: exact for up to 2**31 rows, an error in Spark for more."""
    high = F.sum(F.shiftright(column, HALF)).cast("decimal(38,0)")
    low = F.sum(column.bitwiseAND(F.lit(LOW))).cast("decimal(38,0)")
    return (high * F.lit(LOW + 1).cast("decimal(10,0)") + low).cast("decimal(38,0)")


def sums_of_hashes(hashes: Int64s, starts: Int64s) -> list[int]:
    """Return the sum of the row hashes of each slice of rows: exact for up to 2**31 rows.

    Args:
        hashes: the hashes.
        starts: the first row of each slice.
    """
    halves = (np.add.reduceat(half, starts).tolist() for half in (hashes >> HALF, hashes & LOW))
    return [(high << HALF) + low for high, low in zip(*halves, strict=True)]
