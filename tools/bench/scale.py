"""All stages in one run over logs of growing size: cost per stage and process, and its growth.

The hours and the keys stay the same while the events grow. One key has half of all events.
"""

import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from bench import scale_log
from bench.measure import MIB, Failed, run, spark_submit
from bench.roles import ROLES, Cost, RoleWatch, Sample, cost
from bench.stage_record import settings
from bench.ways import paths
from transom.core.intervals import format_hour
from transom.stream import load

SIZES = (5_000_000, 50_000_000, 200_000_000)
KEYS = 10_000
HOURS = 72
LINEAR = 1.2
"""Goal: maximum growth of a stage's CPU time, divided by the growth of the events."""
FLAT = 1.1
"""Goal: maximum memory of the driver, divided by that with the fewest events."""
START, ALL = "start", "all stages"
JOB = Path(__file__).with_name("stage_record.py")
BYTES_OF_EVENT = 80
"""Disk space of an event in the lake, and in files on the way into it, in bytes: more than measured."""
BYTES_OF_KEY_HOUR = 400
"""The same of the state and the reports of a key in an hour."""


def stream_of(folder: Path) -> Path:
    """Write the stream file, with a block of each feature."""
    spec = {
        "name": "scale",
        "preset": "apache/combined",
        "source": {"path": scale_log.HOURLY, "expected_files": 1},
        "key": ["client"],
        "aggregates": {
            "traffic": {
                "measures": {"n": "count", "sent": "sum(bytes)"},
                "levels": "RANGES 24 HOURS, 6 HOURS, 1 HOUR SLIDES 6 HOURS, 3 HOURS, 1 HOUR",
            },
            "site": {
                "key": [],
                "measures": {"n": "count", "clients": "distinct(client)"},
                "levels": "RANGES 1 HOUR SLIDES 1 HOUR",
            },
        },
        "patterns": {
            "came_back": {
                "within": "3 hours",
                "steps": [
                    {"id": "failed", "where": "status = 500"},
                    {"id": "back", "where": "method = 'HEAD' and status = 404", "gap": {"min": "20 minutes"}},
                ],
            }
        },
        "frames": {
            "large": {
                "kind": "threshold",
                "where": "bytes > 50000",
                "min_records": 4,
                "on_duplicate_time": "max",
            }
        },
        "fills": {
            "before": {
                "frame": "large", "source": "traffic", "shift": ["1 hour"], "measures": {"n": "sum(n)"}
            }
        },
        "persistence": {
            "regulars": {
                "item": ["client"], "slot": "1 hour", "window": "1 day", "alpha": 0.7, "epsilon": 0.2
            }
        },
        "frequency": {
            "pages": {
                "item": ["path"], "window": "1 day", "tick": "5 minutes", "epsilon": 0.01, "delta": 0.01
            }
        },
    }  # fmt: skip
    file = folder / "scale.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(spec))
    return file


def bench(
    folder: Path, sizes: Sequence[int] = SIZES, keys: int = KEYS, hours: int = HOURS
) -> Iterator[dict[str, Any]]:
    """Yield a row per size and stage, with the start of the application and the total.

    The log and the lake of a size are deleted before the next one.

    Args:
        sizes: numbers of events.
        keys: the number of keys in the log.
        hours: the number of hours over which the events are spread.

    Raises:
        Failed: a stage does not run, an event is lost, or the disk is too small.
    """
    before: dict[str, dict[str, Any]] = {}
    first: dict[str, dict[str, Any]] = {}
    for count in sorted(sizes):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        _require_space(folder, count, keys * hours)
        scale_log.land(folder, count, keys, hours)
        for row in _measured(folder, count, keys, hours):
            who = row["who"]
            yield {**row, **growth(row, before.get(who), first.get(who))}
            before[who] = row
            first.setdefault(who, row)
    shutil.rmtree(folder / "lake", ignore_errors=True)


def growth(
    row: dict[str, Any], before: dict[str, Any] | None, first: dict[str, Any] | None
) -> dict[str, Any]:
    """Return the growth of a row's cost since smaller sizes, and whether it meets the goals.

    Args:
        before: the row of the next smaller size.
        first: the row of the smallest size.

    Returns:
        Nothing for the smallest size; otherwise `growth`, the growth of CPU time divided by that of the
        events, `driver_growth`, that of the driver's memory, and `aims`.
    """
    if before is None or first is None:
        return {}
    grown = (row["cpu_s"] / max(before["cpu_s"], 0.1)) / (row["events"] / before["events"])
    driver = row["driver_mib"] / max(first["driver_mib"], 1)
    aims = {
        f"CPU at most {LINEAR:g} times linear": grown <= LINEAR,
        f"driver's memory at most {FLAT:g} times": driver <= FLAT,
    }
    return {"growth": round(grown, 2), "driver_growth": round(driver, 2), "aims": aims}


def _require_space(folder: Path, count: int, key_hours: int) -> None:
    needed = count * (scale_log.BYTES_OF_ONE + BYTES_OF_EVENT) + min(count, key_hours) * BYTES_OF_KEY_HOUR
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise Failed(f"scale: {count} events need {needed // MIB:,} MiB of disk; {free // MIB:,} are free")


def _measured(folder: Path, count: int, keys: int, hours: int) -> Iterator[dict[str, Any]]:
    """Run all stages over a log, and yield the rows without growth."""
    stream, result = stream_of(folder), folder / "stages.json"
    interval = scale_log.interval(hours)
    span = ["--from", format_hour(interval.start), "--to", format_hour(interval.end)]
    command = spark_submit(*settings(), JOB, result, "--stream", stream, "--lake", folder / "lake", *span)
    samples: list[Sample] = []
    log = folder / "run.log"
    whole = run(
        command, log, {"TRANSOM_LANDING": str(folder), **paths()}, watching=partial(RoleWatch, samples)
    )
    records = {record["stage"]: record for record in json.loads(result.read_text())}
    missing = [stage for stage in load(stream).stages if stage not in records]
    if missing or records["ingest"]["rows"] < count:
        raise Failed(f"scale: {count} events: not run: {missing}, or events are lost (see {log})")
    began, ended = samples[0].moment, samples[-1].moment
    spans = {
        START: (began, min(record["began"] for record in records.values())),
        **{stage: (record["began"], record["ended"]) for stage, record in records.items()},
        ALL: (began, ended),
    }
    for who, (start, end) in spans.items():
        covered = records.values() if who == ALL else [records[who]] if who in records else []
        spilled = {
            f"{name}_spilled_mib": round(sum(one[f"{name}BytesSpilled"] for one in covered) / MIB, 1)
            for name in ("memory", "disk")
        }
        yield {
            "bench": "scale", "who": who, "events": count, "keys": keys, "hours": hours,
            "seconds": round(end - start, 1), **_by_role(cost(samples, start, end)),
            **spilled, "rows": sum(one["rows"] for one in covered),
            **({"peak_mib": whole.peak_mib, "whole": asdict(whole)} if who == ALL else {}),
        }  # fmt: skip


def _by_role(spent: Cost) -> dict[str, Any]:
    return {
        "cpu_s": round(sum(spent.cpu_s.values()), 1),
        **{f"{role}_cpu_s": spent.cpu_s[role] for role in ROLES},
        **{f"{role}_mib": spent.peak_mib[role] for role in ROLES},
    }
