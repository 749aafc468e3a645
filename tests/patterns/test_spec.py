"""The meaning of a pattern in a stream's file."""

import pickle
from datetime import timedelta
from math import ceil, log2
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.pattern_factories import ALL, log, small
from tests.support.stream_factories import changed
from transom.cli.check import describe_stream
from transom.core.intervals import HOUR
from transom.features.patterns import validate
from transom.features.patterns.spec import Agreement, Pattern
from transom.spec.impossible_conditions import impossible
from transom.spec.yaml_file import parse_mapping
from transom.stream import Stream, parse

MINUTE = timedelta(minutes=1)


def streams() -> Stream:
    patterns = {name: parse_mapping(text, name) for name, text in ALL.items()}
    return parse(log() | {"patterns": patterns}, "log.yaml")


def of(**changes: Any) -> Pattern:
    return parse(small(**changes)).patterns["x"]


def test_realistic_patterns_are_parsed() -> None:
    stream = pickle.loads(pickle.dumps(streams()))
    assert stream.stages == ("ingest", "patterns")
    patterns: dict[str, Pattern] = stream.patterns
    facts = {
        name: (
            p.key,
            p.widening.levels,
            p.batch,
            p.max_records,
            p.takes,
            [[s.id for s in e] for e in p.elements],
        )
        for name, p in patterns.items()
    }
    five = 5 * MINUTE
    assert facts == {
        "came_back": (("client",), 12, five, 100, 6, [["look"], ["probe"]]),
        "shell": (("dst",), 10, five, 100, 5, [["acc"], ["in", "out", "err"], ["exec"]]),
        "scan": (("dst",), 10, five, 100, 21, [["refused"], ["long"]]),
        "broken_in": (("client",), 6, five, 100, 11, [["failed"], ["success"]]),
        "policy": (("client",), 10, five, 100, 2, [["login"], ["change"]]),
        "own": (("dst",), 5, five, 100, 1, []),
    }
    assert {name: validate.carried(stream, name) for name in patterns} == {
        "came_back": {"path": "string"},
        "shell": {"fd": "string", "ret": "string"},
        "scan": {"port": "integer"},
        "broken_in": {},
        "policy": {},
        "own": {"path": "string", "status": "integer"},
    }
    assert [encountered.sql for encountered in validate.conditions(stream, "broken_in")] == [
        "(`status` = 401L)", "(`status` = 200L)", "(`path` = '/reset')"
    ]  # fmt: skip
    assert validate.conditions(stream, "own") == []
    assert [name for name, p in patterns.items() if p.counts_all] == ["own"]
    assert (patterns["came_back"].severity, patterns["shell"].severity) == ("high", "medium")
    assert (patterns["came_back"].merge_gap, patterns["shell"].merge_gap) == (HOUR, timedelta(0))


def test_only_key_within_and_steps_are_required() -> None:
    pattern = of(key=["host"])
    assert (pattern.key, pattern.where, pattern.count_records, pattern.merge_gap) == (
        ("host",),
        None,
        "steps",
        0 * HOUR,
    )
    assert (pattern.carry, pattern.absent, pattern.counts_all) == ((), (), False)
    stream = parse(small() | {"where": "took > 1"})
    assert stream.patterns["x"].key == ("user",)
    where = stream.where_of(stream.patterns["x"])
    assert where is not None
    assert where.sql == "(`took` > 1L)"
    assert parse(small(where=None) | {"where": "took > 1"}).patterns["x"].where is None
    assert parse(small(key=[])).patterns["x"].key == ()


def test_step_agrees_with_the_first_or_the_named_step() -> None:
    pattern = of(
        steps=[
            {"any_order": [{"id": "a", "where": "ok"}, {"id": "b", "where": "ok"}]},
            {"id": "c", "where": "ok", "by": "host"},
            {"id": "d", "where": "ok", "by": ["user=b.host", " status = c . status "]},
        ]
    )
    assert [pattern.agreements(step) for step in pattern.all_steps] == [
        (),
        (),
        (Agreement("host", "a", "host"),),
        (Agreement("user", "b", "host"), Agreement("status", "c", "status")),
    ]
    assert [(place, number) for place, number, _ in pattern.placed()] == [
        ("steps[0].any_order[0]", 0), ("steps[0].any_order[1]", 0), ("steps[1]", 1), ("steps[2]", 2)
    ]  # fmt: skip


def test_columns_of_records_are_sorted_and_exclude_the_key() -> None:
    data = small(
        key=["user"],
        carry=["took", "user"],
        steps__0={"id": "a", "where": "ok", "times": 2, "distinct": ["status", "user"]},
        steps__1__by=["user = a.host"],
    )
    carried = validate.carried(parse(data), "x")
    assert list(carried.items()) == [("host", "string"), ("status", "integer"), ("took", "number")]


@pytest.mark.parametrize(
    ("within", "batch", "levels"),
    [
        ("5 minutes", 5 * MINUTE, 1),
        ("6 minutes", 5 * MINUTE, 2),
        ("10 minutes", 5 * MINUTE, 2),
        ("10000001 ms", 5 * MINUTE, 7),
        ("4 minutes", 4 * MINUTE, 1),
        ("59 seconds", timedelta(seconds=50), 2),
        ("7 seconds", timedelta(seconds=6), 2),
        ("1 second", timedelta(seconds=1), 1),
        ("1 us", timedelta(seconds=1), 1),
        ("3660 days", 5 * MINUTE, 22),
    ],
)
def test_time_has_the_declared_or_default_resolution(within: str, batch: timedelta, levels: int) -> None:
    pattern = of(within=within)
    assert (pattern.batch, pattern.widening.levels) == (batch, levels)


DIVISORS = [n for n in range(1, 3601) if 3600 % n == 0]


@given(st.sampled_from(DIVISORS), st.integers(0, 2**20), st.integers(-1, 1))
@example(300, 1023, 1)
def test_pattern_fits_the_top_level_and_no_level_below(batch: int, batches: int, more: int) -> None:
    """In exact numbers, and by the logarithm where floats are precise enough."""
    length = timedelta(seconds=batch * (batches + 1), microseconds=more)
    length = min(max(length, timedelta(seconds=batch)), timedelta(days=3660))
    pattern = of(within=length, batch=timedelta(seconds=batch))
    assert pattern.top == pattern.batch * 2 ** (pattern.widening.levels - 1)
    assert pattern.top >= length
    assert pattern.widening.levels == 1 or pattern.top < 2 * length
    assert 2 * pattern.top <= pattern.reach < 2 * pattern.top + HOUR
    assert not pattern.reach % HOUR
    if not more:
        assert pattern.widening.levels == ceil(log2(length / pattern.batch)) + 1


def test_impossible_condition_is_named_by_its_path() -> None:
    plain, never = {"id": "a", "where": "status = 1"}, "status > 5 and status < 6"
    either = {"any_order": [{"id": "b", "where": "status = 2"}, {"id": "c", "where": never}]}
    stream = parse(small(steps=[plain, either, {"id": "d", "where": never}]))
    assert list(impossible(stream)) == [
        f"patterns.x.steps[1].any_order[1].where: no row can meet {never!r}",
        f"patterns.x.steps[2].where: no row can meet {never!r}",
    ]


def test_instance_spans_a_hundred_records_or_twice_its_steps() -> None:
    assert of(steps__0__times=49).max_records == 100
    assert of(steps__0__times=50).max_records == 102
    assert of(steps__0__times=50, max_records=51).max_records == 51


def test_stages_are_those_with_blocks() -> None:
    assert parse(small()).stages == ("ingest", "patterns", "aggregates")
    assert parse(small() | {"aggregates": {}}).stages == ("ingest", "patterns")
    # The key of a pattern is not the stream's own.
    assert parse(small() | {"aggregates": {}}).key_without_block == ()
    assert parse(changed(aggregates={})).key_without_block == ("user",)


def test_each_pattern_is_described_in_one_line() -> None:
    assert describe_stream(streams()).splitlines()[1:] == [
        "  pattern came_back: 2 steps by client, within 4 days, 12 levels from batches of 5 minutes",
        "  pattern shell: 5 steps by dst, within 1 day, 10 levels from batches of 5 minutes",
        "  pattern scan: 2 steps by dst, within 1 day, 10 levels from batches of 5 minutes",
        "  pattern broken_in: 2 steps by client, within 2 hours, 6 levels from batches of 5 minutes",
        "  pattern policy: 2 steps by client, within 1 day, 10 levels from batches of 5 minutes",
        "  pattern own: transom.core.intervals.parse by dst, within 1 hour, "
        "5 levels from batches of 5 minutes",
    ]
    one = of(within="5 minutes", steps=[{"id": "a", "where": "ok"}], key=[])
    assert describe_stream(parse(small()).model_copy(update={"patterns": {"x": one}})).splitlines()[1:2] == [
        "  pattern x: 1 step by nothing, within 5 minutes, 1 level from batches of 5 minutes"
    ]
