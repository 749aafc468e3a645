"""Compute the most frequent hosts with DuckDB from the same files.

Usage: python duck_frequency.py WAY STREAM LAKE PASSES RESULT
"""

import json
import sys
from pathlib import Path

import duckdb
from deltalake import DeltaTable

from bench.draw import END
from bench.duck import THREADS
from bench.frequency_log import TOP, WINDOW
from bench.ways import timed
from transom.stream import load

HOURS = "SELECT client, date_trunc('hour', event_time) AS hour, count(*) AS records FROM events GROUP BY ALL"
EXACT = f"""WITH of_hours AS ({HOURS}), of_windows AS (
  SELECT client, hour + number * INTERVAL 1 HOUR AS ends, sum(records) AS records
  FROM of_hours, range({WINDOW}) r(number) GROUP BY ALL)
SELECT * FROM of_windows WHERE ends < '{END.isoformat()}'
QUALIFY row_number() OVER (PARTITION BY ends ORDER BY records DESC, client) <= {TOP}"""


def main(way: str, stream_file: str, lake: str, passes: str, result: str) -> None:
    """Run several passes, and write the seconds of each."""
    stream = load(Path(stream_file))
    query = {"exact": EXACT, "floor": HOURS}[way]
    files = DeltaTable(f"{lake}/{stream.name}/events").file_uris()
    connection = duckdb.connect()
    connection.execute(f"SET threads = {THREADS}")
    connection.execute(f"CREATE VIEW events AS SELECT * FROM read_parquet({files!r})")
    seconds = timed(passes, lambda number: connection.execute(f"SELECT count(*) FROM ({query})").fetchall())
    Path(result).write_text(json.dumps({"seconds": seconds}))


if __name__ == "__main__":
    main(*sys.argv[1:])
