"""Which records are duplicates, and the values of derived columns: Spark compared with plain Python."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession

from transom.features.ingest.deduplicate import IS_DUPLICATE, compares, mark_duplicates
from transom.features.ingest.parsed_rows import with_derived
from transom.stream import parse

BASE: dict[str, Any] = {
    "name": "app",
    "source": {"path": "in/%Y.json", "format": "json"},
    "columns": {"uid": {}, "site": {}, "took": {"type": "number", "resolution": "0.5"}},
    "time": {"column": "at"},
    "key": ["site"],
}
EVERY_MINUTE = {"column": "at", "interval": "1 minute"}
BEGAN = datetime(2015, 5, 17, tzinfo=UTC)


@dataclass(frozen=True)
class Record:
    at: int
    uid: str | None
    site: str | None
    took: float | None
    source_id: str
    source_line: int

    @property
    def order(self) -> tuple[int, str, int]:
        return self.at, self.source_id, self.source_line


def repeats(
    records: list[Record], together: Callable[[Record], Any], rank: Callable[[Record], Any]
) -> set[Record]:
    """Return all but the first record by rank of each group; a record with None belongs to no group."""
    result: set[Record] = set()
    groups: dict[Any, list[Record]] = {}
    for record in records:
        groups.setdefault(together(record), []).append(record)
    for group, members in groups.items():
        result |= set(sorted(members, key=rank)[1:]) if group is not None else set()
    return result


def of_identity(record: Record) -> Any:
    return None if record.uid is None or record.site is None else (record.at // 3600, record.uid, record.site)


def of_turn(record: Record) -> Any:
    return record.at // 60, record.site


def first(record: Record) -> Any:
    return record.order


def last(record: Record) -> Any:
    return -record.at, *(-ord(letter) for letter in record.source_id), -record.source_line


def longest(record: Record) -> Any:
    return record.took is None, -(record.took or 0), record.order


UNIQUE = {"columns": ["uid", "site"]}
RULES: list[tuple[dict[str, Any], list[tuple[Any, Any]]]] = [
    ({"unique": ["uid", "site"]}, [(of_identity, first)]),
    ({"unique": {**UNIQUE, "prefer": "longest took"}}, [(of_identity, longest)]),
    ({"time": {**EVERY_MINUTE, "on_duplicate_time": "first"}}, [(of_turn, first)]),
    ({"time": {**EVERY_MINUTE, "on_duplicate_time": "last"}}, [(of_turn, last)]),
    ({"time": {**EVERY_MINUTE, "on_duplicate_time": "keep"}}, []),
    (
        {
            "unique": {**UNIQUE, "prefer": "longest took"},
            "time": {**EVERY_MINUTE, "on_duplicate_time": "last"},
        },
        [(of_identity, longest), (of_turn, last)],
    ),
]


@pytest.mark.parametrize(
    ("rule", "plain"), RULES, ids=lambda part: "" if isinstance(part, list) else str(part)
)
def test_duplicates_are_all_but_the_first_by_rank(
    spark: SparkSession, rng: random.Random, rule: dict[str, Any], plain: list[tuple[Any, Any]]
) -> None:
    stream = parse({**BASE, **rule})
    records = [
        Record(
            rng.choice([-3601, -1, 0, 59, 60, 119, 3599, 3600, 3601]), rng.choice(["a", "b", None]),
            rng.choice(["x", "y", None]), rng.choice([1.0, 2.5, None]), rng.choice("fg"), number,
        )
        for number in range(150)
    ]  # fmt: skip
    remaining, expected = records, set()
    for together, rank in plain:
        expected |= repeats(remaining, together, rank)
        remaining = [record for record in records if record not in expected]
    rows = [
        (
            record.source_line,
            BEGAN + timedelta(seconds=record.at),
            record.uid,
            record.site,
            record.took,
            record.source_id,
        )
        for record in records
    ]
    ddl = "source_line bigint, event_time timestamp, uid string, site string, took double, source_id string"
    frame = spark.createDataFrame(rows, ddl).selectExpr("*", "date_trunc('hour', event_time) AS hour")
    result = {row.source_line for row in mark_duplicates(frame, stream).where(IS_DUPLICATE).collect()}
    assert result == {record.source_line for record in expected}
    assert compares(stream) is bool(plain)
    assert bool(expected) is bool(plain)


def test_derived_column_has_the_values_that_its_type_can_hold(spark: SparkSession) -> None:
    columns = {
        "n": {"type": "integer"},
        "x": {"type": "number", "resolution": "1e-6"},
        "twice": {"is": "n * 2"},
        "cents": {"is": "x / 1", "resolution": 0.01},
        "dozens": {"is": "n", "type": "number", "resolution": 12},
        "odd": {"is": "cast('nan' as double) * n", "resolution": 1},
        "late": {"is": "event_time >= timestamp '2015-05-17 00:30:00'"},
        "name": {"is": "coalesce(cast(n as string), 'none')"},
    }
    stream = parse({**BASE, "key": [], "columns": columns})
    given: list[tuple[int | None, float | None, int]] = [
        (1, 1.005, 0), (6, 1.015, 30), (18, 1.025, 31), (2**52, 1e13, 0), (2**52 + 1, 1.2e13, 0),
        (-(2**62), -0.005, 0), (None, None, 0),
    ]  # fmt: skip
    rows = [(n, x, BEGAN + timedelta(minutes=minutes)) for n, x, minutes in given]
    result = with_derived(spark.createDataFrame(rows, "n bigint, x double, event_time timestamp"), stream)
    assert [tuple(row) for row in result.drop("n", "x", "event_time").collect()] == [
        (2, 1.0, 0.0, None, False, "1"),
        (12, 1.02, 0.0, None, True, "6"),
        (36, 1.02, 24.0, None, True, "18"),
        (2**53, 1e13, 4503599627370492.0, None, False, str(2**52)),
        (None, None, 4503599627370492.0, None, False, str(2**52 + 1)),
        (None, 0.0, None, None, False, str(-(2**62))),
        (None, None, None, None, False, "none"),
    ]
