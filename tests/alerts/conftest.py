"""Fixtures of the tests of alerts."""

from pathlib import Path

import pytest

from tests.support.alert_lake import AlertLake


@pytest.fixture
def lake(tmp_path: Path) -> AlertLake:
    """Return a lake with an episode of two hours that has ended."""
    lake = AlertLake(str(tmp_path))
    lake.landing = {"a": (0, 1), "b": (1, 12), "c": (2, 15), "d": (3, 1)}
    lake.run(range(4))
    return lake
