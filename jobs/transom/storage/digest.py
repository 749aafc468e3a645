"""The digest of rows: equal for equal multisets of rows, in whatever order and files they stand.

`count : sum of xxhash64(names, isnull(c1), c1, isnull(c2), c2, ...)`. A sum, because xor cancels equal
rows; of the hashes' two halves, because a sum of 64-bit hashes overflows and one of decimals is slow; with
the nulls spelt out, because xxhash64 skips them, so that a null which moves to the next column would go
unseen; with the columns' names, because values under another name are other rows; in the order of the names,
because the order in which a stream's file declares columns makes no other rows. No value goes through text.
"""

from collections.abc import Iterable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, StructType

HASH = "__hash"
LOW = 2**32 - 1
"""The lower half of a hash, which is never negative; the upper half carries the sign."""


def row_hash(df: DataFrame, columns: Iterable[str]) -> Column:
    """A 64-bit hash of some columns of a row."""
    return F.expr(row_hash_sql(df.schema, columns))


def row_hash_sql(schema: StructType, columns: Iterable[str]) -> str:
    """The same as Spark SQL: one text is said to Spark at once, where columns are said one by one."""
    names = sorted(columns)
    parts = [f"'{' '.join(names)}'"]
    for name in names:
        parts += [f"isnull(`{name}`)", *_spelt_out(f"`{name}`", schema[name].dataType)]
    return f"xxhash64({', '.join(parts)})"


def _spelt_out(column: str, kind: DataType) -> list[str]:
    if isinstance(kind, ArrayType):
        return [f"size({column})", f"transform({column}, e -> {_with_null('e', kind.elementType)})"]
    return [column]


def _with_null(column: str, kind: DataType) -> str:
    """A value inside another one, beside whether it is null."""
    value = column
    if isinstance(kind, StructType):
        inner = (_with_null(f"{column}.`{field.name}`", field.dataType) for field in kind.fields)
        value = f"struct({', '.join(inner)})"
    return f"struct(isnull({column}), {value})"


def digest_of(count: Column, total: Column) -> Column:
    """`count:sum` as text; `0:0` for no rows."""
    return F.concat_ws(":", count, F.coalesce(total, F.lit(0).cast("decimal(38,0)")))


def total_hash(column: Column) -> Column:
    """The sum of row hashes, exact for 2**31 rows; of more it is an error, not another sum."""
    high = F.sum(F.shiftright(column, 32)).cast("decimal(38,0)")
    low = F.sum(column.bitwiseAND(F.lit(LOW))).cast("decimal(38,0)")
    return (high * F.lit(LOW + 1).cast("decimal(10,0)") + low).cast("decimal(38,0)")
