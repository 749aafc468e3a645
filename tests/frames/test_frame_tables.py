"""Frames and their fills equal those of the definitions on the whole log, for any history of the lake."""

import random
import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any, NamedTuple
from zlib import crc32

import pytest

from tests.promise.test_promise import assert_equal
from tests.support.stream_harness import PLAIN, StreamHarness, hour, line
from transom.features.frames.algorithm.reference import Reading, frames_of_period, reports
from transom.features.frames.resolve import ResolvedFrames, frame_block_of

Make = Callable[..., StreamHarness]
Event = dict[str, Any]
MICROS = 10**6
HOUR = 3600 * MICROS

FRAMING = """
name: web
preset: apache/combined
repair_window: 1 hour  # a longer gap between requested hours stays one
source: {path: "landing/web/%Y-%m-%d/access.%H*.log.gz"}
key: [client]
aggregates:
  site: {key: [], measures: {n: count}, levels: RANGES 1 HOUR SLIDES 30 MINUTES}
  clients: {measures: {n: count}, levels: RANGES 1 HOUR SLIDES 30 MINUTES}
frames:
  failing: {kind: threshold, where: "status >= 400", value: status, on_duplicate_time: max, idle: 3 hours,
            min_records: 2}
  sizes: {kind: delta, value: bytes, below: 40, on_duplicate_time: sum, idle: 4 hours}
  enough: {key: [], kind: aggregate, condition: sum(bytes) > 300, span: minimal, on_duplicate_time: sum,
           idle: 2 hours, max_length: 5 hours}
  calls: {kind: marked, starts_when: status = 401, ends_when: status = 200, when_open: drop,
          on_duplicate_time: last, idle: 3 hours}
  rising: {source: site, kind: trend, value: n, direction: increasing}
  busy: {source: site, kind: threshold, where: n > 4, missing: bridged, extent: liberal, idle: 6 hours}
  unlike: {source: site, kind: threshold, where: n > baseline + 1, value: n,
           baseline: {value: n, shift: [1 hour, 2 hours], missing: zero}}
  quiet: {source: clients, kind: threshold, where: n < 2, missing: satisfies, known: 5 hours, extent: liberal}
  longest: {source: site, kind: threshold, where: n > 2, longest: true, period: 4 hours}
  spans: {kind: delta, value: bytes, below: 30, scheme: cover, period: 3 hours, on_duplicate_time: min}
fills:
  around: {frame: failing, where: status = 200, lead: 10 minutes, lag: 30 minutes,
           measures: {sent: sum(bytes), biggest: max(bytes)}}
  before: {frame: busy, source: site, shift: [1 hour, 3 hours], combine: median, measures: {asked: sum(n)},
           reach: 2 hours}
"""


class ReadingRule(NamedTuple):
    """The inputs of a reading, without transom's own preparation of it."""

    key: tuple[str, ...]
    of: Callable[[list[Event]], dict[str, Any]]


def total(events: list[Event]) -> dict[str, Any]:
    values = [event["bytes"] for event in events if event["bytes"] is not None]
    return {"value": sum(values) if values else None, "missing": not values}


def smallest_row(events: list[Event]) -> dict[str, Any]:
    values = [event["bytes"] for event in events if event["bytes"] is not None]
    return {"value": min(values, default=None), "missing": not values}


def worst(events: list[Event]) -> dict[str, Any]:
    status = max(event["status"] for event in events)
    return {"value": status, "holds": status >= 400}


def last(events: list[Event]) -> dict[str, Any]:
    status = max(events, key=lambda e: (e["event_time"], crc32(e["source_id"].encode()), e["source_line"]))[
        "status"
    ]
    return {"starts": status == 401, "ends": status == 200}


def few(events: list[Event]) -> dict[str, Any]:
    return {"value": len(events), "holds": len(events) < 2}


def above(limit: int) -> Callable[[list[Event]], dict[str, Any]]:
    return lambda events: {"value": len(events), "holds": len(events) > limit}


SAID = {
    "failing": ReadingRule(("client",), worst),
    "sizes": ReadingRule(("client",), total),
    "enough": ReadingRule((), total),
    "calls": ReadingRule(("client",), last),
    "rising": ReadingRule((), lambda events: {"value": len(events)}),
    "busy": ReadingRule((), above(4)),
    "unlike": ReadingRule((), lambda events: {"value": len(events)}),
    "quiet": ReadingRule(("client",), few),
    "longest": ReadingRule((), above(2)),
    "spans": ReadingRule(("client",), smallest_row),
}


def requests(rng: random.Random, hours: int) -> list[list[str]]:
    """Return some requests of three clients in each hour, many at one time."""
    statuses = [*[200] * 9, 401, 401, *[404] * 7, 500]
    return [
        [
            line(3600 * number + rng.choice([0, 1799, *range(0, 3600, 60)]), f"10.0.0.{rng.randint(1, 3)}",
                 rng.choice([7, 20, 31, 55, "-"]), rng.choice(statuses))
            for _ in range(rng.choice([0, 2, 9, 14, 19]))
        ]
        for number in range(hours)
    ]  # fmt: skip


def micros(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def readings(
    events: Sequence[Event], name: str, block: ResolvedFrames
) -> Iterator[tuple[tuple[str, ...], list[Reading]]]:
    """Return the readings of each key, in order."""
    output, every = SAID[name], block.framing.every

    def of(event: Event) -> tuple[tuple[str, ...], int]:
        return tuple(event[k] for k in output.key), micros(event["event_time"]) // every * every

    hours = {micros(event["hour"]) for event in events}
    by_key: dict[tuple[str, ...], list[Reading]] = {}
    for (key, time), some in groupby(sorted(events, key=of), key=of):
        by_key.setdefault(key, []).append(Reading(time, **output.of(list(some))))
    for key, ones in by_key.items():
        if name == "unlike":
            ones = [with_baseline(one, ones, hours) for one in ones]
        yield key, ones


def with_baseline(one: Reading, others: Sequence[Reading], hours: set[int]) -> Reading:
    then = {other.time: other.value for other in others}
    values = []
    for shift in (HOUR, 2 * HOUR):
        time = one.time - shift
        if time in then or time // HOUR * HOUR in ASKED:
            values.append(then.get(time) or 0)
    assert one.value is not None
    holds = bool(values) and one.value > statistics.median(values) + 1
    return one._replace(holds=holds, missing=not values)


ASKED: set[int] = set()
"""The requested hours, by their start."""


def expected(harness: StreamHarness, name: str, events: Sequence[Event]) -> list[tuple[object, ...]]:
    """Return the rows of frames in requested hours, by the framing function."""
    block = frame_block_of(harness.stream, name)
    framing, hours = block.framing, sorted(ASKED)
    result = []
    for key, ones in readings(events, name, block):
        if block.period is None:
            reported_rows = [(*report[:3], report.frame) for report in reports(framing, ones, hours, HOUR)]
        else:
            reported_rows = list(of_stretches(block, ones))
        for at, state, fragment, frame in reported_rows:
            if at not in ASKED:
                continue
            new = [one for one in frame.readings if block.period or at <= one.time < at + HOUR]
            values = frame.values
            top = next((r.time for r in frame.readings if values and r.value == max(values)), None)
            result.append(
                (
                    key, at, state, fragment, frame.start, frame.end, frame.length(framing.every) / MICROS,
                    frame.records, frame.missing, len(new), max(values, default=None), top,
                    sum(values) / len(values) if values else None,
                )
            )  # fmt: skip
    return sorted(result, key=repr)


def of_stretches(block: ResolvedFrames, ones: Sequence[Reading]) -> Iterator[tuple[int, str, int, Any]]:
    assert block.period is not None
    length = block.period * HOUR
    for begin in sorted({one.time // length * length for one in ones}):
        inside = [one for one in ones if begin <= one.time < begin + length]
        frames = frames_of_period(block.framing, inside, begin + length, block.overlap)
        limit = max((frame.length(block.framing.every) for frame in frames), default=0)
        for frame in frames:
            if not block.spec.longest or frame.length(block.framing.every) == limit:
                yield begin + length - HOUR, "final", 1, frame


def rows_of(harness: StreamHarness, table: str, block: str) -> list[dict[str, Any]]:
    """Return the rows of a block, read without Spark."""
    return [row for row in harness.rows_of(table) if row["block"] == block]


def reported_rows(harness: StreamHarness, name: str) -> list[tuple[object, ...]]:
    block = frame_block_of(harness.stream, name)
    return sorted(
        (
            (
                tuple(row[k] for k in block.key), micros(row["hour"]), row["state"], row["fragment"],
                micros(row["start_time"]), micros(row["last_time"]), row["length_s"],
                row["records"], row["missing"],
                row["new_records"], row["peak"], row["peak_time"] and micros(row["peak_time"]), row["mean"],
            )
            for row in rows_of(harness, "frames", name)
        ),
        key=repr,
    )  # fmt: skip


def numbers(rows: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
    """Return rows as they are compared: 3 and 3.0 are one number."""
    return [tuple(float(v) if isinstance(v, int) else v for v in row) for row in rows]


def filled(harness: StreamHarness, name: str, events: Sequence[Event]) -> list[tuple[object, ...]]:
    """Return the fills of reported frames, by looking at every row."""
    stream, result = harness.stream, []
    fill = stream.fills[name]
    block = frame_block_of(stream, fill.frame)
    rows = rows_of(harness, "frames", fill.frame)
    reach = 2 * HOUR if name == "before" else 168 * HOUR
    for row in rows:
        of_shifts, turns = [], set[int]()
        for shift in fill.shift:
            ago = shift // timedelta(microseconds=1)
            last = micros(row["last_time"]) + block.framing.every
            whole = micros(row["start_time"]) - fill.lead // timedelta(microseconds=1) - ago
            begin = (
                max(micros(row["start_time"]), last - reach) - fill.lead // timedelta(microseconds=1) - ago
            )
            end = last + fill.lag // timedelta(microseconds=1) - ago
            measures = (around if name == "around" else before)(row, events, begin, end)
            observed = sum(max(0, min(end, h + HOUR) - max(begin, h)) for h in ASKED)
            state = "final" if row["state"] == "final" and (end - 1) // HOUR * HOUR in ASKED else "partial"
            covered = observed / (end - whole)
            of_shifts.append((covered, state, *measures))
            if covered >= 1:
                turns |= turns_of(events, begin, end).keys()
            known = measures if covered else (None, *measures[1:])
            result.append((row["frame_id"], row["fragment"], ago / MICROS, covered, state, *known))
        if fill.combine:
            whole_ones = [one for one in of_shifts if one[0] >= 1]
            state = "final" if all(one[1] == "final" for one in of_shifts) else "partial"
            asked = [one[3] for one in whole_ones if one[3] is not None]
            result.append(
                (
                    row["frame_id"], row["fragment"], None, len(whole_ones) / len(of_shifts), state,
                    len(turns) if whole_ones else None, statistics.median(asked) if asked else None,
                )
            )  # fmt: skip
    return sorted(numbers(result), key=repr)


def around(row: Event, events: Sequence[Event], begin: int, end: int) -> tuple[object, ...]:
    near = [
        e for e in events
        if begin <= micros(e["event_time"]) < end and e["status"] == 200 and e["client"] == row["client"]
    ]  # fmt: skip
    values = [e["bytes"] for e in near if e["bytes"] is not None]
    return len(near), sum(values) if values else None, max(values, default=None)


def before(row: Event, events: Sequence[Event], begin: int, end: int) -> tuple[object, ...]:
    near = turns_of(events, begin, end)
    return len(near), sum(near.values()) or None


def turns_of(events: Sequence[Event], begin: int, end: int) -> Counter[int]:
    """Return the granules of an interval, and the number of records of each."""
    turn = 30 * 60 * MICROS
    times = (micros(e["event_time"]) // turn * turn for e in events)
    return Counter(time for time in times if begin <= time < end)


def reported_fills(harness: StreamHarness, name: str) -> list[tuple[object, ...]]:
    measures = list(harness.stream.fills[name].measures)
    return sorted(
        numbers(
            [
                tuple(
                    row[c]
                    for c in (
                        "frame_id",
                        "fragment",
                        "shift_s",
                        "coverage",
                        "state",
                        "rows_matched",
                        *measures,
                    )
                )
                for row in rows_of(harness, "fills", name)
            ]
        ),
        key=repr,
    )


def test_frames_and_fills_of_one_run_equal_those_of_the_definitions(make_stream: Make) -> None:
    """Slow (20 seconds): ten blocks of frames and two of fills over six hours."""
    day, hours = make_stream(FRAMING), 6
    for number, lines in enumerate(requests(random.Random(5), hours)):
        day.land(number, lines)
    day.run(0, hours)
    check(day, range(hours))


@pytest.mark.full
def test_frames_and_fills_equal_those_of_the_definitions_for_any_history(make_stream: Make) -> None:
    """Slow (a minute): ten blocks of frames and two fills, eight runs, each hour compared with the
    definitions.
    """
    rng = random.Random(5)
    log = requests(rng, 14)
    actual, whole = make_stream(FRAMING, "lived"), make_stream(FRAMING, "whole")
    late = {4: log[4][1::2], 9: log[9][::2]}
    for number, lines in enumerate(log):
        actual.land(
            number, lines if number not in late else [one for one in lines if one not in late[number]]
        )
    # Hours 6 and 7 are requested last, after later ones.
    for begin, end in ((0, 1), (1, 6), (8, 9), (9, 14)):
        actual.run(begin, end)
    check(actual, [*range(6), *range(8, 14)])
    for number, lines in late.items():
        actual.land(number, lines, ".late")
    actual.run(4, 5)
    actual.run(6, 8)
    actual.run(9, 14)
    whole.run(0, 14)
    assert_equal(actual, whole)
    actual.assert_ledger_true()
    check(whole, range(14))


def check(harness: StreamHarness, asked: Sequence[int] | range) -> None:
    ASKED.clear()
    ASKED.update(micros(hour(number)) for number in asked)
    events = [event for event in harness.rows_of("events") if micros(event["hour"]) in ASKED]
    for name in SAID:
        assert numbers(reported_rows(harness, name)) == numbers(expected(harness, name, events)), name
        assert reported_rows(harness, name), name
    for name in harness.stream.fills:
        assert reported_fills(harness, name) == filled(harness, name, events), name


@pytest.fixture(autouse=True)
def _none_requested() -> Iterator[None]:
    yield
    ASKED.clear()


@pytest.mark.full
def test_baseline_uses_the_readings_left_by_ties(make_stream: Make) -> None:
    text = (
        FRAMING[: FRAMING.index("aggregates:")]
        + """
time: {column: time, interval: 10 minutes, on_duplicate_time: keep}
frames:
  unlike: {kind: threshold, where: bytes > baseline, value: bytes, on_duplicate_time: TIES,
           baseline: {value: bytes, shift: [1 hour]}}
"""
    )
    result = {}
    for ties in ("first", "last"):
        day = make_stream(text.replace("TIES", ties), ties)
        day.land(0, [line(5, sent=10), line(6, sent=1000)])
        day.land(1, [line(3605, sent=600)])
        day.run(0, 2)
        result[ties] = [row["peak"] for row in day.rows_of("frames")]
    # The reading of the previous hour is 10, or 1000.
    assert result == {"first": [600], "last": []}


def test_key_column_may_have_any_name(make_stream: Make) -> None:
    """Names used inside readings are free for columns."""
    names = ("holds", "starts", "ends", "moment")
    columns = ", ".join(f"{name}: {{is: client}}" for name in names)
    frames = "failed: {kind: threshold, where: status = 500, value: bytes, on_duplicate_time: sum}"
    text = PLAIN.partition("aggregates:")[0].replace("key: [client]", f"key: [{', '.join(names)}]")
    day = make_stream(f"{text}columns: {{{columns}}}\nframes: {{{frames}}}\n")
    day.land(0, [line(5, "10.0.0.7", status=500), line(9, "10.0.0.7")])
    day.stage("ingest", 0, 1)
    day.stage("frames", 0, 1)
    (row,) = day.rows_of("frames")
    assert {name: row[name] for name in names} == dict.fromkeys(names, "10.0.0.7")
    assert (row["records"], row["peak"]) == (1, 100)
