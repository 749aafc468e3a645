"""What cells hold at an hour's end, as one number a cell and its bounds: a run looks at those of many hours
together, and there may be many sub-cells."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from transom.arrays.arrow import build_batches, lists
from transom.core.exact_sums import Int64s
from transom.engine.hours import hour_number
from transom.features.frequency.algorithm.splitter import SubCells, bounds, values
from transom.features.frequency.resolve import FrequencyBlock
from transom.features.frequency.tables_cells import LISTS

NUMBERS = ("hour", "number", "records")
VALUES = ("counters", "least", "most")
COLUMNS = ", ".join([*(f"{name} bigint" for name in NUMBERS), *(f"{name} array<bigint>" for name in VALUES)])
SCHEMA = pa.schema(
    [*((name, pa.int64()) for name in NUMBERS), *((name, pa.list_(pa.int64())) for name in VALUES)]
)


def cell_values(rows: DataFrame, block: FrequencyBlock) -> DataFrame:
    """Rows of `cells` of a block, with the number of their hour, and that of their row of the matrix."""
    needed = ("records", "counters", *(("sub_cells", *LISTS[1:]) if block.variant == "splitter" else ()))
    rows = rows.select(hour_number(), F.col("row").alias("number"), *needed)
    return rows.mapInArrow(CellValues(block), COLUMNS) if block.variant == "splitter" else rows


@dataclass(frozen=True)
class CellValues:
    """Of splitter: what a row of the matrix comes to, of which all sub-cells are in a row of the table."""

    block: FrequencyBlock

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """In `counters` in parts of a record; in `least` and `most` in records."""
        for batch in batches:
            for place in range(batch.num_rows):
                yield from self._row(batch.slice(place, 1))

    def _row(self, row: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        hour, number, records = (row.column(name)[0].as_py() for name in NUMBERS)
        held = SubCells(_flat(row, "sub_cells"), *(_flat(row, name) for name in LISTS))
        now, steps = (hour + 1) * self.block.ticks - 1, self.block.steps
        found = (values(held, now, steps), *bounds(held, now, steps, records))
        told = {name: lists(flat, 1) for name, flat in zip(VALUES, found, strict=True)}
        yield from build_batches(1, {"hour": hour, "number": number, "records": records, **told}, SCHEMA)


def _flat(row: pa.RecordBatch, name: str) -> Int64s:
    found: Int64s = row.column(name).flatten().to_numpy(zero_copy_only=False)
    return found
