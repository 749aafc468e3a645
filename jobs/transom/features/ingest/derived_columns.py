"""Derived columns: computed by Spark as soon as a record is parsed, so that all that follows sees them."""

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import ArrowUDFType, arrow_udf

from transom.core import rounding
from transom.formats.record_format import Field
from transom.formats.typed_columns import LARGEST_INTEGER, MAX_STEPS
from transom.spec.stream import Stream
from transom.storage.tables import SPARK_TYPES


def with_derived(rows: DataFrame, stream: Stream) -> DataFrame:
    """Rows with the columns that the stream derives from the others.

    What a column of the type cannot hold, as a parser would refuse it, is null: integers beyond 2**53,
    numbers that are not finite or beyond 2**50 steps of the resolution.
    """
    fields = stream.event_columns
    return rows.withColumns(
        {name: _fitted(F.expr(derived.sql), fields[name]) for name, derived in stream.derived.items()}
    )


def _fitted(value: Column, field: Field) -> Column:
    match field.type:
        case "integer":
            return F.when(value.between(-LARGEST_INTEGER, LARGEST_INTEGER), value)
        case "number":
            return _rounded(value.cast("double"), field.resolution)
        case _:
            return value.cast(SPARK_TYPES[field.type])


def _rounded(value: Column, resolution: str) -> Column:
    """Rounded as a parser rounds: by their decimals, where Spark's rounding goes by doubles."""
    step = rounding.ratio(resolution)

    def rounded(values: pa.Array) -> pa.Array:
        given = values.to_numpy(zero_copy_only=False)
        whole, fits = rounding.steps(given, step)
        none = ~(fits & (np.abs(whole) <= MAX_STEPS))
        return pa.array(rounding.value(np.where(none, 0, whole), step), mask=none)

    return arrow_udf(rounded, "double", ArrowUDFType.SCALAR)(value)
