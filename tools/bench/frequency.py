"""How often hosts were seen in the last 24 hours, at every hour, of 5,000,000 contacts in 72; each way in a
process of its own.

`floor` counts each host by the hour, which an exact count has to do. The last hour by itself is what an
hourly run does: it reads what the hours of the window have left."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.aggregate import OURS, STAGE, warm
from bench.frequency_log import stream_of
from bench.ingest import in_turn
from bench.measure import Measured, run, spark_submit
from bench.persistence_log import lake_of
from bench.widen import paths

HERE = Path(__file__).parent
PASSES = 2
EXACT, REBUILT, FLOOR = (
    "spark, exact",
    "spark, count_min_sketch of each window",
    "spark, counts of hours alone",
)
DUCK, DUCK_FLOOR = "duckdb, exact", "duckdb, counts of hours alone"
HOUR, EXACT_HOUR = "transom, the last hour alone", "spark, exact, the last hour alone"
WAYS = {
    OURS: ("peer_frequency.py", "computed"),
    STAGE: ("peer_frequency.py", "stage"),
    EXACT: ("peer_frequency.py", "exact"),
    REBUILT: ("peer_frequency.py", "rebuilt"),
    FLOOR: ("peer_frequency.py", "floor"),
    HOUR: ("peer_frequency.py", "hour"),
    EXACT_HOUR: ("peer_frequency.py", "exact_hour"),
    DUCK: ("duck_frequency.py", "exact"),
    DUCK_FLOOR: ("duck_frequency.py", "floor"),
}


def bench(cache: Path, count: int, repetitions: int) -> Iterator[dict[str, Any]]:
    """Rows of the result, a way each."""
    folder = cache / "frequency"
    lake, stream = lake_of(cache / "persistence", count), stream_of(folder)
    seen: dict[str, list[tuple[Measured, dict[str, Any]]]] = {who: [] for who in WAYS}
    for number in range(repetitions):
        for who in in_turn(list(WAYS), number):
            seen[who].append(_gone(who, stream, lake, folder))
    for who, runs in seen.items():
        passes = [one["seconds"] for _, one in runs]
        yield {
            "bench": "frequency", "events": count, "who": who, "cold": min(one[0] for one in passes),
            "seconds": min(map(warm, passes)), "warm": all(len(one) > 1 for one in passes),
            **{name: runs[0][1].get(name) for name in ("kept", "kept_bytes", "error", "most")},
            "peak_mib": max(one.peak_mib for one, _ in runs), "all": passes,
        }  # fmt: skip


def _gone(who: str, stream: Path, lake: Path, folder: Path) -> tuple[Measured, dict[str, Any]]:
    script, way = WAYS[who]
    result = folder / f"{script.partition('_')[0]}-{way}.json"
    arguments = (HERE / script, way, stream, lake, PASSES, result)
    command = spark_submit(*arguments) if script.startswith("peer") else [sys.executable, *arguments]
    measured = run(command, result.with_suffix(".log"), paths())
    return measured, json.loads(result.read_text())
