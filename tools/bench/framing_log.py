"""Generate readings for frames: events as in a lake, without columns that no way reads.

5,000,000 readings in 72 hours of 10,000 sensors. Each value rises and falls over hours, with noise.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa

from bench import drawn_lake, version
from bench.draw import CLIENTS, END, FIRST, HOURS, SEED, zipf
from transom.core.intervals import Interval

ABOVE, BELOW = 600, 300
"""Bounds of the value, for threshold and delta frames."""
MICROS = HOURS * 3600 * 1_000_000
KINDS: Mapping[str, Mapping[str, object]] = {
    "threshold": {"kind": "threshold", "where": f"bytes > {ABOVE}", "value": "bytes"},
    "delta": {"kind": "delta", "value": "bytes", "below": BELOW},
}
MADE_BY = (*version.DRAWING, Path(__file__), Path(__file__).with_name("drawn_lake.py"))


def stream_of(folder: Path, kind: str) -> Path:
    """Write the stream file with frames of one kind."""
    frame = {**KINDS[kind], "on_duplicate_time": "last", "idle": f"{HOURS} hours"}
    return drawn_lake.stream_of(folder / f"{kind}.yaml", key=["client"], frames={kind: frame})


def events(count: int) -> pa.Table:
    """Generate the events in order."""
    rng = np.random.default_rng([SEED, count])
    at = np.sort(rng.integers(0, MICROS, count))
    client = zipf(rng, count, CLIENTS, 0.7)
    # Each sensor has its own phase, and a period of some hours.
    wave = np.sin(2 * np.pi * (at / MICROS * (6 + client % 17) + client / 7))
    value = (500 + 400 * wave + rng.normal(0, 60, count)).astype(np.int64)
    micros = int(FIRST.timestamp()) * 1_000_000 + at
    time = pa.timestamp("us", "UTC")
    names = pa.array([f"sensor-{number}" for number in range(CLIENTS)])
    hour = micros - micros % 3_600_000_000
    return pa.table(
        {
            "hour": pa.array(hour).cast(time),
            "event_time": pa.array(micros).cast(time),
            "client": names.take(pa.array(client)),
            "bytes": value,
            "source_id": pa.array(np.full(count, "0123456789abcdef")),
            "source_line": np.arange(count) - np.searchsorted(hour, hour) + 1,
        }
    )


def lake_of(cache: Path, count: int) -> Path:
    """Return a lake with these events; create it if it does not exist."""
    lake = version.folder(cache / f"lake-{count}", MADE_BY)
    return drawn_lake.create(lake, lambda: events(count), Interval(FIRST, END))
