"""Rows of many small data files, stored together: the copy equals the table, or is not used."""

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.support.memory_lake import at
from transom.storage import packed_copy as packed
from transom.storage.driver_io import TableReader
from transom.storage.packed_copy import NAME, PackedCopy
from transom.storage.tables import Table, create, in_hours_sql

TABLE = Table.load("files")
BESIDE = pa.schema([("__mark", pa.string())])


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "SCATTERED", 2)


class Files:
    """A table, one hour of which a run replaces.

    Attributes:
        opened: number of hours read from data files.
    """

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.uri = str(root / "files")
        create(str(root), TABLE)
        self.opened: list[int] = []
        rows = TableReader.rows

        def counted(stored: TableReader, hours: Any) -> pa.Table:
            self.opened.append(len(hours))
            return rows(stored, hours)

        monkeypatch.setattr(TableReader, "rows", counted)

    def write(self, hours: Iterable[datetime], status: str = "ingested", many: int = 1) -> None:
        hours = list(hours)
        row = {**dict.fromkeys(TABLE.columns), "status": status}
        rows = [row | {"hour": hour, "path": f"{hour:%d%H}-{n}"} for hour in hours for n in range(many)]
        write_deltalake(
            self.uri, pa.Table.from_pylist(rows, schema=TABLE.arrow_schema()), mode="overwrite",
            predicate=in_hours_sql(hours),
        )  # fmt: skip

    def read(self, *but: datetime) -> PackedCopy:
        return PackedCopy(self.uri, TableReader(DeltaTable(self.uri)), but, BESIDE)

    def keep(self, of: PackedCopy) -> None:
        fresh = of.uncopied.append_column("__mark", pa.array(["new"] * of.uncopied.num_rows, pa.string()))
        of.replace(pa.concat_tables([of.valid, fresh]))


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Files:
    return Files(tmp_path, monkeypatch)


def of(rows: pa.Table) -> list[tuple[str, str]]:
    return sorted(zip(rows["path"].to_pylist(), rows["status"].to_pylist(), strict=True))


def hours(*numbers: int) -> list[datetime]:
    return [at(number) for number in numbers]


def test_hours_are_read_from_the_copy_while_their_files_are_unchanged(files: Files) -> None:
    files.write(hours(0, 1, 2), many=2)
    first = files.read()
    assert (first.valid.num_rows, first.uncopied.num_rows, first.outdated) == (0, 6, True)
    files.keep(first)
    files.write(hours(3))
    again = files.read()
    assert (of(again.valid), of(again.uncopied), again.outdated) == (
        of(first.uncopied),
        [("1703-0", "ingested")],
        False,
    )
    assert again.valid["__mark"].to_pylist() == ["new"] * 6
    files.write(hours(1), "missing")
    files.write(hours(2), "missing")
    other = files.read()
    assert of(other.valid) == [("1700-0", "ingested"), ("1700-1", "ingested")]
    assert of(other.uncopied) == [("1701-0", "missing"), ("1702-0", "missing"), ("1703-0", "ingested")]
    # More is obsolete than in use.
    assert other.outdated
    files.keep(other)
    last = files.read(at(0))
    assert (of(last.valid), last.uncopied.num_rows) == (of(other.uncopied), 0)
    assert files.opened == [3, 1, 3, 0]


def test_hour_of_several_files_is_read_from_the_copy_if_all_are_unchanged(files: Files) -> None:
    files.write(hours(0))
    write_deltalake(files.uri, DeltaTable(files.uri).to_pyarrow_table(), mode="append")
    files.keep(files.read())
    assert (files.read().valid.num_rows, files.read().uncopied.num_rows) == (2, 0)
    DeltaTable(files.uri).optimize.compact()
    assert (files.read().valid.num_rows, files.read().uncopied.num_rows) == (0, 2)


@pytest.mark.parametrize("damage", ["bytes", "end", "another table", "another form"])
def test_unreadable_copy_is_not_used(files: Files, damage: str, tmp_path: Path) -> None:
    files.write(hours(0, 1))
    files.keep(files.read())
    copy = tmp_path / "files" / NAME
    text = copy.read_bytes()
    if damage == "bytes":
        at_path = text.index(b"1700-0")
        copy.write_bytes(text[:at_path] + b"9" + text[at_path + 1 :])
    elif damage == "end":
        copy.write_bytes(text[:-9])
    elif damage == "another table":
        copy.write_bytes(b"PAR1")
    required = pa.schema([("__other", pa.string())]) if damage == "another form" else BESIDE
    result = PackedCopy(files.uri, TableReader(DeltaTable(files.uri)), (), required)
    assert (result.valid.num_rows, of(result.uncopied)) == (
        0,
        [("1700-0", "ingested"), ("1701-0", "ingested")],
    )


def test_failed_write_of_a_copy_is_ignored(files: Files, tmp_path: Path) -> None:
    files.write(hours(0))
    (tmp_path / "files" / NAME).mkdir()
    files.keep(files.read())
    assert files.read().uncopied.num_rows == 1
    # No table has it, and clean-up of the folder skips it.
    (tmp_path / "files" / NAME).rmdir()
    files.keep(files.read())
    assert DeltaTable(files.uri).vacuum(0, dry_run=True, enforce_retention_duration=False) == []
    assert DeltaTable(files.uri).to_pyarrow_table().num_rows == 1
