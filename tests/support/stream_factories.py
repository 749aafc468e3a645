"""A small stream without a preset, and changes of it."""

import re
from collections.abc import Mapping
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from transom.stream import SpecificationError, parse

HOUR = timedelta(hours=1)
TEN = datetime(2015, 5, 17, 10, tzinfo=UTC)


def base() -> dict[str, Any]:
    """Return a small stream without a preset."""
    return {
        "name": "app",
        "source": {"path": "in/{host}/%Y-%m-%d.%H.json", "format": "json"},
        "columns": {
            "user": "who.name | user",
            "status": {"type": "integer"},
            "took": {"from": "ms", "type": "number", "resolution": 0.001, "unit": "ms"},
            "ok": {"type": "boolean"},
        },
        "time": {"column": "at"},
        "key": ["user"],
        "aggregates": {
            "load": {
                "measures": {"n": "count", "slow": "max(took)"},
                "levels": "RANGES 1 HOUR SLIDES 5 MINUTES",
            }
        },
    }


def changed(**changes: Any) -> dict[str, Any]:
    """Return the stream with values changed, or removed where they are `...`: `source__path=...`."""
    data = deepcopy(base())
    for path, value in changes.items():
        *folders, last = path.split("__")
        place = data
        for folder in folders:
            place = place.setdefault(folder, {})
        if value is ...:
            del place[last]
        else:
            place[last] = value
    return data


def refusal(data: dict[str, Any]) -> str:
    with pytest.raises(SpecificationError) as error:
        parse(data, "app.yaml")
    return str(error.value)


def refusal_of_block(feature: str, block: Mapping[str, Any]) -> str:
    """Return the validation error of a block; fields with value `...` are removed."""
    fields = {name: value for name, value in block.items() if value is not ...}
    message = refusal(base() | {feature: {"x": fields}})
    return message.replace(f"app.yaml: {feature}.x.", "").replace("app.yaml: ", "")


def exactly(text: str) -> str:
    return rf"\A{re.escape(text)}\Z"


BLOCK = {"key": [], "measures": {"n": "count"}, "levels": "RANGES 1 HOUR SLIDES 1 HOUR"}
ACCEPT = {
    "hour": "2015-05-17T10:00",
    "stage": "ingest",
    "check": "rejected_share",
    "observed": 1,
    "who": "a",
    "why": "b",
}
SUPPRESS = {"stage": "aggregates", "block": "load", "key": {"user": "a"}, "who": "a", "why": "b"}
