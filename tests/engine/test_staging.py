"""What a run takes of the parts that tasks have written, and what is left of the others. No Spark."""

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
    """Rows whose partitions are the tasks' own, one after the other."""

    def __init__(self, *batches: pa.RecordBatch) -> None:
        self.batches = batches

    def mapInArrow(self, make: Callable[[Iterable[Any]], Iterator[Any]], ddl: str) -> "Frame":
        return Frame(*(told for batch in self.batches for told in make([batch])))

    def unionAll(self, other: "Frame") -> "Frame":
        return Frame(*self.batches, *other.batches)

    def toArrow(self) -> pa.Table:
        return pa.Table.from_batches(self.batches)


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., StagedOutput]:
    """A spool of the rows of some blocks, each the hours of its partitions' rows."""
    monkeypatch.setattr(spool, "DataFrame", Frame)

    def of(hours: int = 1, **blocks: list[list[int]]) -> StagedOutput:
        shares: list[Any] = []
        for block, partitions in blocks.items():
            rows = ([{"hour": hour, "n": 1} for hour in at(*some)] for some in partitions)
            batches = [pa.RecordBatch.from_pylist(some, SCHEMA.remove(0)) for some in rows]
            shares.append(BlockTask(block, Frame(*batches)))
        return StagedOutput(Store(MagicMock(), str(tmp_path)), LINES, shares, hours)

    return of


def test_only_what_is_published_is_taken_and_only_that_is_left(
    made: Callable[..., StagedOutput], tmp_path: Path
) -> None:
    """An hour that is withheld, or a block of it, is another run's to publish."""
    rows = made(a=[[1, 2, 2], [2, 3]], b=[[1, 2]])
    taken = rows.adopt_files({"a": at(2, 4), "b": at(1)})
    assert taken is not None
    found = [(block, part) for block, parts in rows.data_files.items() for part in parts if part in taken]
    assert sorted((block, part.hour, part.rows) for block, part in found) == [
        ("a", *at(2), 1), ("a", *at(2), 2), ("b", *at(1), 1)
    ]  # fmt: skip
    rows.discard()
    assert {path.name for path in tmp_path.rglob("*.parquet")} == {part.name for part in taken}


def test_nothing_is_taken_of_many_files_or_of_files_of_several_hours(
    made: Callable[..., StagedOutput], tmp_path: Path
) -> None:
    few, many = made(a=[[1]] * MOST_FILES), made(a=[[1]] * (MOST_FILES + 1))
    assert len(few.adopt_files({"a": at(1)}) or ()) == MOST_FILES
    together = made(spool.MOST_HOURS + 1, a=[[1]])
    for rows in (many, together):
        assert rows.adopt_files({"a": at(1)}) is None
        rows.discard()
    assert len(list(tmp_path.rglob("*.parquet"))) == MOST_FILES


def test_nothing_is_left_where_a_task_fails(
    made: Callable[..., StagedOutput], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fails(frame: Frame) -> None:
        assert list(tmp_path.rglob("*.parquet"))
        raise RuntimeError

    monkeypatch.setattr(Frame, "toArrow", fails)
    with pytest.raises(RuntimeError):
        made(a=[[1]])
    assert not list(tmp_path.rglob("*.parquet"))
