"""The lake's tables without Spark: conditions on hours, and tables that several runs create and repair."""

import json
import os
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import example, given
from hypothesis import strategies as st

from transom.core.intervals import HOUR
from transom.storage import latest_table, tables
from transom.storage.tables import (
    LakeError,
    Table,
    TableMismatch,
    create,
    in_hours_sql,
    read_rows,
    split_hours,
)
from transom.storage.write import Write

DAY = datetime(2015, 5, 17, tzinfo=UTC)
KEPT = "delta.enableExpiredLogCleanup"


def hours(*numbers: int) -> list[datetime]:
    return [DAY + number * HOUR for number in numbers]


@given(st.sets(st.integers(0, 80)))
@example({number for number in range(80) if number % 3})
def test_condition_on_hours_has_few_intervals_and_a_list_of_the_others(numbers: set[int]) -> None:
    requested = hours(*numbers)
    periods, others = split_hours(requested)
    text = [hour for period in periods for hour in period.hours()] + others
    assert sorted(text) == sorted(requested)
    assert len(periods) <= tables.MAX_COMPARED_RANGES
    longest = max((len(period) for period in periods), default=0)
    assert not others or len(periods) == tables.MAX_COMPARED_RANGES
    assert all(len(period) <= longest for period in periods)


@pytest.fixture
def lines(tmp_path: Path) -> str:
    """Return a table with one row an hour, four days long."""
    of = hours(*range(96))
    rows = pa.table({"hour": pa.array(of, pa.timestamp("us", "UTC")), "n": range(96)})
    write_deltalake(str(tmp_path / "lines"), rows, partition_by=["hour"])
    return str(tmp_path / "lines")


@pytest.mark.parametrize(
    "numbers", [[], [5], [*range(10, 40), 50], range(0, 96, 2), [*range(0, 60, 2), *range(60, 80)]]
)
def test_condition_on_hours_selects_their_rows(lines: str, numbers: list[int]) -> None:
    result = read_rows(DeltaTable(lines), in_hours_sql(hours(*numbers)))
    assert sorted(row["n"] for row in result) == sorted(numbers)


def test_write_replaces_scattered_hours(lines: str) -> None:
    numbers = range(0, 96, 2)
    table = Table("lines", {"hour": "timestamp", "n": "bigint"}, ("hour",), frozenset())
    write = Write(table, table.arrow_schema().empty_table(), {None: hours(*numbers)})
    write_deltalake(lines, write.rows, mode="overwrite", predicate=write.predicate(write.shared()))
    assert {row["n"] for row in read_rows(DeltaTable(lines))} == set(range(1, 96, 2))
    # Files were only removed, and none was rewritten.
    metrics = DeltaTable(lines).history(1)[0]["operationMetrics"]
    assert (metrics["num_removed_files"], metrics["num_added_files"]) == (48, 0)


def test_table_gains_columns_and_refuses_another_type(tmp_path: Path) -> None:
    table = Table.load("events")
    create(str(tmp_path), table.declare(columns={"client": "string"}))
    create(str(tmp_path), table.declare(columns={"client": "string", "bytes": "bigint"}))
    with pytest.raises(TableMismatch, match=r"column client is .*string.* in the lake and .*long"):
        create(str(tmp_path), table.declare(columns={"client": "bigint"}))


def test_columns_of_an_earlier_specification_are_outside_the_promise(tmp_path: Path) -> None:
    table = Table(
        "lines", {"hour": "timestamp", "raw": "string", "run": "string"}, ("hour",), frozenset({"run"})
    )
    former = {f"of {kind}": kind for kind in tables.ARROW_TYPES}
    create(str(tmp_path), replace(table, columns={**table.columns, **former}))
    # Delta and Arrow name the elements of lists differently.
    widened = table.with_added_columns(pa.schema(DeltaTable(str(tmp_path / "lines")).schema().to_arrow()))
    assert list(widened.columns.items()) == [*table.columns.items(), *former.items()]
    assert (widened.digest_columns(), table.digest_columns()) == (("hour", "raw"), ("hour", "raw"))


def retention(root: Path) -> tuple[str | None, int]:
    """Return a table's retention of old versions, and the number of its versions."""
    table = DeltaTable(str(root / "files"))
    return table.metadata().configuration.get(KEPT), table.version()


def old(root: Path) -> None:
    """Return a table as created before versions were retained."""
    table = Table.load("files")
    DeltaTable.create(str(root / "files"), table.arrow_schema(), partition_by=["hour"])


def test_versions_with_published_rows_are_retained_in_new_and_old_tables(tmp_path: Path) -> None:
    old(tmp_path / "old")
    for _ in range(2):
        for root in ("old", "new"):
            create(str(tmp_path / root), Table.load("files"))
        assert retention(tmp_path / "old") == ("false", 1)
        assert retention(tmp_path / "new") == ("false", 0)
    # Old versions of the ledger are never read.
    create(str(tmp_path), Table.load("ledger"))
    assert DeltaTable(str(tmp_path / "ledger")).metadata().configuration == {
        "delta.logRetentionDuration": "interval 2 days",
        "delta.checkpointInterval": "20",
    }


def test_table_repaired_by_two_runs_at_once_is_repaired_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old(tmp_path)
    table = Table.load("files")
    opened = iter([True])

    class RepairedMeanwhile(DeltaTable):
        """A table that another run repairs as soon as this one has opened it."""

        def __init__(self, uri: str) -> None:
            super().__init__(uri)
            if next(opened, False):
                create(str(tmp_path), table)

    monkeypatch.setattr(latest_table, "DeltaTable", RepairedMeanwhile)
    create(str(tmp_path), table)
    assert not next(opened, False)
    assert retention(tmp_path) == ("false", 1)


def test_table_always_changed_by_others_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old(tmp_path)

    class Busy(DeltaTable):
        def __init__(self, uri: str) -> None:
            super().__init__(uri)
            self.change()

        def update_incremental(self) -> None:
            super().update_incremental()
            self.change()

        def change(self) -> None:
            DeltaTable(self.table_uri).alter.set_table_description(f"as of {self.version()}")

    monkeypatch.setattr(latest_table, "DeltaTable", Busy)
    with pytest.raises(LakeError, match=r"files cannot be opened or created: .*Metadata changed"):
        create(str(tmp_path), Table.load("files"))


def test_log_of_files_has_no_column_bounds_and_log_of_the_ledger_covers_two_days(
    tmp_path: Path,
) -> None:
    files, hours_of = (create(str(tmp_path), Table.load(name)) for name in ("files", "ledger"))
    row = {"path": "f", "hour": DAY, "status": "ingested", "size": 1}
    write_deltalake(
        files, pa.Table.from_pylist([row], schema=Table.load("files").arrow_schema()), mode="append"
    )
    (log,) = (tmp_path / "files" / "_delta_log").glob("*1.json")
    (stats,) = (json.loads(line)["add"]["stats"] for line in log.read_text().splitlines() if '"add"' in line)
    assert json.loads(stats) == {"numRecords": 1, "minValues": {}, "maxValues": {}, "nullCount": {}}
    rows = pa.Table.from_pylist([], schema=Table.load("ledger").arrow_schema())
    for number in range(205):
        write_deltalake(hours_of, rows, mode="append")
        if number == 120:
            for file in (tmp_path / "ledger" / "_delta_log").iterdir():
                os.utime(file, (time.time() - 3 * 86_400,) * 2)
    remaining = sorted(int(file.stem) for file in (tmp_path / "ledger" / "_delta_log").glob("*.json"))
    assert remaining[0] == 119
