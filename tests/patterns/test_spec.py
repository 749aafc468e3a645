"""The meaning of a pattern in a stream's file."""

import json
import pickle
import py_compile
import shutil
import sys
from datetime import timedelta
from math import ceil, log2
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.pattern_factories import ALL, log, small
from tests.support.stream_factories import base, changed
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


def shapes(stream: Stream) -> dict[str, str]:
    return {
        "batches": stream.fingerprint("batches", "x"),
        "matches": stream.fingerprint("matches", "x"),
        "episodes": stream.fingerprint("episodes", "x"),
    }


BOTH = {"batches", "matches"}


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({"title": "{user}"}, set()),
        ({"severity": "low"}, set()),
        ({"where": None}, set()),
        ({"count_records": "steps"}, set()),
        ({"batch": "5 minutes"}, set()),
        ({"max_records": 100}, set()),
        ({"merge_gap": "0 seconds"}, set()),
        ({"steps__0__times": 1}, set()),
        ({"steps__0__where": "status=1"}, set()),
        ({"steps__1__gap": {"min": "0 seconds"}}, set()),
        ({"key": ["host"]}, {"batches", "matches", "episodes"}),
        ({"merge_gap": "1 hour"}, {"episodes"}),
        ({"where": "took > 1"}, BOTH),
        ({"count_records": "all"}, BOTH),
        ({"batch": "1 minute"}, {*BOTH, "episodes"}),
        ({"max_records": 99}, BOTH),
        ({"steps__0__where": "status = 2"}, BOTH),
        ({"carry": ["took"]}, BOTH),
        # A column that the conditions read anyway becomes part of the records.
        ({"carry": ["status"]}, BOTH),
        ({"absent": [{"where": "ok", "between": ["a", "b"]}]}, BOTH),
        ({"steps__1__by": "took"}, BOTH),
        ({"steps__0__times": 50}, BOTH),
        ({"within": "2 days"}, {"matches", "episodes"}),
        # The same number of levels, another bound.
        ({"within": "23 hours"}, {"matches", "episodes"}),
        ({"carry": ["user"]}, {"matches"}),
        ({"steps__0__times": 2}, {"matches"}),
        ({"steps__0__id": "c"}, {"matches"}),
        ({"steps__1__by": "user"}, {"matches"}),
        ({"steps__1__gap": {"max": "1 hour"}}, {"matches"}),
        ({"steps__1__gap": {"min": "1 second"}}, {"matches"}),
    ],
)
def test_field_of_a_pattern_table_changes_its_fingerprint_alone(
    changes: dict[str, Any], parts: set[str]
) -> None:
    before, after = shapes(parse(small())), shapes(parse(small(**changes)))
    assert {part for part in before if before[part] != after[part]} == parts


@pytest.mark.parametrize(
    "changes",
    [
        {"steps__0__within": "1 hour"},
        {"steps__0__distinct": ["host"]},
        {"steps__0__distinct": ["took", "status"]},
        {"absent__0__between": ["a", "a"]},
        {"absent__0__between": ["b", "b"]},
        {"steps__1__by": "host = a.user"},
        {"steps__1__by": "user = a.host"},
        {"steps__1": {"any_order": [{"id": "b", "where": "ok", "times": 2}, {"id": "c", "where": "ok"}]}},
    ],
)
def test_every_search_field_changes_the_fingerprint_of_matches(changes: dict[str, Any]) -> None:
    start: dict[str, Any] = {
        "carry": ["host", "user", "took", "status"],
        "steps__0__times": 2,
        "steps__0__distinct": ["took"],
        "steps__1__times": 2,
        "absent": [{"where": "not ok", "between": ["a", "b"]}],
    }
    one, other = parse(small(**start)), parse(small(**(start | changes)))
    assert one.fingerprint("matches", "x") != other.fingerprint("matches", "x")


def test_spelling_of_a_pattern_changes_no_fingerprint() -> None:
    def shape(**changes: Any) -> dict[str, str]:
        return shapes(parse(small(carry=["user", "took"], steps__0__times=2, **changes)))

    one = shape(steps__1__by=["user", "took = a.took"], steps__0__distinct=["status", "host"])
    assert one == shape(steps__1__by=["took", "user=a.user"], steps__0__distinct=["host", "status"])


def test_fingerprints_of_patterns_are_canonical_json() -> None:
    stream = parse(
        small(
            carry=["took"],
            merge_gap="1 hour",
            steps=[
                {"id": "a", "where": "status=1", "times": 2, "distinct": "took", "within": "1 hour"},
                {
                    "any_order": [
                        {"id": "b", "where": "ok", "by": "host = a.user"},
                        {"id": "c", "where": "not ok"},
                    ],
                    "within": "2 hours",
                    "gap": {"max": "1 second"},
                },
            ],
            absent=[{"where": "event_time is null", "between": ["a", "c"]}],
        )
    )
    batches = {
        "all": False,
        "batch": 300_000_000,
        "columns": ["host", "took"],
        "conditions": ["(`status` = 1L)", "`ok`", "(NOT `ok`)", "(`event_time` IS NULL)"],
        "key": ["user"],
        "max_records": 100,
        "types": {
            "host": ["string", "1"], "ok": ["boolean", "1"], "status": ["integer", "1"],
            "took": ["number", "0.001"], "user": ["string", "1"],
        },
        "where": None,
    }  # fmt: skip
    matches = batches | {
        "detector": None,
        "elements": [
            {
                "gap": None,
                "steps": [{"by": [], "distinct": ["took"], "id": "a", "times": 2}],
                "within": 3_600_000_000,
            },
            {
                "gap": [0, 1_000_000],
                "steps": [
                    {"by": [["host", "a", "user"]], "distinct": [], "id": "b", "times": 1},
                    {"by": [], "distinct": [], "id": "c", "times": 1},
                ],
                "within": 7_200_000_000,
            },
        ],
        "keep": ["took"],
        "never": [["a", "c"]],
        "within": 86_400_000_000,
    }
    assert {name: json.loads(shape) for name, shape in shapes(stream).items()} == {
        "batches": batches,
        "matches": matches,
        "episodes": {
            "key": ["user"],
            "merge": 3_600_000_000,
            "top": 300_000_000 << 9,
            "types": {"user": ["string", "1"]},
            "within": 86_400_000_000,
        },
    }
    assert stream.fingerprint("matches", "x") == json.dumps(matches, sort_keys=True, separators=(",", ":"))


def test_source_of_a_detector_is_part_of_the_fingerprint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)

    def shaped(module: str, source: str) -> dict[str, str]:
        (tmp_path / f"{module}.py").write_text(source)
        result = shapes(parse(small(steps=..., detector=f"{module}.detect", columns=["status"])))
        return {name: shape.replace(module, "module") for name, shape in result.items()}

    one = shaped("first_found", "def detect(records):\n    return []\n")
    same = shaped("first_again", "def detect(records):\n    return []\n")
    other = shaped("first_other", "def detect(records):\n    return [records]\n")
    assert one == same
    assert {part for part in one if one[part] != other[part]} == {"matches"}
    assert json.loads(one["batches"])["all"]
    # Imported code of another module counts too.
    passed = [
        shaped(f"from_{name}", f"from {name} import detect\n") for name in ("first_found", "first_other")
    ]
    assert passed[0]["matches"].replace("first_found", "") != passed[1]["matches"].replace("first_other", "")
    built_in = parse(small(steps=..., detector="math.floor", columns=["status"]))
    assert (
        built_in.fingerprint("matches", "x")
        != shapes(parse(small(steps=..., detector="math.ceil")))["matches"]
    )


def test_location_of_a_detector_changes_no_fingerprint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shape(folder: Path) -> str:
        monkeypatch.syspath_prepend(folder)
        monkeypatch.delitem(sys.modules, "moved", raising=False)
        return parse(small(steps=..., detector="moved.detect", columns=["status"])).fingerprint(
            "matches", "x"
        )

    (tmp_path / "moved.py").write_text("def detect(records):\n    return []\n")
    compiled = tmp_path / "compiled"
    py_compile.compile(str(tmp_path / "moved.py"), str(compiled / "here" / "moved.pyc"))
    shutil.copytree(compiled / "here", compiled / "there")
    shapes = [shape(folder) for folder in (tmp_path, compiled / "here", compiled / "there")]
    assert shapes[0] != shapes[1] == shapes[2]
    # An imported module whose file was removed.
    (compiled / "there" / "moved.pyc").unlink()
    assert parse(small(steps=..., detector="moved.detect", columns=["status"])).fingerprint("matches", "x")


def test_stream_without_patterns_keeps_its_fingerprints() -> None:
    stream = parse(base())
    assert (stream.patterns, stream.stages, stream.key_without_block) == ({}, ("ingest", "aggregates"), ())
    assert parse(base() | {"patterns": {}}) == stream
