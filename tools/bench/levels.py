"""Windows with growing numbers of levels and keys: transom, window(), frames over granules, and DuckDB.

The data is one day of generated events as in a lake, without columns that no way reads. Each key has at least
one event; a few keys have most of the others.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from deltalake import write_deltalake

from bench import version
from bench.aggregate import OURS, WINDOW, gone
from bench.draw import FIRST, SEED, zipf
from bench.ingest import in_turn
from bench.measure import Failed, Measured
from bench.ways import warm
from transom.core.intervals import HOUR, format_hour

EVENTS = 5_000_000
KEYS = 10_000
"""Number of keys while the number of levels grows."""
LEVELS = (
    ("1 HOUR", "5 MINUTES"),
    ("6 HOURS", "30 MINUTES"),
    ("24 HOURS", "1 HOUR"),
    ("2 HOURS", "10 MINUTES"),
    ("12 HOURS", "1 HOUR"),
    ("3 HOURS", "15 MINUTES"),
)
"""Range and slide of each level, in the order of addition; three are those of `aggregate`."""
DAY = 24
CASES = (*((KEYS, many) for many in range(1, 7)), *((10**power, 3) for power in (2, 3, 5, 6)))
"""Numbers of keys and of levels."""
FRAMES = "spark, rangeBetween over granules"
WAYS = {
    OURS: ("spark", "computed"),
    WINDOW: ("spark", "window"),
    FRAMES: ("spark", "frames"),
    "duckdb, from events": ("duck", "raw"),
    "duckdb, from granules": ("duck", "granules"),
}
MOST_KEYS = {WINDOW: 10_000}
"""Maximum number of keys of a way: it makes a row of each event in each of its windows."""
MADE_BY = (*version.DRAWING, Path(__file__))


def levels_of(many: int) -> str:
    """Return the first `many` levels in the form of a stream file."""
    ranges, slides = zip(*sorted(LEVELS[:many], key=_length, reverse=True), strict=True)
    return f"RANGES {', '.join(ranges)} SLIDES {', '.join(slides)}"


def _length(level: tuple[str, str]) -> int:
    number, unit = level[0].split()
    return int(number) * {"HOURS": 60, "HOUR": 60, "MINUTES": 1}[unit]


def stream_of(many: int, folder: Path) -> Path:
    """Write the stream file with `many` levels."""
    spec = {
        "name": "drawn",
        "preset": "zeek/conn",
        "source": {"path": "no/%Y-%m-%d/%H.log", "expected_files": 1},
        "key": ["orig_h"],
        "aggregates": {
            "volume": {"measures": {"n": "count", "sent": "sum(orig_bytes)"}, "levels": levels_of(many)}
        },
    }
    file = folder / f"levels-{many}.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(spec))
    return file


def events(count: int, keys: int) -> pa.Table:
    """Generate a day of events, with at least one for each of `keys` keys."""
    rng = np.random.default_rng([SEED, keys])
    ranks = np.concatenate([np.arange(keys), zipf(rng, count - keys, keys, 0.7)])
    micros = int(FIRST.timestamp()) * 1_000_000 + np.sort(rng.integers(0, DAY * 3_600_000_000, count))
    names = pa.array([f"host-{number * 7919 % keys}" for number in range(keys)])
    sent = rng.lognormal(6, 2, count).astype(np.int64)
    time = pa.timestamp("us", "UTC")
    return pa.table(
        {
            "hour": pa.array(micros - micros % 3_600_000_000).cast(time),
            "event_time": pa.array(micros).cast(time),
            "orig_h": names.take(pa.array(rng.permutation(ranks))),
            "orig_bytes": pa.array(sent, mask=rng.random(count) < 0.15),
        }
    )


def lake_of(cache: Path, count: int, keys: int) -> Path:
    """Return a lake with the events of a day; create it if it does not exist."""
    lake = version.folder(cache / f"lake-{count}-{keys}", MADE_BY)
    if not (lake / "whole").exists():
        write_deltalake(f"{lake}/drawn/events", events(count, keys), partition_by=["hour"], mode="overwrite")
        (lake / "whole").touch()
    return lake


def bench(
    cache: Path, count: int, repetitions: int, cases: Sequence[tuple[int, int]] = CASES
) -> Iterator[dict[str, Any]]:
    """Yield rows for a day of events by each way, with growing numbers of levels, then of keys.

    Raises:
        Failed: two ways compute different values for the same windows.
    """
    for keys, many in cases:
        lake, stream = lake_of(cache, count, keys), stream_of(many, cache)
        ways = [who for who in WAYS if keys <= MOST_KEYS.get(who, keys)]
        seen: dict[str, list[tuple[Measured, dict[str, Any]]]] = {who: [] for who in ways}
        for number in range(repetitions):
            for who in in_turn(ways, number):
                end = format_hour(FIRST + DAY * HOUR)
                seen[who].append(gone(*WAYS[who], stream, lake, cache / f"{keys}-{many}", end))
                totals = {who: runs[-1][1]["totals"] for who, runs in seen.items() if runs}
                if len(set(map(tuple, totals.values()))) > 1:
                    raise Failed(f"levels: of {keys} keys and {many} levels the totals differ: {totals}")
        for who, runs in seen.items():
            passes = [found["seconds"] for _, found in runs]
            yield {
                "bench": "levels", "log": "drawn", "events": count, "keys": keys, "levels": many,
                "reports": runs[0][1]["totals"][0], "who": who,
                "warm": all(len(one) > 1 for one in passes),
                "cold": min(one[0] for one in passes), "seconds": min(map(warm, passes)),
                "process_cpu_s": min(one.cpu_s for one, _ in runs),
                "peak_mib": max(one.peak_mib for one, _ in runs),
                "all": passes,
            }  # fmt: skip
