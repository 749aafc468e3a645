"""One lazy Spark session for the whole run, and folders of their own for the streams."""

import logging
import os
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from house import House

# A machine that does other work is no fault of what is tested.
hypothesis.settings.register_profile(
    "tests", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("tests")

ZONE = "Asia/Kolkata"
"""Of the machine that the tests run on: half an hour off the hours, so that a time which goes by it shows."""

os.environ["TZ"] = ZONE
time.tzset()


@pytest.fixture(scope="session")
def spark() -> "Iterator[SparkSession]":
    """The session of the jobs, with the settings of set-up; tests without Spark start no JVM.

    One that lives for minutes wants Java's full compiler, which the settings leave out for short jobs. A
    thousand plans over a few rows each want no code generated for them, nor to be planned again half-way: two
    fifths of the time. The jobs that Airflow submits in the end-to-end tests have both. Driver, Java and
    workers are in the machine's zone, from which jobs and set-up keep them: no row may need that.
    """
    from transom.lake.session import session

    properties = os.environ["TRANSOM_SPARK_PROPERTIES"]
    options = Path(properties).read_text().partition("extraJavaOptions ")[2].splitlines()[0]
    options = options.replace("-XX:TieredStopAtLevel=1", "").replace("timezone=UTC", f"timezone={ZONE}")
    arguments = (
        f"--properties-file {properties} --driver-java-options '{options}' "
        "--conf spark.sql.codegen.wholeStage=false --conf spark.sql.codegen.factoryMode=NO_CODEGEN "
        "--conf spark.sql.adaptive.enabled=false "
        f"--conf spark.executorEnv.TZ={ZONE} pyspark-shell"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_SUBMIT_ARGS", arguments)
        built = session("tests")
    os.environ["TZ"] = ZONE
    time.tzset()
    yield built
    gateway = built.sparkContext._gateway
    built.stop()
    # Its connections are closed when the interpreter ends, and then say so to streams that are closed.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    gateway.shutdown()
    # Java ends with its standard input, a moment after the tests if nobody waits for it.
    gateway.proc.stdin.close()
    gateway.proc.wait(timeout=60)


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
