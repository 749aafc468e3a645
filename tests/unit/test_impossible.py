"""Conditions that no row can meet are said by `check`."""

from typing import Any

import pytest

from transom.cli.check import declared
from transom.stream import parse
from transom.stream.impossible import COUNT, Domain, impossible, possible

BEAT: dict[str, Any] = {
    "name": "beat",
    "source": {"path": "beat.jsonl", "format": "json"},
    "columns": {"host": {}, "status": {"type": "integer"}},
    "time": {"column": "at"},
    "key": ["host"],
    "aggregate": {
        "lines": {
            "measures": {"n": "count", "worst": "max(status)", "codes": "distinct(status)"},
            "levels": "RANGES 1 HOUR, 5 MINUTES SLIDES 5 MINUTES, 5 MINUTES",
        }
    },
}
KNOWN = {
    "n": COUNT,
    "level": Domain(0, 1, whole=True),
    "status": Domain(whole=True),
    "codes": Domain(0, whole=True),
}


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("n = 0", False),
        ("n < 1", False),
        ("n <= 0", False),
        ("0 = n", False),
        ("1 > n", False),
        ("n < 1 or n > 5", True),
        ("n < 1 or n < 0", False),
        ("n >= 1", True),
        ("n < 2", True),
        ("level = 2", False),
        ("level between 2 and 5", False),
        ("codes < 0", False),
        ("codes = 0", True),
        ("status > 4 and status < 5", False),
        ("status = 4.5", False),
        ("x > 4 and x < 5", True),
        ("x > 5 and x < 4", False),
        ("x = 1 and x = 2", False),
        ("h = 'a' and h = 'b'", False),
        ("h in ('a', 'b') and h = 'c'", False),
        ("h in ('a', 'b') and h = 'b'", True),
        ("(x > 5 or x < 1) and x = 3", True),  # not told: what either of two says is known of neither
        ("x = 3 and (x > 5 or x < 1)", False),
        ("not (n < 1)", True),
        ("n < x", True),
        ("n < -1", False),
        ("abs(n) < 1", True),
    ],
)
def test_what_bounds_of_columns_tell(text: str, holds: bool) -> None:
    assert possible(text, KNOWN) is holds


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"alert": {"none": {"when": "n = 0", "level": 0}, "few": {"when": "n < 40", "level": 1}}},
            [
                "aggregate.lines.alert.none.when: no row can meet 'n = 0': a window without a record is no "
                "row; frames over lines find keys that are silent, with missing: satisfies and known: 1 day"
            ],
        ),
        ({"alert": "level = 1 and worst > 5"}, []),
        (
            {"alert": {"odd": {"when": "level = 1", "level": 0}}},
            ["aggregate.lines.alert.odd.when: no row can meet 'level = 1'"],
        ),
        (
            {"where": "status = 200 and status = 404"},
            ["aggregate.lines.where: no row can meet 'status = 200 and status = 404'"],
        ),
    ],
)
def test_conditions_of_a_block(changes: dict[str, Any], said: list[str]) -> None:
    block = BEAT["aggregate"]["lines"] | changes
    assert list(impossible(parse(BEAT | {"aggregate": {"lines": block}}))) == said


def test_conditions_of_frames_over_granules() -> None:
    frames = {
        "silent": {"over": "lines", "kind": "threshold", "where": "n < 1"},
        "low": {"over": "lines", "kind": "threshold", "where": "n < 5"},
        "known": {
            "over": "lines",
            "kind": "threshold",
            "where": "n < 1",
            "missing": "satisfies",
            "known": "1 day",
            "only": "n < 1",
        },
        "of_events": {"kind": "threshold", "where": "status < 1", "ties": "last"},
    }
    of = parse(BEAT | {"frames": frames})
    why = "a granule without a record is a missing reading, which has no value"
    assert list(impossible(of)) == [
        f"frames.silent.where: no row can meet 'n < 1': {why}; with missing: satisfies and known: 1 day it "
        "begins a frame",
        f"frames.known.only: no row can meet 'n < 1': {why}",
    ]
    assert declared(of)


def test_steps_of_patterns() -> None:
    pattern = {
        "within": "1 hour",
        "steps": [{"id": "a", "where": "status = 1"}, {"id": "b", "where": "status > 5 and status < 6"}],
    }
    of = parse(BEAT | {"patterns": {"p": pattern}})
    assert list(impossible(of)) == ["patterns.p.steps[1].where: no row can meet 'status > 5 and status < 6'"]
