"""Small documented rules that no other test checks alone, each with its value, in one run."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any, NamedTuple
from zlib import crc32

import pytest

from tests.support.stream_harness import StreamHarness, hour

Make = Callable[..., StreamHarness]
Row = dict[str, Any]
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)

RULES = """
name: web
source: {path: "landing/web/%Y-%m-%d/access.%H*.log.gz", format: csv}
columns: {at: {type: timestamp}, user: {}, n: {type: number, resolution: 0.1}}
time: {column: at, format: iso, interval: 10 minutes, on_duplicate_time: keep}
key: [user]
aggregates:
  flow: {measures: {n: mean(n)}, levels: RANGES 1 HOUR SLIDES 1 HOUR}
frames:
  first: {kind: threshold, where: n > 0, value: n, on_duplicate_time: first}
  last: {kind: threshold, where: n > 0, value: n, on_duplicate_time: last}
  mean: {kind: threshold, where: n > 0, value: n, on_duplicate_time: mean}
  granule: {source: flow, kind: threshold, where: n > 0, value: n}
fills:
  short: {frame: first, reach: 1 hour, lead: 20 minutes, lag: 10 minutes, measures: {total: sum(n)}}
persistence:
  watched: {item: [user], slot: 20 minutes, window: 3 hours, alpha: 0.5, epsilon: 0.3, watch: [gaps]}
"""


class Line(NamedTuple):
    """A line of the log, some time after the tests' day begins."""

    at: timedelta
    user: str
    n: float

    def __str__(self) -> str:
        return f"{(hour(0) + self.at).isoformat()},{self.user},{self.n}"


LONG = [Line(turn * 10 * MINUTE, "long", 1 if turn < 18 else 0) for turn in range(19)]
"""Readings of a frame of three hours, and the reading that closes it."""
TIED = {
    ".a": [Line(5 * MINUTE, "tied", 0.4), Line(5 * MINUTE, "tied", 0.5)],
    ".b": [Line(5 * MINUTE, "tied", 0.6), Line(5 * MINUTE, "tied", 0.7)],
    ".c": [Line(5 * MINUTE, "tied", 0.8), Line(5 * MINUTE, "tied", 0.9)],
}
"""Readings of one time, by their file."""
OTHERS = [
    # The mean of 0.1 and 0.2 is between two multiples of 0.1, as is that of 0.2 and 0.3.
    Line(0 * MINUTE, "up", 0.1), Line(1 * MINUTE, "up", 0.2),
    Line(0 * MINUTE, "down", 0.2), Line(1 * MINUTE, "down", 0.3),
    # A third of a step is no multiple of 2^-20 of it.
    Line(0 * MINUTE, "third", 0), Line(1 * MINUTE, "third", 0), Line(2 * MINUTE, "third", 0.1),
    Line(13 * MINUTE, "turn", 1),
    Line(9 * SECOND / 1_000_000, "gaps", 1), Line(60 * MINUTE, "gaps", 1), Line(120 * MINUTE, "gaps", 1),
]  # fmt: skip


def land(day: StreamHarness) -> None:
    for number in range(4):
        begin, end = number * 60 * MINUTE, (number + 1) * 60 * MINUTE
        parts = {"": [*LONG, *OTHERS], **(TIED if number == 0 else {})}
        for name, lines in parts.items():
            day.land(number, ["at,user,n", *(str(one) for one in lines if begin <= one.at < end)], name)


def test_small_rules_have_their_documented_values(make_stream: Make) -> None:
    day = make_stream(RULES)
    land(day)
    day.run(0, 4)
    frames, events = day.rows_of("frames"), day.rows_of("events")
    check_ties(frames, events)
    check_means(frames)
    check_turns(frames)
    check_fills(day.rows_of("fills"))
    check_gaps(day.rows_of("persistent_items"))


def peak(frames: list[Row], block: str, user: str) -> float:
    result = {row["peak"] for row in frames if (row["block"], row["user"]) == (block, user)}
    (only,) = result
    return float(only)


def check_ties(frames: list[Row], events: list[Row]) -> None:
    """Readings of one time are ordered by the crc32 of their file's `source_id`, then by line."""
    tied = [event for event in events if event["user"] == "tied"]
    order = sorted(tied, key=lambda event: (crc32(event["source_id"].encode()), event["source_line"]))
    values = [event["n"] for event in order]
    # The order of the identities themselves, or of the files' names, would give other values.
    by_text = [
        event["n"] for event in sorted(tied, key=lambda event: (event["source_id"], event["source_line"]))
    ]
    assert all(one[0] != values[0] and one[-1] != values[-1] for one in (by_text, sorted(values)))
    assert (peak(frames, "first", "tied"), peak(frames, "last", "tied")) == (values[0], values[-1])


def check_means(frames: list[Row]) -> None:
    """A mean of readings of one turn is a whole number of steps, half to even; a mean over granules is
    rounded to 2^-20.
    """
    assert [peak(frames, "mean", user) for user in ("up", "down")] == [0.2, 0.2]
    assert peak(frames, "granule", "third") == 349525 / 2**20 / 10


def check_turns(frames: list[Row]) -> None:
    """With `interval` the time of a reading is the start of its interval."""
    (turn,) = {(row["start_time"], row["last_time"], row["length_s"]) for row in frames
               if (row["block"], row["user"]) == ("first", "turn")}  # fmt: skip
    assert turn == (hour(0) + 10 * MINUTE, hour(0) + 10 * MINUTE, 600)


def check_fills(fills: list[Row]) -> None:
    """`reach` shortens neither `lead` nor `lag`; `start_time` and `coverage` describe the whole period."""
    (final,) = (row for row in fills if row["user"] == "long" and row["state"] == "final")
    start, end = hour(0) - 20 * MINUTE, hour(0) + 190 * MINUTE
    assert (final["start_time"], final["end_time"]) == (start, end)
    # The last hour of the frame, with 20 minutes before it and 10 after it: readings from 1:40 to 3:00.
    assert (final["rows_matched"], final["total"]) == (9, 8)
    assert final["coverage"] == pytest.approx(90 / 210)


def check_gaps(items: list[Row]) -> None:
    """Times are truncated to 10 microseconds, of which a window of three hours has fewer than 2^31."""
    (reported,) = (row for row in items if row["user"] == "gaps" and row["hour"] == hour(2))
    assert (reported["gap_mean_s"], reported["gap_cv"]) == (3600, 0)
