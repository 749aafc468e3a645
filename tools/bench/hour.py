"""One hourly run of a few hundred lines through all stages in a real Airflow: time from trigger to report, by
phase, with a Spark of each task's own and on a warm server."""

import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

import psutil

import airflow_server
import spark_server
from airflow_api import Airflow
from bench import stages
from bench.draw import END, FIRST, HOURS, drawn
from bench.ingest import in_turn
from bench.measure import MIB, Failed, Watch, run
from transom.core.intervals import HOUR, Interval, format_hour
from transom.features.registry import STAGES
from transom.ledger.ledger import Ledger

ROOT = Path(__file__).resolve().parents[2]
LINES = 300
"""Number of lines per hour."""
BEFORE = Interval(FIRST, FIRST + 24 * HOUR)
"""Hours that ran before, so that the windows of a measured hour have their full length."""


JOBS = {"per_stage": STAGES, "single": ("run",)}
"""Jobs of each way to submit the stages of a stream."""
SERVER = "warm server"


def _stream(way: str, folder: Path) -> Path:
    """Write the stream file; the stream, and so its DAG, has the name of the way."""
    spec = stages.spec() | {
        "name": way,
        "start": format_hour(FIRST),
        "until": format_hour(END),
        "submit": way,
    }
    file = folder / f"{way}.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(spec))
    return file


def bench(cache: Path, repetitions: int) -> Iterator[dict[str, Any]]:
    """Yield a row per way to submit, without a server and on one.

    Raises:
        Failed: a task fails.
    """
    folder = cache / "hour"
    shutil.rmtree(folder, ignore_errors=True)
    places = {"TRANSOM_LANDING": str(drawn(cache / "logs", "apache", LINES * HOURS))}
    yield from _ways(folder / "own", places, repetitions)
    with spark_server.running(folder / "server") as url:
        yield from _ways(folder / "warm", {**places, "SPARK_REMOTE": url}, repetitions)


def _ways(folder: Path, environment: Mapping[str, str], repetitions: int) -> Iterator[dict[str, Any]]:
    lake, streams = folder / "lake", {way: _stream(way, folder / "streams") for way in JOBS}
    places = {**environment, "TRANSOM_LAKE": str(lake), "TRANSOM_STREAMS": str(folder / "streams")}
    hours = [BEFORE.end + number * HOUR for number in range(repetitions)]
    seen: dict[str, list[dict[str, float]]] = {way: [] for way in streams}
    watched: dict[str, list[Watch]] = {way: [] for way in streams}
    at_rest = []
    with airflow_server.running(folder / "airflow", places) as server:
        for way in streams:
            server.pause(way, False)
            _run(server, way, "before", BEFORE)
        for number, hour in enumerate(hours):
            for way in in_turn(list(streams), number):
                # Airflow's processes are descendants of this process.
                with Watch(_children) as watch:
                    at_rest.append(watch.peak)
                    triggered = _run(server, way, f"hour-{number}", Interval(hour, hour + HOUR))
                watched[way].append(watch)
                seen[way].append(_phases(server, lake, way, f"hour-{number}", triggered))
    on_server = "SPARK_REMOTE" in environment
    for way, runs in seen.items():
        totals = [round(sum(run.values()), 1) for run in runs]
        middle = {name: round(median(run.get(name, 0.0) for run in runs), 1) for name in runs[0]}
        # On a server, `spark-submit` starts no job.
        inside = {} if on_server else _inside(folder, lake, streams[way], places, hours[-1] + HOUR, JOBS[way])
        yield {
            "bench": "hour", "log": "apache", "lines": LINES, "who": f"{way}, {SERVER}" if on_server else way,
            "seconds": min(totals), "cpu_s": round(min(watch.cpu_s for watch in watched[way]), 1),
            "peak_mib": max(watch.peak for watch in watched[way]) // MIB,
            "airflow_mib": round(median(at_rest)) // MIB, "all": totals, "phases": {**middle, **inside},
        }  # fmt: skip


def _children() -> list[int]:
    return [process.pid for process in psutil.Process().children()]


def _run(server: Airflow, way: str, name: str, interval: Interval) -> float:
    """Trigger a run, wait for its end, and return the time of the trigger, in seconds since 1970."""
    triggered = time.time()
    server.trigger(way, name, **{"from": format_hour(interval.start), "to": format_hour(interval.end)})
    states = server.wait(way, name, 900)
    if set(states.values()) != {"success"}:
        raise Failed(f"{way} {interval}: {states}")
    return triggered


def _phases(server: Airflow, lake: Path, way: str, name: str, triggered: float) -> dict[str, float]:
    """Return the seconds of each phase of a run, from its trigger to the end of its report."""
    tasks = {
        task["task_id"]: (_moment(task["start_date"]), _moment(task["end_date"]))
        for task in server.ask("GET", f"/dags/{way}/dagRuns/{name}/taskInstances")["task_instances"]
    }
    runs = [run for run in Ledger(str(lake / way)).runs() if run["run_id"].startswith(name)]
    return phases_of(tasks, {run["stage"]: run for run in runs}, triggered)


def phases_of(
    tasks: Mapping[str, tuple[float, float]], runs: Mapping[str, Mapping[str, Any]], triggered: float
) -> dict[str, float]:
    """Return the seconds of each phase; their sum is the time from the trigger to the end of the last task.

    Args:
        tasks: start and end of each task, in seconds since 1970.
        runs: the rows of `runs`, by stage.
        triggered: the time of the trigger.
    """
    in_order = sorted(tasks.items(), key=lambda task: task[1])
    ended = in_order[0][1][0]
    found = {"Airflow: until the first task": ended - triggered, "Airflow: between tasks": 0.0}
    for task, (start, end) in in_order:
        found["Airflow: between tasks"] += max(start - ended, 0.0)
        # The time that a task shares with earlier ones counts once.
        start, end = max(start, ended), max(end, ended)
        ended = end
        made = [runs[stage] for stage in (runs if task == "run" else (task,)) if stage in runs]
        if not made:
            found[task] = end - start
            continue
        at = start
        found[f"{task}: Spark's session"] = 0.0
        for one in sorted(made, key=lambda one: one["finished_at"]):
            seconds, finished = one["phase_seconds"], one["finished_at"].timestamp()
            before = "Airflow's worker, Java's and Python's start" if at == start else "between stages"
            found[f"{task}: {before}"] = finished - seconds["total"] - at
            found[f"{task}: Spark's session"] += seconds["session"]
            found[f"{task}: work of {one['stage']}"] = seconds["total"] - seconds["session"]
            at = finished
        found[f"{task}: last commit, gate's word, end"] = end - at
    return found


def _moment(text: str) -> float:
    return datetime.fromisoformat(text).astimezone(UTC).timestamp()


def _inside(
    folder: Path, lake: Path, stream: Path, places: Mapping[str, str], hour: datetime, jobs: Sequence[str]
) -> dict[str, float]:
    """Run each job over the next hour, submitted like by Airflow, and return the seconds of its functions."""
    found: dict[str, float] = {}
    script = Path(__file__).with_name("phases.py")
    properties = os.environ["TRANSOM_SPARK_PROPERTIES"]
    bounds = ["--from", format_hour(hour), "--to", format_hour(hour + timedelta(hours=1))]
    for name in jobs:
        result = folder / f"{name}.json"
        job = [script, name, result, "--stream", stream, "--lake", lake, *bounds]
        submitted = time.time()
        run(["spark-submit", "--properties-file", properties, *job], folder / f"{name}.log", places)
        ended, kept = time.time(), json.loads(result.read_text())
        seconds = {
            "Java's and Python's start": kept["began"] - submitted,
            **kept["seconds"],
            "Java's end": ended - kept["ended"],
        }
        found |= {f"by hand, {name}: {what}": round(value, 2) for what, value in seconds.items()}
    return found
