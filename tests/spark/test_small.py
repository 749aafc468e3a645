"""Rows that the driver takes, and rows that it leaves to Spark, stand alike."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from house import House, hour, line
from transom.lake import small

Make = Callable[..., House]


def table(root: Path, texts: list[str]) -> None:
    rows = pa.table(
        {
            "hour": pa.array([hour(number % 2) for number in range(len(texts))], pa.timestamp("us", "UTC")),
            "raw": pa.array(texts),
            "names": pa.array([["a", None]] * len(texts)),
        }
    )
    write_deltalake(str(root / "lines"), rows, partition_by=["hour"])


def test_rows_of_the_hours_that_are_asked_for_are_taken_in_the_tables_own_types(tmp_path: Path) -> None:
    table(tmp_path, ["one", "two", "three"])
    table_of_one = small.held(str(tmp_path), "lines", {0: [hour(0)], 1: []})
    assert table_of_one is not None
    assert table_of_one.to_pylist() == [
        {"hour": hour(0), "raw": raw, "names": ["a", None]} for raw in ("one", "three")
    ]
    assert table_of_one.schema.field("raw").type == pa.string()
    assert small.held(str(tmp_path), "lines", {0: []}) is None


def test_many_rows_are_left_to_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A text that repeats is small on disk and large in memory.
    table(tmp_path, ["x" * 1000] * 2000)
    stored = sum(file.stat().st_size for file in (tmp_path / "lines").rglob("*.parquet"))
    assert stored < 20_000
    monkeypatch.setattr(small, "MOST", 500_000)
    assert small.held(str(tmp_path), "lines", {0: [hour(0)]}) is None
    monkeypatch.setattr(small, "MOST", 1_200_000)
    assert small.held(str(tmp_path), "lines", {0: [hour(0)]}) is not None
    assert small.held(str(tmp_path), "lines", {0: [hour(0), hour(1)]}) is None
    monkeypatch.setattr(small, "MOST", stored // 3)
    assert small.held(str(tmp_path), "lines", {0: [hour(0), hour(1)]}) is None


def test_what_rows_take_is_known_before_they_are_taken(spark: SparkSession) -> None:
    rows = spark.createDataFrame([("abc", 1), (None, 2), ("\u00fc", 3)], "raw string, n bigint")
    sizes = [row[0] for row in rows.select(small.bytes_of(rows)).collect()]
    assert sizes == [2 * small.FIXED + length for length in (3, 0, 2)]


def test_both_ways_leave_the_same_lake(house: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    lakes = {}
    for lake, most in (("few", small.MOST), ("many", 0)):
        monkeypatch.setattr(small, "MOST", most)
        lakes[lake] = house(lake=lake)
        for number in range(3):
            lakes[lake].land(number, [line(number * 3600 + i, f"10.0.0.{i % 5}") for i in range(30)])
        lakes[lake].run(0, 2)
        late = lakes[lake].land(0, [line(5, "10.0.0.7"), line(6)], ".late")
        lakes[lake].run(2, 3)
        late.unlink()
    lakes["few"].assert_same(lakes["many"])
    writers = {
        lake: {commit.get("engineInfo", commit.get("clientVersion", ""))[:5] for commit in commits(of)}
        for lake, of in lakes.items()
    }
    assert writers == {"few": {"delta"}, "many": {"delta", "Apach"}}


def commits(of: House) -> list[dict[str, str]]:
    history = DeltaTable(f"{of.root}/aggregates").history()
    return [{name: str(value) for name, value in commit.items()} for commit in history]
