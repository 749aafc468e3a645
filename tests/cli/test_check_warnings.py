"""Warnings of `check` on the zones of names and lines."""

from typing import Any

import pytest

from transom.cli.check import warnings
from transom.stream import parse


def stream(path: str, lines_zone: str, **source: str) -> Any:
    return parse(
        {
            "name": "builds",
            "source": {"path": path, "format": "csv", **source},
            "columns": {"at": "timestamp", "job": "string"},
            "time": {"column": "at", "zone": lines_zone},
            "key": ["job"],
            "aggregates": {"n": {"measures": {"n": "count"}, "levels": "RANGES 1 HOUR SLIDES 1 HOUR"}},
        }
    )


HOURLY = "landing/builds/%Y-%m-%d/ci.%H.csv"


@pytest.mark.parametrize(
    ("path", "zone", "source", "warns"),
    [
        pytest.param(HOURLY, "America/Toronto", {}, True, id="names in UTC by default"),
        pytest.param(HOURLY, "America/Toronto", {"zone": "America/Toronto"}, False, id="names in that zone"),
        pytest.param(HOURLY, "America/Toronto", {"zone": "UTC"}, False, id="names in UTC as declared"),
        pytest.param(HOURLY, "UTC", {}, False, id="lines in UTC"),
        pytest.param("landing/builds/*.csv", "America/Toronto", {}, False, id="names without a time"),
    ],
)
def test_local_lines_under_names_in_utc_are_a_warning(
    path: str, zone: str, source: dict[str, str], warns: bool
) -> None:
    expected = [
        "source.zone: times in file names are read as UTC, those of lines as America/Toronto; if names have "
        "local times, set `zone: America/Toronto`, else `zone: UTC`"
    ]
    assert list(warnings(stream(path, zone, **source))) == (expected if warns else [])
