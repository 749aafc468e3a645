"""Generate a log for patterns: events as in a lake, without columns that no way reads.

The log has `count` events in 72 hours, after two days with the same rate, so that no measured window begins
before the log. A step matches one of twenty events. Slow and quick episodes are among them.
"""

from datetime import timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa

from bench import drawn_lake, version
from bench.draw import CLIENTS, FIRST, HOURS, SEED, Int64s, Rng, zipf
from transom.core.intervals import HOUR, Interval

WITHIN = timedelta(hours=48)
BEGIN = FIRST + WITHIN
"""Begin of the measured hours."""
END = BEGIN + HOURS * HOUR
TOLD = END + 90 * HOUR
"""End of the longest windows with a record; no events come after `END`."""
EPISODES = 2_500
USERS = 40
PATTERN = "guessed"
STATUS = {"looked": 206, "refused": 401, "entered": 303, "other": 200}
SHARES = {"looked": 0.01, "refused": 0.03, "entered": 0.01}
MINUTE = 60_000_000
MADE_BY = (*version.DRAWING, Path(__file__), Path(__file__).with_name("drawn_lake.py"))


def stream_of(folder: Path) -> Path:
    """Write the stream file."""
    pattern = {
        "within": f"{WITHIN // HOUR} hours",
        "steps": [
            {"id": "looked", "where": f"status = {STATUS['looked']}"},
            {
                "id": "refused",
                "where": f"status = {STATUS['refused']}",
                "times": 3,
                "within": "1 hour",
                "by": ["user = looked.user"],
            },
            {"id": "entered", "where": f"status = {STATUS['entered']}", "by": ["user = looked.user"]},
        ],
    }
    return drawn_lake.stream_of(folder / "drawn.yaml", key=["client"], patterns={PATTERN: pattern})


def events(count: int) -> pa.Table:
    """Generate the events in order: `count` from `BEGIN` on, and before it events at the same rate."""
    rng = np.random.default_rng([SEED, count])
    length = (END - FIRST) // timedelta(microseconds=1)
    many = count * ((END - FIRST) // HOUR) // HOURS
    kinds = np.array(list(STATUS.values()))
    edges = np.cumsum(list(SHARES.values()))
    at, client, status, user = _episodes(rng, length)
    background = many - len(at)
    at = np.concatenate([rng.integers(0, length, background), at])
    client = np.concatenate([zipf(rng, background, CLIENTS, 0.7), client])
    status = np.concatenate([kinds[np.searchsorted(edges, rng.random(background))], status])
    user = np.concatenate([rng.integers(0, USERS, background), user])
    order = np.argsort(at, kind="stable")
    micros = int(FIRST.timestamp()) * 1_000_000 + at[order]
    hour = at[order] // (60 * MINUTE)
    time = pa.timestamp("us", "UTC")
    return pa.table(
        {
            "hour": pa.array(micros - micros % (60 * MINUTE)).cast(time),
            "event_time": pa.array(micros).cast(time),
            "client": _named("10.0.0.", CLIENTS, client[order]),
            "status": pa.array(status[order]),
            "user": _named("user-", USERS, user[order]),
            "source_id": _named("file-", int(hour.max()) + 1, hour),
            "source_line": pa.array(np.arange(len(hour)) - np.searchsorted(hour, hour) + 1),
        }
    )


def _episodes(rng: Rng, length: int) -> tuple[Int64s, Int64s, Int64s, Int64s]:
    """Generate episodes of one minute to two days; return time, client, status and user of their records."""
    takes = np.exp(rng.uniform(np.log(MINUTE), np.log(47 * 60 * MINUTE), EPISODES))
    begin = rng.uniform(0, length - takes)
    # The refusals come within an hour, between the look and the entry.
    long = np.minimum(takes, 50 * MINUTE)
    tried = rng.uniform(0, takes - long) + long * np.array([[0.2], [0.5], [0.8]])
    at = np.concatenate([begin, *(begin + tried), begin + takes]).astype(np.int64)
    status = np.repeat([STATUS["looked"], *[STATUS["refused"]] * 3, STATUS["entered"]], EPISODES)
    client, user = (np.tile(rng.integers(0, most, EPISODES), 5) for most in (CLIENTS, USERS))
    return at, client, status, user


def _named(before: str, many: int, numbers: Int64s) -> pa.Array:
    return pa.array([f"{before}{number}" for number in range(many)]).take(pa.array(numbers))


def lake_of(cache: Path, count: int) -> Path:
    """Return a lake with these events and their ledger; create it if it does not exist."""
    lake = version.folder(cache / f"lake-{count}", MADE_BY)
    return drawn_lake.create(lake, lambda: events(count), Interval(FIRST, TOLD))
