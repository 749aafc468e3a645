"""Compute threshold frames with DuckDB from the same files, as gaps and islands.

Usage: python duck_framing.py WAY STREAM LAKE PASSES RESULT
"""

import json
import sys
from pathlib import Path
from typing import Any

import duckdb
from deltalake import DeltaTable

from bench.duck import THREADS
from bench.framing_log import ABOVE
from bench.ways import timed
from transom.stream import load

FRAMES = f"""WITH readings AS (
  SELECT client, epoch_us(event_time) AS "at", bytes AS value FROM events),
flagged AS (SELECT *, value > {ABOVE} AS holds, lead("at") OVER of_key IS NOT NULL AS behind,
    holds AND NOT coalesce(lag(value) OVER of_key > {ABOVE}, false) AS begins
  FROM readings WINDOW of_key AS (PARTITION BY client ORDER BY "at")),
islands AS (SELECT *, sum(begins::INTEGER) OVER (PARTITION BY client ORDER BY "at") AS island FROM flagged)
SELECT client, min("at") AS first, max("at") AS last, count(*) AS records, max(value) AS high
FROM islands WHERE holds GROUP BY client, island HAVING bool_and(behind)"""
TOTALS = f"SELECT count(*), sum(records), sum(last - first), sum(records * high) FROM ({FRAMES})"


def main(way: str, stream_file: str, lake: str, passes: str, result: str) -> None:
    """Run several passes, and write the seconds of each, and totals of the answer."""
    assert way == "islands"
    files = DeltaTable(f"{lake}/{load(Path(stream_file)).name}/events").file_uris()
    connection = duckdb.connect()
    connection.execute(f"SET threads = {THREADS}")
    connection.execute(f"CREATE VIEW events AS SELECT * FROM read_parquet({files!r})")
    totals, found = TOTALS, list[Any]()
    seconds = timed(passes, lambda number: found.append(connection.execute(totals).fetchone()))
    Path(result).write_text(json.dumps({"seconds": seconds, "totals": [int(value) for value in found[-1]]}))


if __name__ == "__main__":
    main(*sys.argv[1:])
