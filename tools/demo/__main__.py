"""`make demo`: process real logs with a real Airflow; show the results in the terminal and in its UI."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import IO

import airflow_server
import sample_logs
from airflow_api import OVER, Airflow
from demo.busy import busy
from demo.figures import (
    WEB_STREAM,
    busiest,
    busiest_hosts,
    came_back,
    growing,
    lines_of_the_log,
    regulars,
    show_findings,
)
from demo.frequent import most_asked_for
from demo.page import DEMO, LAKE, console, rows, show, snapshot, step, stretches
from demo.persistent import always_here, beacons
from processes import alone, until_interrupted
from sample_logs import CONN, HOUR, WEB, Hours, land
from transom.core.intervals import format_hour
from transom.features.registry import STAGES
from transom.ledger.ledger import Ledger
from transom.ledger.snapshot import LedgerSnapshot

FIRST = datetime(2015, 5, 17, 10, tzinfo=UTC)
END = datetime(2015, 5, 21, tzinfo=UTC)
LATE = datetime(2015, 5, 20, 12, tzinfo=UTC)
BAD = datetime(2015, 5, 20, 19, tzinfo=UTC)
MARKS = {"success": "[green]ok[/]", "failed": "[red]red[/]", "upstream_failed": "[yellow]not run[/]"}
ORDER = ("settle", *(task for stage in STAGES for task in (stage, f"{stage}_gate")), "report", "notify")


def follow(server: Airflow, dag: str, run: str) -> None:
    """Wait for a run and show the states of its tasks."""
    began, shown_last = time.monotonic(), ""
    states: Mapping[str, str] = {}
    with console.status(f"{dag} {run}") as status:
        for states in server.follow(dag, run):
            at = [f"{task} {state}" for task, state in states.items() if state not in OVER | {""}]
            doing = f"{dag} {run}: {', '.join(at) or 'waiting'}"
            status.update(f"{doing} ({time.monotonic() - began:.0f} s)")
            if not console.is_terminal and doing != shown_last:
                console.print(f"  {doing}")
            shown_last = doing
    tasks = [task for task in ORDER if task in states]
    shown = "  ".join(f"{task} {MARKS.get(states[task], states[task])}" for task in tasks)
    console.print(f"{dag} {run} ({time.monotonic() - began:.0f} s): {shown}")


def trigger(server: Airflow, dag: str, run: str, start: datetime, end: datetime) -> None:
    """Trigger an interval, as the UI's form does, and follow the run."""
    server.trigger(dag, run, **{"from": format_hour(start), "to": format_hour(end)})
    follow(server, dag, run)


def figures_around_the_late_file() -> dict[str, int]:
    """Return three counts that the late file changes."""
    site = {row["hour"]: row["n"] for row in rows("aggregates", block="site", level=0)}
    end = LATE + 6 * HOUR
    day = [row for row in rows("aggregates", block="traffic", level=2) if row["window_end"] == end]
    return {
        f"requests in the hour from {format_hour(LATE)}": site.get(LATE, 0),
        f"clients in the 24 hours to {format_hour(end)}": len(day),
        f"requests in the 24 hours to {format_hour(end)}": sum(row["n"] for row in day),
    }


def show_repaired(before: LedgerSnapshot, after: LedgerSnapshot, asked: set[datetime]) -> None:
    """Show which hours were recomputed without being requested."""
    changed: dict[tuple[str, str, str], set[datetime]] = {}
    for node, entry in after.items():
        previous = before.get(node)
        if node.hour not in asked and (previous is None or previous.run_id != entry.run_id):
            changed.setdefault((node.stage, node.block, node.table), set()).add(node.hour)
    lines = [[*what, stretches(hours)] for what, hours in sorted(changed.items())]
    show("Hours that were repaired", ["stage", "block", "table", "hours"], lines)


def one_by_one(hours: Sequence[datetime]) -> bool:
    """Recompute hours one by one in a separate lake, and return whether all digests are equal."""
    lake = DEMO / "one-by-one"
    script = Path(__file__).resolve().parents[1] / "one_by_one.py"
    log = DEMO / "one-by-one.log"
    with console.status("six hours one by one, in a lake of their own"), log.open("w") as output:
        done = subprocess.run(
            [sys.executable, script, lake, format_hour(hours[0]), format_hour(hours[-1] + HOUR)],
            env={**os.environ, "TRANSOM_LANDING": str(DEMO)}, stdout=output, stderr=output, check=False,
        )  # fmt: skip
    if done.returncode:
        console.print(f"one by one: failed, see {log}")
        return False
    whole, ones = snapshot(), snapshot(lake)
    lines, equal = [], True
    for hour in hours:
        nodes = [node for node in ones if node.hour == hour]
        same = all((whole[n].status, whole[n].digest) == (ones[n].status, ones[n].digest) for n in nodes)
        shown = next(ones[n].digest for n in nodes if n.table == "aggregates" and n.block == "traffic")
        lines.append([format_hour(hour), len(nodes), shown, "equal" if same else "[red]DIFFERENT[/]"])
        equal = equal and same
    title = "Hours computed in one run, and the same hours computed one by one"
    show(title, ["hour", "tables", "digest of traffic", "all digests"], lines)
    return equal


def audited(hour: datetime) -> bool:
    """Compare the sketches with exact counts of an hour's windows; return whether the audit ran."""
    jobs = Path(__file__).resolve().parents[2] / "jobs"
    log = DEMO / "audit.log"
    command: list[str | Path] = [
        "spark-submit", "--properties-file", os.environ["TRANSOM_SPARK_PROPERTIES"],
        jobs / "run.py", "--stages", "persistence,frequency", "--audit", "--stream", WEB_STREAM,
        "--lake", LAKE, "--from", format_hour(hour), "--to", format_hour(hour + HOUR),
    ]  # fmt: skip
    with console.status("an exact count to compare with the sketch"), log.open("w") as output:
        environment = {**os.environ, "TRANSOM_LANDING": str(DEMO)}
        done = subprocess.run(command, env=environment, stdout=output, stderr=output, check=False)
    audits = [line for line in log.read_text().splitlines() if line.startswith("audit of ")]
    console.print("\n".join(audits) or f"audit: failed, see {log}")
    return not done.returncode and bool(audits)


def cost(run: str) -> None:
    """Show the cost of the stages of a run of one hour."""
    lines = []
    for row in Ledger(str(LAKE / "web")).runs():
        if row["run_id"].startswith(run):
            seconds = row["phase_seconds"]
            work = seconds[row["stage"]]
            lines.append([row["stage"], seconds["session"], work, seconds["total"], row["peak_memory_mb"]])
    show("What an hour cost", ["stage", "session, s", "work, s", "in all, s", "driver, MB"], lines)


def tour(server: Airflow, web: Hours) -> bool:
    """Run the steps of the demo, and return whether all results agree with recounts."""
    # The last hour of the log, and the hours without lines after it.
    last = [END - 3 * HOUR, END - 2 * HOUR, END]
    step(f"{(last[0] - FIRST) // HOUR} hours in one run; one file is junk, and one has not come yet")
    trigger(server, "web", "whole", FIRST, last[0])
    lines_of_the_log(BAD)
    show_findings()

    step("The junk file is replaced, and the failed run cleared")
    land(DEMO, WEB, BAD, web[BAD])
    server.clear("web", "whole", "ingest")
    follow(server, "web", "whole")
    agrees = busiest({hour: lines for hour, lines in web.items() if hour != LATE})

    step(f"The file of {format_hour(LATE)} comes late; the last hour runs, and the quiet rest of the day")
    before, figures = snapshot(), figures_around_the_late_file()
    land(DEMO, WEB, LATE, web[LATE])
    for name, (start, end) in zip(("hour", "quiet"), pairwise(last), strict=True):
        trigger(server, "web", name, start, end)
    now = figures_around_the_late_file()
    lines = [[name, figures[name], now[name]] for name in figures]
    show("What the late file changed", ["value", "before", "after"], lines)
    show_repaired(before, snapshot(), {last[0] + number * HOUR for number in range(3)})
    show_findings()
    agrees = agrees and now == recounted(web)

    step("Who is growing, who keeps coming back, and who came back after days")
    agrees = growing(web) and regulars(web) and came_back(web) and agrees

    step("When the site was busy, and the same hours of the day before")
    agrees = busy(web, DEMO / "busy_hours.svg") and agrees

    step("Who is here in most hours of three days, and how exact that is")
    agrees = always_here(web, last[0] + HOUR) and agrees

    step("What is requested most, in little memory; and how exact both are")
    agrees = most_asked_for(web, last[0] + HOUR) and audited(last[0]) and agrees

    step("Six hours again, in a lake of their own, an hour a run")
    equal = one_by_one([FIRST + number * HOUR for number in range(6)])
    cost("hour")

    step("A second stream: Zeek's connections, two days")
    day = datetime(2020, 4, 30, tzinfo=UTC)
    trigger(server, "conn", "two-days", day, day + timedelta(hours=32))
    busiest_hosts()
    return beacons() and agrees and equal


def recounted(web: Hours) -> dict[str, int]:
    """Return the counts of `figures_around_the_late_file` from the raw log."""
    hour = sample_logs.requests(web, LATE, LATE + HOUR)
    day = sample_logs.requests(web, LATE - 18 * HOUR, LATE + 6 * HOUR)
    return dict(zip(figures_around_the_late_file(), (hour.total(), len(day), day.total()), strict=True))


def main() -> None:
    """Run the demo from start to end."""
    began = time.monotonic()
    if "TRANSOM_SPARK_PROPERTIES" not in os.environ:
        sys.exit("demo: the environment is not set up; run `make demo`")
    with alone(DEMO, "Airflow") as lock:
        good = shown(lock, began)
    if not good:
        sys.exit(1)


def shown(lock: IO[str], began: float) -> bool:
    """Land the logs, start Airflow, run the steps, and return whether all results are right."""
    shutil.rmtree(DEMO, ignore_errors=True)
    web, zeek = sample_logs.apache(), sample_logs.zeek()
    for hour, lines in web.items():
        if hour != LATE:
            land(DEMO, WEB, hour, ["\0\1 binary junk\n"] * 40 if hour == BAD else lines)
    for hour, lines in zeek.items():
        land(DEMO, CONN, hour, lines)
    console.print(f"landed {len(web) - 1} hourly Apache files and {len(zeek)} of Zeek in {DEMO / 'landing'}")
    console.print("starting Airflow on loopback (half a minute)")
    places = {"TRANSOM_LAKE": str(LAKE), "TRANSOM_LANDING": str(DEMO)}
    with airflow_server.running(DEMO / "airflow", places, lock=lock) as server:
        for dag in ("web", "conn"):
            server.pause(dag, False)
        login = "user {username}, password {password}".format(**server.login)
        console.print(f"Airflow is up: [bold]{server.url}[/] ({login})")
        good = tour(server, web)
        console.print(f"\nAirflow's UI: [bold]{server.url}/dags[/] ({login}); the tables: {LAKE}")
        console.print(f"The findings as pages: [bold]{server.url}/plugin/transom/transom/[/]")
        exports = " ".join(f"{name}={shlex.quote(value)}" for name, value in places.items())
        console.out(f"For transom's commands on these tables: export {exports}")
        verdict = "[green]all as it should be[/]" if good else "[red]values or digests differ[/]"
        console.print(f"demo: {verdict} ({time.monotonic() - began:.0f} s)")
        if sys.stdout.isatty() and not os.environ.get("CI"):
            console.print("Ctrl-C ends it and every process that it started; its tables stay")
            signal.pause()
        else:
            console.print("Airflow is ended now; with a terminal it stays up until Ctrl-C")
    return good


if __name__ == "__main__":
    until_interrupted("demo", main)
