"""One hour: the states and causes of its stages, what is computed from it, and what to run."""

from dataclasses import replace

import pytest

from tests.support.viewed_lake import ViewedLake, at, between
from transom.app.freshness import freshness_of, snapshot_of
from transom.core.partitions import CheckResult
from transom.features.ingest.expected_inputs import partition_of
from transom.views.hour import HourDetail, hour_detail


@pytest.fixture
def fresh_lake(lake: ViewedLake) -> ViewedLake:
    """Return a lake whose hours have the input hashes of now."""
    lake.refresh()
    return lake


def detail(lake: ViewedLake, number: int) -> HourDetail:
    freshness = freshness_of(lake.stream, snapshot_of(lake.stream, lake.ledger))
    return hour_detail(lake.stream, lake.file, lake.uri, lake.ledger, freshness, at(number))


def test_each_stage_has_state_cause_and_dependents(fresh_lake: ViewedLake) -> None:
    lake = fresh_lake
    partition = partition_of("events", at(2))
    state = replace(lake.ledger.snapshot()[partition], status="quarantined", complete=False, reason="few")
    lake.enter("ingest", {partition: state}, "b")
    hour = detail(lake, 2)
    assert [stage.stage for stage in hour.stages] == list(lake.stream.stages)
    ingest, *others = hour.stages
    assert (ingest.state, ingest.meaning) == ("quarantined", "a check failed, and it is not published")
    assert any("quarantined; the rows published before stay: few" in line for line in ingest.causes)
    # Windows of two hours, fills of three hours before, and everything that continues from hour to hour.
    assert ingest.dependents["aggregates"] == "2 hours: 2015-05-17T02:00 to 2015-05-17T04:00"
    assert "ingest" not in ingest.dependents
    assert {stage.state for stage in others} == {"stale"}
    assert "fills" in next(stage for stage in others if stage.stage == "frames").dependents
    assert hour.to_run == between(2, 3)
    assert hour.command is not None
    assert hour.command.endswith("--from 2015-05-17T02:00 --to 2015-05-17T03:00")
    assert hour.advice == "fix the data, or accept the value in the stream file, then run"
    assert hour.explain == "transom explain six 2015-05-17T02:00"


def test_an_hour_that_nobody_requested_has_a_command(lake: ViewedLake) -> None:
    hour = detail(lake, 100)
    assert {stage.state for stage in hour.stages} == {"none"}
    assert all("not requested" in stage.causes[0] for stage in hour.stages)
    assert hour.to_run == between(100, 101)


def test_a_fresh_hour_needs_no_run(fresh_lake: ViewedLake) -> None:
    hour = detail(fresh_lake, 3)
    assert {stage.state for stage in hour.stages} == {"published"}
    assert (hour.advice, hour.command, hour.to_run) == (None, None, None)


def test_accepted_check_is_shown_at_a_published_stage(fresh_lake: ViewedLake) -> None:
    results = [
        CheckResult(partition_of("events", at(number)), "c", "error", 1.0, "0", True, accepted="ann: fine")
        for number in (2, 3)
    ]
    fresh_lake.ledger.record_checks("ingest", results, "a")
    ingest, *others = detail(fresh_lake, 3).stages
    assert ingest.accepted == (
        "accepted: ingest events, 2015-05-17T03:00: c: observed 1, expected 0, by ann: fine",
    )
    assert not any(stage.accepted for stage in others)
