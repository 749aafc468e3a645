"""Which fields of a pattern change the fingerprint of which of its tables."""

import json
import py_compile
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.pattern_factories import small
from tests.support.stream_factories import base
from transom.stream import Stream, parse


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
