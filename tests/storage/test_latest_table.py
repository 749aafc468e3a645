"""A table that stays open while it is deleted and recreated."""

import shutil
from pathlib import Path
from unittest.mock import Mock

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import TableNotFoundError

from transom.storage.open_tables import OpenTables
from transom.storage.tables import TableFolder

COMMITS = 5


def make(folder: Path, commits: int, text: str) -> None:
    """Delete the table `t` of a folder, and recreate it."""
    shutil.rmtree(folder / "t", ignore_errors=True)
    for _ in range(commits):
        write_deltalake(folder / "t", pa.table({"text": [text]}), mode="append")


def texts(tables: OpenTables) -> list[str]:
    table = tables.pin("t")
    return [] if table is None else [row["text"] for row in table.rows("SELECT text FROM t")]


@pytest.mark.parametrize("commits", [1, COMMITS, COMMITS + 3])
def test_recreated_table_is_opened_again(tmp_path: Path, commits: int) -> None:
    make(tmp_path, COMMITS, "old")
    tables, folder = OpenTables(str(tmp_path)), TableFolder(str(tmp_path))
    before, opened = folder.revision("t"), folder.open("t")
    assert texts(tables) == ["old"] * COMMITS
    make(tmp_path, commits, "new")
    assert texts(tables) == ["new"] * commits
    assert folder.revision("t") != before
    assert folder.open("t") is not opened
    assert folder.open("t").version() == commits - 1


def test_deleted_table_is_missing_until_it_is_recreated(tmp_path: Path) -> None:
    make(tmp_path, COMMITS, "old")
    tables, folder = OpenTables(str(tmp_path)), TableFolder(str(tmp_path))
    folder.open("t")
    assert texts(tables) == ["old"] * COMMITS
    shutil.rmtree(tmp_path / "t")
    assert tables.pin("t") is None
    with pytest.raises(TableNotFoundError):
        folder.open("t")
    make(tmp_path, 2, "new")
    assert texts(tables) == ["new"] * 2
    assert folder.open("t").version() == 1


def test_commits_of_the_same_table_do_not_open_it_again(tmp_path: Path) -> None:
    make(tmp_path, COMMITS, "old")
    folder = TableFolder(str(tmp_path))
    opened, before = folder.open("t"), folder.revision("t")
    assert folder.revision("t") == before
    write_deltalake(tmp_path / "t", pa.table({"text": ["more"]}), mode="append")
    # A commit by the opened table itself, too.
    write_deltalake(folder.open("t"), pa.table({"text": ["own"]}), mode="append")
    assert folder.open("t") is opened
    assert folder.revision("t").version == COMMITS + 1


def test_own_commits_are_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, COMMITS, "old")
    folder = TableFolder(str(tmp_path))
    monkeypatch.setattr(DeltaTable, "update_incremental", Mock(side_effect=AssertionError("read again")))
    for number in range(3):
        write_deltalake(folder.open("t"), pa.table({"text": ["own"]}), mode="append")
        assert folder.revision("t").version == COMMITS + number
    monkeypatch.undo()
    write_deltalake(folder.open("t"), pa.table({"text": ["own"]}), mode="append")
    write_deltalake(tmp_path / "t", pa.table({"text": ["other"]}), mode="append")
    assert folder.revision("t").version == COMMITS + 4
    # A recreated table may have as many commits.
    write_deltalake(folder.open("t"), pa.table({"text": ["own"]}), mode="append")
    make(tmp_path, COMMITS + 6, "new")
    assert folder.open("t").to_pyarrow_table()["text"].to_pylist() == ["new"] * (COMMITS + 6)


@pytest.mark.parametrize("hours", [(1,), (1, 1, 1)])
def test_rows_by_hour_are_those_of_the_table_of_now(tmp_path: Path, hours: tuple[int, ...]) -> None:
    def add(*numbers: int) -> None:
        hour = pa.array([1_431_820_800_000_000] * len(numbers), pa.timestamp("us", "UTC"))
        rows = pa.table({"hour": hour, "number": numbers})
        write_deltalake(tmp_path / "t", rows, mode="append", partition_by=["hour"])

    add(1, 2)
    tables = OpenTables(str(tmp_path))
    assert [*tables.rows_by_hour("t").values()] == [2]
    shutil.rmtree(tmp_path / "t")
    for number in hours:
        add(number)
    assert [*tables.rows_by_hour("t").values()] == [len(hours)]
