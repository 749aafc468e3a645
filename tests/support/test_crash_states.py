"""The basis of the tests of kills: every commit is noticed, and a kill is no exception to the lake."""

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.support.crash_states import killed_at, remains, watched
from transom.core.intervals import UNKNOWN_HOUR
from transom.core.partitions import PartitionKey, PartitionState
from transom.ledger.ledger import Ledger

NODE = PartitionKey("ingest", "events", "events", UNKNOWN_HOUR)


def publish(lake: Path) -> None:
    """Create three tables, claim a partition and publish it."""
    ledger = Ledger(str(lake))
    ledger.claim("ingest", [NODE], "run")
    ledger.publish("ingest", {NODE: PartitionState("published", "run")}, "run")


def status(lake: Path) -> list[str]:
    return [entry.status for entry in Ledger(str(lake)).snapshot().values()]


def test_every_commit_is_noticed_on_both_sides(tmp_path: Path) -> None:
    observed: list[tuple[int, str]] = []
    with watched(lambda number, side: observed.append((number, side)), tmp_path) as commits:
        publish(tmp_path)
    assert commits.count == 5
    assert observed == [(number, side) for number in range(1, 6) for side in ("before", "after")]


def test_unnoticed_commit_is_reported(tmp_path: Path) -> None:
    with (
        pytest.raises(AssertionError, match="made in a way that is not watched"),
        watched(lambda number, side: None, tmp_path),
    ):
        write_deltalake(str(tmp_path / "table"), pa.table({"x": [1]}))


def test_commits_of_the_strike_itself_are_not_struck(tmp_path: Path) -> None:
    struck: list[int] = []

    def strike(number: int, side: str) -> None:
        struck.append(number)
        if (number, side) == (2, "after"):
            publish(tmp_path / "other")

    with watched(strike):
        publish(tmp_path / "one")
    assert struck == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    assert status(tmp_path / "other") == status(tmp_path / "one") == ["published"]


def test_kill_leaves_committed_rows(tmp_path: Path) -> None:
    for number, side, remaining in ((4, "before", []), (4, "after", ["writing"]), (5, "before", ["writing"])):
        lake = tmp_path / f"{side}-{number}"
        with killed_at(number, side):
            publish(lake)
            pytest.fail("it was not killed")
        assert status(lake) == remaining


def test_states_that_a_kill_can_leave_are_those_between_commits(tmp_path: Path) -> None:
    lake = tmp_path / "web"
    states = remains(lake, lambda: publish(lake), tmp_path / "copies")
    assert [state.parent.name for state in states] == [*(f"before-{n}" for n in range(1, 6)), "after-all"]
    assert [status(state) for state in states] == [[], [], [], [], ["writing"], ["published"]]
    # The data files of the missing commit exist.
    assert len(list((states[4] / "ledger").glob("stage=*/*.parquet"))) > len(
        DeltaTable(str(states[4] / "ledger")).file_uris()
    )
