"""Ingest: transom's stage, and Spark and DuckDB that only read and write, each in its own process."""

import json
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
from deltalake import DeltaTable

from bench import version
from bench.draw import END, FIRST, LOGS, drawn
from bench.measure import Failed, Measured, run, spark_submit
from transom.core.intervals import format_hour
from transom.ledger.ledger import Ledger

ROOT = Path(__file__).resolve().parents[2]
PEER, DUCK = (Path(__file__).with_name(name) for name in ("peer_ingest.py", "duck_ingest.py"))
SLOWER = 2.5
"""The aim against DuckDB: how many times as long ingest may take."""
LAYOUTS = ("hourly", "plain")
LEVELS = "RANGES 24 HOURS, 6 HOURS, 1 HOUR SLIDES 1 HOUR, 30 MINUTES, 5 MINUTES"
MEASURES = {"zeek": ("orig_h", "orig_bytes"), "apache": ("client", "bytes")}
PRESETS = {"zeek": "zeek/conn", "apache": "apache/combined"}


@dataclass(frozen=True)
class Case:
    """One log in one layout, with a folder for the results."""

    name: str
    layout: str
    count: int
    folder: Path

    @property
    def stream(self) -> Path:
        """Write the stream file and return its path."""
        log = LOGS[self.name]
        key, measured = MEASURES[self.name]
        source: dict[str, object] = {"path": log.hourly if self.layout == "hourly" else log.plain}
        if self.layout == "hourly":
            # A connection is written when it ends, at most two hours after it begins.
            source["expected_files"] = 1
        spec = {
            "name": "drawn",
            "preset": PRESETS[self.name],
            "source": source,
            "key": [key],
            "aggregates": {
                "volume": {"measures": {"n": "count", "sent": f"sum({measured})"}, "levels": LEVELS}
            },
        }
        file = self.folder / "drawn.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(spec))
        return file

    @property
    def lake(self) -> Path:
        """The lake of this version of the code."""
        return version.folder(self.folder / "lake", version.WRITING)

    def landing(self, cache: Path) -> Path:
        """Return the landing folder."""
        return drawn(cache / "logs", self.name, self.count)

    def files(self, cache: Path) -> str:
        """Return the path of the files for Spark's reader."""
        log = LOGS[self.name]
        below = f"{log.hourly.partition('/')[0]}/*/*.gz" if self.layout == "hourly" else log.plain
        return str(self.landing(cache) / below)


def transom(case: Case, cache: Path) -> Measured:
    """Run the stage like Airflow, with a separate lake."""
    lake = case.lake
    shutil.rmtree(lake, ignore_errors=True)
    interval = ["--from", format_hour(FIRST), "--to", format_hour(END)]
    job = [ROOT / "jobs" / "ingest.py", "--stream", case.stream, "--lake", lake, *interval]
    # As in an installation: rows are parsed outside Java.
    command = spark_submit(*job, full_compiler=False)
    landing = {"TRANSOM_LANDING": str(case.landing(cache))}
    measured = run(command, case.folder / "transom.log", landing)
    events = sum(
        entry.rows
        for node, entry in Ledger(str(lake / "drawn")).snapshot(["ingest"]).items()
        if node.table == "events" and entry.status == "published"
    )
    if events != case.count:
        raise Failed(f"{case}: {events} events published (see {case.folder}/transom.log)")
    return measured


def spark(case: Case, cache: Path, table: Path, *options: str) -> Measured:
    """Run Spark's own scan."""
    shutil.rmtree(table, ignore_errors=True)
    return run(spark_submit(PEER, case.name, case.files(cache), table, *options), case.folder / "spark.log")


def duck(case: Case, cache: Path, folder: Path) -> Measured:
    """Run DuckDB."""
    return run([sys.executable, DUCK, case.name, case.files(cache), folder], case.folder / "duckdb.log")


def figures(files: Sequence[str], name: str) -> tuple[Any, ...]:
    """Return values that must be equal: events, hours, the sums of a column and of times, distinct keys."""
    key, measured = MEASURES[name]
    rows = duckdb.execute(
        f"SELECT count(*), count(DISTINCT date_trunc('hour', event_time)), sum({measured})::HUGEINT, "
        f"sum(epoch_us(event_time))::HUGEINT, count(DISTINCT {key}) FROM read_parquet(?)",
        [files],
    ).fetchall()
    found: tuple[Any, ...] = rows[0]
    return found


def agree(case: Case, lake: Path, files: Sequence[str]) -> None:
    """Check that both ways do the same work.

    Args:
        files: the files that the other way has written.

    Raises:
        Failed: the files contain other events.
    """
    own = DeltaTable(str(lake / "drawn" / "events")).file_uris()
    ours, theirs = (figures(of, case.name) for of in (own, files))
    if ours != theirs:
        raise Failed(f"{case.name} {case.layout}: transom has {ours}, the other way {theirs}")


def bench(cache: Path, name: str, count: int, repetitions: int) -> Iterator[dict[str, Any]]:
    """Yield rows for a log in both layouts: by transom, Spark with and without a shuffle, and DuckDB."""
    for layout in LAYOUTS:
        folder = cache / "ingest" / f"{name}-{layout}-{count}"
        case, table = Case(name, layout, count, folder), folder / "spark"
        case.landing(cache)
        ways: dict[str, Callable[[], Measured]] = {
            "transom": partial(transom, case, cache),
            "spark, shuffled by hour": partial(spark, case, cache, table, "--shuffle"),
            "spark": partial(spark, case, cache, table),
            "duckdb": partial(duck, case, cache, folder / "duckdb"),
        }
        seen: dict[str, list[Measured]] = {who: [] for who in ways}
        for number in range(repetitions):
            # Alternate the ways, each first in turn, so that other load of the machine affects all.
            for who in in_turn(list(ways), number):
                seen[who].append(ways[who]())
                if who != "transom" and seen["transom"]:
                    parquet = map(str, (folder / "duckdb").glob("*/*.parquet"))
                    written = parquet if who == "duckdb" else DeltaTable(str(table)).file_uris()
                    agree(case, case.lake, list(written))
        for who, runs in seen.items():
            yield {
                "bench": "ingest", "log": name, "layout": layout, "lines": count, "who": who,
                "seconds": min(one.seconds for one in runs), "cpu_s": min(one.cpu_s for one in runs),
                "peak_mib": max(one.peak_mib for one in runs),
                "phases": _phases(case.lake) if who == "transom" else None,
                "all": [asdict(one) for one in runs],
            }  # fmt: skip
        for of_peer in (table, folder / "duckdb"):
            shutil.rmtree(of_peer, ignore_errors=True)


def in_turn(ways: Sequence[str], number: int) -> Sequence[str]:
    """Rotate the ways by `number`, so that each is first in turn."""
    first = number % len(ways)
    return [*ways[first:], *ways[:first]]


def _phases(lake: Path) -> dict[str, float]:
    found: dict[str, float] = Ledger(str(lake / "drawn")).runs()[-1]["phase_seconds"]
    return found


def lake_of(cache: Path, name: str, count: int) -> tuple[Case, Path]:
    """Return a lake with the events of the hourly files; ingest them with this code if it does not exist."""
    case = Case(name, "hourly", count, cache / "ingest" / f"{name}-hourly-{count}")
    case.landing(cache)
    if not (case.lake / "drawn" / "events").exists() or not Ledger(str(case.lake / "drawn")).runs():
        transom(case, cache)
    return case, case.lake
