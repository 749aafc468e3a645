"""Persistent hosts of 5,000,000 contacts, reported at every hour, each way in a process of its own.

`floor` finds none: it makes pairs of a host and a slot distinct, which an exact tracker has to do. The last
hour by itself is what an hourly run does: the sketch reads its pairs and the tuples of the hour before, an
exact tracker the pairs of the window."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.aggregate import OURS, STAGE, warm
from bench.ingest import in_turn
from bench.measure import Measured, run, spark_submit
from bench.persistence_log import lake_of, stream_of
from bench.widen import paths

HERE = Path(__file__).parent
PASSES = 2
EXACT, FLOOR = "spark, exact", "spark, pairs alone"
DUCK, DUCK_FLOOR = "duckdb, exact", "duckdb, pairs alone"
HOUR, EXACT_HOUR = "transom, the last hour alone", "spark, exact, the last hour alone"
WAYS = {
    OURS: ("peer_persistence.py", "computed"),
    STAGE: ("peer_persistence.py", "stage"),
    EXACT: ("peer_persistence.py", "exact"),
    FLOOR: ("peer_persistence.py", "floor"),
    HOUR: ("peer_persistence.py", "hour"),
    EXACT_HOUR: ("peer_persistence.py", "exact_hour"),
    DUCK: ("duck_persistence.py", "exact"),
    DUCK_FLOOR: ("duck_persistence.py", "floor"),
}


def bench(cache: Path, count: int, repetitions: int) -> Iterator[dict[str, Any]]:
    """Rows of the result, a way each."""
    folder = cache / "persistence"
    lake, stream = lake_of(folder, count), stream_of(folder)
    seen: dict[str, list[tuple[Measured, dict[str, Any]]]] = {who: [] for who in WAYS}
    for number in range(repetitions):
        for who in in_turn(list(WAYS), number):
            seen[who].append(_gone(who, stream, lake, folder))
    for who, runs in seen.items():
        passes = [one["seconds"] for _, one in runs]
        yield {
            "bench": "persistence", "events": count, "who": who, "cold": min(one[0] for one in passes),
            "seconds": min(map(warm, passes)), "warm": all(len(one) > 1 for one in passes),
            **{name: runs[0][1].get(name) for name in ("kept", "kept_bytes", "read", "named")},
            "peak_mib": max(one.peak_mib for one, _ in runs), "all": passes,
        }  # fmt: skip


def _gone(who: str, stream: Path, lake: Path, folder: Path) -> tuple[Measured, dict[str, Any]]:
    script, way = WAYS[who]
    result = folder / f"{script.partition('_')[0]}-{way}.json"
    arguments = (HERE / script, way, stream, lake, PASSES, result)
    command = spark_submit(*arguments) if script.startswith("peer") else [sys.executable, *arguments]
    measured = run(command, result.with_suffix(".log"), paths())
    return measured, json.loads(result.read_text())
