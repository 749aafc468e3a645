"""Run a Spark cluster on loopback: a master and two workers, ended with all processes that they started.

The cluster writes a properties file with all settings of its jobs, without those of set-up for small local
runs. The workers do not use the checkout: each job sends them the library.
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
"""Environment variables that a worker inherits: no Python path, and nothing of transom."""

SHORT = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Options of Java processes that live for about a minute on a small machine."""


@dataclass(frozen=True)
class Cluster:
    """A running cluster.

    Attributes:
        properties: the properties file for spark-submit.
        work: the folder for files that workers receive, and for the output of executors.
        leaders: the process ids of master and workers; each process leads a session.
    """

    url: str
    properties: Path
    work: Path
    leaders: tuple[int, ...]


@contextmanager
def running(folder: Path) -> Iterator[Cluster]:
    """Run a cluster with its files in `folder`.

    Raises:
        ServerError: the folder is in use, or the cluster does not start.
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
                # A worker retries until the master has started.
                start("Worker", "--cores", "1", "--memory", "2g", "--webui-port", "0", "-d", str(work), url)
            _wait_until_up(page, started, log.name)
            properties = _written(folder / "spark.properties", _settings(url, _library(folder)))
            yield Cluster(url, properties, work, tuple(process.pid for process in started))
        finally:
            end(started)


def _library(folder: Path) -> Path:
    """Pack the library as executors receive it."""
    packed = folder / "transom.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        for file in sorted((ROOT / "jobs" / "transom").rglob("*.py")):
            archive.write(file, file.relative_to(ROOT / "jobs"))
    return packed


def _settings(url: str, library: Path) -> dict[str, str]:
    # The settings of set-up have the paths of Delta's jars.
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
        # With the defaults, 200 (Spark) and 50 (Delta), most tasks of small tables would be empty.
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
        except (httpx.TransportError, ValueError):  # not started yet
            found = {}
        if found.get("aliveworkers") == WORKERS:
            return
        time.sleep(0.2)
    raise ServerError(f"the cluster did not come up within two minutes, see {log}")


def main() -> None:
    """Run a cluster for the jobs of this checkout until interrupted."""
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
