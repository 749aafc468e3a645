"""The hours of an open stream: states of now, and stale hours that are kept while nothing changes."""

import shutil
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.viewed_lake import ViewedLake, at, between
from transom.app.freshness import freshness_of
from transom.features.ingest.expected_inputs import partition_of
from transom.ledger.freshness import Freshness
from transom.ledger.snapshot import LedgerSnapshot
from transom.views import stream_hours
from transom.views.hours import HourGrid, hours
from transom.views.open_stream import OpenStream
from transom.views.stream_hours import StreamHours


class CountedStream(OpenStream):
    """An open stream with the number of times that stale hours were computed; `go` lets these go on."""

    def __init__(self, lake: ViewedLake) -> None:
        super().__init__(lake.uri, lake.stream)
        self.computed, self.go = 0, threading.Event()
        self.go.set()

    def freshness(self, snapshot: LedgerSnapshot) -> Freshness:
        assert self.go.wait(60)
        self.computed += 1
        return super().freshness(snapshot)


class CountedHours:
    """The hours of a lake, which are computed by a `CountedStream`."""

    def __init__(self, lake: ViewedLake) -> None:
        self.lake, self.opened = lake, CountedStream(lake)
        self.hours = StreamHours(self.opened)

    @property
    def computed(self) -> int:
        return self.opened.computed

    def grid(self, patience: float | None = 60) -> HourGrid:
        return self.hours.grid(between(0, 6), patience)

    def quarantine(self, number: int) -> None:
        partition = partition_of("rejected", at(number))
        state = replace(self.lake.ledger.snapshot()[partition], status="quarantined", reason="bad")
        self.lake.enter("ingest", {partition: state}, "b")


@pytest.fixture
def counted(lake: ViewedLake) -> CountedHours:
    return CountedHours(lake)


def states(grid: HourGrid, stage: str) -> list[str]:
    return [cell.state for cell in grid.stages[stage]]


def test_grid_is_that_of_the_ledger(counted: CountedHours) -> None:
    snapshot, stream = counted.opened.snapshot(), counted.lake.stream
    assert counted.grid() == hours(stream, snapshot, freshness_of(stream, snapshot), between(0, 6))


def test_stale_hours_are_computed_once_for_a_state_of_the_lake(counted: CountedHours) -> None:
    grids = [counted.grid() for _ in range(3)]
    assert (counted.computed, grids[1:]) == (1, grids[:-1])


def test_states_are_of_now_while_stale_hours_are_kept(
    counted: CountedHours, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert states(counted.grid(), "patterns") == ["stale"] * 6
    counted.quarantine(2)
    grid = counted.grid()
    assert states(grid, "ingest")[2] == "quarantined"
    assert states(grid, "patterns") == ["stale"] * 6
    assert grid.notice is not None
    assert grid.notice.startswith("Stale hours are those of ")
    assert counted.computed == 1
    monkeypatch.setattr(stream_hours, "KEEP", 0)
    assert [counted.grid().notice for _ in range(2)] == [None, None]
    assert counted.computed == 2


def test_page_does_not_wait_for_stale_hours(counted: CountedHours) -> None:
    counted.opened.go.clear()
    grid = counted.grid(patience=0)
    assert states(grid, "patterns") == ["published"] * 6
    assert grid.notice == "Which hours are stale is still being looked up: none is shown as stale yet."
    counted.opened.go.set()
    assert states(counted.grid(patience=None), "patterns") == ["stale"] * 6


def test_failure_of_the_computation_is_that_of_the_page_and_is_tried_again(
    counted: CountedHours, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(counted.opened, "freshness", lambda snapshot: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            counted.grid()
    assert counted.grid().notice is None


@pytest.mark.parametrize("run", ["a", "other run"])
def test_recreated_lake_has_its_own_hours(
    counted: CountedHours, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: str
) -> None:
    monkeypatch.setattr(stream_hours, "KEEP", 0)
    counted.quarantine(2)
    assert states(counted.grid(), "ingest")[2] == "quarantined"
    shutil.rmtree(tmp_path / "lake")
    again = ViewedLake(tmp_path)
    again.publish(range(4), run=run)
    grid = counted.grid()
    assert states(grid, "ingest") == ["published"] * 4 + ["none"] * 2
    stream, snapshot = again.stream, again.ledger.snapshot()
    assert grid == hours(stream, snapshot, freshness_of(stream, snapshot), between(0, 6))
    assert counted.computed == 2
