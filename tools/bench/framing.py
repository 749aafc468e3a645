"""Threshold and delta frames of 5,000,000 readings, each way in a process of its own.

`floor` finds none: it shuffles the readings by their key and hands them to Arrow, which every way has to pay
that looks at all of a key. Delta frames are no query of plain SQL: where a frame ends depends on where it
began.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.aggregate import OURS, STAGE, warm
from bench.framing_log import KINDS, lake_of, stream_of
from bench.ingest import in_turn
from bench.measure import Failed, Measured, run, spark_submit
from bench.widen import paths

HERE = Path(__file__).parent
PASSES = 3
ISLANDS, DUCK = "spark, gaps and islands", "duckdb, gaps and islands"
FLOOR = "spark, shuffle into Arrow alone"
WAYS = {
    OURS: ("peer_framing.py", "computed"),
    STAGE: ("peer_framing.py", "stage"),
    FLOOR: ("peer_framing.py", "floor"),
    ISLANDS: ("peer_framing.py", "islands"),
    DUCK: ("duck_framing.py", "islands"),
}
NEAR = 1.3
"""How many times the floor transom may take."""


def bench(cache: Path, count: int, repetitions: int) -> Iterator[dict[str, Any]]:
    """Rows of the result, a way of a kind each.

    Raises:
        Failed: two ways find different frames.
    """
    folder = cache / "frames"
    lake = lake_of(folder, count)
    for number, kind in enumerate(KINDS):
        stream = stream_of(folder, kind)
        ways = [who for who in WAYS if kind == "threshold" or who not in (ISLANDS, DUCK)]
        seen: dict[str, list[tuple[Measured, dict[str, Any]]]] = {who: [] for who in ways}
        for _ in range(repetitions):
            for who in in_turn(ways, number):
                seen[who].append(_gone(who, kind, stream, lake, folder))
        totals = {who: tuple(runs[0][1]["totals"]) for who, runs in seen.items() if runs[0][1]["totals"]}
        if len(set(totals.values())) > 1:
            raise Failed(f"frames, {kind}: the frames differ: {totals}")
        for who, runs in seen.items():
            passes = [one["seconds"] for _, one in runs]
            seconds = min(map(warm, passes))
            yield {
                "bench": "frames", "case": kind, "events": count, "who": who, "found": totals[OURS][0],
                "cold": min(one[0] for one in passes), "seconds": seconds,
                "warm": all(len(one) > 1 for one in passes), "per_second": round(count / seconds),
                "peak_mib": max(one.peak_mib for one, _ in runs), "all": passes,
            }  # fmt: skip


def _gone(who: str, kind: str, stream: Path, lake: Path, folder: Path) -> tuple[Measured, dict[str, Any]]:
    script, way = WAYS[who]
    result = folder / f"{kind}-{script.partition('_')[0]}-{way}.json"
    arguments = (HERE / script, way, stream, lake, PASSES, result)
    command = spark_submit(*arguments) if script.startswith("peer") else [sys.executable, *arguments]
    measured = run(command, result.with_suffix(".log"), paths())
    return measured, json.loads(result.read_text())
