"""Generate sensors on a freeway like Portland's in the paper on frames, whose data is not published.

Each sensor reports speed and count every 20 seconds. Speeds vary around 50 over minutes and fall below 30 in
a jam; readings are sometimes missing for minutes. Probabilities and lengths are chosen so that 62 days of one
sensor have about the frames of table 1.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from transom.core.exact_sums import Bools, Int64s

SEED = 2013
FIRST = 1_298_937_600
"""1 March 2011, in seconds; a Tuesday."""
EVERY = 20
A_DAY = 86_400 // EVERY
"""Number of readings per day."""
DAYS = 62
"""Number of days in the paper's table."""
LEAST = 6
"""Minimum number of readings of a frame: two minutes."""
KINDS = {"short": "speed <= 30", "medium": "speed >= 50", "long": "speed >= 30"}
_LEAST = {"min_length": f"{LEAST * EVERY} seconds", "on_duplicate_time": "last"}
SPEC: Mapping[str, Any] = {
    "name": "freeway",
    "source": {"path": "no/%Y-%m-%d/%H.csv", "format": "csv"},
    "columns": {
        "at": {"type": "timestamp"},
        "sensor": {},
        "speed": {"type": "number", "resolution": 0.1},
        "vehicles": {"type": "integer"},
    },
    "time": {"column": "at", "interval": f"{EVERY} seconds", "on_duplicate_time": "last"},
    "key": ["sensor"],
    "frames": {
        **{name: {"kind": "threshold", "where": where, **_LEAST} for name, where in KINDS.items()},
        "hundred": {
            "kind": "aggregate",
            "condition": "sum(vehicles) > 100",
            "span": "minimal",
            "on_duplicate_time": "sum",
        },
    },
}
JAMS, GAPS = 5.2, 10.3
"""Mean number per sensor and day."""
JAM, GAP = 40, 23
"""Mean number of readings of a jam, and of a gap."""
_MEMORY, _MEAN, _SPREAD = 60.0, 50.6, 7.0
_MICROS = 1_000_000
Floats = NDArray[np.float64]


@dataclass
class Sensors:
    """Generated sensors over some days.

    Attributes:
        many: the number of sensors.
        days: the number of days.
        jammed: whether each reading is in a jam, shape (sensors, readings).
        silent: whether each reading is missing, shape (sensors, readings).
    """

    many: int
    days: int

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng([SEED, self.many])
        length = self.days * A_DAY
        self.jammed, self.silent = (
            np.array([_in_periods(self.rng, length, rate * self.days, mean) for _ in range(self.many)])
            for rate, mean in ((JAMS, JAM), (GAPS, GAP))
        )

    def by_day(self) -> Iterator[tuple[Int64s, Bools]]:
        """Yield, for each day, speeds in tenths by sensor and time, and whether each reading is present."""
        keep = np.exp(-1 / _MEMORY)
        wave = self.rng.normal(size=self.many)
        for day in range(self.days):
            pushes = self.rng.normal(0, np.sqrt(1 - keep * keep), (A_DAY, self.many))
            waves = np.empty((A_DAY, self.many))
            for number, push in enumerate(pushes):
                wave = keep * wave + push
                waves[number] = wave
            here = slice(day * A_DAY, (day + 1) * A_DAY)
            free = np.clip(_MEAN + _SPREAD * waves.T, 31, 90)
            speed = np.where(self.jammed[:, here], np.clip(21 + 3 * waves.T, 3, 29.9), free)
            yield np.rint(10 * speed).astype(np.int64), ~self.silent[:, here]


def _in_periods(rng: np.random.Generator, length: int, many: float, mean: float) -> Bools:
    """Return whether each reading is in one of some random periods."""
    starts = rng.integers(0, length, rng.poisson(many))
    ends = np.minimum(starts + np.maximum(8, rng.exponential(mean, len(starts))).astype(int), length)
    steps = np.zeros(length + 1, np.int64)
    np.add.at(steps, starts, 1)
    np.add.at(steps, ends, -1)
    found: Bools = np.cumsum(steps[:-1]) > 0
    return found


def times(day: int) -> Int64s:
    """Return the times of a day's readings, in microseconds."""
    return (FIRST + day * 86_400 + EVERY * np.arange(A_DAY, dtype=np.int64)) * _MICROS


def events(day: int, speed: Int64s, there: Bools) -> pa.Table:
    """Return the events of a day as in a lake, without columns that no way reads."""
    time = np.broadcast_to(times(day), speed.shape)[there]
    names = pa.array([f"sensor-{number:03}" for number in range(len(speed))])
    sensor = np.broadcast_to(np.arange(len(speed))[:, None], speed.shape)[there]
    stamp = pa.timestamp("us", "UTC")
    return pa.table(
        {
            "hour": pa.array(time - time % (3600 * _MICROS)).cast(stamp),
            "event_time": pa.array(time).cast(stamp),
            "sensor": names.take(pa.array(sensor)),
            "speed": speed[there] / 10,
            "source_id": pa.repeat(f"day-{day:02}", len(time)),
            "source_line": pa.array(np.arange(1, len(time) + 1)),
        }
    )


@dataclass(frozen=True)
class Flow:
    """The vehicles of one station, by reading.

    Attributes:
        vehicles: the number of vehicles.
        total: the sum of their speeds.
        true: the sum if each had the speed of the road.
    """

    vehicles: Int64s
    total: Floats
    true: Floats


def flow(days: int) -> Flow:
    """Generate vehicles by the time of day, few at night, with individual speeds."""
    rng = np.random.default_rng([SEED, days])
    hours = np.arange(days * A_DAY) * EVERY / 3600 % 24
    rush = np.exp(-(((hours - 8) / 1.5) ** 2)) + np.exp(-(((hours - 17) / 2) ** 2))
    rate = 0.3 + 6 * rush + 3 * np.clip(np.sin((hours - 6) / 24 * 2 * np.pi), 0, None)
    vehicles = rng.poisson(rate)
    true = 58 - 20 * rush
    total = vehicles * true + rng.normal(0, 6, len(hours)) * np.sqrt(vehicles)
    return Flow(vehicles, total, vehicles * true)


def stream_of(folder: Path) -> Path:
    """Write the stream file."""
    file = folder / "freeway.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(SPEC))
    return file
