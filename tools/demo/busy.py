"""Show the busy periods of the site as frames, each with the same hours of the day before."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Any

import altair as alt
import pandas as pd

import sample_logs
from demo.page import console, rows, show
from sample_logs import HOUR, Hours
from transom.core.intervals import format_hour

MOST, LEAST = 120, 3
"""Requests that a busy hour exceeds, and the minimum number of such hours in a row, as in web.yaml."""
DAY = 24 * HOUR
BARS = "▁▂▃▄▅▆▇█"


def busy(web: Hours, picture: Path) -> bool:
    """Show and draw the frames, and return whether a recount of the raw log finds the same.

    Args:
        picture: the path of the drawing.
    """
    hours = {hour: sample_logs.requests(web, hour, hour + HOUR).total() for hour in web}
    frames = sorted(rows("frames", block="busy", state="final"), key=lambda row: row["start_time"])
    # If hours of a fill were never requested, it is never final, although its frame is.
    fills = {
        (row["frame_id"], row["fragment"], row["shift_s"]): row for row in rows("fills", block="day_before")
    }
    lines, found = [], []
    for frame in frames:
        report = frame["frame_id"], frame["fragment"]
        fill = fills[*report, DAY.total_seconds()]
        covered = f"{fill['coverage']:.0%}"
        before = fill["n"] if fill["coverage"] else None
        requests = fills[*report, 0]["n"]
        found.append((frame["start_time"], frame["last_time"], requests, before))
        lines.append(
            [
                format_hour(frame["start_time"]), format_hour(frame["last_time"] + HOUR), requests,
                int(frame["peak"]),
                "-" if before is None else before, covered,
            ]
        )  # fmt: skip
    columns = ["from", "until", "requests", "in the busiest hour", "the day before", "of it known"]
    show(f"Busy: {LEAST} hours or more with more than {MOST} requests each", columns, lines)
    _sketch(hours, frames)
    _draw(hours, frames, picture)
    console.print(f"as a picture: {picture}")
    return found == _recounted(hours)


def _recounted(hours: Mapping[datetime, int]) -> list[tuple[datetime, datetime, int, int | None]]:
    """Return, for each busy period, its first and last hour, its requests, and those of the same hours a day
    before; None if the log has none of these hours."""
    found = []
    for holds, some in groupby(sorted(hours), key=lambda hour: hours[hour] > MOST):
        stretch = list(some)
        if holds and len(stretch) >= LEAST:
            before = [hours[hour - DAY] for hour in stretch if hour - DAY in hours]
            requests = sum(hours[hour] for hour in stretch)
            found.append((stretch[0], stretch[-1], requests, sum(before) if before else None))
    return found


def _sketch(hours: Mapping[datetime, int], frames: Sequence[Mapping[str, Any]]) -> None:
    """Print a line per day with a bar per hour, and below it the hours in frames."""
    within = {hour for hour in hours for frame in frames if frame["start_time"] <= hour <= frame["last_time"]}
    low, high = min(filter(None, hours.values())), max(hours.values())
    for day, some in groupby(sorted(hours), key=lambda hour: hour.date()):
        there = list(some)
        before = " " * there[0].hour
        scaled = ((hours[hour] - low) * len(BARS) // (high - low + 1) for hour in there)
        bars = "".join(" " if bar < 0 else BARS[bar] for bar in scaled)
        marks = "".join("^" if hour in within else " " for hour in there)
        console.print(f"  {day}  {before}{bars}\n  {'':10}  {before}{marks}".rstrip())


def _draw(hours: Mapping[datetime, int], frames: Sequence[Mapping[str, Any]], picture: Path) -> None:
    counts = pd.DataFrame(
        {"hour": list(hours), "until": [h + HOUR for h in hours], "n": list(hours.values())}
    )
    starts, until = [f["start_time"] for f in frames], [f["last_time"] + HOUR for f in frames]
    ends = pd.DataFrame({"hour": starts, "end": until})
    axis = alt.Axis(format="%-d %b", tickCount="day")
    time = alt.X("hour:T", title=None, axis=axis, scale=alt.Scale(type="utc"))
    count = alt.Y("n:Q", title="requests an hour", scale=alt.Scale(domain=[60, 140], clamp=True))
    line = alt.Chart(counts).mark_line(interpolate="step-after", color="#333").encode(x=time, y=count)
    shade = alt.Chart(ends).mark_rect(color="#f2a33a", opacity=0.45).encode(x=time, x2="end:T")
    rule = alt.Chart(pd.DataFrame({"n": [MOST]})).mark_rule(strokeDash=[4, 4], color="#888").encode(y=count)
    # Short: where the font is wider, a longer title is cut off.
    title = f"Busy: above {MOST} for {LEAST} hours or more"
    # Wide letters: the picture is also on pages for telephones.
    chart = (shade + rule + line).properties(width=420, height=200, title=title)
    chart.configure_axis(labelFontSize=14, titleFontSize=14).configure_title(fontSize=15).save(str(picture))
