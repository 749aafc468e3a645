"""`make demo`: real logs through a real Airflow, and what was found, in the terminal and in its UI."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

import airflow_server
import numpy as np
import sample_logs
from airflow_api import OVER, Airflow
from deltalake import DeltaTable
from processes import alone, until_interrupted
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from sample_logs import CONN, HOUR, WEB, Hours, land

from transom.intervals import format_hour, ranges
from transom.lake.book import Book
from transom.lake.findings import findings
from transom.lake.ledger import Ledger
from transom.lake.tables import read_rows
from transom.stream import load
from transom.units import spoken

DEMO = Path(__file__).resolve().parents[1] / ".transom" / "demo"
LAKE = DEMO / "lake"
FIRST = datetime(2015, 5, 17, 10, tzinfo=UTC)
END = datetime(2015, 5, 21, tzinfo=UTC)
WEB_STREAM = Path(__file__).resolve().parents[1] / "schemas" / "streams" / "web.yaml"
LATE = datetime(2015, 5, 20, 12, tzinfo=UTC)
BAD = datetime(2015, 5, 20, 19, tzinfo=UTC)
RINGS = ((1, 0), (6, 1), (24, 6))
"""Of the site's levels, in hours before a window's end."""
MARKS = {"success": "[green]ok[/]", "failed": "[red]red[/]", "upstream_failed": "[yellow]not run[/]"}
ORDER = ("settle", "ingest", "ingest_gate", "widen", "widen_gate", "aggregate", "aggregate_gate", "report")
console = Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else 110)


def step(text: str) -> None:
    """Says what comes next."""
    console.print(f"\n[bold]{text}[/]")


def show(title: str, columns: Sequence[str], lines: Sequence[Sequence[object]]) -> None:
    """A table in the terminal."""
    # A time or an address that is cut short tells nothing: where there is no room, lines break at spaces.
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for number, column in enumerate(columns):
        words = [word for text in (column, *(str(line[number]) for line in lines)) for word in text.split()]
        table.add_column(column, overflow="fold", min_width=max(map(len, words), default=0))
    for line in lines:
        table.add_row(*map(str, line))
    console.print(table)


def rows(table: str, stream: str = "web", **equal: object) -> list[dict[str, Any]]:
    """The rows of a table, read without Spark."""
    found = read_rows(DeltaTable(str(LAKE / stream / table)))
    return [row for row in found if all(row[name] == value for name, value in equal.items())]


def book(lake: Path = LAKE) -> Book:
    """The ledger of the web stream."""
    return Ledger(str(lake / "web")).book()


def stretches(hours: set[datetime]) -> str:
    """Hours in words."""
    return ", ".join(f"{format_hour(s.start)} to {format_hour(s.end)}" for s in ranges(sorted(hours)))


def follow(server: Airflow, dag: str, run: str) -> None:
    """Waits for a run and shows what it is at."""
    began, told = time.monotonic(), ""
    states: Mapping[str, str] = {}
    with console.status(f"{dag} {run}") as status:
        for states in server.follow(dag, run):
            at = [f"{task} {state}" for task, state in states.items() if state not in OVER | {""}]
            doing = f"{dag} {run}: {', '.join(at) or 'waiting'}"
            status.update(f"{doing} ({time.monotonic() - began:.0f} s)")
            if not console.is_terminal and doing != told:
                console.print(f"  {doing}")
            told = doing
    tasks = [task for task in ORDER if task in states]
    shown = "  ".join(f"{task} {MARKS.get(states[task], states[task])}" for task in tasks)
    console.print(f"{dag} {run} ({time.monotonic() - began:.0f} s): {shown}")


def trigger(server: Airflow, dag: str, run: str, start: datetime, end: datetime) -> None:
    """Triggers a stretch, as the UI's form does, and follows it."""
    server.trigger(dag, run, **{"from": format_hour(start), "to": format_hour(end)})
    follow(server, dag, run)


def lines_of_the_log() -> None:
    """Rows in and rejected, and the hour that was set aside."""
    files = rows("files")
    figures = [sum(file[column] for file in files) for column in ("lines", "accepted", "rejected")]
    show("Lines", ["files", "lines", "events", "rejected"], [[len(files), *figures]])
    status = {n.hour: e for n, e in book().items() if (n.stage, n.table) == ("ingest", "events")}
    aside = {hour for hour, entry in status.items() if entry.status == "quarantined"}
    good = sum(entry.status == "published" for entry in status.values())
    console.print(f"published: {good} of {len(status)} hours; set aside: {stretches(aside)}")
    console.print(f"  because {status[BAD].cause}")


def told() -> None:
    """What a person is told, the worst first."""
    lines = [[f.severity, f.kind, f.title] for f in findings(str(LAKE / "web"))]
    show("Findings", ["severity", "kind", "what and when"], lines or [["-", "-", "nothing"]])


def busiest(web: Hours) -> bool:
    """The busiest clients at three granularities, beside a plain recount of the raw log."""
    found = rows("aggregates", block="traffic")
    lines: list[list[object]] = []
    for level, name in ((0, "1"), (1, "6"), (2, "24")):
        best = sorted((r for r in found if r["level"] == level), key=lambda r: (-r["n"], r["client"]))[:3]
        for r in best:
            recounted = sample_logs.requests(web, r["window_start"], r["window_end"])[r["client"]]
            until = format_hour(r["window_end"])
            lines.append([name, until, r["client"], r["n"], recounted, r["sent"], r["complete"]])
    columns = ["hours", "until", "client", "requests", "recounted", "bytes", "whole"]
    show("Busiest clients, three windows each; requests recounted from the raw log", columns, lines)
    return all(line[3] == line[4] for line in lines)


def growing(web: Hours) -> bool:
    """The clients whose requests grow fastest over a day, beside a line through the raw log's hours."""
    day = rows("aggregates", block="traffic", level=2)
    end = max(row["window_end"] for row in day)
    lines: list[list[object]] = []
    equal = True
    fastest = sorted((r for r in day if r["window_end"] == end), key=lambda r: (-r["slope_n"], r["client"]))
    hours = [sample_logs.requests(web, end - n * HOUR, end - (n - 1) * HOUR) for n in range(24, 0, -1)]
    for row in fastest[:3]:
        [slope, _] = np.polyfit(range(24), [hour[row["client"]] for hour in hours], 1)
        equal = equal and abs(slope - row["slope_n"]) < 1e-9
        lines.append([row["client"], row["n"], row["pages"], f"{row['slope_n']:+.4f}", f"{slope:+.4f}"])
    columns = ["client", "requests", "pages", "requests an hour, each hour", "by numpy"]
    show(f"Growing: clients in the 24 hours to {format_hour(end)}", columns, lines)
    return equal


def regulars(web: Hours) -> bool:
    """The clients that were there in every ring between the levels, beside a recount of the raw log."""
    found = rows("recurring", block="site")
    end = max(row["window_end"] for row in found)
    rings = [sample_logs.requests(web, end - far * HOUR, end - near * HOUR) for far, near in RINGS]
    recounted = {
        client: [ring[client] for ring in rings] for client in set(rings[0]).intersection(*rings[1:])
    }
    here = {row["client"]: row["counts"] for row in found if row["window_end"] == end}
    best = sorted(here, key=lambda client: (-min(here[client]), client))[:5]
    columns = ["client", *(f"{far} to {near} hours before" for far, near in RINGS)]
    lines = [[client, *here[client]] for client in best]
    show(f"Recurring: {len(here)} clients at {format_hour(end)}, requests in each ring", columns, lines)
    return here == recounted


def came_back(web: Hours) -> bool:
    """The episodes of days that hourly runs have found, beside a search of the raw log."""
    pattern = load(WEB_STREAM).patterns["came_back"]
    console.print("Came back: a look, and 8 probes a day or more later, which no window of 24 hours holds")
    for match in rows("matches", block="came_back"):
        apart, late = match["last_time"] - match["first_time"], match["detected_at"] - match["last_time"]
        console.print(
            f"  {match['client']} looked at {match['first_time']:%Y-%m-%dT%H:%M:%S}; its last probe came "
            f"{spoken(apart)} later.\n"
            f"  Found at level {match['level']}, in windows of "
            f"{spoken(2 * pattern.batch * 2 ** match['level'])}; told at "
            f"{format_hour(match['detected_at'])},\n  {spoken(late)} after the last probe."
        )
    found = {
        match["client"]: (match["first_time"], [record["event_time"] for record in match["records"][1:]])
        for match in rows("matches", block="came_back")
        if match["last_time"] - match["first_time"] > 24 * HOUR
    }
    return found == sample_logs.returns(web) and len(rows("episodes", state="partial")) == len(found) > 0


def figures_around_the_late_file() -> dict[str, int]:
    """Three figures that the late file changes."""
    site = {row["hour"]: row["n"] for row in rows("aggregates", block="site", level=0)}
    end = LATE + 6 * HOUR
    day = [row for row in rows("aggregates", block="traffic", level=2) if row["window_end"] == end]
    return {
        f"requests in the hour from {format_hour(LATE)}": site.get(LATE, 0),
        f"clients in the 24 hours to {format_hour(end)}": len(day),
        f"requests in the 24 hours to {format_hour(end)}": sum(row["n"] for row in day),
    }


def healed(before: Book, after: Book, asked: set[datetime]) -> None:
    """Which hours came out anew that nobody asked for."""
    changed: dict[tuple[str, str, str], set[datetime]] = {}
    for node, entry in after.items():
        held = before.get(node)
        if node.hour not in asked and (held is None or held.run_id != entry.run_id):
            changed.setdefault((node.stage, node.block, node.table), set()).add(node.hour)
    lines = [[*what, stretches(hours)] for what, hours in sorted(changed.items())]
    show("Hours that healed", ["stage", "block", "table", "hours"], lines)


def one_by_one(hours: Sequence[datetime]) -> bool:
    """Makes some hours again in a lake of their own, an hour a run; compares the digests."""
    lake = DEMO / "one-by-one"
    script = Path(__file__).with_name("one_by_one.py")
    log = DEMO / "one-by-one.log"
    with console.status("six hours one by one, in a lake of their own"), log.open("w") as output:
        done = subprocess.run(
            [sys.executable, script, lake, format_hour(hours[0]), format_hour(hours[-1] + HOUR)],
            env={**os.environ, "TRANSOM_LANDING": str(DEMO)}, stdout=output, stderr=output, check=False,
        )  # fmt: skip
    if done.returncode:
        console.print(f"one by one: failed, see {log}")
        return False
    whole, ones = book(), book(lake)
    lines, equal = [], True
    for hour in hours:
        nodes = [node for node in ones if node.hour == hour]
        same = all((whole[n].status, whole[n].digest) == (ones[n].status, ones[n].digest) for n in nodes)
        shown = next(ones[n].digest for n in nodes if n.table == "aggregates" and n.block == "traffic")
        lines.append([format_hour(hour), len(nodes), shown, "equal" if same else "[red]DIFFERENT[/]"])
        equal = equal and same
    title = "Hours made in one go, beside the same hours made one by one"
    show(title, ["hour", "tables", "digest of traffic", "all digests"], lines)
    return equal


def busiest_hosts() -> None:
    """The second stream: which hosts sent most, at three granularities."""
    found = rows("aggregates", stream="conn", block="volume")
    lines = []
    for level, name in ((0, "5 minutes"), (1, "15 minutes"), (2, "1 hour")):
        best = max((r for r in found if r["level"] == level and r["sent"]), key=lambda r: r["sent"])
        until = f"{best['window_end']:%Y-%m-%dT%H:%M}"
        lines.append([name, until, best["orig_h"], best["n"], best["sent"], best["received"]])
    columns = ["window", "until", "host", "connections", "bytes sent", "received"]
    show("Zeek, a second stream: the hosts that sent most", columns, lines)


def cost(run: str) -> None:
    """What the stages of a run of one hour cost."""
    lines = []
    for row in Ledger(str(LAKE / "web")).runs():
        if row["run_id"].startswith(run):
            seconds = json.loads(row["seconds"])
            work = seconds[row["stage"]]
            lines.append([row["stage"], seconds["session"], work, seconds["total"], row["peak_memory_mb"]])
    show("What an hour cost", ["stage", "session, s", "work, s", "in all, s", "driver, MB"], lines)


def tour(server: Airflow, web: Hours) -> bool:
    """The demo's steps, once Airflow is up; False where a figure is not what it should be."""
    # The log's last hour, and the quiet ones behind it.
    last = [END - 3 * HOUR, END - 2 * HOUR, END]
    step(f"{(last[0] - FIRST) // HOUR} hours in one go; one file is junk, and one has not come yet")
    trigger(server, "web", "whole", FIRST, last[0])
    lines_of_the_log()
    told()

    step("The junk is mended, and the red run cleared")
    land(DEMO, WEB, BAD, web[BAD])
    server.clear("web", "whole", "ingest")
    follow(server, "web", "whole")
    agrees = busiest({hour: lines for hour, lines in web.items() if hour != LATE})

    step(f"The file of {format_hour(LATE)} comes late; the last hour runs, and the quiet rest of the day")
    before, figures = book(), figures_around_the_late_file()
    land(DEMO, WEB, LATE, web[LATE])
    for name, (start, end) in zip(("hour", "quiet"), pairwise(last), strict=True):
        trigger(server, "web", name, start, end)
    now = figures_around_the_late_file()
    lines = [[name, figures[name], now[name]] for name in figures]
    show("What the late file changed", ["figure", "before", "after"], lines)
    healed(before, book(), {last[0] + number * HOUR for number in range(3)})
    told()
    agrees = agrees and now == recounted(web)

    step("Who is growing, who keeps coming back, and who came back after days")
    agrees = growing(web) and regulars(web) and came_back(web) and agrees

    step("Six hours again, in a lake of their own, an hour a run")
    equal = one_by_one([FIRST + number * HOUR for number in range(6)])
    cost("hour")

    step("A second stream: Zeek's connections, two days")
    day = datetime(2020, 4, 30, tzinfo=UTC)
    trigger(server, "conn", "two-days", day, day + timedelta(hours=32))
    busiest_hosts()
    return agrees and equal


def recounted(web: Hours) -> dict[str, int]:
    """The figures around the late file, from the raw log."""
    hour = sample_logs.requests(web, LATE, LATE + HOUR)
    day = sample_logs.requests(web, LATE - 18 * HOUR, LATE + 6 * HOUR)
    return dict(zip(figures_around_the_late_file(), (hour.total(), len(day), day.total()), strict=True))


def main() -> None:
    """Runs the demo from end to end."""
    began = time.monotonic()
    if "TRANSOM_SPARK_PROPERTIES" not in os.environ:
        sys.exit("demo: the environment is not set up; run `make demo`")
    with alone(DEMO, "Airflow") as lock:
        good = shown(lock, began)
    if not good:
        sys.exit(1)


def shown(lock: IO[str], began: float) -> bool:
    """Lands the logs, starts Airflow and shows what comes of it; whether all is as it should be."""
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
        verdict = "[green]all as it should be[/]" if good else "[red]figures or digests differ[/]"
        console.print(f"demo: {verdict} ({time.monotonic() - began:.0f} s)")
        if sys.stdout.isatty() and not os.environ.get("CI"):
            console.print("Ctrl-C ends it and every process that it started")
            signal.pause()
        else:
            console.print("Airflow is ended now; with a terminal it stays up until Ctrl-C")
    return good


if __name__ == "__main__":
    until_interrupted("demo", main)
