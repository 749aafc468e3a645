"""`make bench`: every benchmark but `scale`, or those that are named; results in .transom/bench.

Each benchmark that ends replaces its file in docs/benchmarks/data, from which the site has its tables; with
`--lines`, `--log`, `--events`, `--keys` or `--hours` it does not."""

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench import (
    aggregate,
    between,
    flat,
    framing,
    frequency,
    hour,
    ingest,
    levels,
    page,
    persistence,
    scale,
    stages,
    trial,
    updates,
    widen,
    year,
)
from bench.aims import AIMS, judged
from bench.measure import Failed
from bench.published import facts, publish
from bench.table import written

CACHE = Path(__file__).resolve().parents[2] / ".transom" / "bench"
BENCHES = (
    "ingest",
    "aggregate",
    "levels",
    "flat",
    "year",
    "hour",
    "stages",
    "idle",
    "try",
    "widen",
    "between",
    "frames",
    "persistence",
    "frequency",
    "updates",
    "page",
    "scale",
)

HOURS_LONG = ("scale",)
"""Benchmarks that run only if they are named."""


def arg_parser() -> argparse.ArgumentParser:
    """Return the parser of the arguments."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument(
        "which",
        nargs="*",
        choices=[*BENCHES, []],
        metavar="|".join(BENCHES),
        help=f"all but {HOURS_LONG[0]} where none is named",
    )
    parser.add_argument("--lines", type=int, default=5_000_000, help="of each log (5000000)")
    parser.add_argument("--log", choices=list(ingest.MEASURES), action="append", help="one log alone")
    parser.add_argument("--events", type=int, nargs="+", default=[*scale.SIZES], help="of scale: the sizes")
    parser.add_argument(
        "--keys", type=int, default=scale.KEYS, help=f"of scale, 1000 to 1000000 ({scale.KEYS})"
    )
    parser.add_argument("--hours", type=int, default=scale.HOURS, help=f"of scale ({scale.HOURS})")
    once = "levels, flat, scale, widen, between, frames, persistence and frequency"
    parser.add_argument("--repetitions", type=int, default=3, help=f"of each measurement, but for {once} (3)")
    return parser


Rows = Iterator[Mapping[str, Any]]


def parts(arguments: argparse.Namespace) -> Mapping[str, Callable[[], Rows]]:
    """Return the functions that run the benchmarks and yield their rows, by name."""
    many = arguments.repetitions
    logs = arguments.log or list(ingest.MEASURES)
    return {
        "ingest": lambda: (r for log in logs for r in ingest.bench(CACHE, log, arguments.lines, many)),
        "aggregate": lambda: aggregate.bench(CACHE, logs[0], arguments.lines, many),
        "levels": lambda: levels.bench(CACHE / "levels", levels.EVENTS, 1),
        "flat": lambda: flat.bench(CACHE / "flat"),
        "year": lambda: year.bench(CACHE / "year", many),
        "hour": lambda: hour.bench(CACHE, many),
        "stages": lambda: stages.bench_hours(CACHE),
        "idle": lambda: stages.bench_idle(CACHE),
        "try": lambda: trial.bench(CACHE, many),
        "widen": lambda: widen.bench(CACHE, arguments.lines, 1),
        "between": lambda: between.bench(CACHE, arguments.lines, 1),
        "frames": lambda: framing.bench(CACHE, arguments.lines, 1),
        "persistence": lambda: persistence.bench(CACHE, arguments.lines, 1),
        "frequency": lambda: frequency.bench(CACHE, arguments.lines, 1),
        "updates": lambda: updates.bench(many),
        "page": lambda: page.bench(CACHE, many),
        "scale": lambda: scale.bench(CACHE / "scale", arguments.events, arguments.keys, arguments.hours),
    }


def measured(which: Sequence[str], by_name: Mapping[str, Callable[[], Rows]], whole: bool) -> Rows:
    """Run benchmarks, and yield their rows.

    Args:
        whole: replace the checked-in results of each benchmark after its last row.
    """
    for name in which:
        rows = []
        for row in by_name[name]():
            rows.append(row)
            yield row
        if whole:
            publish(name, {"aim": AIMS[name], "rows": [*facts(judged(rows))]})


def main() -> None:
    """Run the benchmarks, and write the tables after each row: a failure keeps the rows before it."""
    if "TRANSOM_SPARK_PROPERTIES" not in os.environ:
        sys.exit("bench: the environment is not set up; run `make bench`")
    parser = arg_parser()
    arguments = parser.parse_args()
    measured_whole = ("log", "lines", "events", "keys", "hours")
    whole = all(vars(arguments)[name] == parser.get_default(name) for name in measured_whole)
    which = arguments.which or [name for name in BENCHES if name not in HOURS_LONG]
    found: list[Mapping[str, Any]] = []
    try:
        for row in measured(which, parts(arguments), whole):
            found.append(row)
            case = " ".join(
                f"{row[name]} {name}"
                for name in ("events", "keys", "levels", "day", "case", "columns")
                if name in row
            )
            labels = [row["bench"], row.get("log", ""), case, row["who"]]
            print(f"{' '.join(filter(None, labels))}: {row['seconds']} s", flush=True)
            written(found, CACHE)
    except Failed as failed:
        sys.exit(f"bench: {failed}")
    print(f"\n{(CACHE / 'results.md').read_text()}")


if __name__ == "__main__":
    main()
