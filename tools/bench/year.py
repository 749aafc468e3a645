"""Ingest of an hour with a week and with a year of hours in the lake: one run per past, one job per hour."""

import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

from bench import flat
from bench.draw import FIRST
from bench.ingest import in_turn
from bench.measure import Measured, run, spark_submit
from transom.core.intervals import HOUR, Interval, format_hour
from transom.ledger.ledger import Ledger

JOB = Path(__file__).parents[2] / "jobs" / "ingest.py"
WEEK, YEAR = "with a week", "with a year"
DAYS = {WEEK: 7, YEAR: 365}
NEAR = 1.1
"""Goal: maximum seconds with a year relative to those with a week."""


def bench(folder: Path, repetitions: int) -> Iterator[dict[str, Any]]:
    """Yield a row per past."""
    shutil.rmtree(folder, ignore_errors=True)
    seen: dict[str, list[Measured]] = {who: [] for who in DAYS}
    stages: dict[str, list[float]] = {who: [] for who in DAYS}
    for who, days in DAYS.items():
        past = Interval(FIRST, FIRST + timedelta(days=days))
        (folder / who).mkdir(parents=True)
        flat.stream(folder / who)
        flat.land(folder / who, past.widen(after=(repetitions + 1) * HOUR))
        _submit(folder / who, past)
        # The first hour after such a run copies the records of all files.
        _submit(folder / who, Interval.of_hour(past.end))
    for number in range(repetitions):
        for who in in_turn(list(DAYS), number):
            hour = FIRST + timedelta(days=DAYS[who]) + (number + 1) * HOUR
            seen[who].append(_submit(folder / who, Interval.of_hour(hour)))
            last = Ledger(str(folder / who / "lake" / "steady")).runs()[-1]
            stages[who].append(last["phase_seconds"]["ingest"])
    week = min(one.seconds for one in seen[WEEK])
    for who, runs in seen.items():
        seconds = min(one.seconds for one in runs)
        yield {
            "bench": "year", "log": "steady", "who": who, "seconds": seconds, "stage_s": min(stages[who]),
            "to_week": round(seconds / week, 3), "cpu_s": min(one.cpu_s for one in runs),
            "peak_mib": max(one.peak_mib for one in runs), "all": [one.seconds for one in runs],
        }  # fmt: skip


def _submit(folder: Path, interval: Interval) -> Measured:
    arguments = ["--stream", folder / "steady.yaml", "--lake", folder / "lake"]
    arguments += ["--from", format_hour(interval.start), "--to", format_hour(interval.end)]
    return run(spark_submit(JOB, *arguments), folder / "ingest.log", {"TRANSOM_LANDING": str(folder)})
