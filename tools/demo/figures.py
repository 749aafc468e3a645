"""Show the results of the demo, each with a recount from the raw log."""

from datetime import datetime
from pathlib import Path

import numpy as np

import sample_logs
from demo.page import LAKE, console, rows, show, snapshot, stretches
from sample_logs import HOUR, Hours
from transom.core.durations import format_duration_long
from transom.core.intervals import format_hour
from transom.features.patterns.spec import Pattern
from transom.features.registry import FINDING_ORDER
from transom.findings.store import findings
from transom.stream import load

WEB_STREAM = Path(__file__).resolve().parents[2] / "schemas" / "streams" / "web.yaml"
RINGS = ((1, 0), (6, 1), (24, 6))
"""Start and end of each ring of the block `site`, in hours before a window's end."""


def lines_of_the_log(bad: datetime) -> None:
    """Show the numbers of lines, events and rejected lines, and the quarantined hours with a reason."""
    files = rows("files")
    figures = [sum(file[column] for file in files) for column in ("lines", "accepted", "rejected")]
    show("Lines", ["files", "lines", "events", "rejected"], [[len(files), *figures]])
    status = {n.hour: e for n, e in snapshot().items() if (n.stage, n.table) == ("ingest", "events")}
    aside = {hour for hour, entry in status.items() if entry.status == "quarantined"}
    good = sum(entry.status == "published" for entry in status.values())
    console.print(f"published: {good} of {len(status)} hours; quarantined: {stretches(aside)}")
    console.print(f"  because {status[bad].reason}")


def show_findings() -> None:
    """Show the findings, worst first."""
    lines = [[f.severity, f.kind, f.title] for f in findings(str(LAKE / "web"), order=FINDING_ORDER)]
    show("Findings", ["severity", "kind", "what and when"], lines or [["-", "-", "nothing"]])


def busiest(web: Hours) -> bool:
    """Show the busiest clients at three granularities, with a recount from the raw log."""
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
    """Show the clients whose requests grow fastest over a day, with a line through the raw log's hours."""
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
    """Show the clients that are present in every ring between the levels, with a recount from the raw log."""
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
    """Show the episodes of several days that hourly runs found, with a search of the raw log."""
    pattern = load(WEB_STREAM).blocks(Pattern)["came_back"]
    console.print("Came back: a look, and 8 probes a day or more later, which no window of 24 hours holds")
    for match in rows("matches", block="came_back"):
        apart, late = match["last_time"] - match["first_time"], match["detected_at"] - match["last_time"]
        console.print(
            f"  {match['client']} looked at {match['first_time']:%Y-%m-%dT%H:%M:%S}; its last probe came "
            f"{format_duration_long(apart)} later.\n"
            f"  Found at level {match['level']}, in windows of "
            f"{format_duration_long(2 * pattern.batch * 2 ** match['level'])}; reported at "
            f"{format_hour(match['detected_at'])},\n  {format_duration_long(late)} after the last probe."
        )
    found = {
        match["client"]: (match["first_time"], [record["event_time"] for record in match["records"][1:]])
        for match in rows("matches", block="came_back")
        if match["last_time"] - match["first_time"] > 24 * HOUR
    }
    return found == sample_logs.returns(web) and len(rows("episodes", state="partial")) == len(found) > 0


def busiest_hosts() -> None:
    """Show which hosts of the second stream sent most, at three granularities."""
    found = rows("aggregates", stream="conn", block="volume")
    lines = []
    for level, name in ((0, "5 minutes"), (1, "15 minutes"), (2, "1 hour")):
        best = max((r for r in found if r["level"] == level and r["sent"]), key=lambda r: r["sent"])
        until = f"{best['window_end']:%Y-%m-%dT%H:%M}"
        lines.append([name, until, best["orig_h"], best["n"], best["sent"], best["received"]])
    columns = ["window", "until", "host", "connections", "bytes sent", "received"]
    show("Zeek, a second stream: the hosts that sent most", columns, lines)
