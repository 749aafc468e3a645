"""Show the most requested pages of a day from a sketch, with a recount from the raw log."""

from collections import Counter
from datetime import datetime

from demo.figures import WEB_STREAM
from demo.page import LAKE, console, rows, show
from sample_logs import HOUR, Hours
from transom.api import read
from transom.core.intervals import format_hour

HOURS, SHOWN, ASKED = 24, 8, "/robots.txt"
"""The window of `pages` in web.yaml, in hours; the number of rows to show; a page to query by name."""


def most_asked_for(web: Hours, end: datetime) -> bool:
    """Show the most requested pages of the window that ends at `end`, and query one page by name.

    Returns:
        Whether all bounds contain the recounted numbers.
    """
    recounted: Counter[str] = Counter()
    for hour in (end - n * HOUR for n in range(1, HOURS + 1)):
        whole = (line for line in web.get(hour, ()) if line.rstrip("\n").endswith('"'))
        recounted.update(line.split('"')[1].split()[1] for line in whole)
    reported = [
        row
        for row in rows("frequencies", block="pages")
        if row["window_end"] == end and row["low"] is not None
    ]
    reported.sort(key=lambda row: row["rank"])
    lines = [
        [row["rank"], row["path"], row["estimate"], f"{row['low']} to {row['high']}", recounted[row["path"]]]
        for row in reported[:SHOWN]
    ]
    others_at_most = reported[0]["max_unreported"]
    title = (
        f"Requested most in the {HOURS} hours to {format_hour(end)}, the first {SHOWN} of {len(reported)}; "
        f"pages that are not among these {len(reported)}: at most {others_at_most} times"
    )
    show(title, ["rank", "path", "by the sketch", "bounds", "recounted"], lines)
    found = read(LAKE, WEB_STREAM).frequency("pages", ASKED, end)
    console.print(
        f"{ASKED}, by the sketch: {found.estimate} times, certainly {found.low} to {found.high}, of "
        f"{found.records} requests; {recounted[ASKED]} recounted"
    )
    named = {row["path"] for row in reported}
    others = max((many for path, many in recounted.items() if path not in named), default=0)
    bounded = all(row["low"] <= recounted[row["path"]] <= row["high"] for row in reported)
    return (
        bounded
        and others <= others_at_most
        and found.low <= recounted[ASKED] <= found.high
        and found.records == recounted.total()
    )
