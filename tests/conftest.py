"""One lazy Spark session for the whole run, and folders of their own for the streams."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from house import House


@pytest.fixture(scope="session")
def spark() -> "Iterator[SparkSession]":
    """The session of the jobs, with the settings of set-up; tests without Spark start no JVM."""
    from transom.lake.session import session

    built = session("tests")
    yield built
    built.stop()


@pytest.fixture
def house(spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> "Callable[..., House]":
    """Makes streams that share one landing folder; each `lake` is one of its own."""
    from house import WEB, House

    monkeypatch.setenv("TRANSOM_HOME", str(tmp_path))
    return lambda text=WEB, lake="lake": House(spark, tmp_path, text, lake)


@pytest.fixture
def dice() -> random.Random:
    """A generator with a fixed seed, for cuts and orders that are drawn once."""
    return random.Random(20150517)
