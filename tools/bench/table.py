"""Write results as Markdown and JSON, with the same values in both: each with its peers and its goal."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench import between as joins
from bench import framing
from bench import frequency as frequent
from bench import persistence as persistent
from bench import updates as taken
from bench import year as past
from bench.aggregate import FLOOR, OURS, STAGE, WINDOW, WRITTEN
from bench.between_log import ROWS_OF_ONE
from bench.flat import INGEST
from bench.levels import FRAMES, MOST_KEYS
from bench.measure import LONG, machine
from bench.version import WRITING, version
from bench.widen import AT_ONCE, GROUPED, HOURLY, SLIDING

Row = Mapping[str, Any]
AIMS = {
    "ingest": "not slower than Spark's own scan, with provenance and rejections kept",
    "aggregate": "at least 10 times as fast as window(), in at most twice the floor's time",
    "levels": "at least 10 times as fast as window() at three levels, and more with each further one",
    "flat": "the last day's rows within 5 % of the first one's",
    "year": f"an hour's ingest at most {past.NEAR:g} times as long with a year in the lake as with a week",
    "hour": "from trigger to report in under 60 s with `per_stage`, in under 35 s with `single`",
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
}
PEERS: Mapping[str, Mapping[str, tuple[str, float | None]]] = {
    "ingest": {"spark, shuffled by hour": ("transom", 1.0), "spark": ("transom", 1.0)},
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
AT_MOST = {"hour": {"per_stage": 60.0, "single": 35.0}, "try": {"transom try": 60.0}}
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
        if row["bench"] == "flat" and row["who"] != INGEST:
            more |= {"aim": f"within {FLAT:.0%}", "met": abs(row["to_first_day"] - 1) <= FLAT}
        if row["bench"] == "updates" and row["who"] in taken.STEADY:
            most_times = f"at most {taken.SLOWER:g} times the time of {taken.COLUMNS[0]} columns"
            more |= {"aim": most_times, "met": row["to_fewest"] <= taken.SLOWER}
        if row["bench"] == "year" and row["who"] == past.YEAR:
            more |= {"aim": f"at most {past.NEAR:g} times", "met": row["to_week"] <= past.NEAR}
        if most is not None:
            more |= {"aim": f"under {most:g} s", "met": row["seconds"] < most}
        found.append({**row, **more})
    return found


def _aimed_at(row: Row) -> bool:
    """Return whether a row has a goal of speed: with enough levels, or skew of a range join."""
    if row["who"] == joins.RANGE:
        return bool(row["case"] == joins.SKEW)
    return bool(row.get("levels", FROM_LEVELS) >= FROM_LEVELS)


def written(rows: Sequence[Row], folder: Path) -> str:
    """Write results.json and results.md, and return the Markdown."""
    rows = judged(rows)
    text = (
        f"# Benchmarks\n\n{machine()}. Drawn logs; seconds, best of all repetitions; memory at its peak, of "
    )
    text += "Java, Python and its workers together.\n"
    for bench, aim in AIMS.items():
        some = [row for row in rows if row["bench"] == bench]
        if some:
            text += f"\n## {bench.capitalize()}\n\nAim: {aim}.\n\n" + SECTIONS[bench](some)
    folder.mkdir(parents=True, exist_ok=True)
    made = {
        "machine": machine(),
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "code": version(WRITING),
        "rows": rows,
    }
    (folder / "results.json").write_text(json.dumps(made, indent=1) + "\n")
    (folder / "results.md").write_text(text)
    return text


def _table(columns: Sequence[str], lines: Sequence[Sequence[object]]) -> str:
    def line(cells: Sequence[object]) -> str:
        return "| " + " | ".join("" if cell is None else str(cell) for cell in cells) + " |\n"

    return line(columns) + line(["---"] * len(columns)) + "".join(map(line, lines))


def _judgement(row: Row) -> list[object]:
    """Return cells with the relative speed of transom, the goal, and whether it is met."""
    return [row["times_as_fast"], row["aim"], {True: "yes", False: "no", None: None}[row["met"]]]


JUDGED = ("transom is times as fast", "aim", "met")


def ingest(rows: Sequence[Row]) -> str:
    """Return a table with a line per way."""
    return _table(
        ["log", "files", "lines", "who", "seconds", *JUDGED, "CPU s", "peak MiB", "all"],
        [
            [
                row["log"], row["layout"], f"{row['lines']:,}", row["who"], row["seconds"],
                *_judgement(row), row["cpu_s"], row["peak_mib"],
                " ".join(str(one["seconds"]) for one in row["all"]),
            ]
            for row in rows
        ],
    )  # fmt: skip


def aggregate(rows: Sequence[Row]) -> str:
    """Return a table with a line per way. Ways that write are compared with the whole stage, others with its
    computation."""
    return _table(
        ["log", "events", "who", "cold", "warm", *JUDGED, "peak MiB", "all: cold, warm"],
        [
            [
                row["log"], f"{row['events']:,}", row["who"], row["cold"], row["seconds"],
                *_judgement(row), row["peak_mib"],
                "; ".join(" ".join(map(str, passes)) for passes in row["all"]),
            ]
            for row in rows
        ],
    )  # fmt: skip


def levels(rows: Sequence[Row]) -> str:
    """Return a table with a line per way, for each number of keys and of levels."""
    asked = "; ".join(f"{who} up to {most:,} keys" for who, most in MOST_KEYS.items())
    text = f"One day of events. Measured only where it ends in reasonable time: {asked}. "
    text += (
        f"A pass of more than {LONG} s is not repeated in its process: it is cold, and compared as such.\n\n"
    )
    return text + _table(
        [
            *("keys", "levels", "events", "reports", "who", "cold", "warm"),
            *(*JUDGED, "peak MiB", "all: cold, warm"),
        ],
        [
            [
                f"{row['keys']:,}", row["levels"], f"{row['events']:,}", f"{row['reports']:,}", row["who"],
                row["cold"], row["seconds"], *_judgement(row), row["peak_mib"],
                "; ".join(" ".join(map(str, passes)) for passes in row["all"]),
            ]
            for row in rows
        ],
    )  # fmt: skip


def flat(rows: Sequence[Row]) -> str:
    """Return a table with a line per stage and day."""
    return _table(
        [
            "one hour of", "at day", "rows read", "to the first day's", *JUDGED[1:], "stage, s", "job, s",
            "CPU s", "peak MiB", "the tables' logs", "ledger, rows", "ledger read, ms",
        ],
        [
            [
                row["who"], row["day"], f"{row['data_rows']:,}", row["to_first_day"], *_judgement(row)[1:],
                row["stage_s"], row["seconds"], row["cpu_s"], row["peak_mib"], f"{row['other_rows']:,}",
                f"{row['ledger_rows']:,}", row["ledger_ms"],
            ]
            for row in rows
        ],
    )  # fmt: skip


def year(rows: Sequence[Row]) -> str:
    """Return a table with a line per past."""
    return _table(
        ["an hour's ingest", "job, s", "to the week's", *JUDGED[1:], "stage, s", "CPU s", "peak MiB", "all"],
        [
            [
                row["who"], row["seconds"], row["to_week"], *_judgement(row)[1:], row["stage_s"],
                row["cpu_s"], row["peak_mib"], " ".join(map(str, row["all"])),
            ]
            for row in rows
        ],
    )  # fmt: skip


def hour(rows: Sequence[Row]) -> str:
    """Return a table with a line per way to submit, and one with the phases since the trigger."""
    text = _table(
        ["submit", "lines", "to the report, s", "aim", "met", "CPU s", "peak MiB", "of it Airflow", "all"],
        [
            [
                f"`{row['who']}`", row["lines"], row["seconds"], *_judgement(row)[1:], row["cpu_s"],
                row["peak_mib"], row["airflow_mib"], " ".join(map(str, row["all"])),
            ]
            for row in rows
        ],
    )  # fmt: skip
    for row in rows:
        text += f"\n`{row['who']}`:\n\n" + _table(["where", "seconds"], list(row["phases"].items()))
    return text


def trial(rows: Sequence[Row]) -> str:
    """Return a table with a line for the command."""
    return _table(
        ["log", "lines", "first findings, s", "aim", "met", "to its end, s", "init, s", "CPU s", "peak MiB"],
        [
            [
                row["log"], f"{row['lines']:,}", row["seconds"], *_judgement(row)[1:], row["whole_s"],
                row["init_s"], row["cpu_s"], row["peak_mib"],
            ]
            for row in rows
        ],
    )  # fmt: skip


def widen(rows: Sequence[Row]) -> str:
    """Return a table with a line per way, then the goals, and the profile on one core."""
    ways, cores = ([row for row in rows if ("profile" in row) is whether] for whether in (False, True))
    text = (
        f"{SLIDING}: seconds and matches of one key in a hundred, calls and records of all. "
        "Delays in minutes, of short ones those of less than an hour.\n\n"
    )
    text += _table(
        [
            *("who", "detector calls", "records shown", "theory allows", "cold, s", "warm, s", JUDGED[0]),
            *("matches", "not of (b)'s", "mean delay", "of short ones", "peak MiB"),
        ],
        [
            [
                row["who"], *(_thousands(row[name]) for name in ("calls", "shown", "allowed")), row["cold"],
                row["seconds"] if row["warm"] else None, row["times_as_fast"], row["matches"],
                None if row["who"] == SLIDING else row["missed"], row["delay_min"], row["short_delay_min"],
                row["peak_mib"],
            ]
            for row in ways
        ],
    )  # fmt: skip
    aims = {aim: met for row in ways for aim, met in row["aims"].items()}
    text += "\n" + _table(["aim", "met"], [[aim, "yes" if met else "no"] for aim, met in aims.items()])
    for core in cores:
        seen = core["profile"]
        seconds = ", ".join(f"{name} {spent} s" for name, spent in seen["seconds"].items())
        text += (
            f"\n{core['who']}: {seen['records']:,} records of the pattern's stream, {core['per_second']:,} a "
            f"second ({seconds}; {seen['rows']['batches']:,} rows of batches). Where the time goes:\n\n"
        )
        names = ("function", "file", "calls", "seconds")
        text += _table(names, [[one[name] for name in names] for one in seen["functions"]])
    return text


def between(rows: Sequence[Row]) -> str:
    """Return a table with a line per way, for each case."""
    text = f"One interval to {ROWS_OF_ONE} rows; count, sum and largest, unless a way's name differs. "
    text += f"Not measured where more than {joins.MOST_COMPARED:,} pairs would be compared.\n\n"
    return text + _table(
        [
            *("case", "rows", "who", "cold", "warm", *JUDGED, "rows matched"),
            *("compared per row matched", "peak MiB"),
        ],
        [
            [
                row["case"], f"{row['events']:,}", row["who"], row["cold"], row["seconds"], *_judgement(row),
                f"{row['produced']:,}",
                row["compared"] and f"{row['compared'] / max(row['produced'], 1):,.1f}", row["peak_mib"],
            ]
            for row in rows
        ],
    )  # fmt: skip


def frames(rows: Sequence[Row]) -> str:
    """Return a table with a line per way, for each kind."""
    return _table(
        ["kind", "readings", "frames", "who", "cold", "warm", "readings a second", *JUDGED, "peak MiB"],
        [
            [
                row["case"], f"{row['events']:,}", f"{row['found']:,}", row["who"], row["cold"],
                row["seconds"], f"{row['per_second']:,}", *_judgement(row), row["peak_mib"],
            ]
            for row in rows
        ],
    )  # fmt: skip


def persistence(rows: Sequence[Row]) -> str:
    """Return a table with a line per way."""
    return _table(
        [
            *("who", "events", "cold", "warm", *JUDGED, "kept from hour to hour, rows", "MiB"),
            *("rows read for an hour", "named at the end", "peak MiB"),
        ],
        [
            [
                row["who"], f"{row['events']:,}", row["cold"], row["seconds"], *_judgement(row),
                _thousands(row["kept"]), row["kept_bytes"] and round(row["kept_bytes"] / 2**20, 1),
                _thousands(row["read"]), row["named"], row["peak_mib"],
            ]
            for row in rows
        ],
    )  # fmt: skip


def frequency(rows: Sequence[Row]) -> str:
    """Return a table with a line per way."""
    return _table(
        [
            *("who", "events", "cold", "warm", *JUDGED, "kept of a window, rows", "MiB"),
            *("mean error", "largest", "peak MiB"),
        ],
        [
            [
                row["who"], f"{row['events']:,}", row["cold"], row["seconds"], *_judgement(row),
                _thousands(row["kept"]), row["kept_bytes"] and round(row["kept_bytes"] / 2**20, 2),
                row["error"] and round(row["error"], 1), _thousands(row["most"]), row["peak_mib"],
            ]
            for row in rows
        ],
    )  # fmt: skip


def updates(rows: Sequence[Row]) -> str:
    """Return a table with a line per sketch and number of columns."""
    return _table(
        [
            *("columns", "sketch", "records", "s", "records a second", "to the fewest columns'"),
            *("the lazy one is times as fast", *JUDGED[1:]),
        ],
        [
            [
                row["columns"], row["who"], f"{row['events']:,}", row["seconds"], f"{row['a_second']:,}",
                row["to_fewest"], *_judgement(row),
            ]
            for row in rows
        ],
    )  # fmt: skip


def _thousands(number: int | None) -> str | None:
    return None if number is None else f"{number:,}"


SECTIONS = {
    "ingest": ingest,
    "aggregate": aggregate,
    "levels": levels,
    "flat": flat,
    "year": year,
    "hour": hour,
    "try": trial,
    "widen": widen,
    "between": between,
    "frames": frames,
    "persistence": persistence,
    "frequency": frequency,
    "updates": updates,
}
