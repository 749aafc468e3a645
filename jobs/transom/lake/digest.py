"""The digest of rows: equal for equal multisets of rows, in whatever order and files they stand.

`count : sum of xxhash64(names, isnull(c1), c1, isnull(c2), c2, ...)`. A sum, because xor cancels equal
rows; of decimals, because a sum of 64-bit hashes overflows; with the nulls spelt out, because xxhash64
skips them, so that a null which moves to the next column would go unseen; with the columns' names, because
values under another name are other rows. No value goes through text.
"""

from collections.abc import Iterable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType

HASH = "__hash"


def row_hash(df: DataFrame, columns: Iterable[str]) -> Column:
    """A 64-bit hash of some columns of a row, as decimal(20,0)."""
    names = list(columns)
    parts: list[Column] = [F.lit(" ".join(names))]
    for name in names:
        column = F.col(f"`{name}`")
        parts.append(column.isNull())
        parts.extend(_spelt_out(column, df.schema[name].dataType))
    return F.xxhash64(*parts).cast("decimal(20,0)")


def _spelt_out(column: Column, kind: DataType) -> list[Column]:
    if isinstance(kind, ArrayType):
        elements = F.transform(column, lambda e: F.struct(e.isNull().alias("null"), e.alias("value")))
        return [F.size(column), elements]
    return [column]


def digest_of(count: Column, total: Column) -> Column:
    """`count:sum` as text; `0:0` for no rows."""
    return F.concat_ws(":", count, F.coalesce(total, F.lit(0).cast("decimal(38,0)")))


def total_hash(column: Column) -> Column:
    """The sum of row hashes, which 2**63 rows cannot overflow."""
    return F.sum(column.cast("decimal(38,0)"))
