"""All stages over small hours in one application, and over an hour with nothing to do.

With an older checkout in the environment variable `BENCH_BESIDE`, each is also measured with its code and
the settings that its own set-up has written. If this reads other stream files, `BENCH_BESIDE_STREAM` is the
same stream as it reads it.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.draw import FIRST, HOURS, LOGS, drawn
from bench.measure import Measured, run
from bench.version import ROOT
from transom.core.intervals import HOUR, Interval, format_hour

LINES = (120, 5_000)
"""The numbers of lines per hour."""
BEFORE = Interval(FIRST, FIRST + 24 * HOUR)
"""The hours that ran before, so that the windows of a measured hour have their full length."""
COLD = "nothing to do, spark-submit"
WARM = "nothing to do, warm session"
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


def bench_hours(cache: Path) -> Iterator[dict[str, Any]]:
    """Yield a row for the first and a further hour of an application, per number of lines and checkout."""
    for lines in LINES:
        for name, checkout in _checkouts().items():
            costs, measured = _hours(cache, name, checkout, lines, [BEFORE.end, BEFORE.end + HOUR])
            for which, cost in zip(("first", "further"), costs, strict=True):
                yield {
                    "bench": "stages", "log": "apache", "who": f"{which} hour of {lines}, {name}", **cost,
                    "peak_mib": measured.peak_mib,
                }  # fmt: skip


def bench_idle(cache: Path) -> Iterator[dict[str, Any]]:
    """Yield a row for a run with nothing to do in a warm session, and for one by itself, per checkout."""
    for name, checkout in _checkouts().items():
        (_, warm), _ = _hours(cache, name, checkout, LINES[0], [BEFORE.end, BEFORE.end])
        yield {"bench": "idle", "log": "apache", "who": f"{WARM}, {name}", **warm}
        cold = _submit(cache, name, checkout, LINES[0], Interval.of_hour(BEFORE.end))
        row = {"bench": "idle", "log": "apache", "who": f"{COLD}, {name}", "seconds": cold.seconds}
        yield {**dict.fromkeys(warm), **row, "cpu_s": cold.cpu_s}


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


def _submit(cache: Path, name: str, checkout: Path, lines: int, interval: Interval) -> Measured:
    """Run a checkout's job over an interval."""
    folder = _folder(cache, name, lines)
    arguments = [checkout / "jobs" / "run.py", "--stream", folder / "all.yaml", "--lake", folder / "lake"]
    arguments += ["--from", format_hour(interval.start), "--to", format_hour(interval.end)]
    return _spark_submit(cache, checkout, lines, arguments, folder / "run.log")


def _spark_submit(
    cache: Path, checkout: Path, lines: int, arguments: Sequence[object], log: Path
) -> Measured:
    """Run a script with its arguments by a checkout's `spark-submit`."""
    environment = _environment(cache, checkout, lines)
    properties = ["--properties-file", environment["TRANSOM_SPARK_PROPERTIES"]]
    submit = shutil.which("spark-submit", path=environment["PATH"])
    return run([submit, *properties, *arguments], log, environment)
