"""A requested key must have values of its columns' types; nothing is read before this check."""

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from transom.api import Results, StaleDataError
from transom.stream import parse

STREAM = parse(
    {
        "name": "flows",
        "source": {"path": "flows.jsonl", "format": "json"},
        "columns": {
            "host": {},
            "port": {"type": "integer"},
            "load": {"type": "number", "resolution": 0.1},
            "up": {"type": "boolean"},
            "since": {"type": "timestamp"},
        },
        "time": {"column": "at"},
        "aggregates": {
            name: {"key": [name], "measures": {"n": "count"}, "levels": "RANGES 1 HOUR SLIDES 1 HOUR"}
            for name in ("host", "port", "load", "up", "since")
        },
    }
)
AT = datetime(2024, 5, 6, 12, tzinfo=UTC)


def ask(name: str, value: Any, root: str) -> None:
    Results(root, STREAM).horizon({name: value}, AT, "1 hour", block=name)


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("port", "443", "key: must be an integer for port; got '443'"),
        ("port", 443.0, "key: must be an integer for port; got 443.0"),
        ("port", True, "key: must be an integer for port; got True"),
        ("host", 443, "key: must be a string for host; got 443"),
        ("load", "0.5", "key: must be a number for load; got '0.5'"),
        ("up", 1, "key: must be a boolean for up; got 1"),
        ("since", "2024-05-06", "key: must be a timestamp for since; got '2024-05-06'"),
    ],
)
def test_value_of_another_type_is_refused(name: str, value: Any, text: str, tmp_path: Any) -> None:
    with pytest.raises(ValueError, match="key: must be") as error:
        ask(name, value, str(tmp_path))
    assert str(error.value) == text


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("port", 443), ("port", np.int64(443)), ("port", None), ("host", "a"), ("load", 0.5), ("load", 1),
        ("up", True), ("since", AT),
    ],
)  # fmt: skip
def test_value_of_the_right_type_is_searched(name: str, value: Any, tmp_path: Any) -> None:
    with pytest.raises(StaleDataError, match="no run of flows is in this lake"):
        ask(name, value, str(tmp_path))
