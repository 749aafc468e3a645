"""An hour's run with a year of hours before it, and with a week, in one process: what it takes, and where.

Usage: spark-submit year_runs.py FOLDER RESULT REPETITIONS
"""

import cProfile
import json
import os
import pstats
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from statistics import median
from typing import Any

import psutil
from bench import flat, history
from bench.ways import linked
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from transom.intervals import HOUR, Interval
from transom.job import root_of
from transom.lake.session import session
from transom.stream import Stream, load
from transom.together import run_stages

WEEK, YEAR = "week", "year"
PAST = timedelta(days=365) - history.WEEK
SINGLE = 8
"""Hours of the week that are run one by one."""
LEDGER = ("hours", "checks", "runs", "findings")


def main(folder: str, result: str, repetitions: str) -> None:
    """Makes the lakes, where they are not there, and measures hours that follow."""
    place = Path(folder)
    stream = load(flat.stream(place))
    spark = session("year")
    week = Interval(flat.FIRST + PAST, flat.FIRST + PAST + history.WEEK)
    if not (place / "base").exists():
        _based(spark, place, stream, week)
    for name in (WEEK, YEAR):
        linked(str(place / "base" / name), place / name)
    found: dict[str, list[dict[str, Any]]] = {WEEK: [], YEAR: []}
    hours = [week.end + number * HOUR for number in range(int(repetitions) + 1)]
    for number, hour in enumerate(hours):
        for name in (WEEK, YEAR) if number % 2 else (YEAR, WEEK):
            found[name].append(_measured(spark, place, name, stream, Interval.of_hour(hour)))
            print(name, found[name][-1], flush=True)
    profiles = {
        name: _profiled(spark, place, name, stream, Interval.of_hour(hours[-1] + HOUR)) for name in found
    }
    told = {
        # The first pass loads code.
        name: {
            what: {f: round(median(one[what][f] for one in seen[1:]), 3) for f in seen[0][what]}
            for what in seen[0]
        }
        for name, seen in found.items()
    }
    Path(result).write_text(json.dumps({"found": told, "profiles": profiles, "all": found}, indent=1))


def _based(spark: SparkSession, place: Path, stream: Stream, week: Interval) -> None:
    """Makes a lake with a week of hours, and one with a year."""
    made = place / "making"
    shutil.rmtree(made, ignore_errors=True)
    after = week.widen(after=20 * HOUR)
    flat.land(place / f"landing-{WEEK}", after)
    linked(str(place / f"landing-{WEEK}"), place / f"landing-{YEAR}")
    past = Interval(flat.FIRST, week.start)
    for hour in past.hours():
        file = place / f"landing-{YEAR}" / stream.path_pattern.of(hour)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"read once")
    lake = str(made / WEEK)
    _run(spark, place, WEEK, stream, Interval(week.start, week.end - SINGLE * HOUR), lake)
    for number in range(SINGLE, 0, -1):
        before = _versions(lake, stream)
        _run(spark, place, WEEK, stream, Interval.of_hour(week.end - number * HOUR), lake)
    linked(lake, made / YEAR)
    with _landing(place, YEAR):
        history.lived_through(str(made / YEAR), stream, past)
    an_hour = {name: version - before[name] for name, version in _versions(lake, stream).items()}
    for name, lived in ((WEEK, history.WEEK), (YEAR, PAST)):
        for table, commits in an_hour.items():
            many = commits * (min(history.KEPT_LOG, lived) // HOUR)
            history.with_commits(root_of(str(made / name), stream), table, many)
    made.rename(place / "base")


def _versions(lake: str, stream: Stream) -> dict[str, int]:
    return {name: DeltaTable(f"{root_of(lake, stream)}/{name}").version() for name in LEDGER}


@contextmanager
def _landing(place: Path, name: str) -> Iterator[None]:
    os.environ["TRANSOM_LANDING"] = str(place / f"landing-{name}")
    yield


def _run(
    spark: SparkSession, place: Path, name: str, stream: Stream, interval: Interval, lake: str
) -> dict[str, dict[str, float]]:
    """Every stage: wall seconds and CPU seconds of Python's process and of Java's."""
    taken = {}
    with _landing(place, name):
        for stage in stream.stages:
            before = _clocks()
            run_stages(
                spark, stream, interval, lake=lake, command="", stages=[stage], run_id=f"{stage} {interval}",
                say=lambda line: print(line, flush=True),
            )  # fmt: skip
            taken[stage] = {what: round(now - before[what], 3) for what, now in _clocks().items()}
    return taken


def _clocks() -> dict[str, float]:
    java = psutil.Process().parent()
    assert java is not None and "java" in java.name()
    return {"wall": time.monotonic(), "python": time.process_time(), "java": sum(java.cpu_times()[:2])}


def _measured(
    spark: SparkSession, place: Path, name: str, stream: Stream, interval: Interval
) -> dict[str, dict[str, float]]:
    return _run(spark, place, name, stream, interval, str(place / name))


def _profiled(
    spark: SparkSession, place: Path, name: str, stream: Stream, interval: Interval
) -> dict[str, list[dict[str, Any]]]:
    """The functions in which most of the driver's time goes, by stage."""
    found = {}
    with _landing(place, name):
        for stage in stream.stages:
            profile = cProfile.Profile()
            profile.runcall(
                run_stages, spark, stream, interval, lake=str(place / name), command="", stages=[stage],
                run_id=f"{stage} profiled", say=lambda line: None,
            )  # fmt: skip
            profile.dump_stats(place / f"{name}-{stage}.prof")
            found[stage] = _top(pstats.Stats(profile).stats)  # type: ignore[attr-defined]
    return found


def _top(stats: Mapping[tuple[str, int, str], Any]) -> list[dict[str, Any]]:
    ordered = sorted(stats.items(), key=lambda item: -item[1][2])[:25]
    return [
        {
            "function": f"{Path(file).stem}.{name}",
            "calls": of[0],
            "own_s": round(of[2], 2),
            "s": round(of[3], 2),
        }
        for (file, _, name), of in ordered
    ]


if __name__ == "__main__":
    main(*sys.argv[1:])
