"""Compute the same windows with DuckDB from the same files: data of one machine need no cluster.

Usage: duck.py WAY STREAM LAKE PASSES RESULT [END, exclusive]
"""

import json
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
from deltalake import DeltaTable

from bench.draw import END
from bench.ways import timed
from transom.core.intervals import format_hour, parse
from transom.features.aggregates.algorithm.granules import WindowLevel
from transom.features.aggregates.resolve import AggregateBlock, block_of
from transom.stream import load

THREADS = 2
_TOTALS = """SELECT count(*), sum(records), sum(have), sum(total), sum(least), sum(most), sum(ends // 1000000)
FROM (SELECT *, total / have AS mean FROM ({windows}))"""


def _end(level: WindowLevel, time: str) -> str:
    """Return SQL for the ends of all windows that contain a time: `(time // slide + 1 + k) * slide`."""
    many = level.range // level.slide
    return f"({time} // {level.slide} + 1 + unnest(range({many}))) * {level.slide}"


def from_events(block: AggregateBlock, until: datetime = END) -> str:
    """Return SQL that assigns each event to each of its windows."""
    key, column = *block.key, *block.units
    return " UNION ALL ".join(
        f"""SELECT {key}, ends, count(*) AS records, count({column}) AS have, sum({column}) AS total,
        min({column}) AS least, max({column}) AS most
        FROM (SELECT {key}, {column}, {_end(level, "epoch_us(event_time)")} AS ends FROM events)
        WHERE ends <= {_micros(until)} GROUP BY ALL"""
        for level in block.levels
    )


def from_granules(block: AggregateBlock, until: datetime = END) -> str:
    """Return SQL that aggregates events into granules of each level's slide, and these into windows."""
    key, column = *block.key, *block.units
    added = "sum(records) AS records, sum(have) AS have, sum(total) AS total"
    figures = f"{added}, min(least) AS least, max(most) AS most"
    base = f"""SELECT {key}, epoch_us(event_time) // {block.base} * {block.base} AS start,
        count(*) AS records, count({column}) AS have, sum({column}) AS total,
        min({column}) AS least, max({column}) AS most
        FROM events GROUP BY ALL"""
    windows = " UNION ALL ".join(
        f"""SELECT {key}, ends, {figures} FROM (
        SELECT * EXCLUDE (unit), {_end(level, "unit")} AS ends
        FROM (SELECT {key}, start // {level.slide} * {level.slide} AS unit, {figures} FROM base GROUP BY ALL))
        WHERE ends <= {_micros(until)} GROUP BY ALL"""
        for level in block.levels
    )
    return f"WITH base AS MATERIALIZED ({base}) {windows}"


def _micros(moment: datetime) -> int:
    return int(moment.timestamp()) * 1_000_000


def main(
    way: str, stream_file: str, lake: str, passes: str, result: str, end: str = format_hour(END)
) -> None:
    """Run one way several times, and write the seconds of each pass, and the totals."""
    stream = load(Path(stream_file))
    block = block_of(stream, "volume")
    files = DeltaTable(f"{lake}/{stream.name}/events").file_uris()
    windows = {"raw": from_events, "granules": from_granules}[way](block, parse(end))
    connection = duckdb.connect()
    connection.execute(f"SET threads = {THREADS}")
    connection.execute(f"CREATE VIEW events AS SELECT * FROM read_parquet({files!r})")
    totals, found = _TOTALS.format(windows=windows), list[Any]()
    seconds = timed(passes, lambda number: found.append(connection.execute(totals).fetchone()))
    Path(result).write_text(json.dumps({"seconds": seconds, "totals": [int(value) for value in found[-1]]}))


if __name__ == "__main__":
    main(*sys.argv[1:])
