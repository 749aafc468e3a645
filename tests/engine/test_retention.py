"""What expires and what is left to others, by the ledger alone."""

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
    """Granules of seven hours, of which four are kept, and a report of the first."""
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
    """Gives each commit another time.

    Args:
        when: takes its version and its time in milliseconds.
    """
    for path in Path(f"{ledger.root}/ledger/_delta_log").glob("*.json"):
        actions = [json.loads(action) for action in path.read_text().splitlines()]
        for action in actions:
            if "commitInfo" in action:
                info = action["commitInfo"]
                info["timestamp"] = when(int(path.stem), info["timestamp"])
        path.write_text("\n".join(map(json.dumps, actions)))


def time_goes_by(ledger: Ledger, time: timedelta) -> None:
    """Makes all commits so far older."""
    redated(ledger, lambda _, moment: moment - time // timedelta(milliseconds=1))


def test_a_run_is_silent_since_its_latest_commit(lake: tuple[Store, Ledger]) -> None:
    _, ledger = lake
    for number, run in enumerate(("a", "b")):
        ledger.claim("aggregates", [node(number)], run)
    redated(ledger, lambda version, _: version * 3_600_000)
    latest = DeltaTable(f"{ledger.root}/ledger").version()
    # One of which the log knows nothing may have been at work before all of it.
    silent = {"first": 2, "a": 1, "b": 0, "unknown": latest}
    assert {run: ledger.idle_time(run) / HOUR for run in silent} == silent


def test_what_another_run_is_writing_is_left_to_it(lake: tuple[Store, Ledger]) -> None:
    _, ledger = lake
    versions = {"granules": DeltaTable(f"{ledger.root}/granules").version()}
    ledger.claim("aggregates", [node(0)], "backfill", versions=versions)
    assert drop(lake, "hourly") == 1
    assert statuses(ledger) == ["writing", "expired", *["published"] * 5]
    ledger.publish("aggregates", {node(0): replace(STOOD, run_id="backfill")}, "backfill")
    assert drop(lake, "hourly again") == 1
    assert statuses(ledger) == ["expired", "expired", *["published"] * 5]


def test_what_a_killed_run_has_left_expires_when_it_has_been_silent_for_long(
    lake: tuple[Store, Ledger],
) -> None:
    _, ledger = lake
    ledger.claim("aggregates", [node(0)], "killed")
    time_goes_by(ledger, DEAD_CLAIM_AFTER - timedelta(minutes=1))
    assert drop(lake, "too early") == 1
    assert statuses(ledger)[:2] == ["writing", "expired"]
    time_goes_by(ledger, timedelta(minutes=1))
    # A run that says nothing of hours shows no time; the next one that does shows how much has gone by.
    ledger.claim("aggregates", [node(6)], "at work")
    assert drop(lake, "later") == 1
    assert statuses(ledger) == ["expired", "expired", *["published"] * 4, "writing"]
    # What they were is known, so that what was computed from them stays fresh.
    expired = replace(STOOD, status="expired", rows=0)
    assert [ledger.snapshot()[node(number)] for number in range(2)] == [expired, expired]


def test_a_run_that_meets_another_while_it_tidies_up_has_done_its_work(
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
