"""Write results as Markdown and JSON, with the same values in both: each with its peers and its goal."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from bench import between as joins
from bench.aims import AIMS, Row, judged
from bench.between_log import ROWS_OF_ONE
from bench.levels import MOST_KEYS
from bench.measure import LONG, machine
from bench.roles import ROLES
from bench.version import WRITING, version
from bench.widen import SLIDING


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


def stages(rows: Sequence[Row]) -> str:
    """Return a table with a line per hour and checkout; of an hour with nothing to do, too."""
    counts = ("jobs", "executions", "opened", "java_cpu_s", "driver_cpu_s", "workers_cpu_s")
    return _table(
        ["what", "s", "aim", "met", "Spark jobs", "SQL executions", "tables opened", "CPU s of Java",
         "of the driver", "of workers", "of all"],
        [
            [
                row["who"], row["seconds"], *_judgement(row)[1:], *(row.get(name) for name in counts),
                row.get("cpu_s"),
            ]
            for row in rows
        ],
    )  # fmt: skip


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


def page(rows: Sequence[Row]) -> str:
    """Return a table with a line per view."""
    return _table(
        ["view", "streams", "hours", "cold", "warm", *JUDGED[1:], "peak MiB"],
        [
            [
                row["who"], row["streams"], f"{row['hours']:,}", row["cold"], row["seconds"],
                *_judgement(row)[1:], row["peak_mib"],
            ]
            for row in rows
        ],
    )  # fmt: skip


def scale(rows: Sequence[Row]) -> str:
    """Return a table with a line per stage and number of events."""
    names = ("seconds", "cpu_s", *(f"{role}_cpu_s" for role in ROLES), *(f"{role}_mib" for role in ROLES))
    more = ("memory_spilled_mib", "disk_spilled_mib", "growth", "driver_growth")
    return _table(
        [
            *("stage", "events", "keys", "rows", "s", "CPU s", *(f"{role}, CPU s" for role in ROLES)),
            *(f"{role}, peak MiB" for role in ROLES),
            *("spilled from memory, MiB", "to disk, MiB", "CPU's growth to the events'"),
            *("driver's memory to the first", "aims missed"),
        ],
        [
            [
                row["who"], f"{row['events']:,}", f"{row['keys']:,}", f"{row['rows']:,}",
                *(row[name] for name in names), *(row.get(name) for name in more),
                "; ".join(aim for aim, met in row.get("aims", {}).items() if not met),
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
    "stages": stages,
    "idle": stages,
    "try": trial,
    "widen": widen,
    "between": between,
    "frames": frames,
    "persistence": persistence,
    "frequency": frequency,
    "updates": updates,
    "page": page,
    "scale": scale,
}
