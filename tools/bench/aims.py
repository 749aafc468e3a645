"""Aims of the benchmarks: peers, least ratios and most seconds, and whether a row meets them."""

from collections.abc import Mapping, Sequence
from typing import Any

from bench import between as joins
from bench import framing, hour, stages
from bench import frequency as frequent
from bench import ingest as reading
from bench import page as viewed
from bench import persistence as persistent
from bench import scale as growing
from bench import updates as taken
from bench import year as past
from bench.aggregate import FLOOR, OURS, STAGE, WINDOW, WRITTEN
from bench.flat import INGEST
from bench.levels import FRAMES
from bench.widen import AT_ONCE, GROUPED, HOURLY

Row = Mapping[str, Any]
IDLE = {stages.WARM: 2.5, stages.COLD: 7.0}
AIMS = {
    "ingest": "not slower than Spark's own scan, and in at most "
    f"{reading.SLOWER:g} times DuckDB's time, with provenance and rejections kept",
    "aggregate": "at least 10 times as fast as window(), in at most twice the floor's time; with tables in at"
    " most twice the time of computing",
    "levels": "at least 10 times as fast as window() at three levels, and more with each further one",
    "flat": "the last day's rows within 5 % of the first one's",
    "year": f"an hour's ingest at most {past.NEAR:g} times as long with a year in the lake as with a week",
    "hour": "all stages from trigger to report in under 35 s on a warm server, in under 25 s with `single`",
    "stages": "all stages of an hour in an application of at most 12 s, and in 5 s on a warm server",
    "idle": f"at most {IDLE[stages.WARM]:g} s on a warm server and {IDLE[stages.COLD]:g} s by itself",
    "try": "first findings within a minute",
    "widen": "every match of (b) at a tenth of its work, with a tenth of (c)'s delay of short ones",
    "between": f"within {joins.NEAR:g} times shuffling and sorting the rows, for every skew; then at "
    f"least {joins.SKEWED:g} times as fast as Spark's range join",
    "persistence": "not slower than counting exactly, and an hour by the rows of that hour alone, at most "
    "twice its pairs",
    "frequency": "not slower than counting exactly, and in less memory",
    "updates": f"Splitter in at most {taken.SLOWER:g} times the time, for every number of columns; the "
    "listing takes longer",
    "frames": f"within {framing.NEAR:g} times shuffling the readings into Arrow",
    "page": "the hours of three years, also of ten streams, under 1 s; a week under 1 s; a key under 2 s",
    "scale": f"CPU within {growing.LINEAR:g} times linear in the events; the driver's memory stays within "
    f"{growing.FLAT:g} times",
}
PEERS: Mapping[str, Mapping[str, tuple[str, float | None]]] = {
    "ingest": {
        "spark, shuffled by hour": ("transom", 1.0),
        "spark": ("transom", 1.0),
        "duckdb": ("transom", 1 / reading.SLOWER),
    },
    "aggregate": {
        WINDOW: (OURS, 10.0),
        WRITTEN: (STAGE, None),
        FLOOR: (OURS, 0.5),
        "duckdb, from events": (OURS, None),
        "duckdb, from granules": (OURS, None),
    },
    "levels": {
        WINDOW: (OURS, 10.0),
        FRAMES: (OURS, None),
        "duckdb, from events": (OURS, None),
        "duckdb, from granules": (OURS, None),
    },
    "widen": {HOURLY: (STAGE, None), AT_ONCE: (OURS, None), GROUPED: (OURS, None)},
    "between": {
        joins.FLOOR: (OURS, 1 / joins.NEAR),
        joins.RANGE: (OURS, joins.SKEWED),
        **dict.fromkeys((joins.BUCKETS, joins.DUCK, joins.ASOF), (OURS, None)),
    },
    "persistence": {
        persistent.EXACT: (OURS, 1.0),
        persistent.EXACT_HOUR: (persistent.HOUR, 1.0),
        **dict.fromkeys((persistent.FLOOR, persistent.DUCK, persistent.DUCK_FLOOR), (OURS, None)),
    },
    "frequency": {
        frequent.EXACT: (OURS, 1.0),
        frequent.EXACT_HOUR: (frequent.HOUR, 1.0),
        **dict.fromkeys((frequent.REBUILT, frequent.FLOOR, frequent.DUCK, frequent.DUCK_FLOOR), (OURS, None)),
    },
    "updates": {taken.LISTED: (taken.LAZY, None)},
    "frames": {
        framing.FLOOR: (OURS, 1 / framing.NEAR),
        **dict.fromkeys((framing.ISLANDS, framing.DUCK), (OURS, None)),
    },
}
"""By benchmark and peer: the way of transom that does the same work, and its minimum speed relative to the
peer; None if there is no goal."""
AT_MOST_TIMES = {("aggregate", STAGE): (OURS, 2.0)}
"""Goals: maximum time, by benchmark and way, as a multiple of another way's time."""
AT_MOST = {
    "hour": {f"per_stage, {hour.SERVER}": 35.0, "single": 25.0},
    "stages": {
        f"{way(lines)}, transom": most
        for way, most in ((stages.application, 12.0), (stages.on_server, 5.0))
        for lines in stages.LINES
    },
    "idle": {f"{what}, transom": most for what, most in IDLE.items()},
    "try": {"transom try": 60.0},
    "page": {**dict.fromkeys((viewed.GRID, viewed.ALL, viewed.WEEK), 1.0), viewed.KEY: 2.0},
}
"""Goals: maximum seconds, by benchmark and way."""
FROM_LEVELS = 3
"""Minimum number of levels for a goal of speed."""
FLAT = 0.05
"""Goal: maximum difference of the last day's rows from the first day's, as a share of these."""
SAME = ("bench", "log", "layout", "lines", "events", "keys", "levels", "day", "case", "columns")
"""Columns that must be equal in compared rows."""


def judged(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return the rows with the relative speed of transom, the goal, and whether it is met."""
    by_way = {(*(row.get(name) for name in SAME), row["who"]): row for row in rows}
    found = []
    for row in rows:
        more: dict[str, Any] = {"times_as_fast": None, "aim": None, "met": None}
        ours, least = PEERS.get(row["bench"], {}).get(row["who"], (None, None))
        ours_there = by_way.get((*(row.get(name) for name in SAME), ours))
        most = AT_MOST.get(row["bench"], {}).get(row["who"])
        if ours_there is not None and ours_there["seconds"]:
            # Compare a single cold pass with a cold pass.
            state = "seconds" if row.get("warm", True) else "cold"
            ratio = row[state] / ours_there[state]
            more["times_as_fast"] = round(ratio, 2)
            if least is not None and _aimed_at(row):
                more |= {"aim": f"at least {least:.3g}", "met": ratio >= least}
        other, times = AT_MOST_TIMES.get((row["bench"], row["who"]), (None, 0.0))
        other_row = by_way.get((*(row.get(name) for name in SAME), other))
        if other_row is not None:
            met = row["seconds"] <= times * other_row["seconds"]
            more |= {"aim": f"at most {times:g} times as long as {other}", "met": met}
        if row["bench"] == "flat" and row["who"] != INGEST:
            more |= {"aim": f"within {FLAT:.0%}", "met": abs(row["to_first_day"] - 1) <= FLAT}
        if row["bench"] == "updates" and row["who"] in taken.STEADY:
            most_times = f"at most {taken.SLOWER:g} times the time of {taken.COLUMNS[0]} columns"
            more |= {"aim": most_times, "met": row["to_fewest"] <= taken.SLOWER}
        if row["bench"] == "year" and row["who"] == past.YEAR:
            more |= {"aim": f"at most {past.NEAR:g} times", "met": row["to_week"] <= past.NEAR}
        if most is not None:
            # A reader waits for the first page of a server, too.
            states = ("cold", "seconds") if row["bench"] == "page" else ("seconds",)
            more |= {"aim": f"under {most:g} s", "met": all(row[state] < most for state in states)}
        found.append({**row, **more})
    return found


def _aimed_at(row: Row) -> bool:
    """Return whether a row has a goal of speed: with enough levels, or skew of a range join."""
    if row["who"] == joins.RANGE:
        return bool(row["case"] == joins.SKEW)
    return bool(row.get("levels", FROM_LEVELS) >= FROM_LEVELS)
