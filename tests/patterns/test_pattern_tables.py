"""Matches of patterns equal those of the definition on the whole log, for any history of the lake."""

import random
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any

import pytest

from tests.promise.test_promise import assert_equal
from tests.support.instances import minimal_instances
from tests.support.stream_harness import StreamHarness, hour, line
from transom.core.intervals import HOUR_LENGTH
from transom.features.patterns.algorithm.pattern import NULL, Instance, RecordSequence
from transom.features.patterns.resolve import PatternBlock, block_of

Make = Callable[..., StreamHarness]

GUESSING = """
name: web
preset: apache/combined
repair_window: 1 hour  # a longer gap between requested hours stays one
source: {path: "landing/web/%Y-%m-%d/access.%H*.log.gz"}
key: [client]
patterns:
  guessed:
    severity: high
    within: 5 hours
    batch: 20 minutes
    max_records: 16
    merge_gap: 20 minutes
    carry: [bytes]
    steps:
      - {id: failed, where: status = 401, times: 2, within: 100 minutes}
      - {id: entered, where: status = 200, by: bytes, gap: {min: 1 hour, max: 4 hours}}
    absent: [{where: status = 205, between: [failed, entered]}]
  slow:
    within: 5 hours
    batch: 20 minutes
    max_records: 16
    steps:
      - {id: failed, where: status = 401}
      - {id: entered, where: status = 200, by: bytes, gap: {min: 2 hours}}
  any:
    key: []
    within: 3 hours
    batch: 1 hour
    max_records: 30
    count_records: all
    steps:
      - any_order:
          - {id: gone, where: status = 410}
          - {id: broken, where: status = 500}
      - {id: moved, where: status = 304, gap: {min: 80 minutes}}
  quick:
    within: 30 minutes
    batch: 4 minutes
    steps: [{id: two, where: status > 399, times: 2, distinct: status}]
"""


def requests(rng: random.Random, hours: int) -> list[list[str]]:
    """Return some requests of three clients in each hour, many of which a pattern may match."""
    statuses = [*[401] * 9, *[200] * 8, 205, *[304] * 4, 410, 410, 500]
    return [
        [
            line(3600 * number + rng.choice([0, 59, *range(0, 3600, 7)]), f"10.0.0.{rng.randint(1, 3)}",
                 rng.choice([7, 7, 7, 8, "-"]), rng.choice(statuses))
            for _ in range(rng.choice([0, 3, 9, 14, 19]))
        ]
        for number in range(hours)
    ]  # fmt: skip


def expected(harness: StreamHarness, name: str, requested: Iterable[int]) -> list[tuple[object, ...]]:
    """Return the matches of a pattern whose windows end in requested hours, by trying all records of these
    hours.
    """
    block = block_of(harness.stream, name)
    pattern, widening = block.pattern, block.widening
    assert pattern is not None
    rows = harness.table("events").selectExpr(
        "*", *(f"({sql}) AS met_{bit}" for bit, sql in enumerate(block.conditions))
    )
    rows = rows if block.takes is None else rows.where(block.takes)
    hours = {hour(number) for number in requested}
    stored = [event for event in rows.toArrow().to_pylist() if event["hour"] in hours]
    events = sorted(stored, key=lambda e: [e[k] for k in [*block.key, *ORDER]])
    result: list[tuple[object, ...]] = []
    for key, some in groupby(events, key=lambda e: [e[k] for k in block.key]):
        records = list(some)
        time = [(r["event_time"] - datetime(1970, 1, 1, tzinfo=UTC)) for r in records]
        micros = [int(moment.total_seconds()) * 1_000_000 for moment in time]
        codes = {column: coded(r[column] for r in records) for column in pattern.columns}
        bits = [sum(bool(r[f"met_{b}"]) << b for b in range(len(block.conditions))) for r in records]
        for match in minimal_instances(pattern, RecordSequence(micros, bits, codes)):
            first, last = match.places[0], match.places[-1]
            level = widening.level_of(micros[first], micros[last])
            end = widening.end_of(level, micros[last])
            if datetime.fromtimestamp((end - 1) // HOUR_LENGTH * HOUR_LENGTH // 10**6, UTC) in hours:
                result.append((*key, level, end, *of_records(match, records, block)))
    return sorted(result, key=repr)


LONG = timedelta(hours=3)
ORDER = ("event_time", "source_id", "source_line")


def coded(values: Iterable[object]) -> list[int]:
    return [NULL if value is None else int(str(value)) for value in values]


def of_records(match: Instance, records: list[dict[str, object]], block: PatternBlock) -> list[object]:
    assert block.pattern is not None
    selected = [records[place] for place in match.places]
    of_steps = [records[match.of(step.name)[0]]["event_time"] for step in block.pattern.steps]
    retained = [[record[column] for record in selected] for column in block.keep]
    return [*retained, of_steps, [[record[name] for name in ORDER] for record in selected]]


def reported_matches(harness: StreamHarness, name: str) -> list[tuple[object, ...]]:
    """Return the matches of a pattern from the table, in the same form."""
    block = block_of(harness.stream, name)
    rows = [row for row in harness.rows_of("matches") if row["block"] == name]
    for row in rows:
        assert row["hour"] < row["detected_at"] <= row["hour"] + (hour(1) - hour(0))
        times = [record["event_time"] for record in row["records"]]
        assert (row["first_time"], row["last_time"]) == (times[0], times[-1])
        assert row["detection_delay_s"] == (row["detected_at"] - row["last_time"]).total_seconds()
    return sorted(
        (
            (
                *(row[k] for k in block.key),
                row["level"],
                int(row["detected_at"].timestamp()) * 1_000_000,
                *(row[column] for column in block.kept_columns()),
                [step["time"] for step in row["steps"]],
                [[record[column] for column in ORDER] for record in row["records"]],
            )
            for row in rows
        ),
        key=repr,
    )


def joined_matches(harness: StreamHarness, name: str) -> list[tuple[object, ...]]:
    """Return key, bounds, number and first of the matches of a pattern that are joined."""
    pattern = harness.stream.patterns[name]
    rows = [row for row in harness.rows_of("matches") if row["block"] == name]
    groups: list[list[dict[str, Any]]] = []
    for row in sorted(rows, key=lambda row: ([row[k] for k in pattern.key], row["first_time"])):
        last = groups[-1] if groups else []
        alike = bool(last) and all(row[k] == last[0][k] for k in pattern.key)
        if alike and row["first_time"] <= max(one["last_time"] for one in last) + pattern.merge_gap:
            last.append(row)
        else:
            groups.append([row])
    return sorted(
        (
            *(some[0][k] for k in pattern.key),
            min(row["first_time"] for row in some),
            max(row["last_time"] for row in some),
            len(some),
            *min((row["detected_at"], row["match_id"]) for row in some),
        )
        for some in groups
    )


def last_episodes(harness: StreamHarness, name: str) -> list[tuple[object, ...]]:
    """Return the last row of each episode of a pattern."""
    key = harness.stream.patterns[name].key
    rows = [row for row in harness.rows_of("episodes") if row["block"] == name]
    last = {row["episode_id"]: row for row in sorted(rows, key=lambda row: row["hour"])}
    columns = (*key, "start_time", "last_time", "matches", "detected_at", "episode_id")
    return sorted(tuple(row[c] for c in columns) for row in last.values() if row["state"] != "joined")


def test_matches_of_one_run_equal_those_of_the_definition(make_stream: Make) -> None:
    day, hours = make_stream(GUESSING), 6
    for number, lines in enumerate(requests(random.Random(1), hours)):
        day.land(number, lines)
    day.run(0, hours)
    for name in day.stream.patterns:
        assert reported_matches(day, name) == expected(day, name, range(hours)) != [], name


@pytest.mark.full
def test_matches_equal_those_of_the_definition_for_any_history(make_stream: Make) -> None:
    """Slow (half a minute): four patterns, six runs, and every match compared with the definition."""
    rng, hours = random.Random(1), 12
    actual, whole = make_stream(GUESSING, "lived"), make_stream(GUESSING, "whole")
    files = requests(rng, hours)
    late = rng.randrange(hours)
    for number, lines in enumerate(files):
        if number != late:
            actual.land(number, lines)
    # Two hours in the middle, in which a long batch ends, are not requested.
    cuts = [(0, 2), (2, 4), (6, 7), (7, 11), (11, hours)]
    for start, end in rng.sample(cuts, len(cuts)):
        actual.run(start, end)
    result = {name: reported_matches(actual, name) for name in actual.stream.patterns}
    requested = [number for cut in cuts for number in range(*cut)]
    assert result == {name: expected(actual, name, requested) for name in result}
    assert [row for row in result["slow"] if spans(row, hour(4), hour(6))]
    actual.land(late, files[late])
    actual.run(0, hours)
    whole.run(0, hours)
    assert_equal(actual, whole)
    actual.assert_ledger_true()
    levels = {}
    for name, pattern in actual.stream.patterns.items():
        required = expected(whole, name, range(hours))
        assert reported_matches(whole, name) == required
        levels[name] = {row[len(pattern.key)] for row in required}
    assert levels == {"guessed": {2, 3}, "slow": {2, 3}, "any": {0, 1, 2}, "quick": {0, 1, 2, 3}}
    together = {name: joined_matches(whole, name) for name in whole.stream.patterns}
    assert {name: last_episodes(whole, name) for name in together} == together
    rows = whole.rows_of("episodes")
    assert {row["state"] for row in rows} == {"partial", "final"}
    assert {row["matches"] for row in rows} > {1}
    result = [finding for finding in whole.findings() if finding.kind == "episode"]
    assert len(result) == sum(map(len, together.values()))


def spans(row: tuple[Any, ...], start: datetime, end: datetime) -> bool:
    """Return whether a match begins before some time and ends after it."""
    records = row[-1]
    return bool(records[0][0] < start and records[-1][0] >= end)


DETECTED = """
name: web
preset: apache/combined
source: {path: "landing/web/%Y-%m-%d/access.%H*.log.gz"}
key: [client]
patterns:
  entered:
    within: 3 hours
    batch: 10 minutes
    max_records: 3
    carry: [status]
    detector: tests.support.some_detectors.entered
    columns: [status]
"""


def apart(one: dict[str, Any], other: dict[str, Any]) -> timedelta:
    time: timedelta = other["event_time"] - one["event_time"]
    return time


@pytest.mark.full
def test_custom_detector_receives_every_window_for_any_history(make_stream: Make) -> None:
    rng, hours = random.Random(5), 5
    actual, whole = make_stream(DETECTED, "lived"), make_stream(DETECTED, "whole")
    for number, lines in enumerate(requests(rng, hours)):
        actual.land(number, lines)
    for start, end in [(3, 5), (0, 1), (1, 3)]:
        actual.run(start, end)
    whole.run(0, hours)
    assert_equal(actual, whole)
    events = sorted(whole.rows_of("events"), key=lambda e: [e["client"], *(e[k] for k in ORDER)])
    required = []
    for client, some in groupby(events, key=itemgetter("client")):
        for one, other in pairwise(some):
            if (one["status"], other["status"]) == (401, 200) and apart(one, other) <= LONG:
                required.append((client, [one[k] for k in ORDER], [other[k] for k in ORDER]))
    matches = whole.rows_of("matches")
    assert all((m["steps"], m["bindings"], m["kept_status"]) == ([], [], [401, 200]) for m in matches)
    result = [(m["client"], *([r[k] for k in ORDER] for r in m["records"])) for m in matches]
    # Some matches of the last hour are detected in a window that ends after it.
    seen_later = [w for w in required if w not in result]
    assert sorted(result) == sorted(w for w in required if w not in seen_later)
    assert all(w[2][0] > hour(2) for w in seen_later)
    assert len({m["level"] for m in matches}) > 1


def test_raising_detector_is_named_with_key_and_window_and_other_hours_are_published(
    make_stream: Make,
) -> None:
    text = DETECTED.replace(
        "tests.support.some_detectors.entered", "tests.support.some_detectors.fragile"
    ).replace("3 hours", "20 minutes")
    day = make_stream(text)
    for number in range(3):
        day.land(number, [line(3600 * number + 60 * n, "10.0.0.1", 7, s) for n, s in enumerate([401, 200])])
    day.land(1, [line(3600 + 1500, "10.0.0.2", 7, 500)], "b")
    day.run(0, 3)
    standing = {name: state for name, state in day.state().items() if "matches" in name}
    assert [state.status for state in standing.values()] == ["published", "quarantined", "published"]
    (failed,) = (v for state in standing.values() for v in state.checks if not v.success)
    assert (failed.check, failed.observed, failed.partition.hour) == ("detector_ran", 1, hour(1))
    assert failed.failing_rows[0] == (
        "client='10.0.0.2', window 2015-05-17T01:10:00 to 2015-05-17T01:30:00: "
        "LookupError: no such page at 01:25 (some_detectors.py, line 22)"
    )
    assert day.table("matches").count() == 2
    # The finding for the user has it, too.
    reported_matches = [
        finding
        for finding in day.findings()
        if finding.stage == "patterns" and finding.kind == "check_failed"
    ]
    assert any("10.0.0.2" in texts for finding in reported_matches for texts in finding.evidence)
    assert all(
        finding.evidence[-1].startswith("to fix it: fix the detector, then run")
        for finding in reported_matches
    )


@pytest.mark.full
def test_hours_count_as_empty_until_they_are_requested(make_stream: Make) -> None:
    """The file of an hour has put a record in the previous one, which is half of a match."""
    text = DETECTED[: DETECTED.index("  entered")] + (
        "  two: {within: 3 hours, batch: 20 minutes, steps: [{id: one, where: status = 401, times: 2}]}\n"
    )
    actual, whole = make_stream(text, "lived"), make_stream(text, "whole")
    actual.land(1, [line(3540, status=401), line(3660, status=401)])
    actual.land(0, [line(60, status=404)])
    actual.run(1, 2)
    assert actual.table("events").count() == 2
    assert actual.table("matches").count() == 0
    actual.stage("ingest", 0, 1)
    actual.stage("patterns", 0, 1)
    assert actual.table("matches").count() == 1
    whole.run(0, 2)
    assert_equal(actual, whole)
