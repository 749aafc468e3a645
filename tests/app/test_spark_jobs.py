"""The Spark jobs and SQL executions of a run."""

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.every_stage import requests
from tests.support.stream_harness import StreamHarness

Make = Callable[..., StreamHarness]
HOURS = 3

SEVEN_BLOCKS = """
name: web
preset: apache/combined
source: {path: "landing/web/%Y-%m-%d/access.%H*.log.gz", expected_files: 1}
key: [client]
aggregates:
  traffic:
    measures: {n: count, sent: sum(bytes), pages: distinct(path)}
    levels: RANGES 2 HOURS, 1 HOUR SLIDES 1 HOUR, 30 MINUTES
  site:
    key: []
    measures: {n: count, clients: distinct(client)}
    levels: RANGES 2 HOURS, 1 HOUR SLIDES 1 HOUR, 1 HOUR
patterns:
  back:
    within: 3 hours
    steps: [{id: one, where: status = 404}, {id: other, where: status = 200, gap: {min: 5 minutes}}]
frames:
  busy: {source: site, kind: threshold, where: n > 2, min_length: 1 hour}
fills:
  before: {frame: busy, source: site, shift: [1 hour], measures: {n: sum(n)}}
persistence:
  regulars: {item: [client], slot: 30 minutes, window: 3 hours, alpha: 0.6, epsilon: 0.4}
frequency:
  often: {item: [path], window: 2 hours, tick: 30 minutes, epsilon: 0.5, delta: 0.5, top: 2}
"""


def build(lake: StreamHarness) -> None:
    """Run the hours before, so that the hour that is counted has a history."""
    for number in range(HOURS):
        lake.land(number, requests(number))
    lake.run(0, HOURS)


def counted(spark: SparkSession, action: Callable[[], Any]) -> tuple[int, int]:
    """Return how many Spark jobs and how many SQL executions an action starts."""
    jobs, executions = spark._jsc.sc().statusStore(), spark._jsparkSession.sharedState().statusStore()

    def totals() -> tuple[int, int]:
        spark._jsc.sc().listenerBus().waitUntilEmpty()
        return jobs.jobsList(None).size(), executions.executionsCount()

    before = totals()
    action()
    return tuple(after - earlier for after, earlier in zip(totals(), before, strict=True))


@pytest.fixture
def lake(make_stream: Make) -> StreamHarness:
    return make_stream(SEVEN_BLOCKS, "counted", ready=build)


def test_hour_of_every_stage_starts_few_jobs(lake: StreamHarness) -> None:
    lake.land(HOURS, requests(HOURS))
    jobs, executions = counted(lake.spark, lambda: lake.run(HOURS, HOURS + 1))
    assert lake.rows(), "the run publishes rows"
    # Half of what it took when each table was written, and then read again for its digest and its checks.
    assert jobs <= 39
    assert executions <= 17


def test_run_with_nothing_to_do_starts_no_job(lake: StreamHarness) -> None:
    assert counted(lake.spark, lambda: lake.run(0, HOURS)) == (0, 0)
