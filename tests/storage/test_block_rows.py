"""Rows that a selection has on the driver and in Spark are the same."""

from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from transom.storage import driver_io as small
from transom.storage.block_rows import BlockRows, select
from transom.storage.fencing import Claim
from transom.storage.store import PinnedTables, Store
from transom.storage.tables import Table
from transom.storage.write import Write

DAY = datetime(2015, 5, 17, tzinfo=UTC)
KINDS = {
    "hour": "timestamp", "block": "string", "kind": "string", "n": "bigint", "list": "array<bigint>",
}  # fmt: skip
LINES = Table("lines", KINDS, ("hour",), frozenset())


def hour(number: int) -> datetime:
    return DAY + timedelta(hours=number)


@pytest.fixture
def pins(spark: SparkSession, tmp_path: Path) -> PinnedTables:
    store = Store(spark, str(tmp_path))
    store.create(LINES)
    rows = [
        {"hour": hour(n % 3), "block": block, "kind": kind, "n": n, "list": [n] * (n % 3)}
        for n in range(12)
        for block in ("a", "it's")
        for kind in ("x", "y", None)
    ]
    table = pa.Table.from_pylist(rows, LINES.arrow_schema())
    store.write(Write(LINES, table, {None: [hour(0), hour(1), hour(2)]}), Claim("stage", "run", 1))
    return store.pin(["lines"])


def rows_of(rows: pa.Table | DataFrame) -> list[str]:
    table = rows if isinstance(rows, pa.Table) else rows.toArrow()
    return sorted(str(sorted(row.items())) for row in table.to_pylist())


SELECTIONS = [
    BlockRows("lines", "a", [hour(0), hour(2)], {"time": "hour", "number": "n", "list": "list"}),
    BlockRows("lines", "it's", [hour(1)], {"n": "n"}, {"kind": ("z", "string"), "none": (None, "bigint")}),
    BlockRows("lines", "a", [hour(1)], {"n": "n", "kind": "kind"}, only={"kind": ["x", "it's"]}),
    BlockRows("lines", "a", [], {"n": "n"}),
    BlockRows("lines", "none", [hour(1)], {"n": "n"}),
]


COUNTS = [24, 12, 4, 0, 0]
"""The number of rows of each."""


@pytest.mark.parametrize("number", range(len(SELECTIONS)))
def test_rows_on_the_driver_are_those_of_spark(pins: PinnedTables, number: int) -> None:
    selection = SELECTIONS[number]
    on_driver, in_spark = selection.on_driver(pins), selection.in_spark(pins)
    assert on_driver is not None
    assert rows_of(on_driver) == rows_of(in_spark) == rows_of(selection.frame(pins))
    assert on_driver.column_names == in_spark.columns == [*selection.columns, *selection.values]
    assert on_driver.num_rows == COUNTS[number]


@pytest.mark.parametrize("numbers", [(0,), (0, 1, 2, 3)])
def test_selections_are_joined_on_the_driver_or_in_spark(
    pins: PinnedTables, numbers: Collection[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    selections = [SELECTIONS[number] for number in numbers]
    few = select(pins, selections)
    assert isinstance(few, pa.Table)
    assert pins.are_few
    monkeypatch.setattr(small, "MAX_DRIVER_BYTES", 0)
    many = select(pins, selections)
    assert isinstance(many, DataFrame)
    assert rows_of(few) == rows_of(many)
    assert not pins.are_few


def test_only_selected_columns_and_rows_count(pins: PinnedTables, monkeypatch: pytest.MonkeyPatch) -> None:
    selection = BlockRows("lines", "a", [hour(0)], {"n": "n"})
    # Four numbers of each of three kinds; files are smaller than the limit.
    for size, few in ((12 * small.FIXED, True), (12 * small.FIXED - 1, False)):
        monkeypatch.setattr(small, "SELECTED", size / small.MAX_DRIVER_BYTES)
        assert (selection.on_driver(pins) is not None) is few


def test_rows_are_few_until_spark_reads_a_table(pins: PinnedTables, monkeypatch: pytest.MonkeyPatch) -> None:
    assert pins.read("lines", [hour(0)]).count() == 24
    assert pins.read("lines", []).columns == list(KINDS)
    assert pins.read("lines", []).count() == 0
    assert pins.are_few
    monkeypatch.setattr(small, "MAX_DRIVER_BYTES", 0)
    assert pins.read("lines", [hour(0)]).count() == 24
    assert not pins.are_few


def test_pinned_rows_stay_when_the_table_changes(pins: PinnedTables) -> None:
    selection = BlockRows("lines", "a", [hour(0)], {"n": "n"})
    no_rows = LINES.arrow_schema().empty_table()
    pins.store.write(Write(LINES, no_rows, {None: [hour(0)]}), Claim("stage", "run", 2))
    assert pins.store.open("lines").version() == pins.versions["lines"] + 1
    rows = selection.on_driver(pins)
    assert rows is not None
    assert rows.num_rows == 12
    assert pins.read("lines", [hour(0)]).count() == 24
    later = selection.on_driver(pins.store.pin(["lines"]))
    assert later is not None
    assert later.num_rows == 0
