"""The peer of ingest: DuckDB reads the same files, and writes the same columns to Parquet files by hour.

It rejects no lines, adds neither line numbers nor sources, and does not check or record anything.

Usage: duck_ingest.py FORMAT FILES FOLDER
"""

import shutil
import sys

import duckdb

from bench.peer_ingest import APACHE, LINE, ZEEK

THREADS = 2
HEADER = 7
"""The header lines of a generated file of Zeek."""


def apache(files: str) -> str:
    """Return a query that parses each line by one regular expression."""
    names = ", ".join(f"'{name}'" for name in APACHE)
    integers = {"status", "bytes"}
    columns = (
        f"nullif(f.{name}, '-')::{'BIGINT' if name in integers else 'VARCHAR'} AS {name}"
        for name in APACHE
        if name != "time"
    )
    return f"""SELECT strptime(f.time, '%d/%b/%Y:%H:%M:%S %z')::TIMESTAMP AS event_time, {", ".join(columns)}
        FROM (SELECT regexp_extract(line, '{LINE}', [{names}]) AS f FROM read_csv('{files}',
        columns = {{'line': 'VARCHAR'}}, header = false, delim = '', quote = '', escape = ''))"""


def zeek(files: str) -> str:
    """Return a query that reads delimited values; columns that the generated log lacks are null."""
    stored = dict(list(ZEEK.items())[:-2])
    columns = ", ".join(f"'{name}': '{kind}'" for name, kind in stored.items())
    lacking = ", ".join(f"NULL::{kind} AS {name}" for name, kind in list(ZEEK.items())[-2:])
    return f"""SELECT make_timestamp(round((ts + coalesce(duration, 0)) * 1000000)::BIGINT) AS event_time,
        * EXCLUDE (ts), {lacking}
        FROM read_csv('{files}', columns = {{{columns}}}, delim = '\t', header = false, skip = {HEADER},
        auto_detect = false, quote = '', escape = '', nullstr = '-')"""


def main(form: str, files: str, folder: str) -> None:
    """Read, parse and write."""
    shutil.rmtree(folder, ignore_errors=True)
    query = {"apache": apache, "zeek": zeek}[form](files)
    duckdb.execute(f"SET threads = {THREADS}; SET preserve_insertion_order = false; SET TimeZone = 'UTC'")
    duckdb.execute(
        f"""COPY (SELECT *, date_trunc('hour', event_time) AS hour FROM ({query}))
        TO '{folder}' (FORMAT parquet, PARTITION_BY (hour))"""
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
