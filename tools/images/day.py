"""A day of the web log through the DAG of the services; each service fails once, and starts again.

Runs in a network and process namespace of its own, so that nothing of it is left when it ends.
"""

import json
import secrets
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx

from airflow_api import OVER, Airflow
from images.services import Container, Image, Services, resolve
from processes import ServerError, until_interrupted
from sample_logs import HOUR, WEB, apache, land
from transom.core.intervals import format_hour
from transom.features.registry import STAGES
from transom.ledger.ledger import Ledger

COMPOSE = Path(__file__).resolve().parents[2] / "docker" / "compose.yaml"
FIRST = datetime(2015, 5, 17, 10, tzinfo=UTC)
END = FIRST + timedelta(days=1)
DAG, RUN = "web", "day"
MOMENT = 5
"""Seconds between the moment at which an application has its executors, and a kill."""
LONGEST = 1800
"""Maximum of seconds for the run of the day; a quarter of an hour is usual."""
HANGS = "a scheduler that hangs"
FAULTS = (
    "spark-worker-1",
    "spark-master",
    "scheduler",
    "postgres",
    "api-server",
    HANGS,
    "dag-processor",
)
"""What is killed, one during each Spark job, in this order."""
UNDISTURBED = "undisturbed"
"""A lake of the same day, without a cluster and without a fault."""
COMPUTE = (
    'exec spark-submit --properties-file /opt/transom/spark/spark.properties "$(python -c '
    '\'from transom.core.locations import job_script; print(job_script("run"))\')"'
    ' --stream "$TRANSOM_STREAMS/$0.yaml" --lake "$TRANSOM_LAKE/$1" --from "$2" --to "$3"'
)
"""A shell command that computes hours of a stream without a cluster."""


class Client(Airflow):
    """The services' Airflow."""

    @property
    def url(self) -> str:
        """The address of the API in the network of the services."""
        return self.environment["url"]


class Memory:
    """The peak memory of each service."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._most: dict[str, tuple[int, int]] = {}
        self._at_once = 0
        self._next = 0.0

    def sample(self) -> None:
        """Measure all services, at most every 15 seconds."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + 15
        total = 0
        for name, container in self._services.containers.items():
            try:
                seen = container.memory()
            except OSError:  # it has ended
                continue
            total += seen[0]
            self._most[name] = max(seen, self._most.get(name, (0, 0)))
        self._at_once = max(self._at_once, total)

    def print(self) -> None:
        """Print a line for each service, and the peak of their sum."""
        for name, (size, count) in sorted(self._most.items()):
            print(f"  {name:16} {size / 2**20:6.0f} MiB in {count} processes")
        print(f"  {'all at once':16} {self._at_once / 2**20:6.0f} MiB", flush=True)


def has_executors(services: Services) -> bool:
    """Return whether Spark's master has given cores to an application."""
    try:
        page = httpx.get(f"http://{services.containers['spark-master'].address}:8080/json/").json()
    except (httpx.HTTPError, ValueError):  # not up, or an incomplete answer
        return False
    return any(application["cores"] > 0 for application in page["activeapps"])


def follow(services: Services, airflow: Airflow, memory: Memory) -> None:
    """Wait until the run ends, and let a service fail in each of its Spark jobs.

    Raises:
        ServerError: the run fails, takes too long, or ends before every fault.
    """
    began = time.monotonic()
    seen: dict[str, str] = {}
    running: dict[str, float] = {}
    disturbed: set[str] = set()
    left = list(FAULTS)

    def say(text: str) -> None:
        print(f"{time.monotonic() - began:6.0f} s  {text}", flush=True)

    while time.monotonic() - began < LONGEST:
        for name in services.tend():
            say(f"{name} is started again")
        memory.sample()
        try:
            states = airflow.states(DAG, RUN)
            state = airflow.ask("GET", f"/dags/{DAG}/dagRuns/{RUN}")["state"]
        except (ServerError, httpx.HTTPError):  # api-server or Postgres is not up
            time.sleep(1)
            continue
        for task, now in states.items():
            if seen.get(task, "") != now:
                seen[task] = now
                say(f"{task} {now}")
            if now != "running":
                running.pop(task, None)
            elif task in STAGES and task not in running and has_executors(services):
                running[task] = time.monotonic()
        for task, since in running.items():
            if left and task not in disturbed and time.monotonic() - since >= MOMENT:
                disturbed.add(task)
                fault = left.pop(0)
                if fault == HANGS:
                    services.containers["scheduler"].hang()
                    say(f"the scheduler hangs during {task}")
                else:
                    services.containers[fault].kill()
                    say(f"{fault} is killed during {task}")
        if state in OVER:
            if state != "success" or left:
                raise ServerError(f"the run ended: {state}; faults left: {left}; tasks: {states}")
            return
        time.sleep(1)
    raise ServerError(f"the run takes longer than {LONGEST} s: {seen}")


def main() -> None:
    """Start the services, send the day through, verify the tables, print memory."""
    work = Path(sys.argv[1])
    roots = json.loads((work / "roots.json").read_text())
    images = {name: Image(Path(root), configuration) for name, (root, configuration) in roots.items()}
    for hour, lines in apache().items():
        if FIRST <= hour < END:
            land(work, WEB, hour, lines)
    variables = {"TRANSOM_SECRET": secrets.token_hex(32), "TRANSOM_LANDING": str(work)}
    services = Services(resolve(COMPOSE, variables), images, COMPOSE, work)
    began = time.monotonic()
    for service in services.resolved["services"]:
        services.up(service)
    for container in services.containers.values():
        if container.restarts:
            services.wait(container, 300)
    print(f"all services are healthy after {time.monotonic() - began:.0f} s", flush=True)
    address = services.containers["api-server"].address
    airflow = Client(work / "volumes" / "airflow", 8080, {"url": f"http://{address}:8080"}, work)
    memory = Memory(services)
    memory.sample()
    memory.print()
    airflow.pause(DAG, False)
    airflow.trigger(DAG, RUN, **{"from": format_hour(FIRST), "to": format_hour(END)})
    try:
        follow(services, airflow, memory)
    finally:
        memory.print()
    scheduler = services.containers["scheduler"]
    services.wait(scheduler, 300)
    run(scheduler, "transom", "verify", DAG)
    run(scheduler, "transom", "status", DAG)
    compare(scheduler, work)
    print(
        f"a day of {(END - FIRST) // HOUR} hours with {len(FAULTS)} faults has the same rows as one without"
    )


def run(container: Container, *command: str) -> None:
    """Run a command in a container, and print its output.

    Raises:
        ServerError: it fails.
    """
    began = time.monotonic()
    done = container.run(*command)
    print(done.stdout + (done.stderr if done.returncode else ""))
    print(f"{' '.join(command[:2])}: {time.monotonic() - began:.0f} s", flush=True)
    if done.returncode:
        raise ServerError(f"{' '.join(command[:2])}: exit code {done.returncode}")


def compare(container: Container, work: Path) -> None:
    """Compute the day without a cluster, and compare the digests of all rows with those of the services.

    Raises:
        ServerError: they differ.
    """
    run(container, "sh", "-c", COMPUTE, DAG, UNDISTURBED, format_hour(FIRST), format_hour(END))
    lake = work / "volumes" / "lake"
    services, alone = (
        {node: (entry.status, entry.digest) for node, entry in Ledger(str(root / DAG)).snapshot().items()}
        for root in (lake, lake / UNDISTURBED)
    )
    differing = [node for node in services | alone if services.get(node) != alone.get(node)]
    print(f"{len(services)} hours of tables, {len(differing)} of them with other rows", flush=True)
    if differing:
        raise ServerError(f"other rows than without faults: {differing[:10]}")


if __name__ == "__main__":
    until_interrupted("images", main)
