"""Rows written by the driver equal rows written by Spark."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from tests.support.stream_harness import StreamHarness, hour, line
from transom.storage import driver_io as small
from transom.storage import listed_files, tables
from transom.storage.fencing import Claim, RunSuperseded
from transom.storage.store import Store
from transom.storage.tables import read_rows
from transom.storage.write import Write

Make = Callable[..., StreamHarness]


def table(root: Path, texts: list[str]) -> None:
    rows = pa.table(
        {
            "hour": pa.array([hour(number % 2) for number in range(len(texts))], pa.timestamp("us", "UTC")),
            "raw": pa.array(texts),
            "names": pa.array([["a", None]] * len(texts)),
        }
    )
    write_deltalake(str(root / "lines"), rows, partition_by=["hour"], mode="append")


def read_rows_of(root: Path, *numbers: int) -> pa.Table | None:
    return small.read_if_small(
        [(small.TableReader(DeltaTable(f"{root}/lines", version=0)), {hour(number) for number in numbers})]
    )


def test_rows_of_requested_hours_are_read_in_the_tables_types(tmp_path: Path) -> None:
    table(tmp_path, ["one", "two", "three"])
    table_of_one = read_rows_of(tmp_path, 0)
    assert table_of_one is not None
    assert table_of_one.to_pylist() == [
        {"hour": hour(0), "raw": raw, "names": ["a", None]} for raw in ("one", "three")
    ]
    assert table_of_one.schema.field("raw").type == pa.string()
    assert read_rows_of(tmp_path) is None


def test_rows_in_many_files_are_one_batch_for_spark(tmp_path: Path) -> None:
    for _ in range(4):
        table(tmp_path, ["one", "two"])
    rows = small.read_if_small([(small.TableReader(DeltaTable(f"{tmp_path}/lines")), {hour(0), hour(1)})])
    assert rows is not None
    assert sorted(rows["raw"].to_pylist()) == ["one"] * 4 + ["two"] * 4
    assert rows["raw"].num_chunks == 1


def test_many_rows_are_left_to_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A repeated text is small on disk and large in memory.
    table(tmp_path, ["x" * 1000] * 2000)
    stored = sum(file.stat().st_size for file in (tmp_path / "lines").rglob("*.parquet"))
    assert stored < 20_000
    monkeypatch.setattr(small, "MAX_DRIVER_BYTES", 500_000)
    assert read_rows_of(tmp_path, 0) is None
    monkeypatch.setattr(small, "MAX_DRIVER_BYTES", 1_200_000)
    assert read_rows_of(tmp_path, 0) is not None
    assert read_rows_of(tmp_path, 0, 1) is None
    # Read at any number of versions.
    versions = [small.TableReader(DeltaTable(f"{tmp_path}/lines")) for _ in range(2)]
    assert small.read_if_small([(stored, {hour(at)}) for at, stored in enumerate(versions)]) is None
    monkeypatch.setattr(small, "MAX_DRIVER_BYTES", stored // 3)
    assert read_rows_of(tmp_path, 0, 1) is None


def test_size_of_lists_is_that_of_their_elements(tmp_path: Path) -> None:
    hours = pa.array([hour(0)] * 3, pa.timestamp("us", "UTC"))
    lists = pa.table({"hour": hours, "hashes": pa.array([[7] * 1000, None, []], pa.list_(pa.int64()))})
    write_deltalake(str(tmp_path / "lines"), lists, partition_by=["hour"])
    reader, size = small.TableReader(DeltaTable(f"{tmp_path}/lines")), (3 * 2 + 1000) * small.FIXED
    rows = reader.rows_within({hour(0)}, size)
    assert rows == (lists, size)
    assert reader.rows_within({hour(0)}, size - 1) is None


def test_reader_keeps_the_version_of_a_table_that_is_updated(tmp_path: Path) -> None:
    def add(*numbers: int) -> None:
        rows = pa.table({"hour": pa.array([hour(0)] * len(numbers), pa.timestamp("us", "UTC")), "n": numbers})
        write_deltalake(tmp_path / "lines", rows, mode="append", partition_by=["hour"])

    add(1, 2)
    table = DeltaTable(tmp_path / "lines")
    reader = small.TableReader(table)
    size = reader.size([hour(0)])
    add(3)
    table.update_incremental()
    assert table.version() == 1
    assert reader.rows([hour(0)])["n"].to_pylist() == [1, 2]
    assert reader.size([hour(0)]) == size


def test_size_of_rows_is_known_before_they_are_read(spark: SparkSession) -> None:
    rows = spark.createDataFrame(
        [("abc", 1, [5, 6]), (None, 2, None), ("\u00fc", 3, [])], "raw string, n bigint, list array<bigint>"
    )
    sizes = [row[0] for row in rows.select(small.bytes_of(rows)).collect()]
    assert sizes == [3 * small.FIXED + more for more in (3 + 2 * small.FIXED, 0, 2)]


@pytest.mark.full
def test_driver_and_spark_leave_the_same_lake(make_stream: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    lakes = {}
    for lake in ("few", "many", "most"):
        if lake == "many":
            monkeypatch.setattr(small, "MAX_DRIVER_BYTES", 0)
        if lake == "most":
            # The hours are listed one by one, as scattered ones are.
            monkeypatch.setattr(tables, "MAX_COMPARED_RANGES", 0)
            for limit in ("MOST_LISTED_FILES", "MOST_MAPPED_FILES"):
                monkeypatch.setattr(listed_files, limit, 0)
        lakes[lake] = make_stream(lake=lake)
        for number in range(3):
            lakes[lake].land(number, [line(number * 3600 + i, f"10.0.0.{i % 5}") for i in range(30)])
        lakes[lake].run(0, 2)
        late = lakes[lake].land(0, [line(5, "10.0.0.7"), line(6)], ".late")
        lakes[lake].run(2, 3)
        late.unlink()
    lakes["few"].assert_same(lakes["many"])
    lakes["few"].assert_same(lakes["most"])
    writers = {lake: set(writers_of(of.root, "aggregates")) for lake, of in lakes.items()}
    assert writers == {"few": {"delta"}, "many": {"delta", "Apach"}, "most": {"delta", "Apach"}}


def test_many_rows_of_other_blocks_are_rewritten_by_spark(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = tables.Table(
        "lines", {"hour": "timestamp", "block": "string", "n": "bigint"}, ("hour",), frozenset()
    )

    def rows(block: str, *numbers: int) -> pa.Table:
        result = [{"hour": hour(n % 2), "block": block, "n": n} for n in numbers]
        return pa.Table.from_pylist(result, of.arrow_schema())

    store = Store(spark, str(tmp_path))
    store.create(of)
    both = [hour(0), hour(1)]
    # The hours are empty, or all their rows are replaced; then another block's rows stay.
    writes = [
        (Write(of, rows("b", *range(6)), {"b": both}), "delta"),
        (Write(of, pa.concat_tables([rows("a", 0), rows("b", *range(6))]), {None: both}), "delta"),
        (Write(of, rows("a", 1, 2), {"a": both}), "Apach"),
        (Write(of, rows("a", 4), {"a": [hour(0)]}), "Apach"),
        (Write(of, rows("c"), {"a": [hour(1)]}), "Apach"),
    ]
    monkeypatch.setattr(small, "MAX_DRIVER_BYTES", 1)
    for token, (write, writer) in enumerate(writes):
        store.write(write, Claim("stage", "run", token))
        assert writers_of(str(tmp_path), "lines")[0] == writer, token
    is_published = read_rows(DeltaTable(str(tmp_path / "lines")))
    assert sorted((row["block"], row["n"]) for row in is_published) == [
        ("a", 4),
        *(("b", n) for n in range(6)),
    ]
    monkeypatch.setattr(small, "MAX_DRIVER_BYTES", 100_000)
    store.write(Write(of, rows("a", 1), {"a": [hour(1)]}), Claim("stage", "run", len(writes)))
    assert writers_of(str(tmp_path), "lines")[0] == "delta"
    # A later write stays, whoever makes the earlier one.
    version = DeltaTable(str(tmp_path / "lines")).version()
    for late in (rows("d", 0), spark.createDataFrame(rows("d", 0))):
        with pytest.raises(
            RunSuperseded, match="table lines holds a later run's write; run late wrote nothing"
        ):
            store.write(Write(of, late, {None: both}), Claim("stage", "late", 2))
    assert DeltaTable(str(tmp_path / "lines")).version() == version


def writers_of(root: str, name: str) -> list[str]:
    """Return the writer of each commit of a table except the first, the latest first."""
    commits = DeltaTable(f"{root}/{name}").history()
    return [str(commit.get("engineInfo", commit.get("clientVersion", "")))[:5] for commit in commits]
