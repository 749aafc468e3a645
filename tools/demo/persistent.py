"""Show the clients present in most hours of three days, and a host that is called every minute or two."""

from datetime import datetime

import sample_logs
from demo.page import console, rows, show
from sample_logs import HOUR, Hours
from transom.core.intervals import format_hour

SLOTS, ENOUGH, GUARANTEED = 72, 51, 36
"""Of `regulars` in web.yaml (alpha 0.7, epsilon 0.2), in slots: the window, alpha of it, and alpha -
epsilon of it."""
CALLED = ("10.0.1.5", "192.168.0.4", 443)
"""The command-and-control channel in the exercise that Zeek's log recorded."""


def always_here(web: Hours, end: datetime) -> bool:
    """Show the regulars of the three days until `end`, with a recount from the raw log."""
    reported = [row for row in rows("persistent_items", block="regulars") if row["window_end"] == end]
    hours = [sample_logs.requests(web, end - n * HOUR, end - (n - 1) * HOUR) for n in range(SLOTS, 0, -1)]
    recounted = {client: sum(client in hour for hour in hours) for hour in hours for client in hour}
    named = [row for row in reported if row["low"] is not None]
    lines = [
        [
            row["client"],
            f"{row['low']} to {row['high']}",
            recounted[row["client"]],
            format_hour(row["since"]),
            row["slots"],
        ]
        for row in sorted(named, key=lambda row: (-row["low"], row["client"]))
    ]
    columns = ["client", "hours", "recounted", "since", "slots, from old to new"]
    show(f"Here in {ENOUGH} of the {SLOTS} hours to {format_hour(end)}, or nearly so", columns, lines)
    console.print("1: here in this hour; 0: not here; ?: not remembered, so one or the other")
    regulars = {client for client, many in recounted.items() if many >= ENOUGH}
    found = {row["client"] for row in named}
    bounded = all(row["low"] <= recounted[row["client"]] <= row["high"] for row in named)
    return regulars <= found and all(recounted[client] >= GUARANTEED for client in found) and bounded


def beacons() -> bool:
    """Show hosts in Zeek's log that call another one every minute, and return whether only `CALLED` does."""
    reported = rows("persistent_items", stream="conn", block="beacons")
    named = [row for row in reported if row["low"] is not None]
    for row in named:
        console.print(
            f"[bold]{row['orig_h']} calls {row['resp_h']}, port {row['resp_p']}[/], again and again"
        )
        console.print(
            f"  in {row['low']} to {row['high']} of the 60 minutes up to {row['window_end']:%Y-%m-%dT%H:%M}, "
            f"{row['slots']}\n"
            f"  {row['gap_mean_s']:.0f} s from one to the next, give or take {100 * row['gap_cv']:.0f} %"
        )
    return {(row["orig_h"], row["resp_h"], row["resp_p"]) for row in named} == {CALLED}
