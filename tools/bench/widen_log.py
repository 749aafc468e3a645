"""The log in which patterns are looked for: drawn events, as a lake holds them, less what nobody here reads.

As many as are wanted in 72 hours, and before these two days more at the same rate: what windows then hold
does not begin with the log. In one of twenty a step may see itself; slow and quick episodes lie between.
"""

from datetime import timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa

from bench import held, version
from bench.draw import CLIENTS, FIRST, HOURS, SEED, Int64s, Rng, zipf
from transom.core.intervals import HOUR, Interval

WITHIN = timedelta(hours=48)
BEGIN = FIRST + WITHIN
"""From here on everything is counted."""
END = BEGIN + HOURS * HOUR
TOLD = END + 90 * HOUR
"""When the longest windows that hold a record have ended; behind `END` nothing happens."""
EPISODES = 2_500
USERS = 40
PATTERN = "guessed"
STATUS = {"looked": 206, "refused": 401, "entered": 303, "other": 200}
SHARES = {"looked": 0.01, "refused": 0.03, "entered": 0.01}
MINUTE = 60_000_000
MADE_BY = (*version.DRAWING, Path(__file__), Path(__file__).with_name("held.py"))


def stream_of(folder: Path) -> Path:
    """The stream file."""
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
    return held.stream_of(folder / "drawn.yaml", key=["client"], patterns={PATTERN: pattern})


def events(count: int) -> pa.Table:
    """The events, in order: `count` from `BEGIN` on, and before it as many as make the same rate."""
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
    """Their records: when, of which client, status and user. From a minute to two days long."""
    takes = np.exp(rng.uniform(np.log(MINUTE), np.log(47 * 60 * MINUTE), EPISODES))
    begin = rng.uniform(0, length - takes)
    # The refusals come within an hour, somewhere between the look and the entry.
    long = np.minimum(takes, 50 * MINUTE)
    tried = rng.uniform(0, takes - long) + long * np.array([[0.2], [0.5], [0.8]])
    at = np.concatenate([begin, *(begin + tried), begin + takes]).astype(np.int64)
    status = np.repeat([STATUS["looked"], *[STATUS["refused"]] * 3, STATUS["entered"]], EPISODES)
    client, user = (np.tile(rng.integers(0, most, EPISODES), 5) for most in (CLIENTS, USERS))
    return at, client, status, user


def _named(before: str, many: int, numbers: Int64s) -> pa.Array:
    return pa.array([f"{before}{number}" for number in range(many)]).take(pa.array(numbers))


def lake_of(cache: Path, count: int) -> Path:
    """A lake of these events, drawn where it is not there yet, with what a ledger says of them."""
    lake = version.folder(cache / f"lake-{count}", MADE_BY)
    return held.held(lake, lambda: events(count), Interval(FIRST, TOLD))
