"""Which state expires and which is left to other runs, by the ledger alone."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from deltalake import DeltaTable

from transom.core.partitions import PartitionKey, PartitionState
from transom.engine import retention
from transom.engine.retention import DEAD_CLAIM_AFTER, expire
from transom.features.aggregates.stage import definition
from transom.ledger.ledger import Ledger
from transom.storage.store import Store
from transom.stream import parse

HOUR = timedelta(hours=1)
DAY = datetime(2015, 5, 17, tzinfo=UTC)
STREAM = parse(
    {
        "name": "web",
        "preset": "apache/combined",
        "source": {"path": "landing/web/%Y-%m-%d/access.%H*.log.gz"},
        "key": [],
        "aggregates": {"site": {"measures": {"n": "count"}, "levels": "RANGES 1 HOUR SLIDES 1 HOUR"}},
    }
)
STAGE = definition(STREAM)
STOOD = PartitionState("published", "first", digest="2:7", input_hashes={"specification": "s"}, rows=2)
REPORT = PartitionKey("aggregates", "site", "aggregates", DAY)


def node(number: int) -> PartitionKey:
    return PartitionKey("aggregates", "site", "granules", DAY + number * HOUR)


@pytest.fixture
def lake(tmp_path: Path) -> tuple[Store, Ledger]:
    """Return a ledger with granules of seven hours, of which four are retained, and a report of the first."""
    store, ledger = Store(Mock(), str(tmp_path)), Ledger(str(tmp_path))
    store.create(*(step.table for step in STAGE.steps))
    nodes = [REPORT, *map(node, range(7))]
    ledger.claim("aggregates", nodes, "first")
    ledger.publish("aggregates", dict.fromkeys(nodes, STOOD), "first")
    return store, ledger


def statuses(ledger: Ledger) -> list[str]:
    assert ledger.snapshot()[REPORT] == STOOD
    return [ledger.snapshot()[node(number)].status for number in range(7)]


def drop(lake: tuple[Store, Ledger], run: str) -> int:
    return expire(*lake, STAGE, 4 * HOUR, run, ())


def redated(ledger: Ledger, when: Callable[[int, int], int]) -> None:
    """Give each commit another time.

    Args:
        when: maps its version and its time in milliseconds to the new time.
    """
    for path in Path(f"{ledger.root}/ledger/_delta_log").glob("*.json"):
        actions = [json.loads(action) for action in path.read_text().splitlines()]
        for action in actions:
            if "commitInfo" in action:
                info = action["commitInfo"]
                info["timestamp"] = when(int(path.stem), info["timestamp"])
        path.write_text("\n".join(map(json.dumps, actions)))


def time_goes_by(ledger: Ledger, time: timedelta) -> None:
    """Make all commits so far older."""
    redated(ledger, lambda _, moment: moment - time // timedelta(milliseconds=1))


def test_run_is_silent_since_its_latest_commit(lake: tuple[Store, Ledger]) -> None:
    _, ledger = lake
    for number, run in enumerate(("a", "b")):
        ledger.claim("aggregates", [node(number)], run)
    redated(ledger, lambda version, _: version * 3_600_000)
    latest = DeltaTable(f"{ledger.root}/ledger").version()
    # A run that the log does not contain may have been active before all of it.
    silent = {"first": 2, "a": 1, "b": 0, "unknown": latest}
    assert {run: ledger.idle_time(run) / HOUR for run in silent} == silent


def test_hours_that_another_run_writes_do_not_expire(lake: tuple[Store, Ledger]) -> None:
    _, ledger = lake
    versions = {"granules": DeltaTable(f"{ledger.root}/granules").version()}
    ledger.claim("aggregates", [node(0)], "backfill", versions=versions)
    assert drop(lake, "hourly") == 1
    assert statuses(ledger) == ["writing", "expired", *["published"] * 5]
    ledger.publish("aggregates", {node(0): replace(STOOD, run_id="backfill")}, "backfill")
    assert drop(lake, "hourly again") == 1
    assert statuses(ledger) == ["expired", "expired", *["published"] * 5]


def test_hours_of_a_killed_run_expire_after_long_silence(
    lake: tuple[Store, Ledger],
) -> None:
    _, ledger = lake
    ledger.claim("aggregates", [node(0)], "killed")
    time_goes_by(ledger, DEAD_CLAIM_AFTER - timedelta(minutes=1))
    assert drop(lake, "too early") == 1
    assert statuses(ledger)[:2] == ["writing", "expired"]
    time_goes_by(ledger, timedelta(minutes=1))
    # A run that records nothing of hours shows no time. The next one that does shows how much time has
    # passed.
    ledger.claim("aggregates", [node(6)], "at work")
    assert drop(lake, "later") == 1
    assert statuses(ledger) == ["expired", "expired", *["published"] * 4, "writing"]
    # Their earlier state is known, so that hours computed from them stay fresh.
    expired = replace(STOOD, status="expired", rows=0)
    assert [ledger.snapshot()[node(number)] for number in range(2)] == [expired, expired]


def test_conflict_during_clean_up_does_not_fail_the_run(
    lake: tuple[Store, Ledger], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, ledger = lake
    publish_partitions = retention.publish_partitions

    def and_is_overtaken(*arguments: Any) -> None:
        ledger.claim("aggregates", [node(1)], "backfill")
        publish_partitions(*arguments)

    monkeypatch.setattr(retention, "publish_partitions", and_is_overtaken)
    assert drop(lake, "hourly") == 0
    assert statuses(ledger) == ["published", "writing", *["published"] * 5]
