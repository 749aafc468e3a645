"""The digest of rows: equal for equal multisets of rows, in any order and any files.

`count : sum of xxhash64(names, isnull(c1), c1, isnull(c2), c2, ...)`, with columns sorted by name.

- It is a sum, because xor cancels equal rows. The two halves of the hashes are summed separately, because a
  sum of 64-bit integers overflows and a sum of decimals is slow.
- `isnull` is hashed, because xxhash64 skips nulls: otherwise a null that moves to the next column would not
  change the digest.
- Names are hashed, because values under another name are other rows. They are sorted, because the order in
  which a stream file declares columns changes no row.

No value is converted to text.
"""

from collections.abc import Iterable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, StructType

HASH = "__hash"
LOW = 2**32 - 1
"""The mask of the lower half of a hash, which is never negative; the upper half has the sign."""


def row_hash(df: DataFrame, columns: Iterable[str]) -> Column:
    """Return a 64-bit hash of some columns of a row."""
    return F.expr(row_hash_sql(df.schema, columns))


def row_hash_sql(schema: StructType, columns: Iterable[str]) -> str:
    """Return the hash as Spark SQL, which takes one call to the JVM instead of one for each column."""
    names = sorted(columns)
    parts = [f"'{' '.join(names)}'"]
    for name in names:
        parts += [f"isnull(`{name}`)", *_hash_arguments(f"`{name}`", schema[name].dataType)]
    return f"xxhash64({', '.join(parts)})"


def _hash_arguments(column: str, kind: DataType) -> list[str]:
    if isinstance(kind, ArrayType):
        return [f"size({column})", f"transform({column}, e -> {_with_null('e', kind.elementType)})"]
    return [column]


def _with_null(column: str, kind: DataType) -> str:
    """Return a struct of a nested value and whether it is null."""
    if isinstance(kind, StructType):
        inner = (_with_null(f"{column}.`{field.name}`", field.dataType) for field in kind.fields)
        return f"struct(isnull({column}), struct({', '.join(inner)}))"
    return f"struct(isnull({column}), {column})"


def digest_of(count: Column, total: Column) -> Column:
    """Return `count:sum` as text; `0:0` for no rows."""
    return F.concat_ws(":", count, F.coalesce(total, F.lit(0).cast("decimal(38,0)")))


def merge(digests: Iterable[str]) -> str:
    """Return the digest of all rows of some digests.

    >>> merge(["2:-5", "1:7"])
    '3:2'
    """
    pairs = [tuple(map(int, digest.split(":"))) for digest in digests]
    return f"{sum(count for count, _ in pairs)}:{sum(total for _, total in pairs)}"


def total_hash(column: Column) -> Column:
    """Return the sum of row hashes: exact for up to 2**31 rows, an error in Spark for more."""
    high = F.sum(F.shiftright(column, 32)).cast("decimal(38,0)")
    low = F.sum(column.bitwiseAND(F.lit(LOW))).cast("decimal(38,0)")
    return (high * F.lit(LOW + 1).cast("decimal(10,0)") + low).cast("decimal(38,0)")
