"""Threshold and delta frames of 5,000,000 readings, each way in its own process.

`floor` computes no frames: it only shuffles the readings by key and passes them to Arrow, as every way must
that processes whole keys. Plain SQL cannot compute delta frames: the end of a frame depends on its start.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.aggregate import OURS, STAGE
from bench.framing_log import KINDS, lake_of, stream_of
from bench.ingest import in_turn
from bench.measure import Failed, Measured
from bench.ways import gone, taken

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
"""Goal: maximum time relative to the floor."""


def bench(cache: Path, count: int, repetitions: int) -> Iterator[dict[str, Any]]:
    """Yield a row per kind and way.

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
                script, way = WAYS[who]
                result = folder / f"{kind}-{script.partition('_')[0]}-{way}.json"
                seen[who].append(gone(script, result, way, stream, lake, PASSES))
        totals = {who: tuple(runs[0][1]["totals"]) for who, runs in seen.items() if runs[0][1]["totals"]}
        if len(set(totals.values())) > 1:
            raise Failed(f"frames, {kind}: the frames differ: {totals}")
        for who, runs in seen.items():
            row = {"bench": "frames", "case": kind, "events": count, "who": who, "found": totals[OURS][0]}
            common = taken(runs)
            yield {**row, **common, "per_second": round(count / common["seconds"])}
