"""Compare reported items with an exact count of the same windows."""

from collections.abc import Callable, Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from transom.arrays.arrow import concat_batches, encode_keys
from transom.core.exact_sums import Bools, Int64s
from transom.engine.hours import quoted

Comparison = Callable[[pa.Table, Int64s, Int64s, Bools], dict[str, int]]
"""Returns the counts of some items, from all their rows, the code of each row's item, the first row of each
code, and whether each row is a reported one."""


def compare(
    counted: DataFrame,
    reported: DataFrame,
    item: Iterable[str],
    comparison: Comparison,
    sums: Sequence[str],
    maxima: Sequence[str] = (),
) -> dict[str, int]:
    """Return the counts of all items.

    Args:
        counted: what an exact count has of the items.
        reported: what is reported of them, with `low`, which no row lacks.
        item: the columns of an item.
        sums, maxima: the counts to add up, and those whose largest is taken.
    """
    names = list(item)

    def compute(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        table = concat_batches(batches)
        if table is not None:
            is_reported = pc.is_valid(table["low"]).to_numpy(zero_copy_only=False)
            yield pa.RecordBatch.from_pylist([comparison(table, *encode_keys(table, names), is_reported)])

    rows = counted.unionByName(reported, allowMissingColumns=True).repartition(*quoted(names))
    schema = ", ".join(f"{name} bigint" for name in (*sums, *maxima))
    totals = [*(F.sum(name).alias(name) for name in sums), *(F.max(name).alias(name) for name in maxima)]
    row = rows.mapInArrow(compute, schema).agg(*totals).first()
    assert row is not None
    return {name: int(row[name] or 0) for name in (*sums, *maxima)}
