"""Metrics that tasks compute with Arrow equal those of Spark; the others are left to Spark."""

import math
import pickle
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.support.every_stage import EVERY_STAGE
from transom.app.definitions import all_definitions
from transom.engine.arrow_metrics import arrow_metrics
from transom.ledger.stage import rows_where
from transom.stream import load

NOON = datetime(2015, 5, 17, 12, tzinfo=UTC)
TIME = pa.timestamp("us", "UTC")
SCHEMA = pa.schema(
    [
        ("block", pa.string()), ("time", TIME), ("n", pa.int64()), ("m", pa.int64()), ("level", pa.int32()),
        ("x", pa.float64()), ("y", pa.float64()), ("text", pa.string()), ("is_met", pa.bool_()),
        ("of_others", pa.int64()),
    ]
)  # fmt: skip
NUMBERS = [None, -3, 0, 2, 7]
DOUBLES = [None, math.nan, -1.5, -0.0, 0.0, 2.0, math.inf]
ROWS: list[dict[str, Any]] = [
    {
        "block": "b", "time": None if number % 7 == 0 else NOON + timedelta(microseconds=number),
        "n": NUMBERS[number % 5], "m": NUMBERS[number // 5 % 5], "level": NUMBERS[number % 3],
        "x": DOUBLES[number % 7], "y": DOUBLES[number // 7 % 7], "text": [None, "", "0110?", "é"][number % 4],
        "is_met": [None, True, False][number // 3 % 3], "of_others": None,
    }
    for number in range(105)
]  # fmt: skip
CONDITIONS = (
    "n < m", "n <= m", "n > 2", "n >= -3", "n = m", "n != m", "n <> 2", "level < n", "x < y", "x <= y",
    "x > y", "x >= y", "x = y", "x != y", "x < n", "n <= x", "level = x", "time < time", "text = ''",
    "n IS NULL", "x IS NOT NULL", "is_met AND n > 0", "is_met OR n > 0", "NOT is_met",
    "NOT (n > 0 AND is_met)", "n BETWEEN 0 AND m", "n NOT BETWEEN m AND 2", "n + m * 2 - level > -1",
    "n div 2 = 1", "n div -2 = m", "x < 9007199254740993", "9007199254740993 > x",
    "unix_micros(time) - 1431864000000000 > 50", "coalesce(n, m, 5) = 5",
    "is_met AND unix_micros(time) div 10 * 10 - 7 > n", "coalesce(is_met, false)",
    "length(text) = 1", "length(regexp_replace(text, '[^1]', '')) = 2", "CASE WHEN n > 0 THEN is_met END",
    "CASE WHEN n > 0 THEN is_met WHEN m > 0 THEN x > 0 ELSE false END", "block = 'b' AND n > 0",
    "(block = 'c' AND n * 4611686018427387904 < 0) OR n > 2",
    "NOT (block = 'b' OR n * 4611686018427387904 < 0)",
    "CASE WHEN block = 'c' THEN n * 4611686018427387904 < 0 WHEN block = 'b' THEN n < 2 END",
    "block = 'c'", "block != 'b'", "of_others > 0", "of_others IS NULL",
    "(`n` > 0) AND ((`x` IS NULL) OR true)",
)  # fmt: skip
METRICS = {
    **{condition: rows_where(condition) for condition in CONDITIONS},
    "sum": "sum(n)",
    "sum of others": "sum(of_others)",
    "sum of 32 bits": "sum(`level`)",
    "share": "avg(CASE WHEN block = 'b' THEN CAST(coalesce(n > 0, false) AS bigint) END)",
    "share of others": "avg(CASE WHEN block = 'c' THEN CAST(coalesce(n > 0, false) AS bigint) END)",
}


def test_each_metric_equals_that_of_spark(spark: SparkSession) -> None:
    columns = [name for name in SCHEMA.names if name != "of_others"]
    compiled = arrow_metrics(METRICS, SCHEMA, columns, "b")
    assert compiled.keys() == METRICS.keys()
    table = pa.Table.from_pylist(ROWS, SCHEMA)
    (batch,) = table.select(columns).to_batches()
    starts = np.array([0, 1, 50])
    found = {
        # Tasks receive them pickled.
        name: metric.value(pickle.loads(pickle.dumps(metric)).sums(batch, starts))
        for name, metric in compiled.items()
    }
    frame = spark.createDataFrame(table)
    aggregates = [F.expr(sql).alias(str(number)) for number, sql in enumerate(METRICS.values())]
    (row,) = frame.agg(*aggregates).collect()
    assert found == dict(zip(METRICS, row, strict=True))


@pytest.mark.parametrize(
    "sql",
    [
        "sum(x)", "avg(x)", "max(n)", "count(n)", "sum(try_add(n, m))", "sum(CAST(text AS bigint))",
        rows_where("n < 0.5"), rows_where("n IN (1, 2)"), rows_where("lower(text) = 'a'"),
        rows_where("unknown > 1"), rows_where("text > 1"), rows_where("n / 2 > 1"),
        rows_where("CAST(time AS bigint) > 1"), rows_where("try_cast(time AS bigint) > 1"),
        rows_where("time + 1 > n"), rows_where("unix_micros(n) > 1"), rows_where("n div m = 1"),
        rows_where("n div 0 = 1"), rows_where("n < 9223372036854775808"),
        rows_where("n < 9 AND n * n > 1"), rows_where("n > 9 OR n * n > 1"),
        rows_where("coalesce(n, m * m) > 1"),
        rows_where("CASE WHEN n < 9 THEN n * n > 1 END"),
        rows_where("CASE WHEN n > 9 THEN false ELSE -n > 1 END"),
        rows_where("x + n > 1"), rows_where("CASE n WHEN 1 THEN true END"), rows_where("is_met > n"),
    ],
)  # fmt: skip
def test_metric_that_arrow_may_compute_otherwise_is_left_to_spark(sql: str) -> None:
    assert not arrow_metrics({"metric": sql}, SCHEMA, SCHEMA.names, "b")


def test_tasks_compute_the_metrics_of_all_built_in_checks_but_one(tmp_path: Path) -> None:
    """Each of the others costs a further job, which reads the rows again."""
    file, left = tmp_path / "web.yaml", set()
    file.write_text(EVERY_STAGE)
    for stage in all_definitions(load(file)).values():
        for step in stage.steps:
            for block, output in step.outputs.items():
                schema = step.table.arrow_schema()
                compiled = arrow_metrics(step.metrics, schema, output.columns, block)
                left |= step.metrics.keys() - compiled.keys()
    assert left == {"absent_in_a_ring"}
