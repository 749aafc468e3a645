"""Real runs on Spark, some killed: one message about a finding, and one that withdraws it."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from tests.support.alert_lake import EVERYTHING, Receiver
from tests.support.fault_injection import AttackedLake
from tests.support.stream_harness import line
from transom.alerts.deliver import Courier, Result
from transom.core.intervals import HOUR, Interval
from transom.stream import parse

STREAM = """
name: web
preset: apache/combined
source: {path: "landing/web/%Y-%m-%d/access.%H*.log.gz", on_conflict: replace}
key: [client]
patterns:
  lost:
    within: 10 minutes
    merge_gap: 30 minutes
    steps: [{id: seen, where: status = 200}, {id: gone, where: status = 404}]
"""
START = datetime(2015, 5, 17, tzinfo=UTC)
INTERVAL = Interval(START, START + 3 * HOUR)


def match(minutes: int) -> list[str]:
    """Return the lines of a match that begins so many minutes after the start."""
    return [f"{line(60 * minutes + second, status=status)}\n" for second, status in ((0, 200), (30, 404))]


LINES: Mapping[datetime, list[str]] = {
    START: [f"{line(60, '10.0.0.2')}\n"],
    # Two episodes, 40 minutes apart.
    START + HOUR: [*match(70), *match(110)],
    START + 2 * HOUR: [f"{line(10_000, '10.0.0.2')}\n"],
}


class Messages(Receiver):
    """Receives the messages of each run of a lake, on a clock of a run an hour."""

    def __init__(self, lake: AttackedLake) -> None:
        super().__init__()
        self.lake, self.runs = lake, 0

    def deliver(self) -> Result:
        """Deliver as the task `notify` of another run does."""
        self.runs += 1
        now = datetime.now(UTC) + self.runs * timedelta(hours=1)
        courier = Courier(
            self.lake.ledger(), parse(yaml.safe_load(STREAM)), f"run {self.runs}", now=lambda: now
        )
        return courier.deliver(EVERYTHING, self)


@pytest.mark.full
def test_runs_that_are_killed_send_an_episode_once_and_withdraw_it_once(
    tmp_path: Path, run_seed: int
) -> None:
    """Slow (two minutes): each run is a spark-submit, and ends by SIGKILL or by itself."""
    lake = AttackedLake(tmp_path, STREAM, LINES, run_seed)
    messages = Messages(lake)
    for hour in LINES:
        lake.land(hour, "", slice(None))
    lake.run("ingest", INTERVAL)
    assert lake.kill("patterns", INTERVAL)
    messages.deliver()
    for _ in range(2):
        lake.run("patterns", INTERVAL)
        messages.deliver()
    (raised,) = messages.messages
    assert (raised["state"], raised["number"]) == ("raised", 2)
    first, second = sorted(raised["findings"], key=lambda row: str(row["start_time"]))

    # A late file has a match between them: they are one episode.
    lake.land(START + HOUR, ".late", slice(0), "".join(match(90)))
    for stage in ("ingest", "patterns"):
        lake.kill(stage, INTERVAL)
        messages.deliver()
        for _ in range(2):
            lake.run(stage, INTERVAL)
            messages.deliver()
    rows = [row for message in messages.messages[1:] for row in message["findings"]]
    withdrawn, updated = sorted(rows, key=lambda row: str(row["state"]), reverse=True)
    assert (updated["state"], updated["finding_id"]) == ("updated", first["finding_id"])
    assert (withdrawn["state"], withdrawn["finding_id"]) == ("withdrawn", second["finding_id"])
    late = f"because of late file {lake.path(START + HOUR, '.late')}"
    assert withdrawn["reason"] == f"{late}; it is now part of finding {first['finding_id']}"
    assert len(lake.kills) >= 2
