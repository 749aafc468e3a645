"""Measure several ways to one result, each in its own process with several passes."""

import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.measure import LONG, Measured, run, spark_submit

HERE = Path(__file__).parent
Runs = Sequence[tuple[Measured, dict[str, Any]]]
"""The cost and the result of each process of one way."""


def gone(
    script: str, result: Path, *arguments: object, more: Sequence[object] = ()
) -> tuple[Measured, dict[str, Any]]:
    """Run one way in its own process, and return its cost and its result.

    Args:
        script: a script of this folder; `spark-submit` runs it if its name begins with `peer`.
        arguments: the first arguments of the script.
        result: the path of its JSON result, the next argument.
        more: the last arguments.
    """
    result.parent.mkdir(parents=True, exist_ok=True)
    call = (HERE / script, *arguments, result, *more)
    command = spark_submit(*call) if script.startswith("peer") else [sys.executable, *call]
    measured = run(command, result.with_suffix(".log"), paths())
    return measured, json.loads(result.read_text())


def paths() -> dict[str, str]:
    """Return the environment variable for importing the benchmarks."""
    return {"PYTHONPATH": os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")])}


def taken(runs: Runs) -> dict[str, Any]:
    """Return the cost of a way for a row of the results.

    `cold` has the seconds of a first pass of a process, `seconds` those of a later one.
    """
    passes = [result["seconds"] for _, result in runs]
    return {
        "cold": min(one[0] for one in passes),
        "seconds": min(map(warm, passes)),
        "warm": all(len(one) > 1 for one in passes),
        "peak_mib": max(one.peak_mib for one, _ in runs),
        "all": passes,
    }


def side_by_side(
    bench: str,
    ways: Mapping[str, tuple[str, str]],
    folder: Path,
    arguments: Sequence[object],
    count: int,
    repetitions: int,
    facts: Iterable[str],
) -> Iterator[dict[str, Any]]:
    """Run the ways in turn, and yield a row per way.

    Args:
        ways: the script of each way, and the name of the way in the script.
        folder: the folder of the results.
        arguments: the arguments of the scripts after the name of the way.
        count: the number of events.
        facts: the keys of the results to copy into the rows.
    """
    for who, (script, way) in ways.items():
        result = folder / f"{script.partition('_')[0]}-{way}.json"
        runs = [gone(script, result, way, *arguments) for _ in range(repetitions)]
        copied = {name: runs[0][1].get(name) for name in facts}
        yield {"bench": bench, "events": count, "who": who, **copied, **taken(runs)}


def warm(passes: Sequence[float]) -> float:
    """Return the minimum seconds of the passes after the first; of the first if it is the only one."""
    return min(passes[1:] or passes)


def timed(
    passes: str | int, go: Callable[[int], Any], ready: Callable[[int], Any] = lambda number: None
) -> list[float]:
    """Return the seconds of each pass; stop after a pass longer than `LONG`.

    Args:
        go: runs the pass with this number.
        ready: prepares the pass with this number, and is not timed.
    """
    seconds: list[float] = []
    for number in range(int(passes)):
        ready(number)
        began = time.monotonic()
        go(number)
        seconds.append(round(time.monotonic() - began, 2))
        if seconds[-1] > LONG:
            break
    return seconds


def linked(lake: str, place: Path) -> None:
    """Create a separate lake from hard links to the same files: runs add files and never change any."""
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(lake, place, copy_function=os.link)
