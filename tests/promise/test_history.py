"""Changes between runs: kills followed by changes, files over many hours, changed rules."""

import gzip
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.crash_states import killed_at
from tests.support.stream_harness import PLAIN, StreamHarness, clock, hour, line
from transom.core.intervals import Interval
from transom.core.partitions import code_version
from transom.engine.gate import evaluate_gate
from transom.features.ingest import expected_inputs

Make = Callable[..., StreamHarness]


def hourly(number: int, *clients: str) -> list[str]:
    return [line(number * 3600 + i, client) for i, client in enumerate(clients)]


def before(harness: StreamHarness) -> None:
    """Land what the first run reads."""
    for number in range(6):
        harness.land(number, hourly(number, "10.0.0.1"))


def while_it_is_killed(harness: StreamHarness) -> None:
    """Land what the killed run reads: in each hour a file that is new, has grown or has a second name."""
    harness.land(0, hourly(0, "10.0.0.1", "10.0.0.2"))
    harness.land(1, hourly(1, "10.0.0.1", "10.0.0.2"))
    harness.land(2, hourly(2, "10.0.0.1", "10.0.0.2"))
    harness.land(3, hourly(3, "10.0.0.3", "10.0.0.4"), ".new")
    harness.land(4, hourly(4, "10.0.0.5"), ".new")
    harness.land(5, hourly(5, "10.0.0.1"), ".again")


def afterwards(harness: StreamHarness) -> None:
    """Land what the next run reads: files restored, grown once more or removed; new files removed or
    grown.
    """
    harness.land(0, hourly(0, "10.0.0.1"))
    harness.land(1, hourly(1, "10.0.0.1", "10.0.0.2", "10.0.0.3"))
    harness.land(2, []).unlink()
    harness.land(3, [], ".new").unlink()
    harness.land(4, hourly(4, "10.0.0.5", "10.0.0.6"), ".new")
    harness.land(5, []).unlink()


@pytest.mark.full
def test_killed_run_whose_files_change_leaves_no_trace(make_stream: Make) -> None:
    """Slow (half a minute): a run killed at each of its commits, and one after each."""
    never = make_stream(lake="never")
    before(never)
    never.stage("ingest", 0, 6)
    steps = range(2, 6)
    for step in steps:
        shutil.copytree(never.root, never.folder / f"killed-{step}" / "web")
    while_it_is_killed(never)
    # After the claim, after each of the tables, after the checks.
    for step in steps:
        killed = make_stream(lake=f"killed-{step}")
        with killed_at(step):
            killed.stage("ingest", 0, 6)
            pytest.fail(f"there is no commit {step}")
    afterwards(never)
    never.stage("ingest", 0, 6)
    never.assert_ledger_true()
    for step in steps:
        killed = make_stream(lake=f"killed-{step}")
        killed.stage("ingest", 0, 6)
        assert killed.state() == never.state(), step
        assert killed.table("events").exceptAll(never.table("events")).isEmpty(), step


def test_run_of_later_hours_repairs_hours_of_a_killed_run(make_stream: Make) -> None:
    day = make_stream(PLAIN)
    before(day)
    # Three tables, the claim and the events are committed.
    with killed_at(6):
        day.stage("ingest", 0, 2)
    assert day.stage("ingest", 2, 3).partitions_repaired == 2
    assert {entry.status for entry in day.snapshot().values()} == {"published"}


@pytest.mark.full
def test_quarantined_hours_regain_rows_replaced_by_a_killed_run(make_stream: Make) -> None:
    """Slow (half a minute): a run killed at each of its commits, and one after each."""
    careful = PLAIN + "checks: {few: {stage: aggregates, block: site, every: n < 3 }}\n"
    day = make_stream(careful)
    before(day)
    day.run(0, 1)
    previous = day.state()
    day.land(0, hourly(0, *["10.0.0.1"] * 5))
    day.stage("ingest", 0, 1)
    # With the check turned off, the run writes rows that fail it and is killed before it records them.
    for step in (3, 7):
        loose = make_stream(PLAIN)
        with killed_at(step):
            loose.stage("aggregates", 0, 1)
    make_stream(careful).stage("aggregates", 0, 1)
    state = day.state()
    name = "aggregates.site.aggregates 2015-05-17T00:00"
    assert (state[name][0], state[name][2]) == ("quarantined", previous[name][2])
    day.assert_ledger_true()


NAMELESS = PLAIN.replace("%Y-%m-%d/access.%H*.log.gz", "*.log").replace(", expected_files: 1", "")
DAILY = PLAIN.replace("%Y-%m-%d/access.%H*.log.gz", "%Y-%m-%d.log.gz").replace(", expected_files: 1", "")


def daily(harness: StreamHarness, day: int, *hours: int) -> Path:
    path = harness.folder / f"landing/web/{hour(24 * day):%Y-%m-%d}.log.gz"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [line(number * 3600 + 60, f"10.0.0.{number % 5}") for number in hours]
    path.write_bytes(gzip.compress("".join(text + "\n" for text in lines).encode()))
    return path


@pytest.mark.full
@pytest.mark.parametrize("chunk", [10, 24])
def test_run_in_chunks_equals_run_in_one_chunk(make_stream: Make, chunk: int) -> None:
    """Slow (20 seconds): a run in one chunk, and one in several."""
    # Each file of a day has an hour of the other day. A chunk begins at the border of both, or elsewhere.
    text = (
        DAILY + "aggregates:\n  site: {key: [], measures: {n: count}, levels: RANGES 3 HOURS SLIDES 1 HOUR}\n"
    )
    text = text[: text.index("aggregates:")] + text[text.rindex("aggregates:") :]
    cut = make_stream(text + f"chunk: {chunk} hours\n", f"cut-{chunk}")
    daily(cut, 0, -1, 20, 21, 24)
    daily(cut, 1, 23, 24, 25, 28)
    for stage in ("ingest", "aggregates"):
        cut.in_chunks(stage, 0, 30)
    whole = make_stream(text, f"whole-{chunk}")
    whole.run(0, 30)
    assert cut.state() == whole.state()
    assert clock(cut.table("events")) == {23, 20, 21, 0, 1, 4}


@pytest.mark.full
def test_changed_completeness_rule_applies_to_published_hours(make_stream: Make) -> None:
    """Slow (20 seconds): several runs of all stages."""
    day = make_stream(PLAIN.replace("expected_files: 1", "expected_files: 2"))
    before(day)
    day.run(0, 2)
    assert not any(standing.complete for standing in day.state().values())
    fewer = make_stream(PLAIN)
    fewer.run(1, 2)
    fresh = make_stream(PLAIN, "fresh")
    fresh.run(0, 2)
    assert fewer.state() == fresh.state()
    assert fewer.table("aggregates").where("NOT complete").isEmpty()

    picky = make_stream(
        PLAIN + "checks: {enough: {stage: ingest, rows: {at_least: 2}, severity: incomplete}}\n"
    )
    picky.run(1, 2)
    assert not any(standing.complete for standing in picky.state().values())
    causes = {entry.reason for node, entry in picky.snapshot().items() if node.table == "events"}
    assert all("enough: observed 1, expected at least 2" in str(cause) for cause in causes)


def test_missing_file_fails_check_of_severity_error(make_stream: Make) -> None:
    strict = make_stream(PLAIN + "checks: {files_expected: {severity: error}}\n")
    before(strict)
    assert strict.stage("ingest", 5, 7).quarantined == 1
    (cause,) = {entry.reason for entry in strict.snapshot().values() if entry.status == "quarantined"}
    assert cause == "files_expected: observed 0, expected at least 1"


def test_conflicting_file_is_a_warning_and_its_hour_stays_incomplete(make_stream: Make) -> None:
    day = make_stream()
    whole = day.land(0, hourly(0, *["10.0.0.1"] * 40))
    whole.write_bytes(whole.read_bytes()[:-9])
    day.stage("ingest", 0, 1)
    day.land(0, hourly(0, "10.0.0.2"))
    day.stage("ingest", 0, 1)
    (entry,) = {e.reason for n, e in day.snapshot().items() if n.table == "events"}
    assert "file_readable: truncated: after" in str(entry)
    verdict = evaluate_gate(day.ledger, "ingest", "web", Interval(hour(0), hour(1)), "")
    assert verdict.passed
    assert any("files_unchanged" in warning and "bytes now differ" in warning for warning in verdict.warnings)


@pytest.mark.full
def test_junk_file_is_quarantined_and_the_other_of_its_hour_is_published(make_stream: Make) -> None:
    day = make_stream(PLAIN)
    day.land(0, hourly(0, "10.0.0.1", "10.0.0.2"))
    junk = day.land(0, ["junk"] * 3, ".second")
    day.run(0, 1)
    state = day.state()
    assert state["ingest.events.events 2015-05-17T00:00"][:2] == ("quarantined", False)
    assert state["aggregates.site.granules 2015-05-17T00:00"][0] == "blocked"
    # Only this file is quarantined, not the other files of its hour.
    assert day.table("events").count() == 2
    day.assert_ledger_true()

    def checked() -> list[str]:
        subjects = {v.file for v in day.ledger.checks(day.snapshot(), "ingest", {hour(0)})}
        return sorted(subject.rpartition("/")[2] for subject in subjects - {None})

    # Results of files that are not read again count as long as the files exist.
    day.land(0, hourly(0, "10.0.0.3"), ".third")
    day.stage("ingest", 0, 1)
    assert checked() == ["access.00.log.gz", "access.00.second.log.gz", "access.00.third.log.gz"]
    junk.unlink()
    day.stage("ingest", 0, 1)
    assert day.state()["ingest.events.events 2015-05-17T00:00"][:2] == ("published", True)
    assert checked() == ["access.00.log.gz", "access.00.third.log.gz"]


@pytest.mark.full
def test_file_without_time_and_events_is_reported(make_stream: Make) -> None:
    nameless = make_stream(NAMELESS)
    folder = nameless.folder / "landing/web"
    folder.mkdir(parents=True)
    (folder / "empty.log").write_text("")
    (folder / "junk.log").write_text("junk\n" * 5)
    nameless.stage("ingest", 0, 2)
    assert {row.path[-9:]: row.status for row in nameless.table("files").collect()} == {
        "empty.log": "ingested",
        "/junk.log": "quarantined",
    }
    verdict = evaluate_gate(
        nameless.ledger, "ingest", "web", Interval(hour(0), hour(2)), "--from {from} --to {to}"
    )
    (failure,) = verdict.failures
    assert "files without an hour" in failure
    assert "landing/web/junk.log" in failure
    assert "--from 2015-05-17T00:00 --to 2015-05-17T02:00" in failure
    (folder / "junk.log").write_text("\n".join(hourly(1, "10.0.0.1", "10.0.0.2")) + "\n")
    (folder / "empty.log").write_text(line(3700) + "\n")
    with killed_at(4):
        nameless.stage("ingest", 0, 2)
    nameless.stage("ingest", 0, 2)
    assert evaluate_gate(nameless.ledger, "ingest", "web", Interval(hour(0), hour(2)), "").passed
    assert nameless.table("events").count() == 3
    # The hour of the files without an hour was not requested.
    fresh = make_stream(NAMELESS, "fresh")
    fresh.stage("ingest", 0, 2)
    assert nameless.state() == fresh.state()
    nameless.assert_ledger_true()


def test_hour_touched_only_by_a_late_file_stays_stale(make_stream: Make) -> None:
    brief = PLAIN.replace("key: [client]", "key: [client]\nrepair_window: 1 hour")
    day = make_stream(brief)
    before(day)
    day.stage("ingest", 0, 6)
    day.land(0, hourly(0, "10.0.0.2"), ".late")
    other = make_stream(
        brief.replace("expected_files: 1", "expected_files: 1, event_time_range: {before: 2 hours}")
    )
    # The run that publishes the hour unchanged, stale as before, reports it too.
    for _ in range(2):
        assert other.stage("ingest", 5, 6).stale_since == hour(0)
        assert {(reported.kind, reported.start_time, reported.end_time) for reported in other.findings()} == {
            ("incomplete", hour(0), hour(1)),
            ("stale", hour(0), hour(4)),
        }
    waiting = other.table("files").where("status = 'waiting'")
    assert clock(waiting) == {0}


@pytest.mark.full
def test_file_changed_outside_repair_window_makes_its_hour_stale(make_stream: Make) -> None:
    """Slow (20 seconds): several runs of all stages."""
    brief = PLAIN.replace("key: [client]", "key: [client]\nrepair_window: 1 hour")
    day = make_stream(brief)
    before(day)
    day.run(0, 6)
    day.land(0, [*hourly(0, "10.0.0.1"), line(61, "10.0.0.2")])
    assert [day.stage("ingest", 5, 6).stale_since for _ in range(2)] == [hour(0)] * 2
    assert [(reported.kind, reported.start_time, reported.end_time) for reported in day.findings()] == [
        ("stale", hour(0), hour(1))
    ]
    previous = day.table("events").count()
    assert day.stage("ingest", 0, 1).stale_since is None
    assert day.table("events").count() == previous + 1
    assert day.stage("ingest", 5, 6).stale_since is None
    # No run has recomputed the later stages, and none of them has noticed.
    assert day.findings() == []
    day.stage("aggregates", 5, 6)
    assert {reported.stage for reported in day.findings()} == {"aggregates"}
    day.stage("aggregates", 0, 6)
    assert day.findings() == []


@pytest.mark.full
def test_rows_retained_by_another_version_exclude_files_read_otherwise(
    make_stream: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    day = make_stream()
    day.land(1, hourly(1, "10.0.0.1"))
    day.stage("ingest", 1, 2)
    previous = day.rows()["events"]
    day.land(1, []).unlink()
    for number in ("VERSION", "READING"):
        monkeypatch.setattr(expected_inputs, number, 99)
        day.stage("ingest", 1, 2)
        assert day.rows()["events"] == previous
        entry = day.snapshot()[expected_inputs.partition_of("events", hour(1))]
        assert (entry.input_hashes or {})["version"] == code_version(99)
        assert entry.complete is (number == "VERSION")
