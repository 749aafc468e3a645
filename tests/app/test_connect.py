"""Jobs on a Spark Connect server: the same tables as in a JVM of their own, and clear errors."""

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import spark_server
from tests.promise.test_every_stage import EVERY_STAGE, requests
from tests.support.stream_harness import StreamHarness, line
from transom.core.intervals import format_hour
from transom.storage.connect import ServerError, connect

ROOT = Path(__file__).resolve().parents[2]
HOURS = 3
OTHER = """
name: other
preset: apache/combined
source: {path: "landing/web/%Y-%m-%d/access.%H*.log.gz"}
key: [client]
columns: {kilobytes: {is: bytes / 1000, type: number, resolution: "0.001"}}
aggregates: {traffic: {measures: {n: count, sent: sum(kilobytes)}, levels: RANGES 1 HOUR SLIDES 1 HOUR}}
"""
HELPERS = """
import pyarrow as pa
from transom.storage.session import FOR_FEW_ROWS, frame_of, parallelism, session

spark, name = session("one"), "spark.sql.shuffle.partitions"
rows = pa.schema({"numbers": pa.list_(pa.int64()), "at": pa.timestamp("us", "UTC")}).empty_table()
print(frame_of(spark, rows).schema.simpleString(), frame_of(spark, rows).count())
print(parallelism(spark))
print(spark.conf.get(name), spark.conf.get("spark.sql.session.timeZone"))
for setting, value in FOR_FEW_ROWS.items():
    spark.conf.set(setting, value)
other = session("other")
print(spark.conf.get(name), other.conf.get(name))
# As after a kill of the job.
again = session("one")
print(again.conf.get(name), flush=True)
for started in (spark, other, again):
    started.stop()
"""
pytestmark = pytest.mark.xdist_group("spark server")

Make = Callable[..., StreamHarness]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the URL of a server, with the settings of `make spark`."""
    with spark_server.running(tmp_path_factory.mktemp("server") / "spark") as url:
        yield url


def job(harness: StreamHarness, url: str, text: str, first: int = 0, last: int = HOURS) -> list[str]:
    """Write the stream file of a harness, and return the command that runs all stages in its lake."""
    lake = Path(harness.root).parent
    file = lake.with_suffix(".yaml")
    file.write_text(text)
    hours = harness.context(first, last).interval
    return [
        "env", f"SPARK_REMOTE={url}", sys.executable, str(ROOT / "jobs/run.py"), "--stream", str(file),
        "--lake", str(lake), "--from", format_hour(hours.start), "--to", format_hour(hours.end),
    ]  # fmt: skip


def start(command: list[str]) -> "subprocess.Popen[str]":
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.full
@pytest.mark.spark
def test_jobs_of_two_streams_on_a_server_leave_the_tables_of_own_applications(
    make_stream: Make, server: str
) -> None:
    """Slow (half a minute): every stage runs, in both ways."""
    texts = {"every": EVERY_STAGE, "other": OTHER}
    near = {name: make_stream(text, f"near-{name}") for name, text in texts.items()}
    far = {name: make_stream(text, f"far-{name}") for name, text in texts.items()}
    for number in range(HOURS):
        near["every"].land(number, requests(number))
    # Both at once: neither may get the settings of the other one's session.
    running = [start(job(far[name], server, text)) for name, text in texts.items()]
    outputs = [process.communicate() for process in running]
    assert [process.returncode for process in running] == [0, 0], outputs
    for name, harness in near.items():
        harness.run(0, HOURS)
        far[name].assert_same(harness, name)
        assert far[name].findings() == harness.findings()
        far[name].assert_ledger_true()


@pytest.mark.full
@pytest.mark.spark
def test_sessions_of_a_server_have_own_settings_and_take_empty_rows(server: str) -> None:
    command = ["env", f"SPARK_REMOTE={server}/;user_id=somebody", sys.executable, "-c", HELPERS]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (ended.stderr, ended.returncode) == ("", 0)
    assert ended.stdout.splitlines() == [
        "struct<numbers:array<bigint>,at:timestamp> 0", str(os.cpu_count()), "4 UTC", "1 4", "4"
    ]  # fmt: skip


@pytest.mark.parametrize("url", ["127.0.0.1:15002", "sc:/x", "sc://host:port", "sc://host/path", "sc://"])
def test_malformed_url_is_an_error(url: str) -> None:
    with pytest.raises(ServerError, match=rf"^SPARK_REMOTE: must be the URL .*; got {re.escape(repr(url))}$"):
        connect(url, "", {}, ())


def test_server_that_is_not_there_is_an_error_without_the_token() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # it does not listen
        port = bound.getsockname()[1]
        with pytest.raises(ServerError) as raised:
            connect(f"sc://127.0.0.1:{port}/;token=secret", "", {}, ())
    assert re.fullmatch(
        rf"SPARK_REMOTE: there is no server at 127.0.0.1:{port}: Connection refused; .*", str(raised.value)
    )
    assert "secret" not in str(raised.value)


@pytest.mark.full
@pytest.mark.spark
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"spark.sql.extensions": "none.of.Delta"}, "must be started with spark.sql.extensions io.delta."),
        ({"spark.jars": ""}, "does not run a job of transom: "),
        ({"spark.python.daemon.module": "pyspark.daemon"},
         "does not run a job of transom: ModuleNotFoundError: No module named 'transom"),
    ],
)  # fmt: skip
def test_server_that_cannot_run_a_job_is_an_error(
    make_stream: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], message: str
) -> None:
    """Slow (ten seconds each): it starts a server."""
    harness = make_stream(OTHER)
    # A job with nothing to do needs no server.
    harness.land(0, [line(0)])
    with monkeypatch.context() as environment:
        if "spark.python.daemon.module" in settings:
            # The package may be installed; an empty one goes before it.
            (tmp_path / "empty" / "transom").mkdir(parents=True)
            (tmp_path / "empty" / "transom" / "__init__.py").touch()
            environment.setenv("PYTHONPATH", str(tmp_path / "empty"))
        with spark_server.running(tmp_path / "server", settings=settings) as url:
            command = job(harness, url, OTHER)
            environment.setenv("PYTHONPATH", str(ROOT / "jobs"))
            ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    (error,) = ended.stderr.splitlines()
    assert message in error
    assert error.startswith(f"run: SPARK_REMOTE: the server at {url.removeprefix('sc://')} ")


@pytest.mark.full
@pytest.mark.spark
def test_job_whose_server_is_killed_ends_with_an_error_and_runs_again(
    make_stream: Make, tmp_path: Path
) -> None:
    """Slow (half a minute): it starts two servers."""
    near, far = make_stream(OTHER, "near"), make_stream(OTHER, "far")
    for number in range(HOURS):
        near.land(number, [line(3600 * number + second) for second in range(0, 3600, 60)])
    with spark_server.running(tmp_path / "server") as url, start(job(far, url, OTHER)) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith("ingest other"), "aggregates are next"
        os.kill(_process_of(url), signal.SIGKILL)
        lines = process.stderr.read().splitlines()
    assert process.returncode == 1
    assert len(lines) == 3, lines
    assert lines[0] == f"run: failed: the Spark server at {url} has ended or has started again"
    assert lines[2].endswith("then run the interval again")
    with spark_server.running(tmp_path / "server") as url:
        assert subprocess.run(job(far, url, OTHER), capture_output=True, check=False).returncode == 0
    near.run(0, HOURS)
    far.assert_same(near)


def _process_of(url: str) -> int:
    """Return the process id of a server."""
    setting = f"spark.connect.grpc.binding.port={url.rpartition(':')[2]}".encode()
    (found,) = (file for file in Path("/proc").glob("[0-9]*/cmdline") if setting in file.read_bytes())
    return int(found.parent.name)
