"""Compute the persistent hosts with DuckDB from the same files.

Usage: python duck_persistence.py WAY STREAM LAKE PASSES RESULT
"""

import json
import sys
from pathlib import Path

import duckdb
from deltalake import DeltaTable

from bench.draw import HOURS
from bench.duck import THREADS
from bench.persistence_log import SLOT
from bench.ways import timed
from transom.features.persistence.spec import Persistence
from transom.stream import load

PAIRS = f"SELECT DISTINCT client, epoch_us(event_time) // {SLOT} AS slot FROM events"
EXACT = f"""WITH of_hours AS (SELECT client, slot // 4 AS hour, count(*) AS slots FROM ({PAIRS}) GROUP BY ALL)
SELECT client, hour, sum(slots) OVER (PARTITION BY client ORDER BY hour
  RANGE BETWEEN {HOURS - 1} PRECEDING AND CURRENT ROW) AS slots FROM of_hours"""


def main(way: str, stream_file: str, lake: str, passes: str, result: str) -> None:
    """Run several passes, and write the seconds of each."""
    stream = load(Path(stream_file))
    least = stream.blocks(Persistence)["hosts"].params.min_certain
    query = {"exact": f"SELECT * FROM ({EXACT}) WHERE slots >= {least}", "floor": PAIRS}[way]
    files = DeltaTable(f"{lake}/{stream.name}/events").file_uris()
    connection = duckdb.connect()
    connection.execute(f"SET threads = {THREADS}")
    connection.execute(f"CREATE VIEW events AS SELECT * FROM read_parquet({files!r})")
    seconds = timed(passes, lambda number: connection.execute(f"SELECT count(*) FROM ({query})").fetchall())
    Path(result).write_text(json.dumps({"seconds": seconds}))


if __name__ == "__main__":
    main(*sys.argv[1:])
