"""Which rows a write replaces, and when it is retried, without Spark."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest.mock import MagicMock, NonCallableMagicMock

import pyarrow as pa
import pytest
from delta.exceptions import ConcurrentAppendException, MetadataChangedException
from deltalake import DeltaTable
from pyspark.sql import DataFrame

from transom.core.partitions import PartitionKey
from transom.storage import driver_io as small
from transom.storage import store
from transom.storage.data_files import DataFile, write_data_files
from transom.storage.fencing import Claim, RunSuperseded
from transom.storage.store import Store
from transom.storage.tables import ATTEMPTS, Table, read_rows
from transom.storage.write import Write

DAY = datetime(2015, 5, 17, tzinfo=UTC)
TABLE = Table("granules", {}, (), frozenset())


def at(*hours: int) -> list[datetime]:
    return [DAY + timedelta(hours=number) for number in hours]


def known(table: str = "granules", **hours: tuple[int, ...]) -> list[PartitionKey]:
    return [PartitionKey("aggregates", block, table, hour) for block in hours for hour in at(*hours[block])]


def between(start: int, end: int) -> str:
    return f"((hour >= '2015-05-17T0{start}:00:00Z' AND hour < '2015-05-17T0{end}:00:00Z'))"


def test_hour_is_deleted_whole_only_if_no_other_block_has_it() -> None:
    one = Write(TABLE, TABLE.arrow_schema().empty_table(), {"a": at(1, 2, 3), "b": at(2, 3)})
    assert one.predicate(one.shared(known(a=(1, 2, 3), b=(2, 3)))) == between(1, 4)
    assert one.predicate(one.shared([*known(a=(1, 2), b=(2,)), *known("aggregates", c=(1, 2))])) == between(
        1, 4
    )
    by_block = f"(block = 'a' AND {between(1, 4)}) OR (block = 'b' AND {between(2, 4)})"
    assert one.predicate(one.shared()) == by_block
    # Another run has claimed a block that this one does not know; or b has not been computed in hour 1.
    assert one.predicate(one.shared(known(a=(1, 2), b=(2,), c=(2, 9)))) == (
        f"((hour >= '2015-05-17T01:00:00Z' AND hour < '2015-05-17T02:00:00Z') OR "
        f"(hour >= '2015-05-17T03:00:00Z' AND hour < '2015-05-17T04:00:00Z')) OR "
        f"(block = 'a' AND {between(2, 3)}) OR (block = 'b' AND {between(2, 3)})"
    )
    assert one.predicate(one.shared(known(b=(1,)))) == f"{between(2, 4)} OR (block = 'a' AND {between(1, 2)})"


def test_table_without_blocks_is_replaced_by_the_hour() -> None:
    write = Write(TABLE, TABLE.arrow_schema().empty_table(), {None: at(1)})
    beside = write.shared([PartitionKey("ingest", "events", "granules", hour) for hour in at(0, 1)])
    assert write.predicate(beside) == between(1, 2)


def attempts(monkeypatch: pytest.MonkeyPatch, *outcomes: Exception | None) -> MagicMock:
    """Let Spark write rows, to which Delta responds with a sequence of results."""
    rows = NonCallableMagicMock(spec=DataFrame)
    save = rows.write.format.return_value.mode.return_value.options.return_value.save
    save.side_effect = outcomes
    monkeypatch.setattr(Store, "open", MagicMock())
    monkeypatch.setattr(store, "last_token", lambda *_: 7)
    write = Write(TABLE, rows, {None: at(1)}, gathered=True)
    try:
        Store(MagicMock(), "lake").write(write, Claim("aggregates", "a", 7))
    finally:
        # Absolute: the working folder of a Spark server differs.
        assert {call.args for call in save.call_args_list} == {(str(Path("lake/granules").absolute()),)}
    return save


def test_spark_write_in_conflict_with_a_new_column_is_retried(monkeypatch: pytest.MonkeyPatch) -> None:
    changed = MetadataChangedException("a column has been added")
    assert attempts(monkeypatch, changed, changed, None).call_count == 3
    with pytest.raises(MetadataChangedException):
        attempts(monkeypatch, *[changed] * ATTEMPTS)


def test_spark_write_in_conflict_with_rows_is_not_retried(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RunSuperseded, match="table granules holds a later run's write; run a wrote nothing"):
        attempts(monkeypatch, ConcurrentAppendException("rows were added"), None)


@pytest.mark.parametrize(
    ("size", "few"), [(None, False), (small.MAX_DRIVER_BYTES, True), (small.MAX_DRIVER_BYTES + 1, False)]
)
def test_few_rows_of_spark_are_written_by_the_driver(size: int | None, few: bool) -> None:
    write = Write(TABLE, MagicMock(spec=DataFrame), {None: at(1)}, bytes=size)
    assert Store(MagicMock(), "lake")._fits_driver(write, []) is few


LINES = Table("lines", {"hour": "timestamp", "time": "timestamp"}, ("hour",), frozenset())


class LineTable:
    """A table of lines, written without Spark."""

    def __init__(self, root: Path) -> None:
        self.root = str(root)
        self.read = 0
        self.store = Store(MagicMock(), self.root)
        self.store.create(LINES)

    def rows(self, *hours: int) -> pa.Table:
        return pa.Table.from_pylist([{"hour": h, "time": h} for h in at(*hours)], LINES.arrow_schema())

    def parts(self, *hours: int) -> tuple[DataFile, ...]:
        batches = self.rows(*hours).select(["time"]).to_batches()
        self.read += 1
        return tuple(write_data_files(f"{self.root}/lines", f"read-{self.read}", "part", batches, "time"))

    def write(self, rows: pa.Table | tuple[DataFile, ...], hours: Iterable[int], token: int) -> None:
        parts = rows if isinstance(rows, tuple) else None
        given = self.rows() if parts is not None else rows
        write = Write(LINES, given, {None: at(*hours)}, data_files=parts)
        self.store.write(write, Claim("ingest", f"run {token}", token))

    def hours_of_rows(self) -> list[int]:
        rows = read_rows(DeltaTable(f"{self.root}/lines"))
        assert all(row["hour"] == row["time"] for row in rows)
        return sorted((row["hour"] - DAY) // timedelta(hours=1) for row in rows)

    def last(self) -> tuple[int, int | None, str]:
        table = DeltaTable(f"{self.root}/lines")
        return table.version(), table.transaction_version("ingest"), table.history(1)[0]["run_id"]


def test_write_of_rows_or_parts_replaces_its_hours_and_records_its_token(tmp_path: Path) -> None:
    shelf = LineTable(tmp_path)
    shelf.write(shelf.rows(1, 2, 3, 4), range(1, 5), 1)
    # Hour 2 has no rows: those that a killed run left are deleted.
    shelf.write(shelf.parts(1, 1), (1, 2), 2)
    assert (shelf.hours_of_rows(), shelf.last()) == ([1, 1, 3, 4], (2, 2, "run 2"))
    shelf.write(shelf.rows(4, 4), (3, 4), 3)
    assert (shelf.hours_of_rows(), shelf.last()) == ([1, 1, 4, 4], (3, 3, "run 3"))
    # Neither an older claim nor the same one again.
    for rows in (shelf.rows(1), shelf.parts(1)):
        for token in (2, 3):
            with pytest.raises(
                RunSuperseded, match=f"table lines holds a later run's write; run run {token} "
            ):
                shelf.write(rows, (1,), token)
    assert (shelf.hours_of_rows(), shelf.last()) == ([1, 1, 4, 4], (3, 3, "run 3"))


def test_parts_are_used_only_if_no_other_block_has_their_hours(monkeypatch: pytest.MonkeyPatch) -> None:
    selected: list[object] = []
    monkeypatch.setattr(store, "_adder", lambda _table, parts, _: parts)
    monkeypatch.setattr(store, "_overwriter", lambda rows, _: rows)
    monkeypatch.setattr(Store, "_commit", lambda *of: selected.append(of[-1]) or True)
    monkeypatch.setattr(small, "TableReader", MagicMock(return_value=MagicMock(size=lambda hours: 0)))
    monkeypatch.setattr(Store, "open", MagicMock())
    rows = TABLE.arrow_schema().empty_table()
    write = Write(TABLE, rows, {"a": at(1, 2)}, data_files=[])
    for nodes in (known(a=(1, 2), b=(3,)), known(b=(2,))):
        Store(MagicMock(), "lake").write(write, Claim("aggregates", "run", 1), nodes)
    assert selected == [[], rows]
