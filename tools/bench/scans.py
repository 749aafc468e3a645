"""Rows that a Spark application read, counted by Spark in its event log."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

ROWS = "number of output rows"
HANDED = "handed over by the driver"
LOG, NEW = "_delta_log", "newly written"
DRIVER = "SparkListenerDriverAccumUpdates"
_PLANS = "SparkListenerSQLExecutionStart", "SparkListenerSQLAdaptiveExecutionUpdate"


def logged(folder: Path) -> list[object]:
    """Return options of spark-submit that write an event log to a folder."""
    settings = {"enabled": "true", "dir": folder.absolute().as_uri(), "compress": "false"}
    named = {**settings, "rolling.enabled": "false"}
    return [part for name, value in named.items() for part in ("--conf", f"spark.eventLog.{name}={value}")]


def events_of(folder: Path) -> Iterator[Mapping[str, Any]]:
    """Yield the events of the only application in the folder."""
    [file] = folder.iterdir()
    with file.open() as lines:
        yield from map(json.loads, lines)


def rows_read(events: Iterable[Mapping[str, Any]], root: str) -> tuple[dict[str, int], int]:
    """Return the rows of all leaves of all plans by source, and the total of records read from files.

    Args:
        root: the folder of the tables.

    Returns:
        Rows by table, with `HANDED` for rows in the plan, `NEW` for files that are in no table yet, and `LOG`
        for the tables' own logs; and `recordsRead` of all tasks, which counts files only.
    """
    of_metric: dict[int, str] = {}
    found: dict[int, int] = {}
    records = 0
    for event in events:
        kind = event["Event"].rpartition(".")[2]
        if kind in _PLANS:
            of_metric |= dict(_leaves(event["sparkPlanInfo"], root))
        elif kind == "SparkListenerTaskEnd":
            records += (event.get("Task Metrics") or {}).get("Input Metrics", {}).get("Records Read", 0)
            for metric in event["Task Info"]["Accumulables"]:
                if isinstance(update := metric.get("Update"), int | str) and str(update).isdigit():
                    found[metric["ID"]] = found.get(metric["ID"], 0) + int(update)
        elif kind == DRIVER:
            for metric, value in event["accumUpdates"]:
                found[metric] = found.get(metric, 0) + value
    rows: dict[str, int] = {}
    for metric, read in of_metric.items():
        rows[read] = rows.get(read, 0) + found.get(metric, 0)
    return rows, records


def _leaves(plan: Mapping[str, Any], root: str) -> Iterator[tuple[int, str]]:
    """Yield the row metric and the source of each leaf."""
    for child in plan["children"]:
        yield from _leaves(child, root)
    if not plan["children"]:
        for metric in plan["metrics"]:
            if metric["name"] == ROWS:
                yield metric["accumulatorId"], _read(plan, root)


def _read(leaf: Mapping[str, Any], root: str) -> str:
    location = leaf["metadata"].get("Location", "")
    # Delta scans the entries of a table's log again after it has combined them.
    if LOG in location or LOG in leaf["nodeName"]:
        return LOG
    if "/made-" in location:
        return NEW
    below = re.search(re.escape(root) + r"/(\w+)", location)
    if below is None:
        return location or HANDED
    return below[1]
