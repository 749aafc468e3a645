"""Persistent hosts of 5,000,000 contacts, reported at every hour, each way in its own process.

`floor` reports none: it only makes pairs of host and slot distinct, as an exact tracker must. The last hour
alone corresponds to an hourly run: the sketch reads its pairs and the tuples of the hour before, an exact
tracker reads the pairs of the window."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.aggregate import OURS, STAGE
from bench.persistence_log import lake_of, stream_of
from bench.ways import side_by_side

HERE = Path(__file__).parent
PASSES = 3
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
    """Yield a row per way."""
    folder = cache / "persistence"
    lake, stream = lake_of(folder, count), stream_of(folder)
    yield from side_by_side(
        "persistence",
        WAYS,
        folder,
        (stream, lake, PASSES),
        count,
        repetitions,
        ("kept", "kept_bytes", "read", "named"),
    )
