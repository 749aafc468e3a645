"""What a failed check quarantines, what it leaves published, and how a user fixes or accepts it."""

from collections.abc import Callable

import pytest
from pyspark.sql import functions as F

from tests.support.stream_harness import PLAIN, StreamHarness, hour, line
from transom.core.intervals import Interval
from transom.engine.gate import evaluate_gate

Make = Callable[..., StreamHarness]


def test_bad_file_is_quarantined_whole_and_the_rest_is_published(make_stream: Make) -> None:
    """Slow (20 seconds): several runs of all stages."""
    day = make_stream(PLAIN)
    for number in (0, 1, 2):
        day.land(number, [line(number * 3600 + i) for i in range(20)])
    day.land(1, [line(3600 + i) for i in range(20)] + ["junk"] * 6)
    ingested = day.stage("ingest", 0, 3)
    assert (ingested.published, ingested.quarantined) == (2, 1)
    day.stage("aggregates", 0, 3)
    counts = day.table("events").groupBy(F.hour("hour")).count().collect()
    assert {tuple(row) for row in counts} == {(0, 20), (2, 20)}
    verdict = evaluate_gate(
        day.ledger, "ingest", "web", Interval(hour(0), hour(3)), "jobs/ingest.py --from {from} --to {to}"
    )
    (failure,) = verdict.failures
    assert "2015-05-17T01:00" in failure
    assert "rejected_share" in failure
    assert "observed 0.23076923076923078, expected at most 0.05" in failure
    assert "line 21: no_match: junk" in failure
    assert "--from 2015-05-17T01:00 --to 2015-05-17T02:00" in failure

    blocked = {name: state[0] for name, state in day.state().items() if name.startswith("aggregates.")}
    assert blocked["aggregates.traffic.granules 2015-05-17T00:00"] == "published"
    assert blocked["aggregates.traffic.granules 2015-05-17T01:00"] == "blocked"
    assert blocked["aggregates.traffic.aggregates 2015-05-17T02:00"] == "blocked"
    assert blocked["aggregates.site.aggregates 2015-05-17T02:00"] == "published"

    # One cause: blocked hours are reported through it.
    (reported,) = day.findings()
    assert (reported.stage, reported.kind, reported.start_time, reported.end_time) == (
        "ingest",
        "check_failed",
        hour(1),
        hour(2),
    )

    day.land(1, [line(3600 + i) for i in range(20)])
    day.run(1, 2)
    mended = make_stream(PLAIN, "mended")
    mended.run(0, 3)
    assert day.state() == mended.state()
    assert day.findings() == []
    assert evaluate_gate(day.ledger, "ingest", "web", Interval(hour(0), hour(3)), "").passed


def test_waiver_passes_its_value_and_lapses_with_another_value(make_stream: Make) -> None:
    """Slow (20 seconds): several runs of all stages."""
    accepting = PLAIN + (
        "checks: {rejected_share: {at_most: 0.05}}\n"
        "waivers: [{hour: 2015-05-17T00:00, stage: ingest, check: rejected_share, observed: 0.5,"
        " who: ops, why: a test of the log rotation}]\n"
    )
    day = make_stream(accepting)
    day.land(0, [line(1), "junk"])
    assert day.stage("ingest", 0, 1).quarantined == 0
    assert day.findings() == []
    day.land(0, [line(1), "junk", "junk"])
    assert day.stage("ingest", 0, 1).quarantined == 1
    assert [reported.kind for reported in day.findings()] == ["check_failed"]
    assert day.table("events").count() == 1


@pytest.mark.full
def test_failed_declared_check_quarantines_reports_and_leaves_published_ones(make_stream: Make) -> None:
    checked = PLAIN + (
        "checks: {not_too_many: {stage: aggregates, block: site, every: 'n <= 5', severity: error}}\n"
    )
    day = make_stream(checked)
    day.land(0, [line(i) for i in range(4)])
    day.run(0, 1)
    day.land(0, [line(i) for i in range(4)] + [line(100 + i) for i in range(4)])
    day.stage("ingest", 0, 1)
    assert day.stage("aggregates", 0, 1).quarantined == 1
    rows = day.table("aggregates").where("block = 'site'").collect()
    assert [row.n for row in rows] == [4]
    verdict = evaluate_gate(day.ledger, "aggregates", "web", Interval(hour(0), hour(1)), "")
    assert "not_too_many, column n: observed 0, expected at least 1" in verdict.failures[0]
