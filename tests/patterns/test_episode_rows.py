"""Episodes as the stage computes them from Arrow rows, without Spark: ids are texts, keys are columns."""

from datetime import timedelta
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from tests.support.ledger_factories import at
from tests.support.pattern_factories import small
from transom.core.durations import microseconds
from transom.core.intervals import HOUR, micros
from transom.features.patterns.algorithm.episodes import Merging
from transom.features.patterns.stage import definition
from transom.features.patterns.tables_episodes import episode_rows
from transom.ledger.stage import InputRange
from transom.storage.tables import ARROW_TYPES, Table
from transom.stream import parse

MINUTE = timedelta(minutes=1)
MERGING = Merging(*(microseconds(n * MINUTE) for n in (30, 90, 120)))
KEY = {"user": "string", "status": "bigint"}
READ = {
    "hour": "timestamp", "episode_id": "string", **KEY, "start_time": "timestamp", "last_time": "timestamp",
    "matches": "bigint", "detected_at": "timestamp", "level": "int", "state": "string",
}  # fmt: skip


def schema_of(key: dict[str, str]) -> pa.Schema:
    return Table.load("episodes").declare(key=key).block_schema()


def match(number: int, name: str, start: int, end: int, **more: Any) -> dict[str, Any]:
    """Return a match that is detected at the end of an hour, with its records by minutes of the day."""
    return {
        "hour": at(number), "episode_id": name, "user": "ann", "status": None,
        "start_time": at(0) + start * MINUTE, "last_time": at(0) + end * MINUTE, "matches": 1,
        "detected_at": at(number + 1), "level": 1, "state": None, **more,
    }  # fmt: skip


def run(rows: list[dict[str, Any]], hours: range) -> list[dict[str, Any]]:
    """Return the rows of some hours, from their matches and earlier rows."""
    computed = partial(
        episode_rows, [*KEY], [micros(at(number)) for number in hours], MERGING, schema_of(KEY)
    )
    halves = [rows[: len(rows) // 2], rows[len(rows) // 2 :]]
    result = [row for batch in computed(batch_of(half) for half in halves) for row in batch.to_pylist()]
    return sorted(result, key=lambda row: (row["hour"], row["episode_id"], str(row["user"])))


MATCHES = [
    # `b` is detected first; `a` and `c` are apart from it until `0` joins them.
    match(2, "b", 100, 110),
    match(2, "c", 141, 150, detected_at=at(2) + 30 * MINUTE, level=0),
    match(3, "0", 111, 130),
    match(3, "a", 200, 210, user=None),
    match(3, "d", 200, 210, status=5),
]


def row(number: int, name: str, start: int, end: int, matches: int, new: int, state: str) -> dict[str, Any]:
    hour, first, last = at(number), at(0) + start * MINUTE, at(0) + end * MINUTE
    return {
        "hour": hour, "episode_id": name, "user": "ann", "status": None,
        "start_time": first, "last_time": last,
        "matches": matches, "new_matches": new, "detected_at": at(3), "level": 1, "state": state,
        "joined": None,
    }  # fmt: skip


EARLIER = {"detected_at": at(2) + 30 * MINUTE, "level": 0}
ROWS = [
    row(2, "b", 100, 110, 1, 1, "partial"),
    row(2, "c", 141, 150, 1, 1, "partial") | EARLIER,
    row(3, "a", 200, 210, 1, 1, "partial") | {"user": None, "detected_at": at(4)},
    row(3, "b", 100, 110, 1, 0, "joined") | {"joined": "c"},
    row(3, "c", 100, 150, 3, 1, "partial") | EARLIER,
    row(3, "d", 200, 210, 1, 1, "partial") | {"status": 5, "detected_at": at(4)},
    # Final by 06:30, when 150 and 30 minutes are 210 minutes back; the hour to 07:00 reports it.
    row(6, "c", 100, 150, 3, 0, "final") | EARLIER,
    row(7, "a", 200, 210, 1, 0, "final") | {"user": None, "detected_at": at(4)},
    row(7, "d", 200, 210, 1, 0, "final") | {"status": 5, "detected_at": at(4)},
]


def test_hours_report_the_changes_of_the_episodes_of_a_key() -> None:
    assert run(MATCHES, range(10)) == ROWS
    assert run([], range(10)) == []
    (batch,) = episode_rows([*KEY], [micros(at(2))], MERGING, schema_of(KEY), [batch_of(MATCHES[:1])])
    assert batch.schema.names == [*ROWS[0]]
    assert batch.schema.field("level").type == pa.int32()


def batch_of(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    schema = pa.schema([(name, ARROW_TYPES[kind]) for name, kind in READ.items()])
    return pa.RecordBatch.from_pylist(rows, schema)


@pytest.mark.parametrize("cut", range(2, 8))
def test_hour_is_computed_from_rows_of_earlier_hours(cut: int) -> None:
    early = [one for one in MATCHES if one["hour"] < at(cut)]
    reported = run(early, range(cut))
    stored = [
        {name: one[name] for name in READ}
        for one in reported
        if one["hour"] >= at(cut) - MERGING.reach * HOUR
    ]
    late = [one for one in MATCHES if one["hour"] >= at(cut)]
    assert reported + run([*stored, *late], range(cut, 10)) == ROWS


def test_pattern_without_a_key_has_one_key() -> None:
    hours = [micros(at(2)), micros(at(3))]
    rows = [batch_of(MATCHES).drop_columns(["user", "status"])]
    batches = episode_rows([], hours, MERGING, schema_of({}), rows)
    result = pa.Table.from_batches(batches).select(["hour", "episode_id", "matches", "joined"]).to_pylist()
    assert [tuple(one.values()) for one in result] == [
        (at(2), "b", 1, None),
        (at(2), "c", 1, None),
        (at(3), "c", 3, None),
        (at(3), "a", 2, None),
        (at(3), "b", 1, "c"),
    ]


def test_step_reads_matches_of_its_hour_and_its_own_rows_of_possibly_open_episodes() -> None:
    stream = parse(small(merge_gap="1 hour", within="23 hours"))
    *_, step = definition(stream).steps
    (part,) = step.outputs.values()
    # The longest batches have 42 hours and 40 minutes.
    assert part.reads == (
        InputRange("patterns", "x", "matches"),
        InputRange("patterns", "x", "episodes", back=67, forward=-1),
    )
    assert (part.spec_fingerprint, {*part.columns, "block"}) == (
        stream.fingerprint("episodes", "x"),
        {*step.table.columns},
    )
