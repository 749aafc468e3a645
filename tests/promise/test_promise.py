"""The promise: every published row is a function of the events and the specification alone.

Each test builds two lakes from one landing folder, by different histories, and compares them by digest. The
digests themselves are compared with the rows.
"""

import os
import random
from collections.abc import Callable
from itertools import pairwise

import pytest

from tests.support.crash_states import killed_at
from tests.support.stream_harness import PLAIN, WEB, StreamHarness, clock, hour, line
from transom.core.intervals import Interval
from transom.engine.gate import evaluate_gate

Make = Callable[..., StreamHarness]


def traffic(harness: StreamHarness, hours: int) -> None:
    """Land hours of a few clients. One client has most of the rows, in every hour except an empty one. Some
    rows are duplicates, and one hour's file exists under two names.
    """
    for number in range(hours):
        heavy = [line(number * 3600 + 7 * i, "10.0.0.1", i) for i in range(0, 500, 9)]
        others = [line(number * 3600 + 311 * i, f"10.0.1.{number % 3}", "-") for i in range(5)]
        # Out of order inside the hour, as in practice.
        lines = [] if number == 5 else [*others, *heavy, *others]
        harness.land(number, lines)
        if number == 7:
            harness.land(number, lines, ".again")


LOUD = WEB.replace("expected_files: 1", "expected_files: 2") + (
    "checks: {quiet: {stage: aggregates, block: site, every: n < 3, severity: warning}}\n"
)
"""A stream in which each stage has something to report."""


def history(harness: StreamHarness, hours: int, rng: random.Random) -> None:
    """Run random intervals in random order. Some runs are killed and repeated, some run twice; a file is
    late.
    """
    late = harness.land(3, [line(3 * 3600 + 1800, "10.9.9.9", 5000)], ".second")
    held_back = late.read_bytes()
    late.unlink()
    cuts = list(pairwise(sorted({0, hours, *rng.sample(range(1, hours), 3)})))
    rng.shuffle(cuts)
    for number, (start, end) in enumerate([*cuts, rng.choice(cuts), (3, 4)]):
        if number == len(cuts) - 1:
            late.write_bytes(held_back)
        if number % 2:
            with killed_at(rng.randint(1, 9)):
                harness.run(start, end)
        harness.run(start, end)


def assert_equal(one: StreamHarness, other: StreamHarness) -> None:
    """Assert that two lakes have the same ledger, rows and findings."""
    one.assert_same(other)
    assert one.findings() == other.findings()


@pytest.mark.full
def test_random_history_with_late_file_equals_one_run(make_stream: Make, rng: random.Random) -> None:
    """Slow (half a minute): a dozen runs over several hours. The last hour has no file."""
    text, hours = LOUD.replace("expected_files: 2", "expected_files: 1, equal_files: one"), 9
    actual, whole = make_stream(text, "lived"), make_stream(text, "whole")
    traffic(actual, hours - 1)
    history(actual, hours, rng)
    whole.run(0, hours)
    assert_equal(actual, whole)
    actual.assert_ledger_true()
    reported = {(finding.kind, finding.severity): finding.start_time for finding in actual.findings()}
    assert reported == {("source_silent", "high"): hour(8), ("check_failed", "low"): hour(6)}
    assert actual.table("events").where("source_line <= 5 AND hour(hour) = 7").count() == 5


def test_second_run_of_an_interval_writes_nothing(make_stream: Make) -> None:
    once = make_stream(LOUD)
    traffic(once, 2)
    once.run(0, 2)
    tables = ("events", "aggregates", "ledger", "findings")
    versions = once.store.pin(tables).versions
    once.run(0, 2)
    assert once.store.pin(tables).versions == versions
    # A file with a new modification time alone is read once, and gives the published rows.
    os.utime(next(once.folder.glob("landing/**/*.gz")), (1, 1))
    assert [once.stage("ingest", 0, 2).counters["files_read"] for _ in range(2)] == [1, 0]
    assert once.store.pin(["events"]).versions["events"] == versions["events"]


def test_late_file_makes_exactly_its_dependent_hours_recompute(make_stream: Make) -> None:
    repaired = make_stream()
    traffic(repaired, 4)
    repaired.run(0, 4)
    before = repaired.state()
    repaired.land(1, [line(3600 + 120, "10.9.9.9")], ".late")
    repaired.stage("ingest", 3, 4)
    outcome = repaired.stage("aggregates", 3, 4)
    changed = {name for name, state in repaired.state().items() if before.get(name) != state}
    assert {name.split()[0] for name in changed} == {
        "ingest.events.events",
        "ingest.events.files",
        "aggregates.traffic.granules",
        "aggregates.traffic.aggregates",
        "aggregates.traffic.item_granules",
        "aggregates.traffic.recurring",
        "aggregates.site.granules",
        "aggregates.site.aggregates",
    }
    # A window of six hours that begins in hour 1 reports until hour 6; hours after 3 are not requested.
    traffic_hours = {name.split()[1] for name in changed if name.startswith("aggregates.traffic.aggregates")}
    assert traffic_hours == {f"{hour(number):%Y-%m-%dT%H:%M}" for number in (1, 2, 3)}
    assert outcome.stale_since is None


@pytest.mark.full
def test_hours_stopped_by_a_gate_are_in_later_windows(make_stream: Make) -> None:
    """Ingest quarantines an hour, so that aggregate does not run. Then the hour alone is fixed."""
    retained = make_stream(PLAIN, "kept")
    traffic(retained, 3)
    [file] = retained.folder.rglob("access.01.log.gz")
    good = file.read_bytes()
    retained.land(1, ["junk"])
    retained.stage("ingest", 0, 3)
    file.write_bytes(good)
    retained.run(1, 2)
    whole = make_stream(PLAIN, "whole")
    whole.run(0, 3)
    assert_equal(retained, whole)


def test_empty_hour_is_complete_and_hour_without_file_is_not(make_stream: Make) -> None:
    sparse = make_stream(PLAIN)
    sparse.land(0, [line(1)])
    sparse.land(1, [])
    sparse.run(0, 3)
    state = {name: value[:2] for name, value in sparse.state().items() if "events.events" in name}
    assert state == {
        "ingest.events.events 2015-05-17T00:00": ("published", True),
        "ingest.events.events 2015-05-17T01:00": ("published", True),
        "ingest.events.events 2015-05-17T02:00": ("published", False),
    }
    incomplete = sparse.table("aggregates").where("block = 'traffic' AND NOT complete")
    assert clock(incomplete) == {2}


@pytest.mark.full
def test_blocks_added_and_removed_leave_no_trace(make_stream: Make) -> None:
    """Slow (half a minute): several runs of all stages."""
    late = (
        "  late: {key: [], measures: {n: count, worst: max(status)}, levels: RANGES 3 HOURS SLIDES 1 HOUR}\n"
    )
    with_one_more = PLAIN + late
    actual = make_stream(with_one_more, "lived")
    traffic(actual, 3)
    actual.run(0, 3)
    actual = make_stream(PLAIN, "lived")
    actual.run(2, 3)
    whole = make_stream(PLAIN, "whole")
    whole.run(0, 3)
    assert_equal(actual, whole)
    # Two hours that are not requested again are hours of the new block as well.
    actual = make_stream(with_one_more, "lived")
    actual.run(2, 3)
    again = make_stream(with_one_more, "again")
    again.run(0, 3)
    assert_equal(actual, again)
    # The same values, in columns with other names.
    renamed = with_one_more.replace("{n: count, sent:", "{hits: count, weight:")
    make_stream(renamed, "lived").run(2, 3)
    fresh = make_stream(renamed, "fresh")
    fresh.run(0, 3)
    assert_equal(make_stream(renamed, "lived"), fresh)


@pytest.mark.full
def test_new_block_reads_whole_windows_and_is_stale_outside_repair_window(
    make_stream: Make,
) -> None:
    """Slow (20 seconds): several runs of all stages."""
    brief = PLAIN.replace("key: [client]", "key: [client]\nrepair_window: 1 hour")
    actual = make_stream(brief)
    traffic(actual, 4)
    actual.run(0, 4)
    actual = make_stream(
        brief + "  late: {key: [], measures: {n: count}, levels: RANGES 4 HOURS SLIDES 1 HOUR}\n"
    )
    outcome = actual.stage("aggregates", 3, 4)
    assert outcome.stale_since == hour(0)
    (row,) = actual.table("aggregates").where(f"block = 'late' AND hour = '{hour(3).isoformat()}'").collect()
    assert row.n == actual.table("events").count()
    # No window mixes the state of two specifications.
    changed = (
        "  late: {key: [], measures: {n: count, worst: max(status)}, levels: RANGES 4 HOURS SLIDES 1 HOUR}\n"
    )
    make_stream(brief + changed).stage("aggregates", 3, 4)
    (row,) = actual.table("aggregates").where(f"block = 'late' AND hour = '{hour(3).isoformat()}'").collect()
    assert row.values_worst == actual.table("events").count()


@pytest.mark.full
def test_renamed_only_block_reads_whole_windows(make_stream: Make) -> None:
    text = """
name: web
preset: apache/combined
source: {path: "landing/web/%Y-%m-%d/access.%H*.log.gz"}
repair_window: 1 hour
aggregates:
  old: {measures: {n: count}, levels: RANGES 4 HOURS SLIDES 1 HOUR}
"""
    actual = make_stream(text)
    traffic(actual, 4)
    actual.run(0, 4)
    actual = make_stream(text.replace("old:", "new:"))
    assert [actual.stage("aggregates", 3, 4).stale_since for _ in range(2)] == [hour(0)] * 2
    (row,) = actual.table("aggregates").where(f"hour = '{hour(3).isoformat()}'").collect()
    assert (row.block, row.n) == ("new", actual.table("events").count())
    actual.stage("aggregates", 0, 4)
    whole = make_stream(text.replace("old:", "new:"), "whole")
    whole.run(0, 4)
    assert_equal(actual, whole)


@pytest.mark.full
def test_hours_not_requested_of_ingest_are_not_computed(make_stream: Make) -> None:
    """Files of other hours have put rows in them: half an hour must not count as a whole one.

    Slow (20 seconds): several runs of all stages.
    """
    text = PLAIN.replace("key: [client]", "key: [client]\nrepair_window: 1 hour")
    actual = make_stream(text, "lived")
    for number in (0, 1, 3, 4):
        # Each file has events of the hour before its own.
        actual.land(number, [line(3600 * number - 60), line(3600 * number + 60)])
    actual.land(2, [line(3600 * 2 + 60 * n) for n in range(9)])
    actual.run(0, 2)
    actual.run(3, 5)
    before = actual.state()
    actual.stage("aggregates", 0, 6)
    assert actual.state() == before
    reported = evaluate_gate(
        actual.ledger, "aggregates", "web", Interval(hour(0), hour(6)), "jobs/aggregates.py"
    )
    assert reported.failures == (
        "aggregates skips 2015-05-17T02:00, 2015-05-17T05:00, which were not requested from ingest; "
        "jobs/run.py over these hours runs them all",
    )
    assert (
        reported.summary
        == "aggregates web [2015-05-17T00:00, 2015-05-17T06:00): 4 of 6 hours published, 0 warnings"
    )
    actual.run(2, 3)
    actual.run(0, 5)
    whole = make_stream(text, "whole")
    whole.run(0, 5)
    assert_equal(actual, whole)


@pytest.mark.full
def test_late_file_outside_repair_window_is_in_windows_computed_later(make_stream: Make) -> None:
    """Where a window of the run reaches the late rows, their state is recomputed first, even if the window
    was fresh.

    Slow (20 seconds): several runs of all stages.
    """
    text = PLAIN.replace("key: [client]", "key: [client]\nrepair_window: 1 hour")
    actual = make_stream(text, "lived")
    traffic(actual, 9)
    actual.run(0, 9)
    actual.land(3, [line(3600 * 3 + n) for n in range(5)], name="late")
    actual.stage("ingest", 3, 4)
    outcome = actual.stage("aggregates", 7, 8)
    # The widest window has six hours. Hours 3, 4 and 5 depend on the late file too, and are outside the
    # repair window.
    assert sorted({node.hour for node in outcome.stale}) == [hour(3), hour(4), hour(5)]
    reported = evaluate_gate(
        actual.ledger, "aggregates", "web", Interval(hour(7), hour(8)), "--from {from} --to {to}"
    )
    assert reported.failures == ()
    assert "stale since 2015-05-17T03:00: --from 2015-05-17T03:00 --to 2015-05-17T06:00" in reported.warnings
    whole = make_stream(text, "whole")
    whole.run(0, 9)
    rows = [day.table("aggregates").where(f"hour >= '{hour(6).isoformat()}'") for day in (actual, whole)]
    assert rows[0].exceptAll(rows[1]).count() == rows[1].exceptAll(rows[0]).count() == 0
    actual.stage("aggregates", 3, 6)
    assert_equal(actual, whole)
