"""Aggregate rows in intervals with DuckDB: by its range join, and by two ASOF joins with running sums.

The second way has no maximum, as this is no difference of running values.

Usage: python duck_between.py WAY CASE FOLDER PASSES RESULT
"""

import json
import sys
from pathlib import Path
from typing import Any

import duckdb

from bench.between_log import CASES
from bench.duck import THREADS
from bench.ways import timed

RANGE = """SELECT id, count("at") AS many, sum(bytes) AS total, max(bytes) AS largest
FROM frames f LEFT JOIN rows r ON {same} r."at" >= f.start AND r."at" < f."end" GROUP BY id"""
ASOF = """WITH sums AS MATERIALIZED (SELECT {key} "at", max(n) AS n, max(s) AS s FROM (
  SELECT {key} "at", row_number() OVER w AS n, sum(bytes) OVER w AS s FROM rows
  WINDOW w AS ({partition} ORDER BY "at" ROWS UNBOUNDED PRECEDING)) GROUP BY ALL),
behind AS (SELECT f.*, coalesce(n, 0) AS n1, coalesce(s, 0) AS s1
  FROM frames f ASOF LEFT JOIN sums r ON {same} f."end" > r."at"),
before AS (SELECT f.id, coalesce(n, 0) AS n0, coalesce(s, 0) AS s0
  FROM frames f ASOF LEFT JOIN sums r ON {same} f.start > r."at")
SELECT id, n1 - n0 AS many, s1 - s0 AS total FROM behind JOIN before USING (id)"""
TOTALS = {
    "range": "sum(many), sum(total), sum(largest), sum(id % 1000 * many), sum(id % 997 * total), "
    "sum(id % 991 * largest)",
    "asof": "sum(many), sum(total), 0, sum(id % 1000 * many), sum(id % 997 * total), 0",
}


def main(way: str, case: str, folder: str, passes: str, result: str) -> None:
    """Run one way several times, and write the seconds of each pass, and totals of the answer."""
    keyed = CASES[case].keyed
    words = {
        "same": "f.client = r.client AND" if keyed else "",
        "key": "client," if keyed else "",
        "partition": "PARTITION BY client" if keyed else "",
    }
    query = {"range": RANGE, "asof": ASOF}[way].format(**words)
    connection = duckdb.connect()
    connection.execute(f"SET threads = {THREADS}")
    connection.execute(f"CREATE VIEW frames AS SELECT * FROM '{folder}/frames.parquet'")
    connection.execute(f"CREATE VIEW rows AS SELECT * FROM '{folder}/rows/*.parquet'")
    totals, found = f"SELECT {TOTALS[way]} FROM ({query})", list[Any]()
    seconds = timed(passes, lambda number: found.append(connection.execute(totals).fetchone()))
    Path(result).write_text(
        json.dumps({"seconds": seconds, "totals": [int(value or 0) for value in found[-1]]})
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
