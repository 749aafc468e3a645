"""A Spark cluster on loopback, a master and two workers as processes, ended with all that they started.

What a job needs of a cluster stands in the properties that it writes, and nothing of set-up's settings for
small local runs. The workers know nothing of the checkout: the library reaches them with the job.
"""

import os
import signal
import subprocess
import time
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from processes import ServerError, alone, end, free_port, until_interrupted

ROOT = Path(__file__).resolve().parents[1]
WORKERS = 2
KEPT = ("HOME", "JAVA_HOME", "PATH", "SPARK_HOME", "TZ")
"""What a worker takes over from the environment: neither a Python path nor anything of transom."""

SHORT = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Of Java processes that live for a minute on a small machine."""


@dataclass(frozen=True)
class Cluster:
    """A running cluster.

    Attributes:
        properties: the file that spark-submit is given.
        work: the folder in which the workers keep what they are sent, and what executors print.
        leaders: the processes of master and workers, each of which leads a session.
    """

    url: str
    properties: Path
    work: Path
    leaders: tuple[int, ...]


@contextmanager
def running(folder: Path) -> Iterator[Cluster]:
    """A cluster that keeps its files in `folder`.

    Raises:
        ServerError: the folder is in use, or the cluster does not come up.
    """
    folder.mkdir(parents=True, exist_ok=True)
    started: list[subprocess.Popen[bytes]] = []
    with alone(folder, "cluster") as lock, (folder / "cluster.log").open("w") as log:
        environment = {name: os.environ[name] for name in KEPT if name in os.environ}
        environment |= {
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": str(folder / "local"),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": SHORT,
        }

        def start(role: str, *arguments: str) -> None:
            started.append(
                subprocess.Popen(
                    [
                        f"{os.environ['SPARK_HOME']}/bin/spark-class",
                        f"org.apache.spark.deploy.{role.lower()}.{role}",
                        *("--host", "127.0.0.1", *arguments),
                    ],
                    cwd=folder, env=environment, stdout=log, stderr=log,
                    start_new_session=True, pass_fds=(lock.fileno(),),
                )
            )  # fmt: skip

        port, page, work = free_port(), free_port(), folder / "work"
        url = f"spark://127.0.0.1:{port}"
        try:
            start("Master", "--port", str(port), "--webui-port", str(page))
            for _ in range(WORKERS):
                # A worker keeps trying until there is a master.
                start("Worker", "--cores", "1", "--memory", "2g", "--webui-port", "0", "-d", str(work), url)
            _wait_until_up(page, started, log.name)
            properties = _written(folder / "spark.properties", _settings(url, _library(folder)))
            yield Cluster(url, properties, work, tuple(process.pid for process in started))
        finally:
            end(started)


def _library(folder: Path) -> Path:
    """The library as executors get it."""
    packed = folder / "transom.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        for file in sorted((ROOT / "jobs" / "transom").rglob("*.py")):
            archive.write(file, file.relative_to(ROOT / "jobs"))
    return packed


def _settings(url: str, library: Path) -> dict[str, str]:
    # Set-up's settings name Delta's jars, here or where it was done.
    lines = Path(os.environ["TRANSOM_SPARK_PROPERTIES"]).read_text().splitlines()
    (jars,) = (line.split(" ", 1)[1] for line in lines if line.startswith("spark.jars "))
    return {
        "spark.master": url,
        "spark.submit.deployMode": "client",
        "spark.jars": jars,
        "spark.submit.pyFiles": str(library),
        "spark.pyspark.python": os.environ["PYSPARK_PYTHON"],
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": SHORT,
        "spark.executor.extraJavaOptions": SHORT,
        "spark.executor.cores": "1",
        "spark.executor.memory": "1g",
        # Spark's 200 and Delta's 50 are for larger ones: here most of such tasks would be empty.
        "spark.sql.shuffle.partitions": "8",
        "spark.databricks.delta.snapshotPartitions": "4",
        "spark.ui.showConsoleProgress": "false",
    }


def _written(file: Path, settings: Mapping[str, str]) -> Path:
    file.write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
    return file


def _wait_until_up(page: int, started: "list[subprocess.Popen[bytes]]", log: str) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if any(process.poll() is not None for process in started):
            raise ServerError(f"the cluster ended, see {log}")
        try:
            found = httpx.get(f"http://127.0.0.1:{page}/json/", trust_env=False).json()
        except (httpx.TransportError, ValueError):  # not up, or half-way
            found = {}
        if found.get("aliveworkers") == WORKERS:
            return
        time.sleep(0.2)
    raise ServerError(f"the cluster did not come up within two minutes, see {log}")


def main() -> None:
    """A cluster for the jobs of this checkout, until it is interrupted."""
    print("starting a Spark master and two workers on loopback", flush=True)
    with running(ROOT / ".transom" / "cluster") as cluster:
        print(
            f"{cluster.url} is up; Ctrl-C ends it. A job runs there with\n"
            f"  spark-submit --properties-file {cluster.properties} jobs/run.py ...",
            flush=True,
        )
        signal.pause()


if __name__ == "__main__":
    until_interrupted("cluster", main)
