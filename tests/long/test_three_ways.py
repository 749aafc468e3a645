"""The same 84 hours as one triggered run, as hourly runs and by `airflow backfill create`.

Through one real Airflow and real submits; an hour or two of work, so with a target of its own (`make
three-ways`). TRANSOM_HOURS reduces the hours.
"""

import os
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

import airflow_server
import sample_logs
from airflow_api import Airflow
from sample_logs import HOUR, WEB, land
from tests.support.stream_harness import StreamHarness
from transom.core.intervals import format_hour
from transom.ledger.ledger import Ledger

FIRST = datetime(2015, 5, 17, 10, tzinfo=UTC)
HOURS = int(os.environ.get("TRANSOM_HOURS", "84"))
END = FIRST + HOURS * HOUR
STREAM = """
name: {name}
preset: apache/combined
source: {{path: "landing/web/%Y-%m-%d/access.%H*.log.gz", expected_files: 1}}
key: [client]
aggregates:
  traffic:
    measures: {{n: count, sent: sum(bytes), pages: distinct(path)}}
    levels: RANGES 24 HOURS, 6 HOURS, 1 HOUR SLIDES 6 HOURS, 3 HOURS, 1 HOUR
    fit: 1 hour
    recurring: [path]
    alert: n > 100
  site: {{key: [], measures: {{n: count}}, levels: RANGES 1 HOUR SLIDES 1 HOUR}}
patterns:
  lost:
    within: 12 hours
    merge_gap: 1 hour
    carry: [path]
    steps: [{{id: seen, where: status = 200}}, {{id: gone, where: status = 404, gap: {{min: 1 hour}}}}]
start: {start}
until: {until}
schedule: {schedule}
catchup: {catchup}
"""
WAYS = {"triggered": (False, False), "hourly": (True, True), "backfilled": (True, False)}


def until_done(server: Airflow, dags: list[str], runs: int) -> None:
    """Wait for so many runs of each DAG."""
    reported, end = None, time.monotonic() + 4 * 3600
    while time.monotonic() < end:
        states = {dag: list(server.runs(dag).values()) for dag in dags}
        failed = {dag: result for dag, result in states.items() if "failed" in result}
        assert not failed
        finished = {dag: result.count("success") for dag, result in states.items()}
        if finished != reported:
            print(f"{datetime.now(UTC):%H:%M:%S} runs done: {finished} of {runs}", flush=True)
            reported = finished
        if all(count >= runs for count in finished.values()):
            return
        time.sleep(5)
    raise AssertionError(f"not done in four hours: {reported}")


@pytest.mark.long
def test_three_ways_of_running_leave_equal_tables(spark: object, tmp_path: Path) -> None:
    logs = sample_logs.apache()
    for hour, lines in logs.items():
        if hour < END:
            land(tmp_path, WEB, hour, lines)
    streams = tmp_path / "streams"
    streams.mkdir()
    texts = {}
    for name, (schedule, catchup) in WAYS.items():
        texts[name] = STREAM.format(
            name=name, start=format_hour(FIRST), until=format_hour(END),
            schedule=str(schedule).lower(), catchup=str(catchup).lower(),
        )  # fmt: skip
        (streams / f"{name}.yaml").write_text(texts[name])
    places = {
        "TRANSOM_LAKE": str(tmp_path / "lake"),
        "TRANSOM_LANDING": str(tmp_path),
        "TRANSOM_STREAMS": str(streams),
    }
    with airflow_server.running(tmp_path / "airflow", places) as server:
        # The lakes' DAGs run concurrently: a short submit leaves a third of two cores idle.
        server.command("pools", "set", "transom", str(os.cpu_count() or 1), "as many submits as cores")
        server.pause("backfilled", True)
        server.backfill("backfilled", FIRST, END - HOUR)
        for dag in WAYS:
            server.pause(dag, False)
        server.trigger("triggered", "whole", **{"from": format_hour(FIRST), "to": format_hour(END)})
        until_done(server, ["triggered"], 1)
        until_done(server, ["hourly", "backfilled"], HOURS)
        causes = {
            name: {run["trigger"] for run in Ledger(str(tmp_path / "lake" / name)).runs()} for name in WAYS
        }
    assert causes == {"triggered": {"manual"}, "hourly": {"schedule"}, "backfilled": {"backfill"}}
    houses = {name: StreamHarness(spark, tmp_path, text) for name, text in texts.items()}
    one = houses["triggered"]
    assert {entry.status for entry in one.snapshot().values()} == {"published"}
    assert len({node.hour for node in one.snapshot()}) == HOURS
    for other in (houses["hourly"], houses["backfilled"]):
        assert one.state() == other.state()
        for table in ("events", "rejected", "granules", "aggregates", "item_granules", "recurring", "alerts"):
            remaining, right = one.table(table), other.table(table)
            assert remaining.exceptAll(right).isEmpty()
            assert right.exceptAll(remaining).isEmpty()
        other.assert_ledger_true()
    one.assert_ledger_true()
    for end in {min(FIRST + 24 * HOUR, END), END}:
        recounted = sample_logs.requests(logs, max(FIRST, end - HOUR), end)
        rows = one.table("aggregates").where("block = 'site'").collect()
        assert sum(row.n for row in rows if row.hour.astimezone(UTC) == end - HOUR) == recounted.total()
