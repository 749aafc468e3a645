"""Frames that stay open for days, in a sparse log with microseconds; and their fills."""

import random
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.promise.test_promise import assert_equal
from tests.support.stream_harness import StreamHarness, hour

Make = Callable[..., StreamHarness]
Row = tuple[datetime, str, int | None, int]
MICROSECOND = timedelta(microseconds=1)
HOURS = 72

LONG = """
name: web
repair_window: 1 hour
source: {path: "landing/web/%Y-%m-%d/access.%H*.log.gz", format: csv}
columns: {at: {type: timestamp}, user: {}, n: {type: integer}, m: {type: integer}}
time: {column: at, format: iso}
key: [user]
where: m <> 13
frames:
  open: {kind: threshold, where: n > 3, value: n, on_duplicate_time: max, idle: 60 hours, missing: bridged}
  parts: {kind: delta, value: n, below: 3, on_duplicate_time: first, idle: 30 hours}
  short: {kind: threshold, where: n > 3, on_duplicate_time: max, idle: 5 hours, max_length: 90 minutes}
fills:
  last_of: {frame: open, reach: 3 hours, lead: 1 hour, where: m > 0, measures: {total: sum(m)}}
  of_short: {frame: short, lag: 90 minutes, measures: {total: sum(m)}}
  of_parts: {frame: parts, shift: [0 hours, 1 hour], combine: mean, measures: {usual: sum(m)}}
"""


def draw_readings(rng: random.Random) -> dict[int, list[Row]]:
    """Draw the readings of three users: one now and then, one in bursts of microseconds, one almost never."""
    log: dict[int, list[Row]] = {number: [] for number in range(HOURS)}
    for number in range(HOURS):
        for user, chance, count in (("a", 0.4, 2), ("b", 0.15, 6), ("c", 0.1, 1)):
            if rng.random() < chance:
                begin = hour(number) + timedelta(microseconds=rng.randrange(3_599_999_000))
                for place in range(count):
                    value = rng.choice([4, 9] if user == "c" else [None, 1, 4, 5, 5, 6, 9])
                    at = begin + place * rng.choice([1, 1, 90]) * MICROSECOND
                    log[number].append((at, user, value, rng.choice([0, 2, 7, 13])))
    return log


def land(harness: StreamHarness, number: int, rows: Sequence[Row], name: str = "") -> None:
    text = [f"{at.isoformat()},{user},{'' if n is None else n},{m}" for at, user, n, m in rows]
    harness.land(number, ["at,user,n,m", *text], name)


@pytest.mark.full
def test_frames_open_for_days_are_correct_for_any_runs(make_stream: Make) -> None:
    """Slow (a minute): several runs over 72 hours, and every fill compared with all rows."""
    rng = random.Random(11)
    log = draw_readings(rng)
    actual, whole = make_stream(LONG, "lived"), make_stream(LONG, "whole")
    late = {number: log[number][::2] for number in (3, 50)}
    for number, rows in log.items():
        land(actual, number, [row for row in rows if row not in late.get(number, ())])
    # Hours 30 to 35 are requested last, after later ones.
    for begin, end in ((0, 30), (36, 71), (71, HOURS)):
        actual.run(begin, end)
    for number, rows in late.items():
        land(actual, number, rows, ".late")
    for begin, end in ((30, 36), (0, HOURS)):
        actual.run(begin, end)
    whole.run(0, HOURS)
    assert_equal(actual, whole)
    actual.assert_ledger_true()
    assert {entry.status for entry in actual.snapshot().values()} == {"published"}

    rows = [row for some in log.values() for row in some]
    frames = whole.rows_of("frames")
    longest = max(f["length_s"] for f in frames if f["block"] == "open")
    assert longest > 2 * 86400
    # One frame for an identity, at any distance.
    starts = {(f["block"], f["user"], f["frame_id"]): f["start_time"] for f in frames}
    assert len({(b, u, start) for (b, u, _), start in starts.items()}) == len(starts) > 30
    assert len({frame_id for _, _, frame_id in starts}) == len(starts)
    check(whole, frames, rows)


def check(lake: StreamHarness, frames: list[dict[str, Any]], rows: list[Row]) -> None:
    """Compare every fill with all rows."""
    of = {(f["hour"], f["frame_id"], f["fragment"]): f for f in frames}
    reach = {"last_of": timedelta(hours=3), "of_short": timedelta(hours=2)}
    observed = dict.fromkeys(lake.stream.fills, 0)
    for fill in lake.rows_of("fills"):
        text, frame = lake.stream.fills[fill["block"]], of[fill["hour"], fill["frame_id"], fill["fragment"]]
        selected = (lambda m: m > 0) if text.where else (lambda m: m != 13)
        own = [row for row in rows if row[1] == frame["user"] and selected(row[3])]
        last = frame["last_time"] + MICROSECOND
        begin = max(frame["start_time"], last - reach.get(fill["block"], timedelta(days=7))) - text.lead
        shifts = text.shift if fill["shift_s"] is None else [timedelta(seconds=fill["shift_s"])]
        periods = [(begin - shift, last + text.lag - shift) for shift in shifts]
        near = [row for row in own if any(first <= row[0] < later for first, later in periods)]
        first_hour, end = hour(0), hour(HOURS)
        whole = [s for s in periods if first_hour <= s[0] and s[1] <= end]
        if fill["shift_s"] is None:
            near = [row for row in own if any(first <= row[0] < later for first, later in whole)]
            sums = [
                sum(values)
                for first, later in whole
                if (values := [row[3] for row in own if first <= row[0] < later])
            ]
            assert fill["usual"] == (sum(sums) / len(sums) if sums else None)
            assert fill["rows_matched"] == (len(near) if whole else None)
            continue
        inside = any(first < end and first_hour < later for first, later in periods)
        assert fill["rows_matched"] == (len(near) if inside else None), (fill, near)
        values = [row[3] for row in near]
        for name in text.measures:
            assert fill[name] == (sum(values) if values else None)
        observed[fill["block"]] += len(near)
    assert min(observed.values()) > 10, observed
