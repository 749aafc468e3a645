"""Frequent hosts of the last 24 hours at every hour, of 5,000,000 contacts in 72 hours, each way in its own
process.

`floor` counts each host per hour, as an exact count must. The last hour alone corresponds to an hourly run,
which reads the state of the hours of the window."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.aggregate import OURS, STAGE
from bench.frequency_log import stream_of
from bench.persistence_log import lake_of
from bench.ways import side_by_side

HERE = Path(__file__).parent
PASSES = 3
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
    """Yield a row per way."""
    folder = cache / "frequency"
    lake, stream = lake_of(cache / "persistence", count), stream_of(folder)
    yield from side_by_side(
        "frequency",
        WAYS,
        folder,
        (stream, lake, PASSES),
        count,
        repetitions,
        ("kept", "kept_bytes", "error", "most"),
    )
