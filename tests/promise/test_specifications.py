"""A specification that is changed and then restored leaves no trace."""

import shutil
from collections.abc import Callable

import pytest

from tests.support.crash_states import Side, killed_at, watched
from tests.support.stream_harness import WEB, PartitionSummary, StreamHarness, hour, line
from transom.app.freshness import freshness_of
from transom.views.explain_hour import HourExplanation

Make = Callable[..., StreamHarness]
pytestmark = pytest.mark.full

BRIEF = WEB.replace("expected_files: 1", "expected_files: 1, event_time_range: {before: 4 hours}").replace(
    "key: [client]", "key: [client]\nrepair_window: 1 hour\nunique: [client]"
)
WEIGHED = BRIEF + "columns: {weight: {is: bytes * 2}}\n"


def files(harness: StreamHarness) -> None:
    """Land a file for each of six hours; the last one has an event from two hours before, twice."""
    for number in range(6):
        early = [line(3600 * 3 + i, "10.0.1.5", 7) for i in range(2)] if number == 5 else []
        harness.land(number, [line(3600 * number, f"10.0.0.{number}", 5), *early])


def ingest_files(harness: StreamHarness) -> None:
    """Return a lake with these files."""
    files(harness)
    harness.stage("ingest", 0, 6)


def an_hour(harness: StreamHarness) -> None:
    """Run one hour with one line, through every stage."""
    harness.land(0, [line(1)])
    harness.run(0, 1)


def stale(harness: StreamHarness) -> set[int]:
    return {moment.hour for moment in freshness_of(harness.stream, harness.snapshot()).stale("ingest")}


def in_hour(harness: StreamHarness, number: int) -> list[tuple[str, PartitionSummary]]:
    moment = f"T{number:02}:00"
    return sorted((name, standing) for name, standing in harness.state().items() if name.endswith(moment))


def test_rows_retained_under_another_specification_are_unchanged_when_restored(
    make_stream: Make,
) -> None:
    """Slow (20 seconds): several runs of all stages."""
    never, actual = (make_stream(WEIGHED, lake, ready=ingest_files) for lake in ("never", "lived"))
    # Its rows stay.
    never.land(4, []).unlink()
    plain = make_stream(BRIEF, "lived")
    plain.stage("ingest", 3, 4)
    # The rows of file 5 in hour 3 are of the other specification, and that hour is not fresh.
    assert stale(plain) == {0, 1, 3, 5}
    reported = HourExplanation(plain.stream, plain.ledger, hour(3))
    assert (reported.troubled, reported.files(), reported.run_interval) == (True, [], (hour(3), hour(5)))
    shutil.copytree(plain.root, plain.folder / "again" / "web")
    again, one = make_stream(BRIEF, "again"), make_stream(BRIEF, "one")
    again.stage("ingest", 3, 6)
    one.stage("ingest", 0, 6)
    assert in_hour(again, 3) == in_hour(one, 3)
    actual = make_stream(WEIGHED, "lived")
    assert stale(actual) == {2, 3, 4}
    actual.stage("ingest", 3, 4)
    for day in (never, actual):
        day.stage("ingest", 0, 6)
    actual.assert_same(never)
    actual.assert_ledger_true()


def test_hour_published_outside_repair_window_is_stale_under_both_specifications(
    make_stream: Make,
) -> None:
    never, actual = (make_stream(BRIEF, lake, ready=ingest_files) for lake in ("never", "lived"))
    # The row is gone from hour 3, too, of which a run of hour 5 reads no other file.
    never.land(5, []).unlink()
    never.stage("ingest", 5, 6)
    stricter = make_stream(BRIEF.replace("expected_files: 1", "expected_files: 2"), "lived")
    stricter.stage("ingest", 5, 6)
    assert stale(stricter) == {0, 1, 2, 3}
    actual = make_stream(BRIEF, "lived")
    assert actual.stage("ingest", 5, 6).stale_since == hour(3)
    for day in (never, actual):
        day.stage("ingest", 0, 6)
    actual.assert_same(never)


FEW = """
name: web
preset: apache/combined
source: {path: "landing/web/%Y-%m-%d/access.%H*.log.gz"}
aggregates:
  traffic: {key: [client], measures: {n: count}, levels: RANGES 1 HOUR SLIDES 1 HOUR}
"""
MORE = FEW.replace("{n: count}", "{n: count, sent: sum(bytes)}")


def test_run_with_older_specification_retains_no_rows_of_unknown_blocks(make_stream: Make) -> None:
    """Slow (20 seconds): several runs of all stages."""
    late = "  late: {key: [], measures: {n: count}, levels: RANGES 1 HOUR SLIDES 1 HOUR}\n"
    day = make_stream(MORE)
    files(day)
    day.run(0, 2)

    def meanwhile(number: int, side: Side) -> None:
        if (number, side) == (1, "before"):
            make_stream(MORE + late).stage("aggregates", 0, 2)

    with watched(meanwhile):
        make_stream(FEW).stage("aggregates", 0, 2)
    newest, whole = make_stream(MORE + late), make_stream(MORE + late, "whole")
    newest.stage("aggregates", 0, 2)
    whole.run(0, 2)
    newest.assert_same(whole)
    newest.assert_ledger_true()


def test_rows_replaced_by_a_killed_run_return_with_undeclared_columns(
    make_stream: Make,
) -> None:
    """Slow (20 seconds): several runs of all stages."""
    former = FEW.replace("{n: count}", "{n: count, worst: max(status)}")
    careful = FEW + "checks: {few: {stage: aggregates, every: n < 3}}\n"
    never, killed = (make_stream(former, lake, ready=an_hour) for lake in ("never", "killed"))
    never.land(0, [line(1)] * 4)
    for day in (never, killed):
        day.stage("ingest", 0, 1)
    # Of each of two tables: claim, rows, checks, publication.
    with killed_at(7):
        killed.stage("aggregates", 0, 1)
        pytest.fail("there is no commit 7")
    for lake in ("never", "killed"):
        make_stream(careful, lake).stage("aggregates", 0, 1)
    killed.assert_same(never)
    assert killed.table("aggregates").select("values_worst").first() == (1,)
