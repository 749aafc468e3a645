"""`make demo`: real logs through a real Airflow, and what was found, in the terminal and in its UI."""

import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import airflow_server
from deltalake import DeltaTable
from rich.console import Console
from rich.table import Table

from transom.intervals import format_hour
from transom.lake.ledger import Ledger

ROOT = Path(__file__).resolve().parents[1]
DEMO = ROOT / ".transom" / "demo"
LAKE = DEMO / "lake"
DATA = ROOT / "tests" / "data"
HOUR = timedelta(hours=1)
FIRST = datetime(2015, 5, 17, 10, tzinfo=UTC)
END = datetime(2015, 5, 20, 22, tzinfo=UTC)
LATE = datetime(2015, 5, 20, 12, tzinfo=UTC)
BAD = datetime(2015, 5, 20, 19, tzinfo=UTC)
console = Console(highlight=False)


def hours_of(name: str, time_of: Any) -> dict[datetime, list[str]]:
    """The lines of a log by their hour."""
    hours: dict[datetime, list[str]] = defaultdict(list)
    for line in gzip.decompress((DATA / name).read_bytes()).decode().removesuffix("\n").split("\n"):
        hours[time_of(line).replace(minute=0, second=0, microsecond=0)].append(line + "\n")
    return hours


def apache_time(line: str) -> datetime:
    """When a line of the Apache log says that it happened."""
    text = line.split("[", 1)[1].split("]", 1)[0]
    return datetime.strptime(text, "%d/%b/%Y:%H:%M:%S %z").astimezone(UTC)


def zeek_time(line: str) -> datetime:
    """When a connection ended."""
    record = json.loads(line)
    return datetime.fromtimestamp(record["ts"] + record.get("duration", 0), UTC)


def land(path: str, hour: datetime, lines: list[str]) -> None:
    """Lands the file of an hour."""
    file = DEMO / hour.strftime(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(gzip.compress("".join(lines).encode()))


WEB = "landing/web/%Y-%m-%d/access.%H.log.gz"
CONN = "landing/conn/%Y-%m-%d/conn.%H.json.gz"


def rows(table: str, stream: str = "web", **equal: object) -> list[dict[str, Any]]:
    """The rows of a result table, read without Spark."""
    filters = [(name, "=", value) for name, value in equal.items()]
    found: list[dict[str, Any]] = (
        DeltaTable(str(LAKE / stream / table)).to_pyarrow_table(filters=filters or None).to_pylist()
    )
    return found


def follow(
    server: airflow_server.Airflow, dag: str, run: str, start: datetime, end: datetime
) -> dict[str, str]:
    """Triggers a stretch and waits for it, with what it is at."""
    began = time.monotonic()
    title, run = run, run.replace(",", "").replace(" ", "_")
    server.trigger(dag, run, **{"from": format_hour(start), "to": format_hour(end)})
    over = {"success", "failed", "upstream_failed"}
    with console.status(f"{dag}: {title}") as status:
        while True:
            states = server.states(dag, run)
            doing = ", ".join(f"{task} {state}" for task, state in states.items() if state not in over | {""})
            status.update(f"{dag}: {title}: {doing or 'waiting'} ({time.monotonic() - began:.0f} s)")
            if states and set(states.values()) <= over:
                break
            time.sleep(1)
    marks = {"success": "[green]ok[/]", "failed": "[red]red[/]", "upstream_failed": "[yellow]not run[/]"}
    shown = "  ".join(f"{task} {marks[state]}" for task, state in states.items())
    console.print(f"{dag}: {title} ({time.monotonic() - began:.0f} s): {shown}")
    return states


def show(title: str, columns: list[str], lines: list[list[object]]) -> None:
    """A table in the terminal."""
    table = Table(*columns, title=title, title_justify="left")
    for line in lines:
        table.add_row(*map(str, line))
    console.print(table)


def busiest() -> None:
    """The busiest clients at three granularities."""
    found = rows("aggregates", block="traffic")
    lines: list[list[object]] = []
    for level, name in ((0, "1 hour"), (1, "6 hours"), (2, "24 hours")):
        best = sorted((r for r in found if r["level"] == level), key=lambda r: (-r["n"], r["client"]))[:3]
        lines += [
            [
                name,
                format_hour(r["window_end"]),
                r["client"],
                r["n"],
                r["sent"],
                "yes" if r["complete"] else "no",
            ]
            for r in best
        ]
    show("Busiest clients", ["window", "until", "client", "requests", "bytes", "complete"], lines)


def digests(lake: Path, stages: tuple[str, ...] = ("ingest", "aggregate")) -> dict[tuple[str, ...], str]:
    """The digest of every node of a lake."""
    book = Ledger(str(lake / "web")).book(stages)
    return {
        (node.block, node.table, format_hour(node.hour)): entry.digest
        for node, entry in book.items()
        if node.table != "files"
    }


def one_by_one(hours: list[datetime]) -> Path:
    """The same hours in a lake of their own, an hour a run, by the jobs themselves."""
    lake = DEMO / "one-by-one"
    for index, hour in enumerate(hours):
        console.print(f"one by one: {format_hour(hour)} ({index + 1} of {len(hours)})")
        for stage in ("ingest", "aggregate"):
            submit(stage, lake, hour, hour + HOUR)
    return lake


def submit(stage: str, lake: Path, start: datetime, end: datetime) -> None:
    """Runs a job as the DAG would."""
    command = [
        "spark-submit", "--properties-file", os.environ["TRANSOM_SPARK_PROPERTIES"],
        str(ROOT / "jobs" / f"{stage}.py"), "--stream", str(ROOT / "schemas/streams/web.yaml"),
        "--lake", str(lake), "--from", format_hour(start), "--to", format_hour(end),
    ]  # fmt: skip
    environment = {**os.environ, "TRANSOM_LANDING": str(DEMO)}
    subprocess.run(command, check=True, env=environment, capture_output=True)


def before_and_after(hours: Mapping[datetime, list[str]]) -> dict[str, int]:
    """Three figures that the late file changes."""
    site = {r["hour"]: r["n"] for r in rows("aggregates", block="site")}
    day = [r for r in rows("aggregates", block="traffic", level=2) if r["window_end"] == LATE + 6 * HOUR]
    return {
        f"requests in hour {format_hour(LATE)}": site.get(LATE, 0),
        f"clients in the 24 hours to {format_hour(LATE + 6 * HOUR)}": len(day),
        f"requests in the 24 hours to {format_hour(LATE + 6 * HOUR)}": sum(r["n"] for r in day),
    }


def main() -> None:
    """Runs the demo from end to end."""
    began = time.monotonic()
    if "TRANSOM_SPARK_PROPERTIES" not in os.environ:
        sys.exit("demo: the environment is not set up; run `make demo`")
    shutil.rmtree(DEMO, ignore_errors=True)
    web = hours_of("apache_access.log.gz", apache_time)
    for hour, lines in web.items():
        if hour != LATE:
            land(WEB, hour, ["\0\1 binary junk\n"] * 40 if hour == BAD else lines)
    for name in ("zeek_conn_day1.json.gz", "zeek_conn_day2.json.gz"):
        for hour, lines in hours_of(name, zeek_time).items():
            land(CONN, hour, lines)
    console.print(f"landed {len(web) - 1} hourly Apache files and the Zeek files in {DEMO / 'landing'}")
    console.print("starting Airflow on loopback (half a minute)")
    with airflow_server.running(
        DEMO / "airflow", TRANSOM_LAKE=str(LAKE), TRANSOM_LANDING=str(DEMO)
    ) as server:
        server.command("dags", "reserialize")
        for dag in ("web", "conn"):
            server.command("dags", "unpause", dag)
        console.print(f"Airflow is up at [bold]{server.url}[/]")

        follow(server, "web", "84 hours in one go", FIRST, END)
        files = rows("files")
        show(
            "Lines of the log",
            ["files", "lines", "events", "rejected"],
            [[len(files), *(sum(f[c] for f in files) for c in ("lines", "accepted", "rejected"))]],
        )
        status = {
            n.hour: e for n, e in Ledger(str(LAKE / "web")).book(["ingest"]).items() if n.table == "events"
        }
        aside = [format_hour(hour) for hour, entry in status.items() if entry.status == "quarantined"]
        good = sum(entry.status == "published" for entry in status.values())
        console.print(f"set aside: {', '.join(aside)}; published: {good} of {len(status)} hours")
        console.print(f"  {status[BAD].cause}")

        land(WEB, BAD, web[BAD])
        follow(server, "web", "the bad hour, mended", BAD, BAD + HOUR)
        follow(server, "web", "figures of all hours", FIRST, END)
        busiest()

        before = before_and_after(web)
        land(WEB, LATE, web[LATE])
        follow(server, "web", "last hour but one", END - 2 * HOUR, END - HOUR)
        runs_before = len(Ledger(str(LAKE / "web")).runs())
        follow(server, "web", "last hour", END - HOUR, END)
        after = before_and_after(web)
        show(
            f"What the late file of {format_hour(LATE)} changed",
            ["figure", "before", "after"],
            [[name, before[name], after[name]] for name in before],
        )
        runs = Ledger(str(LAKE / "web")).runs()
        for run in runs[-4:]:
            if run["hours_healed"]:
                console.print(f"healed by {run['run_id']}: {run['hours_healed']} tables of hours")

        follow(
            server,
            "conn",
            "Zeek, day 1",
            datetime(2020, 4, 30, 0, tzinfo=UTC),
            datetime(2020, 4, 30, 2, tzinfo=UTC),
        )

        six = [FIRST + number * HOUR for number in range(6)]
        ones, at_once = digests(one_by_one(six)), digests(LAKE)
        compared: list[list[object]] = [
            [hour, len(same), "equal" if all(same) else "[red]DIFFERENT[/]"]
            for hour in map(format_hour, six)
            for same in [[at_once[key] == digest for key, digest in ones.items() if key[2] == hour]]
        ]
        show("Six hours made in one go, and one by one", ["hour", "tables", "digests"], compared)

        cost = [
            [run["stage"], name, seconds]
            for run in runs[runs_before:]
            for name, seconds in json.loads(run["seconds"]).items()
        ]
        show("What an hour cost", ["stage", "phase", "seconds"], cost)
        passwords = DEMO / "airflow" / "simple_auth_manager_passwords.json.generated"
        login = json.loads(passwords.read_text()) if passwords.exists() else {}
        console.print(f"UI: [bold]{server.url}[/]  login: {login}")
        different = any(at_once[key] != digest for key, digest in ones.items())
        verdict = "demo: [red]digests differ[/]" if different else "demo: [green]all as it should be[/]"
        console.print(f"{verdict} ({time.monotonic() - began:.0f} s)")
        if sys.stdout.isatty() and not os.environ.get("CI"):
            console.print("Ctrl-C ends it and every process that it started")
            signal.pause()
        if different:
            sys.exit(1)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        console.print("demo: ended")
    except airflow_server.ServerError as error:
        sys.exit(f"demo: {error}")
