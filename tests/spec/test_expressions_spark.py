"""The documented meaning of the expression language, compared with Spark, which computes it."""

from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from transom.formats.record_format import FieldType
from transom.spec.expressions import compile

TYPES: dict[str, FieldType] = {
    "path": "string", "status": "integer", "took": "number", "ok": "boolean", "at": "timestamp",
    "none": "string", "large": "integer",
}  # fmt: skip
ROW = {
    "path": "/a'b\\c$d%e_f/Ä", "status": 404, "took": 0.25, "ok": True,
    "at": datetime(2015, 5, 17, 10, 30, tzinfo=UTC), "none": None, "large": 2**63 - 1,
}  # fmt: skip
EXPECTED: list[tuple[str, Any]] = [
    ("path = '/a''b\\c$d%e_f/Ä'", True),
    ("path <> 'x'", True),
    ("status < 404", False),
    ("status >= 404", True),
    ("none = 'x'", None),
    ("none is null", True),
    ("path is not null", True),
    ("none is distinct from 'x'", True),
    ("none is not distinct from null", True),
    ("ok is true", True),
    ("ok is not true", False),
    ("ok and none = 'x'", None),
    ("not ok or status = 404", True),
    ("status in (200, 404)", True),
    ("status not in (200, 404)", False),
    ("status between 400 and 499", True),
    ("status not between 400 and 499", False),
    ("path like '%b\\\\c%'", True),
    ("path like '_a%'", True),
    ("path like '%\\\\c$d\\%e%'", True),
    ("path ilike '%/ä'", True),
    ("path not like 'x%'", True),
    ("path rlike '^/a.b'", True),
    ("regexp_like(path, '[0-9]')", False),
    ("status + 1", 405),
    ("large + 1", None),
    ("large * 2", None),
    ("status / 0", None),
    ("status / 8", 50.5),
    ("status % 5", 4),
    ("status % 0", None),
    ("-status", -404),
    ("took * 4", 1.0),
    ("path || '!'", "/a'b\\c$d%e_f/Ä!"),
    ("case when status = 404 then 'gone' else 'there' end", "gone"),
    ("case status when 1 then 'one' end", None),
    ("cast('12' as bigint)", 12),
    ("cast('many' as bigint)", None),
    ("cast('1e3' as double)", 1000.0),
    ("cast(status as string)", "404"),
    ("cast('2015-05-17 10:30:00' as timestamp) = at", True),
    ("at > timestamp '2015-05-17 10:29:59'", True),
    ("at = timestamp '2015-05-17 12:30:00+02:00'", True),
    ("abs(-3)", 3),
    ("ceil(took)", 1),
    ("floor(took)", 0),
    ("coalesce(none, path, 'x')", "/a'b\\c$d%e_f/Ä"),
    ("contains(path, '$d')", True),
    ("starts_with(path, '/a')", True),
    ("startswith(path, 'a')", False),
    ("ends_with(path, 'Ä')", True),
    ("greatest(status, 500)", 500),
    ("least(status, 500)", 404),
    ("if(ok, 1, 2)", 1),
    ("length(path)", 14),
    ("lower('ÄB')", "äb"),
    ("upper('äb')", "ÄB"),
    ("trim('  x ')", "x"),
    ("split_part('a/b/c', '/', 2)", "b"),
    ("substring('abcdef', 2, 3)", "bcd"),
]


@pytest.fixture(scope="module")
def computed(spark: SparkSession) -> dict[str, Any]:
    kinds = {"string": "string", "integer": "bigint", "number": "double", "boolean": "boolean"}
    ddl = ", ".join(f"`{name}` {kinds.get(kind, kind)}" for name, kind in TYPES.items())
    frame = spark.createDataFrame([tuple(ROW[name] for name in TYPES)], ddl)
    columns = [F.expr(compile(text, TYPES).sql).alias(str(n)) for n, (text, _) in enumerate(EXPECTED)]
    (row,) = frame.select(columns).collect()
    return {text: row[str(number)] for number, (text, _) in enumerate(EXPECTED)}


@pytest.mark.parametrize(("text", "expected"), EXPECTED)
def test_spark_computes_the_documented_values(computed: dict[str, Any], text: str, expected: Any) -> None:
    result = computed[text]
    assert result == expected
    assert type(result) is type(expected)
