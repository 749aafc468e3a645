"""Parts: rows that a task has written, with one file for each hour."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import fs

from transom.core.intervals import hour_of
from transom.storage import data_files as parts
from transom.storage.data_files import DataFile, delete_uncommitted, write_data_files
from transom.storage.filesystem import resolve_filesystem

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SCHEMA = pa.schema([("time", pa.timestamp("us", "UTC")), ("text", pa.string())])
INSTANTS = st.integers(-(10**16), 10**16).map(lambda us: EPOCH + timedelta(microseconds=us))
NEAR = st.integers(0, 3 * 3600 - 1).map(lambda seconds: EPOCH + timedelta(seconds=seconds))
TEXTS = st.none() | st.text(max_size=3)
ROWS = st.lists(st.tuples(st.one_of(INSTANTS, NEAR), TEXTS), min_size=1, max_size=20)


def batch(rows: list[tuple[datetime, str | None]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"time": t, "text": text} for t, text in rows], schema=SCHEMA)


def read(table: Path, part: DataFile) -> list[tuple[datetime, str | None]]:
    rows = pq.read_table(table / part.path).to_pylist()
    assert len(rows) == part.rows
    assert (table / part.path).stat().st_size == part.bytes
    return [(row["time"].astimezone(UTC), row["text"]) for row in rows]


@pytest.fixture(params=[1, parts.FLUSH_BYTES])
def buffered(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether rows are buffered."""
    monkeypatch.setattr(parts, "FLUSH_BYTES", request.param)


@pytest.mark.usefixtures("buffered")
@given(batches=st.lists(ROWS, max_size=4), threads=st.sampled_from([1, 3]))
def test_each_row_is_in_the_file_of_its_hour_in_order(
    tmp_path_factory: pytest.TempPathFactory, batches: list[list[tuple[datetime, str | None]]], threads: int
) -> None:
    table = tmp_path_factory.mktemp("table")
    result = list(write_data_files(str(table), "read", "part", map(batch, batches), "time", threads))
    expected: dict[datetime, list[tuple[datetime, str | None]]] = {}
    for row in [row for rows in batches for row in rows]:
        expected.setdefault(hour_of(row[0]), []).append(row)
    assert {part.hour: read(table, part) for part in result} == expected
    assert [part.hour for part in result] == sorted(expected)
    assert sorted(path.name for path in table.rglob("*.parquet")) == sorted(part.name for part in result)


@given(batches=st.lists(ROWS, min_size=1, max_size=4))
def test_undivided_rows_stay_together(
    tmp_path_factory: pytest.TempPathFactory, batches: list[list[tuple[datetime, str | None]]]
) -> None:
    table = tmp_path_factory.mktemp("table")
    [part] = write_data_files(str(table), "read", "part", map(batch, batches))
    assert (part.path, part.hour) == ("read/part.parquet", None)
    assert read(table, part) == [row for rows in batches for row in rows]


def test_column_of_times_is_written_for_spark_and_delta(tmp_path: Path) -> None:
    [part] = write_data_files(str(tmp_path), "read", "part", [batch([(EPOCH, "a")])], "time")
    kind = pq.ParquetFile(tmp_path / part.path).schema.column(0)
    assert (kind.physical_type, kind.logical_type.to_json()) == (
        "INT64",
        '{"Type":"Timestamp","isAdjustedToUTC":true,"timeUnit":"microseconds",'
        '"is_from_converted_type":false,"force_set_converted_type":false}',
    )


def test_unused_parts_are_removed_and_no_others(tmp_path: Path) -> None:
    rows = batch([(EPOCH, "a"), (EPOCH + timedelta(hours=1), "b")])
    _, second = write_data_files(str(tmp_path), "read", "part", [rows], "time")
    [other] = write_data_files(str(tmp_path), "another", "part", [rows])
    # Files that a failed task has left unreported.
    (tmp_path / "read" / "part-of-none.parquet").write_bytes(b"")
    delete_uncommitted(str(tmp_path), "read", [second, other])
    assert sorted(tmp_path.rglob("*.parquet")) == [tmp_path / other.path, tmp_path / second.path]
    delete_uncommitted(str(tmp_path), "read", [other])
    assert [path.name for path in tmp_path.iterdir()] == ["another"]
    delete_uncommitted(str(tmp_path), "never", [])


def test_part_that_cannot_be_removed_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [part] = write_data_files(str(tmp_path), "read", "part", [batch([(EPOCH, "a")])])

    def refused(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(
        "transom.storage.data_files.resolve_filesystem", lambda _: (SystemThatRefuses(refused), str(tmp_path))
    )
    delete_uncommitted(str(tmp_path), "read", [])
    assert (tmp_path / part.path).exists()


class SystemThatRefuses:
    def __init__(self, delete: Callable[..., None]) -> None:
        self.delete_file = self.delete_dir = delete
        self.get_file_info = fs.LocalFileSystem().get_file_info


@pytest.mark.parametrize(
    ("uri", "path"),
    [("/a b/c#d%20", "/a b/c#d%20"), ("file:///a b/c#d%20", "/a b/c#d%20"), ("/", "/"), ("file:///", "/")],
)
def test_path_is_used_unchanged(uri: str, path: str) -> None:
    system, result = resolve_filesystem(uri)
    assert (type(system), result) == (fs.LocalFileSystem, path)


def test_unknown_scheme_is_refused() -> None:
    with pytest.raises(pa.ArrowInvalid, match="Unrecognized filesystem type in URI: foo"):
        resolve_filesystem("foo://bucket/lake")
