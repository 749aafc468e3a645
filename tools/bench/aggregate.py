"""Aggregate at three levels, by every way, each in a process of its own; all have to give the same."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.ingest import lake_of
from bench.measure import Failed, run, spark_submit

HERE = Path(__file__).parent
WAYS = {
    "transom, computed": ("spark", "computed"),
    "transom, whole stage": ("spark", "stage"),
    "spark, window() a level": ("spark", "window"),
    "spark, granules alone (the floor)": ("spark", "floor"),
    "duckdb, from events": ("duck", "raw"),
    "duckdb, from granules": ("duck", "granules"),
}
FLOOR = "spark, granules alone (the floor)"


def bench(cache: Path, name: str, count: int, repetitions: int) -> Iterator[dict[str, Any]]:
    """Rows of the result, a way each. The first of a process's repetitions finds it cold, the others warm.

    Raises:
        Failed: two ways to the same windows gave different figures.
    """
    case, lake = lake_of(cache, name, count)
    folder = cache / "aggregate" / f"{name}-{count}"
    folder.mkdir(parents=True, exist_ok=True)
    paths = os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")])
    totals: dict[str, list[int]] = {}
    for who, (engine, way) in WAYS.items():
        result = folder / f"{engine}-{way}.json"
        arguments = [way, case.stream, lake, str(repetitions), result]
        command = (
            spark_submit(HERE / "peer_aggregate.py", *arguments)
            if engine == "spark"
            else [sys.executable, HERE / "duck.py", *arguments]
        )
        measured = run(command, result.with_suffix(".log"), {"PYTHONPATH": paths})
        found = json.loads(result.read_text())
        totals[who] = found["totals"]
        yield {
            "bench": "aggregate", "log": name, "events": count, "who": who, "cold": found["seconds"][0],
            "seconds": min(found["seconds"]), "peak_mib": measured.peak_mib, "all": found["seconds"],
        }  # fmt: skip
    first = next(iter(totals.values()))
    differ = {who: figures for who, figures in totals.items() if who != FLOOR and figures != first}
    if differ or totals[FLOOR][1] != count:
        raise Failed(f"aggregate: the figures differ: {totals}")
