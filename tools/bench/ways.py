"""Ways that are measured side by side, each in a process of its own that goes it some times."""

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
"""Of one way: what each of its processes took, and what it told."""


def gone(
    script: str, result: Path, *arguments: object, more: Sequence[object] = ()
) -> tuple[Measured, dict[str, Any]]:
    """A way in a process of its own: what it took, and what it has told.

    Args:
        script: of this folder; one whose name begins with `peer` is submitted to Spark.
        result: where it tells it, as JSON; the argument behind the others.
        more: arguments behind that one.
    """
    result.parent.mkdir(parents=True, exist_ok=True)
    told = (HERE / script, *arguments, result, *more)
    command = spark_submit(*told) if script.startswith("peer") else [sys.executable, *told]
    measured = run(command, result.with_suffix(".log"), paths())
    return measured, json.loads(result.read_text())


def paths() -> dict[str, str]:
    """What a process has to know to import the benchmarks."""
    return {"PYTHONPATH": os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")])}


def taken(runs: Runs) -> dict[str, Any]:
    """What a way has taken, as a row of the results has it: `cold` the first time in a process, `seconds`
    another time."""
    passes = [told["seconds"] for _, told in runs]
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
    """Rows of the results, a way each, one after the other.

    Args:
        ways: the script of each, and what it calls the way.
        folder: of what they tell.
        arguments: of the scripts, behind the way.
        count: events.
        facts: what is taken over of what they tell.
    """
    for who, (script, way) in ways.items():
        result = folder / f"{script.partition('_')[0]}-{way}.json"
        runs = [gone(script, result, way, *arguments) for _ in range(repetitions)]
        told = {name: runs[0][1].get(name) for name in facts}
        yield {"bench": bench, "events": count, "who": who, **told, **taken(runs)}


def warm(passes: Sequence[float]) -> float:
    """The seconds of a process that has done it before; of the first pass where it was long."""
    return min(passes[1:] or passes)


def timed(
    passes: str | int, go: Callable[[int], Any], ready: Callable[[int], Any] = lambda number: None
) -> list[float]:
    """The seconds of each pass; a long one is the last.

    Args:
        go: is given the number of the pass.
        ready: what is done before it, and not timed.
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
    """A lake of its own with the same files, which are never changed, only added."""
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(lake, place, copy_function=os.link)
