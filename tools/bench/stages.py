"""All stages over small hours: in one application, on a warm Spark server, and with nothing to do.

With an older checkout in the environment variable `BENCH_BESIDE`, each is also measured with its code and
the settings that its own set-up has written. If this reads other stream files, `BENCH_BESIDE_STREAM` is the
same stream as it reads it.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import spark_server
from bench.draw import FIRST, HOURS, LOGS, drawn
from bench.measure import Measured, run
from bench.version import ROOT
from transom.core.intervals import HOUR, Interval, format_hour

LINES = (120, 5_000)
"""The numbers of lines per hour."""
BEFORE = Interval(FIRST, FIRST + 24 * HOUR)
"""The hours that ran before, so that the windows of a measured hour have their full length."""
WARM_UP = 3
"""The number of hours that a server runs before it is measured."""
COLD = "nothing to do, spark-submit"
WARM = "nothing to do, warm server"
SESSION = "nothing to do, warm session"
BESIDE, BESIDE_STREAM = "BENCH_BESIDE", "BENCH_BESIDE_STREAM"


def spec() -> dict[str, Any]:
    """Return a stream with a block of each feature."""
    return {
        "name": "all",
        "preset": "apache/combined",
        "source": {"path": LOGS["apache"].hourly, "expected_files": 1},
        "key": ["client"],
        "aggregates": {
            "traffic": {
                "measures": {"n": "count", "sent": "sum(bytes)", "pages": "distinct(path)"},
                "levels": "RANGES 24 HOURS, 6 HOURS, 1 HOUR SLIDES 6 HOURS, 3 HOURS, 1 HOUR",
            },
            "site": {
                "key": [],
                "measures": {"n": "count"},
                "levels": "RANGES 24 HOURS, 6 HOURS, 1 HOUR SLIDES 1 HOUR, 1 HOUR, 1 HOUR",
            },
        },
        "patterns": {
            "came_back": {
                "within": "3 days",
                "steps": [
                    {"id": "look", "where": "status = 200"},
                    {"id": "probe", "where": "status = 404", "gap": {"min": "1 hour"}},
                ],
            }
        },
        "frames": {
            "busy": {"source": "site", "kind": "threshold", "where": "n > 20", "min_length": "3 hours"}
        },
        "fills": {
            "day_before": {
                "frame": "busy", "source": "site", "shift": ["24 hours"], "measures": {"n": "sum(n)"},
            }
        },
        "persistence": {
            "regulars": {
                "item": ["client"], "slot": "1 hour", "window": "1 day", "alpha": 0.7, "epsilon": 0.2,
            }
        },
        "frequency": {
            "pages": {
                "item": ["path"], "window": "24 hours", "tick": "5 minutes", "epsilon": 0.01, "delta": 0.01,
                "top": 20,
            }
        },
        "schedule": False,
    }  # fmt: skip


def application(lines: int) -> str:
    """Return what the results call `spark-submit` of an hour."""
    return f"application of an hour of {lines}"


def on_server(lines: int) -> str:
    """Return what the results call a job of an hour on a server, which has run others before."""
    return f"hour of {lines} on a warm server"


def bench_hours(cache: Path) -> Iterator[dict[str, Any]]:
    """Yield a row for each way to run an hour, per number of lines and checkout."""
    for lines in LINES:
        for name, checkout in _checkouts().items():
            costs, measured = _hours(cache, name, checkout, lines, [BEFORE.end, BEFORE.end + HOUR])
            for which, cost in zip(("first", "further"), costs, strict=True):
                yield {
                    "bench": "stages", "log": "apache", "who": f"{which} hour of {lines}, {name}", **cost,
                    "peak_mib": measured.peak_mib,
                }  # fmt: skip
            hours = [BEFORE.end + number * HOUR for number in (2, 3, 4)]
            whole = [_submit(cache, name, checkout, lines, Interval.of_hour(hour)) for hour in hours]
            yield _row("stages", f"{application(lines)}, {name}", _best(whole), costs[0])
        with spark_server.running(cache / "stages" / "server") as url:
            hours = [BEFORE.end + (5 + number) * HOUR for number in range(WARM_UP + 3)]
            jobs = [_on_server(cache, url, lines, hour) for hour in hours]
        yield _row("stages", f"{on_server(lines)}, transom", _best(jobs[WARM_UP:]), costs[0])


def bench_idle(cache: Path) -> Iterator[dict[str, Any]]:
    """Yield a row for a run with nothing to do in a warm session, by itself, and on a server."""
    lines, hour = LINES[0], BEFORE.end
    for name, checkout in _checkouts().items():
        (_, warm), _ = _hours(cache, name, checkout, lines, [hour, hour])
        yield {"bench": "idle", "log": "apache", "who": f"{SESSION}, {name}", **warm}
        cold = [_submit(cache, name, checkout, lines, Interval.of_hour(hour)) for _ in range(3)]
        yield _row("idle", f"{COLD}, {name}", _best(cold), warm)
    with spark_server.running(cache / "stages" / "server") as url:
        jobs = [_on_server(cache, url, lines, hour) for _ in range(3)]
    yield _row("idle", f"{WARM}, transom", _best(jobs), warm)


def _best(jobs: Sequence[Measured]) -> Measured:
    return min(jobs, key=lambda job: job.seconds)


def _row(bench: str, who: str, job: Measured, columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row of a job, with all columns of the other rows."""
    found = {"bench": bench, "log": "apache", "who": who, "seconds": job.seconds, "cpu_s": job.cpu_s}
    return {**dict.fromkeys(columns), **found, "peak_mib": job.peak_mib}


def _checkouts() -> dict[str, Path]:
    """Return the checkouts to measure, by their name in the results."""
    beside = os.environ.get(BESIDE)
    return {"transom": ROOT, **({Path(beside).name: Path(beside)} if beside else {})}


def _stream_file(checkout: Path) -> str:
    """Return the text of the stream file that a checkout reads."""
    path = os.environ.get(BESIDE_STREAM)
    return json.dumps(spec()) if path is None or checkout == ROOT else Path(path).read_text()


def _environment(cache: Path, checkout: Path, lines: int) -> dict[str, str]:
    """Return the environment of a checkout's jobs: that of its set-up, with its landing folder."""
    text = subprocess.check_output(
        ["bash", "-c", '. "$0" && env -0', checkout / ".transom" / "env"], text=True
    )
    names = dict(line.partition("=")[::2] for line in text.split("\0") if line)
    landing = drawn(cache / "logs", "apache", lines * HOURS)
    return {**names, "TRANSOM_LANDING": str(landing), "PYTHONPATH": str(checkout / "jobs")}


def _folder(cache: Path, name: str, lines: int) -> Path:
    return cache / "stages" / f"{name}-{lines}"


def _hours(
    cache: Path, name: str, checkout: Path, lines: int, hours: list[Any]
) -> tuple[list[Mapping[str, float]], Measured]:
    """Run the hours before in one application and the given ones in another; return the cost of each."""
    folder = _folder(cache, name, lines)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "all.yaml").write_text(_stream_file(checkout))
    _submit(cache, name, checkout, lines, BEFORE)
    script, result = Path(__file__).with_name("counted_run.py"), folder / "costs.json"
    arguments = [script, result, folder / "lake", folder / "all.yaml", *map(format_hour, hours)]
    measured = _spark_submit(cache, checkout, lines, arguments, folder / "hours.log")
    return json.loads(result.read_text()), measured


def _on_server(cache: Path, url: str, lines: int, hour: datetime) -> Measured:
    """Run the job of this checkout over an hour on a server; its cost is that of the client alone."""
    folder = _folder(cache, "transom", lines)
    environment = {**_environment(cache, ROOT, lines), "SPARK_REMOTE": url}
    command = [sys.executable, *_job(folder, ROOT, Interval.of_hour(hour))]
    return run(command, folder / "on_server.log", environment)


def _job(folder: Path, checkout: Path, interval: Interval) -> list[object]:
    """Return a checkout's job over an interval, with its arguments."""
    script, bounds = checkout / "jobs" / "run.py", (format_hour(interval.start), format_hour(interval.end))
    where = ["--stream", folder / "all.yaml", "--lake", folder / "lake"]
    return [script, *where, "--from", bounds[0], "--to", bounds[1]]


def _submit(cache: Path, name: str, checkout: Path, lines: int, interval: Interval) -> Measured:
    """Run a checkout's job over an interval."""
    folder = _folder(cache, name, lines)
    return _spark_submit(cache, checkout, lines, _job(folder, checkout, interval), folder / "run.log")


def _spark_submit(
    cache: Path, checkout: Path, lines: int, arguments: Sequence[object], log: Path
) -> Measured:
    """Run a script with its arguments by a checkout's `spark-submit`."""
    environment = _environment(cache, checkout, lines)
    properties = ["--properties-file", environment["TRANSOM_SPARK_PROPERTIES"]]
    submit = shutil.which("spark-submit", path=environment["PATH"])
    return run([submit, *properties, *arguments], log, environment)
