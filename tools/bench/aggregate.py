"""Aggregate at three levels in several ways, each in its own processes; all results must be equal."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.ingest import in_turn, lake_of
from bench.measure import Failed, Measured
from bench.ways import gone as in_process
from bench.ways import warm

PASSES = 3
"""Number of passes of a process: the first is cold, the others warm."""
OURS, STAGE = "transom, computed", "transom, whole stage"
WINDOW, WRITTEN = "spark, window() a level", "spark, window() a level, to Delta"
FLOOR = "spark, granules alone (the floor)"
WAYS = {
    OURS: ("spark", "computed"),
    STAGE: ("spark", "stage"),
    WINDOW: ("spark", "window"),
    WRITTEN: ("spark", "written"),
    FLOOR: ("spark", "floor"),
    "duckdb, from events": ("duck", "raw"),
    "duckdb, from granules": ("duck", "granules"),
}


def bench(cache: Path, name: str, count: int, repetitions: int) -> Iterator[dict[str, Any]]:
    """Yield a row per way; each repetition starts one process per way.

    Raises:
        Failed: two ways compute different values for the same windows.
    """
    case, lake = lake_of(cache, name, count)
    folder = cache / "aggregate" / f"{name}-{count}"
    totals: dict[str, list[int]] = {}
    seconds: dict[str, list[list[float]]] = {who: [] for who in WAYS}
    measured: dict[str, list[Measured]] = {who: [] for who in WAYS}
    for number in range(repetitions):
        for who in in_turn(list(WAYS), number):
            one, found = gone(*WAYS[who], case.stream, lake, folder)
            measured[who].append(one)
            seconds[who].append(found["seconds"])
            totals[who] = found["totals"]
            _agree(totals, count)
    for who in WAYS:
        yield {
            "bench": "aggregate", "log": name, "events": count, "who": who,
            "warm": all(len(passes) > 1 for passes in seconds[who]),
            "cold": min(passes[0] for passes in seconds[who]),
            "seconds": min(warm(passes) for passes in seconds[who]),
            "process_cpu_s": min(one.cpu_s for one in measured[who]),
            "peak_mib": max(one.peak_mib for one in measured[who]), "all": seconds[who],
        }  # fmt: skip


def gone(
    engine: str, way: str, stream: Path, lake: Path, folder: Path, *end: str
) -> tuple[Measured, dict[str, Any]]:
    """Run one way in its own process, and return its cost, and the seconds and totals of its passes."""
    script = "peer_aggregate.py" if engine == "spark" else "duck.py"
    return in_process(script, folder / f"{engine}-{way}.json", way, stream, lake, PASSES, more=end)


def _agree(totals: dict[str, list[int]], count: int) -> None:
    """Raise Failed unless all totals are equal; the floor has the number of all records."""
    windows = {tuple(figures) for who, figures in totals.items() if who != FLOOR}
    if len(windows) > 1 or (FLOOR in totals and totals[FLOOR][1] != count):
        raise Failed(f"aggregates: the totals differ: {totals}")
