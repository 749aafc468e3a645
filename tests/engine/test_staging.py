"""Which of the parts that tasks have written a run publishes, and what remains of the others. No Spark."""

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pyarrow as pa
import pytest

from transom.engine import staging as spool
from transom.engine.staging import MOST_FILES, StagedOutput
from transom.ledger.stage import BlockTask
from transom.storage.store import Store
from transom.storage.tables import Table

DAY = datetime(2015, 5, 17, tzinfo=UTC)
KINDS = {"block": "string", "hour": "timestamp", "n": "bigint"}
LINES = Table("lines", KINDS, ("hour",), frozenset())
SCHEMA = LINES.arrow_schema()


def at(*hours: int) -> list[datetime]:
    return [DAY + timedelta(hours=number) for number in hours]


class Frame:
    """A DataFrame whose partitions are those of the tasks, in order."""

    def __init__(self, *batches: pa.RecordBatch) -> None:
        self.batches = batches

    def mapInArrow(self, make: Callable[[Iterable[Any]], Iterator[Any]], ddl: str) -> "Frame":
        return Frame(*(reported for batch in self.batches for reported in make([batch])))

    def unionAll(self, other: "Frame") -> "Frame":
        return Frame(*self.batches, *other.batches)

    def toArrow(self) -> pa.Table:
        return pa.Table.from_batches(self.batches)


@pytest.fixture
def build_spool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., StagedOutput]:
    """Return a spool with the rows of some blocks; each row is an hour."""
    monkeypatch.setattr(spool, "DataFrame", Frame)

    def of(hours: int = 1, **blocks: list[list[int]]) -> StagedOutput:
        shares: list[Any] = []
        for block, partitions in blocks.items():
            rows = ([{"hour": hour, "n": 1} for hour in at(*some)] for some in partitions)
            batches = [pa.RecordBatch.from_pylist(some, SCHEMA.remove(0)) for some in rows]
            shares.append(BlockTask(block, Frame(*batches)))
        return StagedOutput(Store(MagicMock(), str(tmp_path)), LINES, shares, hours)

    return of


def test_only_published_parts_are_used_and_remain(
    build_spool: Callable[..., StagedOutput], tmp_path: Path
) -> None:
    """A quarantined hour, or a block of it, is left to another run."""
    rows = build_spool(a=[[1, 2, 2], [2, 3]], b=[[1, 2]])
    selected = rows.adopt_files({"a": at(2, 4), "b": at(1)})
    assert selected is not None
    result = [(block, part) for block, parts in rows.data_files.items() for part in parts if part in selected]
    assert sorted((block, part.hour, part.rows) for block, part in result) == [
        ("a", *at(2), 1), ("a", *at(2), 2), ("b", *at(1), 1)
    ]  # fmt: skip
    rows.discard()
    assert {path.name for path in tmp_path.rglob("*.parquet")} == {part.name for part in selected}


def test_parts_of_many_files_or_several_hours_are_not_used(
    build_spool: Callable[..., StagedOutput], tmp_path: Path
) -> None:
    few, count = build_spool(a=[[1]] * MOST_FILES), build_spool(a=[[1]] * (MOST_FILES + 1))
    assert len(few.adopt_files({"a": at(1)}) or ()) == MOST_FILES
    together = build_spool(spool.MOST_HOURS + 1, a=[[1]])
    for rows in (count, together):
        assert rows.adopt_files({"a": at(1)}) is None
        rows.discard()
    assert len(list(tmp_path.rglob("*.parquet"))) == MOST_FILES


def test_failed_task_leaves_no_files(
    build_spool: Callable[..., StagedOutput], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fails(frame: Frame) -> None:
        assert list(tmp_path.rglob("*.parquet"))
        raise RuntimeError

    monkeypatch.setattr(Frame, "toArrow", fails)
    with pytest.raises(RuntimeError):
        build_spool(a=[[1]])
    assert not list(tmp_path.rglob("*.parquet"))
