"""Run a Spark Connect server on loopback, ended with all processes that it started."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from processes import ServerError, alone, end, free_port, taken, until_interrupted

ROOT = Path(__file__).resolve().parents[1]
PORT = 15002
SETTINGS = {
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.python.daemon.module": "transom.app.worker_daemon",
    "spark.python.worker.reuse": "false",
    # Sessions that no job has used are closed, and may be opened again by their names.
    "spark.connect.session.manager.defaultSessionTimeout": "3h",
    "spark.connect.session.manager.closedSessionsTombstonesSize": "0",
}
"""Settings of the server, in addition to those of set-up."""


@contextmanager
def running(folder: Path, port: int = 0, settings: Mapping[str, str] | None = None) -> Iterator[str]:
    """Run a server with its log in `folder`, and return its URL.

    Args:
        folder: a folder of the server's own.
        port: the port on loopback; 0 selects a free one.
        settings: settings of Spark that replace those of `SETTINGS`.

    Raises:
        ServerError: the port or the folder is in use, or the server does not start.
    """
    if port and taken(port):
        raise ServerError(f"port {port} is in use on this machine; choose another (PORT=...)")
    port = port or free_port()
    folder.mkdir(parents=True, exist_ok=True)
    wanted = {**SETTINGS, "spark.connect.grpc.binding.port": str(port), **(settings or {})}
    environment = {name: text for name, text in os.environ.items() if name != "SPARK_REMOTE"}
    with alone(folder, "Spark server") as lock, (folder / "server.log").open("w") as log:
        server = subprocess.Popen(
            [
                f"{os.environ['SPARK_HOME']}/bin/spark-submit",
                *("--properties-file", os.environ["TRANSOM_SPARK_PROPERTIES"]),
                *(word for name, value in wanted.items() for word in ("--conf", f"{name}={value}")),
                *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer"),
                *("--name", "transom", "spark-internal"),
            ],
            cwd=folder, env=environment, stdout=log, stderr=log,
            start_new_session=True, pass_fds=(lock.fileno(),),
        )  # fmt: skip
        try:
            _wait_until_up(server, port, log.name)
            yield f"sc://127.0.0.1:{port}"
        finally:
            end([server])


def _wait_until_up(server: "subprocess.Popen[bytes]", port: int, log: str) -> None:
    deadline = time.monotonic() + 180
    while time.monotonic() < deadline:
        if server.poll() is not None:
            raise ServerError(f"the Spark server ended, see {log}")
        if taken(port):
            return
        time.sleep(0.2)
    raise ServerError(f"the Spark server did not come up within three minutes, see {log}")


def main() -> None:
    """Run a server for the jobs of this checkout until interrupted."""
    port = os.environ.get("PORT", str(PORT))
    if not port.isdecimal():
        raise ServerError(f"PORT must be a port's number; got {port!r}")
    print("starting a Spark server on loopback", flush=True)
    with running(ROOT / ".transom" / "spark-server", int(port)) as url:
        print(
            f"{url} is up; Ctrl-C ends it. A job runs there with\n"
            f"  SPARK_REMOTE={url} python jobs/run.py ...",
            flush=True,
        )
        signal.pause()


if __name__ == "__main__":
    until_interrupted("spark", main)
