"""Generate contacts for persistent items: events as in a lake, without columns that no way reads.

5,000,000 contacts in 72 hours, in slots of 15 minutes. A few hosts are present in every slot, some thousands
come and go, and most occur a few times. There are about 2,800,000 pairs of host and slot."""

from pathlib import Path

import numpy as np
import pyarrow as pa

from bench import drawn_lake, version
from bench.draw import END, FIRST, HOURS, SEED, zipf
from transom.core.intervals import Interval

HOSTS = 200_000
SLOT = 15 * 60 * 1_000_000
SLOTS = HOURS * 4
ALPHA, EPSILON = 0.9, 0.63
MICROS = HOURS * 3600 * 1_000_000
MADE_BY = (*version.DRAWING, Path(__file__), Path(__file__).with_name("drawn_lake.py"))


def stream_of(folder: Path) -> Path:
    """Write the stream file, with one instance as in the paper."""
    hosts = {
        "item": ["client"], "slot": "15 minutes", "window": f"{HOURS} hours",
        "alpha": ALPHA, "epsilon": EPSILON, "delta": 0.2,
    }  # fmt: skip
    return drawn_lake.stream_of(folder / "hosts.yaml", persistence={"hosts": hosts})


def events(count: int) -> pa.Table:
    """Generate the events in order."""
    rng = np.random.default_rng([SEED, count])
    at = np.sort(rng.integers(0, MICROS, count))
    client = zipf(rng, count, HOSTS, 0.8)
    micros = int(FIRST.timestamp()) * 1_000_000 + at
    time = pa.timestamp("us", "UTC")
    names = pa.array([f"10.{n // 65536}.{n // 256 % 256}.{n % 256}" for n in range(HOSTS)])
    hour = micros - micros % 3_600_000_000
    return pa.table(
        {
            "hour": pa.array(hour).cast(time),
            "event_time": pa.array(micros).cast(time),
            "client": names.take(pa.array(client)),
            "source_id": pa.array(np.full(count, "0123456789abcdef")),
            "source_line": np.arange(count) - np.searchsorted(hour, hour) + 1,
        }
    )


def lake_of(cache: Path, count: int) -> Path:
    """Return a lake with these events; create it if it does not exist."""
    lake = version.folder(cache / f"lake-{count}", MADE_BY)
    return drawn_lake.create(lake, lambda: events(count), Interval(FIRST, END))
