"""All problems of a stream file are reported at once, of every feature."""

from copy import deepcopy
from typing import Any

import pytest

from transom.features.registry import FEATURES
from transom.stream import SpecificationError, parse

SOUND: dict[str, Any] = {
    "name": "app",
    "source": {"path": "in/{site}/%Y-%m-%d/%H.json", "format": "json"},
    "columns": {"user": {}, "size": {"type": "integer"}, "twice": {"type": "integer", "is": "size * 2"}},
    "time": {"column": "at"},
    "key": ["user"],
    "aggregates": {
        "load": {
            "measures": {"n": "count", "sent": "sum(size)"}, "levels": "RANGES 1 HOUR SLIDES 1 HOUR",
            "alert": {"many": {"when": "n > 3", "title": "{user} is busy"}},
        },
        "other": {"measures": {"n": "count"}, "levels": "RANGES 1 HOUR SLIDES 1 HOUR"},
    },
    "patterns": {
        "back": {
            "within": "1 day", "title": "{user} came back",
            "steps": [{"id": "one", "where": "size = 1"}, {"id": "two", "where": "size = 2"}],
        }
    },
    "frames": {
        "busy": {"source": "load", "kind": "threshold", "where": "n > 2", "title": "{user} is busy"},
        "large": {"kind": "threshold", "where": "size > 2", "on_duplicate_time": "sum"},
    },
    "fills": {
        "beside": {"frame": "busy", "source": "events", "measures": {"s": "sum(size)"}},
        "before": {"frame": "large", "source": "load", "measures": {"m": "sum(n)"}},
    },
    "persistence": {
        "regulars": {
            "item": ["user"], "slot": "30 minutes", "window": "3 hours", "alpha": 0.7, "epsilon": 0.6,
        }
    },
    "frequency": {
        "often": {"item": ["user"], "window": "2 hours", "tick": "30 minutes", "epsilon": 0.5, "delta": 0.5}
    },
    "checks": {
        "calm": {"stage": "aggregates", "block": "load", "every": "n < 5"},
        "sound": {"stage": "ingest", "every": "size > 0"},
    },
    "waivers": [
        {
            "hour": "2015-05-17T03:00", "stage": "ingest", "check": "sound", "observed": 1, "who": "a",
            "why": "b",
        }
    ],
}  # fmt: skip
PARTS = {
    "columns": "size", "aggregates": "load", "patterns": "back", "frames": "large", "fills": "beside",
    "persistence": "regulars", "frequency": "often", "checks": "sound",
}  # fmt: skip
"""One part of each kind; others use columns, blocks, frames and checks."""
FIELDS = {
    "name": "App",
    "extra_fields": "maybe",
    "time": {"colum": "at"},
    "repair_window": "soon",
    "tags": "x",
}
"""Further fields, each with an invalid value."""


def paths(data: dict[str, Any]) -> list[str]:
    with pytest.raises(SpecificationError) as error:
        parse(data)
    return [problem.path for problem in error.value.problems]


def break_field(data: dict[str, Any], kind: str) -> str:
    """Give a part of a kind an invalid value, and return the path of the field."""
    part = data[kind][PARTS[kind]]
    field = {"columns": "type", "checks": "severity"}.get(kind, "where")
    part[field] = [1]
    return f"{kind}.{PARTS[kind]}.{field}"


def with_unknown_column(data: dict[str, Any], kind: str) -> str:
    """Give a part of a kind a condition that reads no column of the stream, and return its path."""
    part = data[kind][PARTS[kind]]
    if kind == "patterns":
        part["steps"][1]["where"] = "nowhere = 1"
        return f"{kind}.{PARTS[kind]}.steps[1].where"
    if kind == "columns":
        data[kind]["twice"]["is"] = "nowhere * 2"
        return f"{kind}.twice.is"
    field = "every" if kind == "checks" else "where"
    part[field] = "nowhere = 1"
    return f"{kind}.{PARTS[kind]}.{field}"


def test_every_feature_has_a_part() -> None:
    assert {feature.name for feature in FEATURES} <= PARTS.keys()
    parse(SOUND)


@pytest.mark.parametrize("first", PARTS)
def test_invalid_part_hides_no_problem_of_another_feature(first: str) -> None:
    """Neither a problem of one field nor one between fields is hidden, and no others appear."""
    for spoil in (break_field, with_unknown_column):
        data = deepcopy(SOUND)
        assert paths_of(data, [spoil(data, first)])
        for second in PARTS.keys() - {first}:
            data = deepcopy(SOUND)
            expected = [spoil(data, first), with_unknown_column(data, second)]
            assert paths_of(data, expected), (spoil, first, second)


def paths_of(data: dict[str, Any], expected: list[str]) -> bool:
    assert sorted(paths(data)) == sorted(expected)
    return True


@pytest.mark.parametrize("name", FIELDS)
def test_invalid_field_hides_no_problem_of_any_feature(name: str) -> None:
    data = deepcopy(SOUND) | {name: FIELDS[name]}
    expected = [with_unknown_column(data, kind) for kind in PARTS]
    assert paths_of(data, [name, *expected])


def test_all_errors_are_reported_together() -> None:
    data = deepcopy(SOUND)
    expected = [break_field(data, kind) for kind in PARTS]
    assert paths_of(data, expected)
    data = deepcopy(SOUND)
    expected = [with_unknown_column(data, kind) for kind in PARTS]
    assert paths_of(data, expected)


def test_dependents_of_an_invalid_part_are_not_reported_again() -> None:
    for changes, expected in (
        # The frames over it, their fills, its alert and its check cannot be validated.
        ({"aggregates": {"load": {"levels": "none"}}}, ["aggregates.load.levels"]),
        ({"frames": {"busy": {"kind": "none"}}}, ["frames.busy.kind"]),
        ({"checks": {"sound": {"severity": "none"}}}, ["checks.sound.severity"]),
        ({"columns": {"user": {"type": "none"}}}, ["columns.user.type"]),
        ({"key": 5}, ["key"]),
        ({"source": {"path": "../x"}}, ["source.path"]),
        ({"time": {"format": 5}}, ["time.format"]),
        ({"extra_fields": "maybe", "where": "rest is null"}, ["extra_fields"]),
        ({"repair_window": "soon", "retention": "3 hours"}, ["repair_window"]),
        ({"schedule": "no", "catchup": True, "start": "2015-05-17T10:00"}, ["schedule"]),
        ({"start": "soon", "catchup": True}, ["start"]),
    ):
        data = deepcopy(SOUND)
        for name, change in changes.items():
            if isinstance(change, dict) and name != "time":
                for inner, value in change.items():
                    data[name][inner] = {**data[name][inner], **value} if isinstance(value, dict) else value
            else:
                data[name] = {**data[name], **change} if name == "time" else change
        assert paths_of(data, expected), changes


def test_fill_of_an_invalid_frame_is_validated_as_far_as_possible() -> None:
    data = deepcopy(SOUND)
    data["frames"]["busy"]["kind"] = "none"
    data["fills"]["beside"] |= {"measures": {"s": "sum(nowhere)"}, "where": "no_more = 1"}
    assert paths(data) == ["frames.busy.kind", "fills.beside.measures.s", "fills.beside.where"]


def test_problem_with_a_text_similar_to_another_is_reported() -> None:
    """Problems are distinguished by their paths, not by the start of their texts."""
    data = deepcopy(SOUND)
    data["columns"] |= {"no": {"type": "none"}, "nobody": {}}
    data["aggregates"]["load"]["where"] = "nob = 'x'"
    assert paths(data) == ["columns.no.type", "aggregates.load.where"]
