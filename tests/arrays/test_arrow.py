"""Columns of Arrow tables as numpy arrays."""

import math

import pyarrow as pa

from transom.arrays.arrow import by_value, common_codes, encode_keys, rebatch


def test_values_equal_in_spark_have_one_code() -> None:
    values = pa.chunked_array([[0.0, -0.0, None], [math.nan, 1.0, -math.nan, None]])
    of_keys, firsts = encode_keys(pa.table({"key": values}), ["key"])
    assert of_keys.tolist() == [0, 0, 1, 2, 3, 2, 1]
    assert firsts.tolist() == [0, 2, 3, 4]
    (of_values,) = common_codes([values])
    assert of_values.tolist() == [0, 0, -1, 1, 2, 1, -1]


def test_rebatched_tables_have_all_rows_and_are_not_small() -> None:
    batches = [pa.record_batch({"n": pa.array(range(count), pa.int64())}) for count in (2, 0, 3, 4, 1, 0)]
    assert [portion.num_rows for portion in rebatch(batches, 5)] == [5, 5]
    assert [portion.num_rows for portion in rebatch(batches, 6)] == [9, 1]
    together = [row for portion in rebatch(batches, 6) for row in portion["n"].to_pylist()]
    assert together == [0, 1, 0, 1, 2, 0, 1, 2, 3, 0]
    assert list(rebatch(batches[1:2], 5)) == []


def test_rows_of_a_value_are_grouped_together() -> None:
    sizes = [[1, 1], [], [1, 2], [3], [3, 3, 5], [6]]
    batches = [pa.record_batch({"n": pa.array(some, pa.int64())}) for some in sizes]
    assert [rows["n"].to_pylist() for rows in by_value(batches, "n")] == [[1, 1, 1], [2], [3, 3, 3], [5], [6]]
    assert list(by_value(batches[1:2], "n")) == []
