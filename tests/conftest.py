"""Hypothesis profiles, the seed of a run, and fixtures: one lazy Spark session, folders for streams."""

import logging
import os
import random
import secrets
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

from tests.support.replay import FIXED_SEED, replay_command

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from typer.testing import Result

    from tests.cli.ledger_by_hand import Lake
    from tests.support.stream_harness import StreamHarness, Templates

# No deadline: tests may run concurrently. `unit` is for `make test-unit`, `full` for `make test-full`.
for _profile, _examples in (("unit", 8), ("quick", 25), ("full", 100)):
    hypothesis.settings.register_profile(
        _profile,
        max_examples=_examples,
        deadline=None,
        print_blob=True,
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
    )
hypothesis.settings.load_profile("quick")

SPARK_FIXTURES = {"spark", "make_stream"}
"""Fixtures that start a JVM."""

ZONE = "Asia/Kolkata"
"""The time zone of the tests: half an hour off the full hours, so that a time which depends on it shows."""

os.environ["TZ"] = ZONE
time.tzset()
# The tests start Spark themselves.
os.environ.pop("SPARK_REMOTE", None)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Give Hypothesis one seed for all workers: TRANSOM_SEED, or a new one for each run."""
    if config.getoption("hypothesis_seed") is None:
        config.option.hypothesis_seed = os.environ.get("TRANSOM_SEED") or str(secrets.randbelow(10**6))


def pytest_make_parametrize_id(val: object) -> str | None:
    """Shorten the ids of long values: a test's id is in the environment of every process that it starts."""
    if isinstance(val, str | bytes) and len(val) > 200:
        return f"{type(val).__name__} of {len(val)}"
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that need a JVM, and put the longest first, so that no worker ends alone."""
    tests = Path(__file__).parent

    def place(item: pytest.Item) -> int:
        folder = item.path.relative_to(tests).parts[0]
        return (
            ["e2e", "promise"].index(folder)
            if folder in ("e2e", "promise")
            else 2 + (item.get_closest_marker("spark") is None)
        )

    for item in items:
        if SPARK_FIXTURES & {*getattr(item, "fixturenames", ())}:
            item.add_marker("spark")
    items.sort(key=place)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Function,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the replay command to the report of a randomised test that fails."""
    report = yield
    randomised = hypothesis.is_hypothesis_test(item.obj) or "run_seed" in item.fixturenames
    if report.failed and report.when == "call" and randomised:
        report.sections.append(("Replay", replay_command(item)))
    return report


@pytest.fixture(scope="session")
def spark(pytestconfig: pytest.Config) -> "Iterator[SparkSession]":
    """Return the session of the jobs, with the settings of set-up; tests without Spark start no JVM.

    Java's full compiler, which the settings omit for short jobs, pays off in the long tier alone. A thousand
    plans over a few rows each need no generated code, no adaptive planning and at most two tasks; this saves
    two fifths of the time. The jobs that Airflow submits in the end-to-end tests have all of that. Driver,
    Java and workers are in the tests' time zone, from which jobs and set-up isolate them: no row may depend
    on it.
    """
    from transom.storage.session import session

    properties = os.environ["TRANSOM_SPARK_PROPERTIES"]
    options = Path(properties).read_text().partition("extraJavaOptions ")[2].splitlines()[0]
    options = options.replace("timezone=UTC", f"timezone={ZONE}")
    if pytestconfig.getoption("hypothesis_profile") == "full":
        options = options.replace("-XX:TieredStopAtLevel=1", "")
    arguments = (
        f"--properties-file {properties} --driver-java-options '{options}' "
        "--conf spark.sql.codegen.wholeStage=false --conf spark.sql.codegen.factoryMode=NO_CODEGEN "
        "--conf spark.sql.adaptive.enabled=false "
        "--conf spark.sql.shuffle.partitions=2 --conf spark.databricks.delta.snapshotPartitions=1 "
        # Workers as on a cluster: in its time zone, and with no more imported than their tasks import.
        f"--conf spark.executorEnv.TZ={ZONE} --conf spark.python.daemon.module=pyspark.daemon pyspark-shell"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_SUBMIT_ARGS", arguments)
        built = session("tests")
    os.environ["TZ"] = ZONE
    time.tzset()
    yield built
    gateway = built.sparkContext._gateway
    built.stop()
    # Its connections close when the interpreter ends, and then log to closed streams.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    gateway.shutdown()
    # Java ends with its standard input, shortly after the tests if nothing waits for it.
    gateway.proc.stdin.close()
    gateway.proc.wait(timeout=60)


@pytest.fixture(scope="session")
def templates(tmp_path_factory: pytest.TempPathFactory) -> "Templates":
    """Return lakes that are built once and copied into the tests that begin with them."""
    from tests.support.stream_harness import Templates

    return Templates(tmp_path_factory.mktemp("templates"))


@pytest.fixture
def make_stream(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch, templates: "Templates"
) -> "Callable[..., StreamHarness]":
    """Return a function that makes streams with one shared landing folder; each `lake` is separate.

    With `ready`, a function that lands files and runs stages, the lake and its landing folder are a copy of a
    template that this function has built.
    """
    from tests.support.stream_harness import WEB, StreamHarness

    monkeypatch.setenv("TRANSOM_HOME", str(tmp_path))

    def make(
        text: str = WEB, lake: str = "lake", ready: "Callable[[StreamHarness], object] | None" = None
    ) -> StreamHarness:
        made = StreamHarness(spark, tmp_path, text, lake)
        if ready is not None:
            templates.copy(ready, text, made)
        return made

    return make


@pytest.fixture
def run_seed() -> int:
    """Return the seed of a test's draws: the same in every run, unless TRANSOM_SEED gives another one."""
    return int(os.environ.get("TRANSOM_SEED") or FIXED_SEED)


@pytest.fixture
def rng(run_seed: int) -> random.Random:
    """Return a generator for intervals and orders that a test draws once."""
    return random.Random(run_seed)


@pytest.fixture
def run() -> "Callable[..., Result]":
    """Return a function that runs a command of the command line."""
    from typer.testing import CliRunner

    from transom.cli.__main__ import app

    return lambda *arguments: CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> "Lake":
    """Return a lake, with its stream file found by its name."""
    monkeypatch.setenv("TRANSOM_HOME", str(tmp_path))
    monkeypatch.delenv("TRANSOM_LANDING", raising=False)
    monkeypatch.delenv("TRANSOM_SPARK_PROPERTIES", raising=False)
    monkeypatch.setenv("TRANSOM_STREAMS", str(tmp_path / "streams"))
    monkeypatch.setenv("TRANSOM_LAKE", str(tmp_path / "lake"))
    from tests.cli.ledger_by_hand import Lake

    return Lake(tmp_path)
