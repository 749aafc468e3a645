"""The promise: every published row is a function of the events and the specification alone.

Each test makes two lakes of one landing folder, by different histories, and compares them by digest;
the digests themselves are held against the rows.
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
    """Hours of a few clients: one with most of the rows, in every hour but an empty one; rows that stand
    twice; and an hour whose file lies there under two names."""
    for number in range(hours):
        heavy = [line(number * 3600 + 7 * i, "10.0.0.1", i) for i in range(0, 500, 9)]
        others = [line(number * 3600 + 311 * i, f"10.0.1.{number % 3}", "-") for i in range(5)]
        # Out of order inside the hour, as in life.
        lines = [] if number == 5 else [*others, *heavy, *others]
        harness.land(number, lines)
        if number == 7:
            harness.land(number, lines, ".again")


LOUD = WEB.replace("expected_files: 1", "expected_files: 2") + (
    "checks: {quiet: {stage: aggregates, block: site, every: n < 3, severity: warning}}\n"
)
"""A stream of which each stage has something to tell."""


def history(harness: StreamHarness, hours: int, rng: random.Random) -> None:
    """Runs of random cuts in random order, some of them killed and made again, some made twice; a file
    comes late."""
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
    """Assert that two lakes are the same, ledger, rows and findings."""
    one.assert_same(other)
    assert one.findings() == other.findings()


@pytest.mark.full
def test_any_history_equals_one_run(make_stream: Make, rng: random.Random) -> None:
    """Slow (half a minute): a dozen runs over several hours. Of the last hour there is no file."""
    text, hours = LOUD.replace("expected_files: 2", "expected_files: 1, equal_files: one"), 9
    lived, whole = make_stream(text, "lived"), make_stream(text, "whole")
    traffic(lived, hours - 1)
    history(lived, hours, rng)
    whole.run(0, hours)
    assert_equal(lived, whole)
    lived.assert_ledger_true()
    told = {(finding.kind, finding.severity): finding.start_time for finding in lived.findings()}
    assert told == {("source_silent", "high"): hour(8), ("check_failed", "low"): hour(6)}
    assert lived.table("events").where("source_line <= 5 AND hour(hour) = 7").count() == 5


def test_the_same_interval_again_writes_nothing(make_stream: Make) -> None:
    once = make_stream(LOUD)
    traffic(once, 2)
    once.run(0, 2)
    tables = ("events", "aggregates", "ledger", "findings")
    versions = once.store.pin(tables).versions
    once.run(0, 2)
    assert once.store.pin(tables).versions == versions
    # A file whose time alone has changed is read, once, and comes to the rows that stand.
    os.utime(next(once.folder.glob("landing/**/*.gz")), (1, 1))
    assert [once.stage("ingest", 0, 2).counters["files_read"] for _ in range(2)] == [1, 0]
    assert once.store.pin(["events"]).versions["events"] == versions["events"]


def test_a_late_file_heals_exactly_the_hours_that_it_reaches(make_stream: Make) -> None:
    healed = make_stream()
    traffic(healed, 4)
    healed.run(0, 4)
    before = healed.state()
    healed.land(1, [line(3600 + 120, "10.9.9.9")], ".late")
    healed.stage("ingest", 3, 4)
    outcome = healed.stage("aggregates", 3, 4)
    changed = {name for name, state in healed.state().items() if before.get(name) != state}
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
    # A window of six hours that begins in hour 1 reports until hour 6; hours after 3 nobody asked for.
    traffic_hours = {name.split()[1] for name in changed if name.startswith("aggregates.traffic.aggregates")}
    assert traffic_hours == {f"{hour(number):%Y-%m-%dT%H:%M}" for number in (1, 2, 3)}
    assert outcome.stale_since is None


@pytest.mark.full
def test_hours_that_a_gate_kept_from_a_stage_are_in_its_windows(make_stream: Make) -> None:
    """Ingest withholds an hour of a run, so that aggregate is run for none; the hour is mended by itself."""
    kept = make_stream(PLAIN, "kept")
    traffic(kept, 3)
    [file] = kept.folder.rglob("access.01.log.gz")
    good = file.read_bytes()
    kept.land(1, ["junk"])
    kept.stage("ingest", 0, 3)
    file.write_bytes(good)
    kept.run(1, 2)
    whole = make_stream(PLAIN, "whole")
    whole.run(0, 3)
    assert_equal(kept, whole)


def test_an_empty_hour_is_knowledge_and_a_missing_file_is_not(make_stream: Make) -> None:
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
def test_blocks_that_come_and_go_leave_no_trace(make_stream: Make) -> None:
    """Slow (half a minute): several runs of all stages."""
    late = (
        "  late: {key: [], measures: {n: count, worst: max(status)}, levels: RANGES 3 HOURS SLIDES 1 HOUR}\n"
    )
    with_one_more = PLAIN + late
    lived = make_stream(with_one_more, "lived")
    traffic(lived, 3)
    lived.run(0, 3)
    lived = make_stream(PLAIN, "lived")
    lived.run(2, 3)
    whole = make_stream(PLAIN, "whole")
    whole.run(0, 3)
    assert_equal(lived, whole)
    # Two hours that nobody asks for again are hours of the new block as well.
    lived = make_stream(with_one_more, "lived")
    lived.run(2, 3)
    again = make_stream(with_one_more, "again")
    again.run(0, 3)
    assert_equal(lived, again)
    # The same values, in columns of other names.
    renamed = with_one_more.replace("{n: count, sent:", "{hits: count, weight:")
    make_stream(renamed, "lived").run(2, 3)
    fresh = make_stream(renamed, "fresh")
    fresh.run(0, 3)
    assert_equal(make_stream(renamed, "lived"), fresh)


@pytest.mark.full
def test_a_new_block_beyond_healing_is_computed_from_whole_windows_and_said_to_be_stale(
    make_stream: Make,
) -> None:
    """Slow (20 seconds): several runs of all stages."""
    brief = PLAIN.replace("key: [client]", "key: [client]\nrepair_window: 1 hour")
    lived = make_stream(brief)
    traffic(lived, 4)
    lived.run(0, 4)
    lived = make_stream(
        brief + "  late: {key: [], measures: {n: count}, levels: RANGES 4 HOURS SLIDES 1 HOUR}\n"
    )
    outcome = lived.stage("aggregates", 3, 4)
    assert outcome.stale_since == hour(0)
    (row,) = lived.table("aggregates").where(f"block = 'late' AND hour = '{hour(3).isoformat()}'").collect()
    assert row.n == lived.table("events").count()
    # Nor does a window mix the state of two specifications.
    changed = (
        "  late: {key: [], measures: {n: count, worst: max(status)}, levels: RANGES 4 HOURS SLIDES 1 HOUR}\n"
    )
    make_stream(brief + changed).stage("aggregates", 3, 4)
    (row,) = lived.table("aggregates").where(f"block = 'late' AND hour = '{hour(3).isoformat()}'").collect()
    assert row.values_worst == lived.table("events").count()


@pytest.mark.full
def test_an_only_block_that_is_renamed_is_computed_from_whole_windows(make_stream: Make) -> None:
    text = """
name: web
preset: apache/combined
source: {path: "landing/web/%Y-%m-%d/access.%H*.log.gz"}
repair_window: 1 hour
aggregates:
  old: {measures: {n: count}, levels: RANGES 4 HOURS SLIDES 1 HOUR}
"""
    lived = make_stream(text)
    traffic(lived, 4)
    lived.run(0, 4)
    lived = make_stream(text.replace("old:", "new:"))
    assert [lived.stage("aggregates", 3, 4).stale_since for _ in range(2)] == [hour(0)] * 2
    (row,) = lived.table("aggregates").where(f"hour = '{hour(3).isoformat()}'").collect()
    assert (row.block, row.n) == ("new", lived.table("events").count())
    lived.stage("aggregates", 0, 4)
    whole = make_stream(text.replace("old:", "new:"), "whole")
    whole.run(0, 4)
    assert_equal(lived, whole)


@pytest.mark.full
def test_nothing_is_computed_of_hours_that_ingest_was_not_asked_for(make_stream: Make) -> None:
    """Files of other hours have put rows in them: half an hour must not be taken for a whole one.

    Slow (20 seconds): several runs of all stages.
    """
    text = PLAIN.replace("key: [client]", "key: [client]\nrepair_window: 1 hour")
    lived = make_stream(text, "lived")
    for number in (0, 1, 3, 4):
        # Each file reaches into the hour before its own.
        lived.land(number, [line(3600 * number - 60), line(3600 * number + 60)])
    lived.land(2, [line(3600 * 2 + 60 * n) for n in range(9)])
    lived.run(0, 2)
    lived.run(3, 5)
    before = lived.state()
    lived.stage("aggregates", 0, 6)
    assert lived.state() == before
    told = evaluate_gate(lived.ledger, "aggregates", "web", Interval(hour(0), hour(6)), "jobs/aggregates.py")
    assert told.failures == (
        "aggregates leaves out 2015-05-17T02:00, 2015-05-17T05:00, which ingest has not been asked for; "
        "jobs/run.py over these hours runs them all",
    )
    assert (
        told.summary
        == "aggregates web [2015-05-17T00:00, 2015-05-17T06:00): 4 of 6 hours published, 0 warnings"
    )
    lived.run(2, 3)
    lived.run(0, 5)
    whole = make_stream(text, "whole")
    whole.run(0, 5)
    assert_equal(lived, whole)


@pytest.mark.full
def test_a_late_file_beyond_healing_is_in_the_windows_that_are_computed_since(make_stream: Make) -> None:
    """Its rows are in: where a window of the run reaches them, the state made of them is made first, however
    fresh that window was.

    Slow (20 seconds): several runs of all stages.
    """
    text = PLAIN.replace("key: [client]", "key: [client]\nrepair_window: 1 hour")
    lived = make_stream(text, "lived")
    traffic(lived, 9)
    lived.run(0, 9)
    lived.land(3, [line(3600 * 3 + n) for n in range(5)], name="late")
    lived.stage("ingest", 3, 4)
    outcome = lived.stage("aggregates", 7, 8)
    # The widest window is of six hours; 3, 4 and 5 reach it too, and lie beyond healing.
    assert sorted({node.hour for node in outcome.stale}) == [hour(3), hour(4), hour(5)]
    told = evaluate_gate(
        lived.ledger, "aggregates", "web", Interval(hour(7), hour(8)), "--from {from} --to {to}"
    )
    assert told.failures == ()
    assert "stale since 2015-05-17T03:00: --from 2015-05-17T03:00 --to 2015-05-17T06:00" in told.warnings
    whole = make_stream(text, "whole")
    whole.run(0, 9)
    rows = [day.table("aggregates").where(f"hour >= '{hour(6).isoformat()}'") for day in (lived, whole)]
    assert rows[0].exceptAll(rows[1]).count() == rows[1].exceptAll(rows[0]).count() == 0
    lived.stage("aggregates", 3, 6)
    assert_equal(lived, whole)
