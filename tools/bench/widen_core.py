"""Run the stage's two passes over all records on one core, without Spark: records per second, and a profile.

Usage: python widen_core.py STREAM LAKE RESULT
"""

import cProfile
import json
import pstats
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable

from bench.draw import FIRST
from bench.widen_log import PATTERN, STATUS, TOLD
from transom.core.intervals import Interval
from transom.engine.hours import to_ranges
from transom.features.patterns.resolve import PatternBlock, block_of
from transom.features.patterns.tables_batches import batch_rows
from transom.features.patterns.tables_matches import MatchFinder
from transom.features.patterns.validate import carried_column
from transom.ledger.task_counters import TaskCounters
from transom.stream import load

ROWS = 2**16
"""Number of rows of a batch of a task."""
TOLD_FUNCTIONS = 14


def records(lake: Path, block: PatternBlock) -> pa.Table:
    """Return the pattern's records as a task receives them from Spark, not in order."""
    rows = DeltaTable(f"{lake}/drawn/events").to_pyarrow_table()
    takes = np.zeros(rows.num_rows, dtype=np.int64)
    for bit, name in enumerate(("looked", "refused", "entered")):
        takes |= (rows["status"].to_numpy() == STATUS[name]).astype(np.int64) << bit
    rows = rows.append_column("step_mask", pa.array(takes)).filter(pa.array(takes > 0))
    columns = {
        "stored": pa.array(np.zeros(rows.num_rows, dtype=bool)),
        **{name: rows[name] for name in (*block.key, "event_time", "source_id", "source_line", "step_mask")},
        "truncated_after": pa.array(np.zeros(rows.num_rows, dtype=bool)),
        **{carried_column(name): rows[name] for name in block.carried},
    }
    return pa.table(columns).combine_chunks()


def passes(lake: Path, block: PatternBlock) -> tuple[int, dict[str, Callable[[], pa.Table]]]:
    """Return the number of records, and the two passes by name."""
    events = records(lake, block)
    hours = list(Interval(FIRST, TOLD).hours())
    schema = block.schema("batches")
    matches = MatchFinder(block, to_ranges(hours), None, block.schema("matches"))
    made: list[pa.Table] = []

    def first() -> pa.Table:
        made[:] = [pa.Table.from_batches(batch_rows(block, schema, events.to_batches(ROWS), TaskCounters()))]
        return made[0]

    def second() -> pa.Table:
        stored = made[0].append_column("stored", pa.array(np.ones(made[0].num_rows, dtype=bool)))
        rows = pa.concat_tables([events, stored.select(events.column_names)], promote_options="permissive")
        return pa.Table.from_batches(matches(rows.to_batches(ROWS), TaskCounters()))

    return events.num_rows, {"batches": first, "matches": second}


def main(stream: str, lake: str, result: str) -> None:
    """Run both passes once for the time and once for the profile, and write the results."""
    block = block_of(load(Path(stream)), PATTERN)
    many, ways = passes(Path(lake), block)
    seconds: dict[str, float] = {}
    rows: dict[str, int] = {}
    for name, way in ways.items():
        began = time.process_time()
        rows[name] = way().num_rows
        seconds[name] = round(time.process_time() - began, 2)
    profile = cProfile.Profile()
    for way in ways.values():
        profile.runcall(way)
    Path(result).write_text(
        json.dumps({"records": many, "seconds": seconds, "rows": rows, "functions": functions(profile)})
    )


def functions(profile: cProfile.Profile) -> list[dict[str, Any]]:
    """Return the functions with most time of their own, without the functions that they call."""
    seen = pstats.Stats(profile).get_stats_profile()
    found = sorted(seen.func_profiles.items(), key=lambda item: -item[1].tottime)[:TOLD_FUNCTIONS]
    return [
        {"function": name, "file": Path(one.file_name).name, "calls": one.ncalls, "seconds": one.tottime}
        for name, one in found
    ]


if __name__ == "__main__":
    main(*sys.argv[1:])
