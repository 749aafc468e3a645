"""State is dropped when no present hour depends on it, and recomputed when a past hour does.

The engine's part is tested for the steps of every stage, killed, overtaken and under another specification,
in `tests.promise.test_retention_in_memory`. Here are rows: those that windows, frames and sketches compute
from state that was dropped and recomputed.
"""

from collections.abc import Callable

import pytest

from tests.support.stream_harness import StreamHarness, clock, hour, line
from transom.core.intervals import Interval
from transom.core.partitions import PartitionKey, PartitionState
from transom.engine.gate import evaluate_gate

Make = Callable[..., StreamHarness]

SHORT = """
name: web
preset: apache/combined
source: {path: "landing/web/%Y-%m-%d/access.%H*.log.gz"}
key: [client]
repair_window: 1 hour
retention: 4 hours
aggregates:
  traffic: {measures: {n: count}, levels: "RANGES 2 HOURS SLIDES 30 MINUTES"}
  site: {key: [], measures: {n: count}, levels: RANGES 1 HOUR SLIDES 1 HOUR}
"""

FRAMES = """
name: web
preset: apache/combined
source: {path: "landing/web/%Y-%m-%d/access.%H*.log.gz"}
key: [client]
repair_window: 1 hour
retention: 3 hours
frames:
  sizes: {kind: delta, value: bytes, below: 300, on_duplicate_time: sum, idle: 2 hours}
  failing: {kind: threshold, where: status >= 400, on_duplicate_time: max, idle: 2 hours}
"""

SKETCHES = """
name: web
preset: apache/combined
source: {path: "landing/web/%Y-%m-%d/access.%H*.log.gz"}
key: [client]
repair_window: 1 hour
retention: 3 hours
persistence:
  regulars: {item: [client], slot: 30 minutes, window: 2 hours, alpha: 0.7, epsilon: 0.6}
frequency:
  clients: {item: [client], window: 2 hours, tick: 30 minutes, epsilon: 0.5, delta: 0.5, top: 2}
  split: {item: [client], window: 2 hours, tick: 30 minutes, epsilon: 0.5, delta: 0.5, top: 2,
          variant: splitter}
"""


def expired(harness: StreamHarness, *tables: str) -> set[int]:
    result = {node for node, entry in harness.snapshot().items() if entry.status == "expired"}
    assert {node.table for node in result} <= {*(tables or ("granules",))}
    return {node.hour.hour for node in result}


@pytest.mark.full
def test_state_older_than_retention_is_dropped_for_any_split_into_runs(make_stream: Make) -> None:
    """Slow (20 seconds): seven runs of all stages."""
    hourly, whole = make_stream(SHORT, "hourly"), make_stream(SHORT, "whole")
    for number in range(7):
        hourly.land(number, [line(number * 3600 + 600 * i, f"10.0.0.{i % 2}") for i in range(6)])
    for start, end in ((0, 4), (4, 5), (5, 6), (6, 7)):
        hourly.run(start, end)
    whole.run(0, 7)
    assert expired(hourly) == {0, 1}
    assert clock(hourly.table("granules")) == {2, 3, 4, 5, 6}
    assert hourly.state() == whole.state()
    hourly.assert_ledger_true()
    # Expired state is no failure and makes nothing stale.
    assert evaluate_gate(hourly.ledger, "aggregates", "web", Interval(hour(0), hour(7)), "").passed
    versions = hourly.store.pin(["granules", "aggregates"]).versions
    hourly.run(0, 7)
    assert hourly.store.pin(["granules", "aggregates"]).versions == versions


def test_state_of_a_past_hour_is_recomputed_on_request(make_stream: Make) -> None:
    actual = make_stream(SHORT, "lived")
    for number in range(7):
        actual.land(number, [line(number * 3600 + 600 * i, f"10.0.0.{i % 2}") for i in range(6)])
    actual.run(0, 7)
    actual.land(1, [line(3600 + 3599, "10.9.9.9")], ".late")
    actual.run(1, 2)
    actual.run(2, 3)
    whole = make_stream(SHORT, "whole")
    whole.run(0, 7)
    assert actual.state() == whole.state()
    assert expired(actual) == {0, 1}
    actual.assert_ledger_true()
    reports = actual.table("aggregates").where("client = '10.9.9.9'")
    assert clock(reports) == {1, 2, 3}


@pytest.mark.full
def test_frames_opened_before_retained_state_equal_one_run(make_stream: Make) -> None:
    """Slow (half a minute): eight runs of all stages."""
    actual = make_stream(FRAMES, "lived")
    for number in range(8):
        actual.land(number, [line(3600 * number + 900 * i, sent=number + i, status=404) for i in range(4)])
    for start, end in ((0, 5), (5, 6), (6, 8)):
        actual.run(start, end)
    assert expired(actual, "open_frames") == {0, 1, 2, 3}
    first = {row["start_time"] for row in actual.rows_of("frames")}
    assert first == {hour(0)}
    # A record of the past changes the frames from there on, and those of its own key alone.
    actual.land(1, [line(3600 + 5, sent=9000), line(3600 + 7, "10.0.0.9")], ".late")
    actual.run(1, 2)
    for number in (3, 5, 7):
        actual.run(number, number + 1)
    again = make_stream(FRAMES, "again")
    again.run(0, 8)
    assert actual.state() == again.state()
    assert expired(actual, "open_frames") == {0, 1, 2, 3}
    actual.assert_ledger_true()


@pytest.mark.full
def test_sketch_windows_beginning_before_retained_state_equal_one_run(make_stream: Make) -> None:
    """Slow (most of a minute): seven runs of all stages, with three sketches."""
    actual = make_stream(SKETCHES, "lived")
    state = ("tuples", "tick_matrices", "cells")
    for number in range(6):
        actual.land(number, [line(3600 * number + 300 * i, f"10.0.0.{i * number % 3}") for i in range(12)])
    for start, end in ((0, 3), (3, 5), (5, 6)):
        actual.run(start, end)
    assert expired(actual, *state) == {0, 1}
    assert [clock(actual.table(table)) for table in state] == [{2, 3, 4, 5}] * 3
    # The results of the past hour are recomputed, and so are all that its state leads to.
    actual.land(1, [line(3600 + 60 * i, "10.0.0.9") for i in range(60)], ".late")
    actual.run(1, 2)
    for number in (3, 5):
        actual.run(number, number + 1)
    again = make_stream(SKETCHES, "again")
    again.run(0, 6)
    assert actual.state() == again.state()
    assert expired(actual, *state) == {0, 1}
    actual.assert_ledger_true()
    of_client = [row for row in actual.rows_of("frequencies") if row["client"] == "10.0.0.9"]
    assert {row["hour"].hour for row in of_client if row["change"] != "left"} == {1, 2}


@pytest.mark.full
def test_run_that_expires_state_reports_stale_hours(make_stream: Make) -> None:
    """It does so in the ledger and in the findings, run after run."""
    day = make_stream(SHORT)
    for number in range(7):
        day.land(number, [line(number * 3600)])
    day.stage("ingest", 0, 7)
    day.stage("aggregates", 0, 5)
    changed = make_stream(
        SHORT.replace('{n: count}, levels: "', '{n: count}, where: status = 200, levels: "')
    )
    for _ in range(2):
        assert changed.stage("aggregates", 6, 7).stale_since == hour(0)
        assert expired(changed) == {0, 1}
        assert [
            (reported.kind, reported.start_time, reported.end_time) for reported in changed.findings()
        ] == [
            # Hour 4 depends on the granules of hour 2, which no run has needed since.
            ("stale", hour(0), hour(5))
        ]


def test_granules_read_by_frames_do_not_expire(make_stream: Make) -> None:
    """Granules of other blocks expire before the frames of the same run are computed."""
    day = make_stream(SHORT + "frames: {busy: {source: site, kind: threshold, where: n > 2, idle: 2 hours}}")
    for number in range(7):
        day.land(number, [line(number * 3600 + 600 * i) for i in range(4 if number < 2 else 1)])
    day.run(0, 7)
    assert {
        node.block
        for node, entry in day.snapshot().items()
        if entry.status == "expired" and node.stage == "aggregates"
    } == {"traffic"}
    frames = [(row["hour"], row["last_time"], row["state"]) for row in day.rows()["frames"]]
    assert sorted(frames) == [
        (hour(0), hour(0), "partial"), (hour(1), hour(1), "partial"), (hour(2), hour(1), "final")
    ]  # fmt: skip


def test_hours_not_requested_of_ingest_are_dropped_from_the_ledger(make_stream: Make) -> None:
    """In a lake where the stage was requested for more hours than ingest."""
    day = make_stream(SHORT)
    day.land(0, [line(60)])
    day.run(0, 1)
    beyond = PartitionKey("aggregates", "site", "granules", hour(3))
    day.ledger.claim("aggregates", [beyond], "earlier")
    day.ledger.publish(
        "aggregates", {beyond: PartitionState("published", "earlier", digest="1:5", rows=1)}, "earlier"
    )
    day.stage("aggregates", 0, 1)
    assert beyond not in day.snapshot()
    day.assert_ledger_true()
