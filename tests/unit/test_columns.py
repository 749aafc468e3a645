"""Columns of Arrow tables as numpy takes them."""

import math

import pyarrow as pa

from transom.stages.columns import codes, common_codes


def test_values_are_one_where_spark_takes_them_for_one() -> None:
    values = pa.chunked_array([[0.0, -0.0, None], [math.nan, 1.0, -math.nan, None]])
    of_keys, firsts = codes(pa.table({"key": values}), ["key"])
    assert of_keys.tolist() == [0, 0, 1, 2, 3, 2, 1]
    assert firsts.tolist() == [0, 2, 3, 4]
    (of_values,) = common_codes([values])
    assert of_values.tolist() == [0, 0, -1, 1, 2, 1, -1]
