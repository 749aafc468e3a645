"""Alerts: the reports that meet a condition, for any history and with kills between tables."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import functions as F

from tests.promise.test_promise import assert_equal
from tests.support.crash_states import remains
from tests.support.stream_harness import StreamHarness, hour, line

Make = Callable[..., StreamHarness]
HOUR = timedelta(hours=1)

ALERTING = """
name: web
preset: apache/combined
source: {path: "landing/web/%Y-%m-%d/access.%H*.log.gz", expected_files: 1}
key: [client]
aggregates:
  traffic:
    measures: {n: count, sent: sum(bytes)}
    levels: RANGES 2 HOURS, 30 MINUTES SLIDES 30 MINUTES, 10 MINUTES
    fit: 10 minutes
    alert:
      growing: {when: "slope_sent > 0 and n > 2", level: 0, severity: high, title: "{client} is sent more"}
      many: n >= 7
  site: {key: [], measures: {n: count}, levels: RANGES 1 HOUR SLIDES 1 HOUR}
"""


def land_growing(day: StreamHarness, hours: int) -> None:
    """Land hours of two clients, one of whom receives more and more."""
    for number in range(hours):
        more = [line(3600 * number + 600 * n + 1, "10.0.0.1", 100 * n) for n in range(6)]
        day.land(number, [*more, line(3600 * number + 5, "10.0.0.2", 7)])


@pytest.mark.full
def test_reports_that_meet_a_condition_are_alerts_for_any_history(make_stream: Make) -> None:
    """Slow (half a minute): several runs of ingest and aggregate."""
    actual = make_stream(ALERTING, "lived")
    land_growing(actual, 3)
    late = actual.land(1, [line(3600 + 30 * n, "10.0.0.2", 7) for n in range(8)], ".late")
    content = late.read_bytes()
    late.unlink()
    actual.run(2, 3)
    actual.run(0, 2)
    late.write_bytes(content)
    actual.run(1, 2)
    whole = make_stream(ALERTING, "whole")
    whole.run(0, 3)
    assert_equal(actual, whole)
    actual.assert_ledger_true()
    reports, alerts = whole.table("aggregates"), whole.table("alerts")
    growing = reports.where("block = 'traffic' AND level = 0 AND slope_sent > 0 AND n > 2")
    count = reports.where("block = 'traffic' AND n >= 7")
    expected = growing.withColumn("alert", F.lit("growing")).unionByName(
        count.withColumn("alert", F.lit("many"))
    )
    names = [name for name in alerts.columns if name in expected.columns]
    assert names == alerts.columns
    result, required = (sorted(map(tuple, rows.select(*names).collect())) for rows in (alerts, expected))
    assert result == required
    # For each alert, level and key one finding of consecutive hours.
    reported = whole.findings()
    encountered = {(row.alert, row.level, row.client, row.hour) for row in alerts.collect()}
    begun = [(*of, at) for *of, at in encountered if (*of, at - HOUR) not in encountered]
    assert len(reported) == len(begun) == len({finding.finding_id for finding in reported})
    assert len(begun) < len(encountered)
    (first, *_) = reported
    assert (first.severity, first.title, first.start_time) == ("high", "web: 10.0.0.1 is sent more", hour(0))
    # Findings and rows are removed when the file no longer declares the alert.
    make_stream(ALERTING.replace("      many: n >= 7\n", ""), "lived").run(0, 3)
    remaining = make_stream(ALERTING, "lived")
    assert {finding.severity for finding in remaining.findings()} == {"high"}
    assert remaining.table("alerts").where("alert = 'many'").isEmpty()


@pytest.mark.full
def test_kill_between_alerts_and_their_findings_is_repaired(make_stream: Make) -> None:
    """Slow (half a minute): a run of aggregates for each commit."""
    never = make_stream(ALERTING, "never")
    land_growing(never, 2)
    never.run(0, 1)
    never.stage("ingest", 1, 2)

    def run() -> None:
        make_stream(ALERTING, "never").stage("aggregates", 1, 2)

    states = remains(Path(never.root), run, never.folder / "copies")
    assert {finding.hour for finding in never.findings()} == {hour(1)}
    assert {finding.start_time for finding in never.findings()} == {hour(0), hour(1)}
    untold = 0
    for state in states:
        killed = make_stream(ALERTING, str(state.parent.relative_to(never.folder)))
        untold += killed.findings() != never.findings()
        killed.stage("aggregates", 1, 2)
        killed.assert_same(never, state.parent.name)
        assert killed.findings() == never.findings()
    assert untold > 4
