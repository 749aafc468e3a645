"""The columns of the events that the blocks of each feature need."""

from typing import Any, get_args, get_origin

import pytest
from pydantic import BaseModel

from transom.engine.check_builders import columns_read
from transom.features.ingest.checks import required_keys
from transom.features.registry import FEATURES
from transom.stream import Stream, StreamFile, parse

LEVELS = "RANGES 1 HOUR SLIDES 1 HOUR"
COLUMNS = {
    **{name: {"type": "integer"} for name in ("a", "b", "c", "d", "e", "f", "g", "h")},
    "user": {},
    "host": {},
    "kind": {},
    "made": {"type": "integer", "is": "g + h"},
}
AGGREGATE = {"load": {"key": ["user"], "measures": {"n": "count"}, "levels": LEVELS}}
FRAME = {"kind": "threshold", "where": "n > 1", "source": "load"}
SKETCH = {"epsilon": 0.5, "delta": 0.5, "window": "2 hours", "tick": "30 minutes"}
OUTSIDE = {"table": "/t", "time": "at", "columns": {"h": "integer"}}


def stream_of(**blocks: Any) -> Stream:
    return parse(
        {
            "name": "app",
            "source": {"path": "in/%Y-%m-%d/%H.json", "format": "json"},
            "columns": COLUMNS,
            "time": {"column": "at"},
            **blocks,
        }
    )


def test_every_feature_declares_its_columns() -> None:
    """A feature is a field of the stream that maps names to blocks."""
    fields = {
        name: get_args(field.annotation)[1]
        for name, field in StreamFile.model_fields.items()
        if get_origin(field.annotation) is dict
    }
    blocks = {name for name, model in fields.items() if issubclass(model, BaseModel)}
    assert {feature.name for feature in FEATURES} == blocks - {"columns", "checks", "notify"}


CASES: list[tuple[dict[str, Any], set[str], list[tuple[str, str | None]]]] = [
    (
        {
            "aggregates": {
                "x": {
                    "key": ["user"], "where": "a > 1", "recurring": ["host"],
                    "measures": {"n": "count", "b": "sum(b)", "c": "distinct(c)"},
                    "levels": "RANGES 2 HOURS, 1 HOUR SLIDES 1 HOUR, 1 HOUR",
                }
            }
        },
        {"user", "a", "host", "b", "c"},
        [("user", "(`a` > 1L)")],
    ),
    (
        {
            "patterns": {
                "x": {
                    "key": ["user"], "where": "a = 1", "within": "1 day", "carry": ["host"],
                    "steps": [
                        {"id": "one", "where": "b = 1", "times": 2, "distinct": ["c"]},
                        {"id": "two", "where": "d = 1", "by": "e = one.f"},
                    ],
                    "absent": [{"where": "g = 1", "between": ["one", "two"]}],
                }
            }
        },
        {"user", "host", "a", "b", "c", "d", "e", "f", "g"},
        [("user", "(`a` = 1L) AND ((`b` = 1L) OR (`d` = 1L) OR (`g` = 1L))")],
    ),
    (
        {
            "patterns": {
                "x": {
                    "key": [], "within": "1 day",
                    "detector": "transom.core.intervals.parse", "columns": ["a"],
                }
            }
        },
        {"a"},
        [],
    ),
    (
        {
            "frames": {
                "x": {
                    "key": ["user"], "only": "a = 1", "kind": "threshold", "where": "b > c", "value": "d",
                    "on_duplicate_time": "sum", "starts_when": "e = 1", "ends_when": "f = 1",
                    "when_open": "report",
                }
            }
        },
        {"user", "a", "b", "c", "d", "e", "f"},
        [("user", "(`a` = 1L)")],
    ),
    (
        {
            "time": {"column": "at", "interval": "1 minute", "on_duplicate_time": "keep"},
            "frames": {
                "x": {
                    "kind": "threshold", "where": "b > baseline", "on_duplicate_time": "first",
                    "baseline": {"value": "c", "shift": ["1 hour"]},
                },
                "y": {
                    "kind": "aggregate", "condition": "sum(made) > 3", "span": "minimal",
                    "on_duplicate_time": "first",
                },
            },
        },
        {"b", "c", "made", "g", "h"},
        [],
    ),
    (
        {
            "aggregates": AGGREGATE,
            "frames": {"x": FRAME},
            "fills": {"y": {"frame": "x", "source": "events", "where": "a = 1", "measures": {"s": "sum(b)"}}},
        },
        {"user", "a", "b"},
        [("user", "(`a` = 1L)"), ("user", None)],
    ),
    (
        {
            "aggregates": AGGREGATE,
            "frames": {"x": FRAME},
            "fills": {
                "y": {"frame": "x", "source": "load", "measures": {"s": "sum(n)"}},
                "z": {"frame": "x", "join_on": [], "source": OUTSIDE, "measures": {"s": "sum(h)"}},
            },
        },
        {"user"},
        [("user", None)],
    ),
    (
        {
            "persistence": {
                "x": {
                    "item": ["host", "made"], "where": "a = 1", "slot": "30 minutes", "window": "3 hours",
                    "alpha": 0.7, "epsilon": 0.6,
                }
            }
        },
        {"host", "made", "g", "h", "a"},
        [],
    ),
    (
        {"frequency": {"x": {"item": ["host"], "where": "a = 1", **SKETCH}}},
        {"host", "a"},
        [],
    ),
    # Columns that blocks get from the stream.
    (
        {
            "key": ["user"],
            "where": "a = 1",
            "frames": {"x": {"kind": "threshold", "where": "b > 1", "on_duplicate_time": "first"}},
            "fills": {"y": {"frame": "x", "measures": {"s": "sum(c)"}}},
        },
        {"user", "a", "b", "c"},
        [("user", "(`a` = 1L)")],
    ),
    (
        {"key": ["user"], "where": "a = 1", "frequency": {"x": {"item": ["host"], **SKETCH}}},
        {"host", "a"},
        [],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("blocks", "used", "keys"), CASES)
def test_columns_and_keys_of_a_block_are_those_it_needs(
    blocks: dict[str, Any], used: set[str], keys: list[tuple[str, str | None]]
) -> None:
    stream = stream_of(**blocks)
    assert columns_read(stream) == used
    assert [(key.column, key.where) for key in required_keys(stream)] == keys


def test_each_feature_has_a_case() -> None:
    """Each case has a block that reads events."""
    covered = {
        feature.name
        for blocks, _, _ in CASES
        for feature in FEATURES
        if any(feature.columns_read(stream_of(**blocks)))
    }
    assert covered == {feature.name for feature in FEATURES}


def test_step_needs_its_own_columns_only() -> None:
    """A file with one kind of records lacks the columns that only other kinds have."""
    steps = [
        {"id": "one", "where": "kind = 'login' and a = 1", "times": 2, "distinct": ["c"]},
        {"id": "two", "where": "kind = 'delete'"},
    ]
    pattern = {"key": ["user"], "where": "b = 1", "within": "1 day", "carry": ["host"], "steps": steps}
    (block,) = stream_of(patterns={"x": pattern}).columns_read
    login, delete = "((`kind` = 'login') AND (`a` = 1L))", "(`kind` = 'delete')"
    assert [(sorted(use.columns), use.where, use.decides) for use in block.all_uses if use.columns] == [
        (["user"], f"(`b` = 1L) AND ({login} OR {delete})", False),
        (["b"], "(`b` = 1L)", True),
        (["a", "kind"], f"(`b` = 1L) AND {login}", True),
        (["kind"], f"(`b` = 1L) AND {delete}", True),
        (["c"], f"(`b` = 1L) AND {login}", False),
        (["host"], f"(`b` = 1L) AND ({login} OR {delete})", False),
    ]
