"""Cost of an hourly run at day 4 and at day 60, of a log with the same lines every hour.

The widest range is a day, and the widest window of the pattern 64 hours, so the history of day 4 exceeds
both. The measured hours are those in which windows of all levels end, as they read most. One run computes the
past; the hour is submitted like by Airflow. Spark counts rows in its event log.
"""

import gzip
import json
import shutil
import time
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from bench import scans
from bench.draw import FIRST
from bench.measure import Measured, run, spark_submit
from transom.core.intervals import HOUR, Interval, format_hour
from transom.ledger.ledger import Ledger

HERE = Path(__file__).parent
JOBS = HERE.parents[1] / "jobs"
DAYS = (4, 60)
TOP = 32 * HOUR
"""Length of a batch of the top level; it divides the time between the days."""
LINES = 200
"""Number of lines per hour."""
CLIENTS = 50
INGEST, AGGREGATES, PATTERNS = "ingest", "aggregates", "patterns"
SKETCHES = ("persistence", "frequency")
BY_SPARK = {f"{stage}, all read by Spark": stage for stage in (AGGREGATES, PATTERNS, *SKETCHES)}
TABLES = (
    "events", "granules", "item_granules", "batches", "matches", "episodes", "tuples", "persistent_items",
    "tick_matrices", "cells", "frequencies", scans.NEW, scans.HANDED,
)  # fmt: skip
"""Tables of events and results, and rows on the way into or out of these. Entries of the tables' own logs,
one per file, grow with every hour and are counted separately."""


def stream(folder: Path) -> Path:
    """Write the stream file, with blocks of all stages."""
    spec = {
        "name": "steady",
        "preset": "apache/combined",
        "source": {"path": "steady/%Y-%m-%d/access.%H.log.gz", "expected_files": 1},
        "key": ["client"],
        "aggregates": {
            "traffic": {
                "measures": {"n": "count", "sent": "sum(bytes)"},
                "levels": "RANGES 24 HOURS, 6 HOURS, 1 HOUR SLIDES 1 HOUR, 30 MINUTES, 5 MINUTES",
                "fit": "5 minutes",
                "aging": [1, 2, 4],
                "recurring": ["path"],
            }
        },
        "patterns": {
            "came_back": {
                "within": "1 day",
                "batch": "15 minutes",
                "steps": [
                    {"id": "came", "where": "path LIKE '%/0'"},
                    {"id": "back", "where": "path LIKE '%/3'", "gap": {"min": "20 hours"}},
                ],
            }
        },
        "persistence": {
            "regulars": {
                "item": ["client", "path"],
                "slot": "1 hour",
                "window": "3 days",
                "alpha": 0.7,
                "epsilon": 0.2,
            }
        },
        "frequency": {
            "pages": {
                "item": ["path"],
                "window": "3 days",
                "tick": "5 minutes",
                "epsilon": 0.01,
                "delta": 0.01,
            },
            # Each hour of this variant continues the state of the hour before it.
            "clients": {
                "item": ["client"],
                "window": "3 days",
                "tick": "5 minutes",
                "epsilon": 0.1,
                "delta": 0.1,
                "variant": "splitter",
            },
        },
    }
    file = folder / "steady.yaml"
    file.write_text(json.dumps(spec))
    return file


def land(folder: Path, hours: Interval) -> None:
    """Write a file per hour: every client requests its four pages at the same minutes."""
    for hour in hours.hours():
        file = folder / hour.strftime("steady/%Y-%m-%d/access.%H.log.gz")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(gzip.compress("".join(_line(hour, n) for n in range(LINES)).encode(), 4, mtime=0))


def _line(hour: datetime, number: int) -> str:
    moment = hour + timedelta(hours=number / LINES)
    page, client = divmod(number, CLIENTS)
    return (
        f'10.1.0.{client} - - [{moment:%d/%b/%Y:%H:%M:%S +0000}] "GET /page/{client % 10}/{page} HTTP/1.1" '
        f'200 {100 + 7 * number} "-" "agent"\n'
    )


def bench(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield a row per job and day, with the rows read and the cost."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    file = stream(folder)
    land(folder, Interval(FIRST, FIRST + timedelta(days=DAYS[-1]) + 3 * TOP))
    seen: dict[str, list[dict[str, Any]]] = {}
    past = FIRST
    for day in DAYS:
        hour = _last_of_top(FIRST + timedelta(days=day))
        _submit(folder, file, [JOBS / "run.py"], Interval(past, hour))
        for stage in (INGEST, AGGREGATES, PATTERNS, *SKETCHES):
            seen.setdefault(stage, []).append(_measured(folder, file, stage, Interval.of_hour(hour)))
        _submit(folder, file, [JOBS / "run.py"], Interval(hour + HOUR, hour + TOP))
        _submit(folder, file, [JOBS / f"{INGEST}.py"], Interval.of_hour(hour + TOP))
        for who in BY_SPARK:
            seen.setdefault(who, []).append(_measured(folder, file, who, Interval.of_hour(hour + TOP)))
        past = hour + TOP + HOUR
    for who, days in seen.items():
        first, last = (sum(found["rows"].get(name, 0) for name in TABLES) for found in days)
        for day, found, rows in zip(DAYS, days, (first, last), strict=True):
            yield {
                "bench": "flat", "log": "steady", "who": who, "day": day, **found, "data_rows": rows,
                "other_rows": sum(found["rows"].values()) - rows, "to_first_day": round(rows / first, 4),
            }  # fmt: skip


def _last_of_top(hour: datetime) -> datetime:
    """Return the first hour, from `hour` on, whose end is the end of a batch of the top level."""
    return hour + (-int((hour + HOUR).timestamp()) % int(TOP.total_seconds())) * timedelta(seconds=1)


def _measured(folder: Path, file: Path, who: str, interval: Interval) -> dict[str, Any]:
    """Run an hour, and return the rows read by table, the cost, and the size of the ledger."""
    logs = folder / "spark"
    shutil.rmtree(logs, ignore_errors=True)
    logs.mkdir()
    root = folder / "lake" / "steady"
    ledger, began = Ledger(str(root)), time.monotonic()
    nodes = len(ledger.snapshot())
    read = time.monotonic() - began
    stage = BY_SPARK.get(who, who)
    job = [HERE / "by_spark.py", stage] if who in BY_SPARK else [JOBS / f"{stage}.py"]
    one = _submit(folder, file, job, interval, *scans.logged(logs))
    rows, records = scans.rows_read(scans.events_of(logs), str(root))
    return {
        "rows": rows, "records_of_files": records, "seconds": one.seconds, "cpu_s": one.cpu_s,
        "peak_mib": one.peak_mib, "stage_s": ledger.runs()[-1]["phase_seconds"][stage],
        "ledger_rows": nodes, "ledger_ms": round(1000 * read),
    }  # fmt: skip


def _submit(
    folder: Path, file: Path, job: Sequence[object], interval: Interval, *settings: object
) -> Measured:
    arguments = ["--stream", file, "--lake", folder / "lake"]
    arguments += ["--from", format_hour(interval.start), "--to", format_hour(interval.end)]
    places = {"TRANSOM_LANDING": str(folder)}
    log = folder / f"{Path(str(job[0])).stem}.log"
    return run(spark_submit(*settings, *job, *arguments), log, places)
