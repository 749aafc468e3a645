"""The zone of the machine leaves no trace, one with a half-hour offset neither."""

import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import sample_logs
from sample_logs import HOUR, WEB, land

from house import House
from transom.intervals import Interval

ROOT = Path(__file__).resolve().parents[2]
FIRST = datetime(2015, 5, 17, 10, tzinfo=UTC)


def test_jobs_started_in_another_zone_write_the_same(house: Callable[..., House]) -> None:
    here = house((ROOT / "schemas/streams/web.yaml").read_text(), "here")
    logs = sample_logs.apache()
    for hour in (FIRST, FIRST + HOUR):
        land(here.folder, WEB, hour, logs[hour])
    command = [sys.executable, ROOT / "tools/one_by_one.py", here.folder / "there"]
    subprocess.run(
        [*command, "2015-05-17T10:00", "2015-05-17T12:00"],
        env={**os.environ, "TZ": "Asia/Kolkata", "TRANSOM_LANDING": str(here.folder)},
        check=True,
        capture_output=True,
    )
    here.run_over(Interval(FIRST, FIRST + 2 * HOUR))
    there = House(here.spark, here.folder, (ROOT / "schemas/streams/web.yaml").read_text(), "there")
    assert here.state() == there.state()
    there.assert_ledger_true()
    counted = {
        row.hour.astimezone(UTC): row.n for row in here.table("aggregates").where("block = 'site'").collect()
    }
    assert counted == {hour: sample_logs.requests(logs, hour, hour + HOUR).total() for hour in counted}
    assert len(counted) == 2
