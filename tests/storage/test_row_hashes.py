"""Hashes of Arrow rows equal those of Spark, for all types of columns."""

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from transom.core.intervals import EPOCH, MICROSECOND
from transom.storage.digest import row_hash, sums_of_hashes
from transom.storage.driver_io import bytes_of, row_bytes
from transom.storage.row_hashes import row_hashes
from transom.storage.tables import ARROW_TYPES

TYPES = {kind: of for kind, of in ARROW_TYPES.items() if not kind.startswith("map")}
VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.string(): st.text(st.characters(exclude_categories=["Cs"]), max_size=40),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.float64(): st.one_of(st.floats(), st.sampled_from([0.0, -0.0, math.nan, -math.nan])),
    pa.bool_(): st.booleans(),
    pa.timestamp("us", "UTC"): st.integers(-(10**15), 10**16).map(lambda of: EPOCH + of * MICROSECOND),
    pa.binary(): st.binary(max_size=80),
}


def values_of(kind: pa.DataType) -> st.SearchStrategy[Any]:
    """Return values of a type, with nulls at every depth."""
    if pa.types.is_list(kind):
        return st.none() | st.lists(values_of(kind.value_type), max_size=4)
    if pa.types.is_struct(kind):
        return st.none() | st.fixed_dictionaries({field.name: values_of(field.type) for field in kind})
    return st.none() | VALUES[kind]


SCHEMA = pa.schema([(f"c{number}", kind) for number, kind in enumerate(TYPES.values())])
ROWS = st.lists(
    st.fixed_dictionaries({field.name: values_of(field.type) for field in SCHEMA}), min_size=1, max_size=20
)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(rows=ROWS)
def test_rows_have_the_hashes_and_sizes_of_spark(spark: SparkSession, rows: list[dict[str, Any]]) -> None:
    """A case takes half a second of Spark's time."""
    table = pa.Table.from_pylist(rows, SCHEMA)
    frame = spark.createDataFrame(table)
    expected = frame.select(row_hash(frame, SCHEMA.names).alias("hash"), bytes_of(frame).alias("bytes"))
    found = expected.toArrow()
    # A slice, as its arrays begin within their buffers.
    (batch,) = pa.concat_tables([table, table]).combine_chunks().slice(len(rows)).to_batches()
    assert row_hashes(batch, SCHEMA.names).tolist() == found["hash"].to_pylist()
    assert row_bytes(batch, len(SCHEMA)).tolist() == found["bytes"].to_pylist()


@pytest.mark.parametrize("kind", TYPES)
def test_null_differs_from_every_other_value_of_a_type(kind: str) -> None:
    type_ = TYPES[kind]
    rows = pa.record_batch({"a": pa.array([None, *_small(type_)], type_)})
    hashes = row_hashes(rows, ["a"]).tolist()
    assert len(set(hashes)) == len(hashes)


def _small(kind: pa.DataType) -> list[Any]:
    """Return the values of a type that are most like null."""
    if pa.types.is_list(kind):
        return [[], [None]]
    return [{pa.string(): "", pa.binary(): b"", pa.bool_(): False}.get(kind, 0)]


def test_sums_of_slices_are_exact() -> None:
    hashes = np.array([2**63 - 1, 2**63 - 1, -(2**63), -(2**63), -1, 0])
    assert sums_of_hashes(hashes, np.array([0, 2, 4])) == [2 * (2**63 - 1), -(2**64), -1]
