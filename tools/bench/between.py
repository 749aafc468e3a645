"""Count, sum and maximum of 5,000,000 rows in each of 200,000 intervals, each way in its own process.

`floor` computes no answer: it only shuffles the rows by key and sorts them, as any ordered join must.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.aggregate import OURS
from bench.between_log import CASES, ROWS_OF_ONE, SECOND, compared, drawn
from bench.ingest import in_turn
from bench.measure import Failed
from bench.ways import Runs, gone, taken

HERE = Path(__file__).parent
PASSES = 3
FLOOR = "spark, shuffle and sort of the rows alone"
RANGE, BUCKETS = "spark, range join", "spark, slices of time"
DUCK, ASOF = "duckdb, range join", "duckdb, two ASOF joins (no maximum)"
ROWS = "transom, the rows themselves"
WAYS = {
    OURS: ("peer_between.py", "transom"),
    ROWS: ("peer_between.py", "rows"),
    RANGE: ("peer_between.py", "range"),
    BUCKETS: ("peer_between.py", "buckets"),
    DUCK: ("duck_between.py", "range"),
    ASOF: ("duck_between.py", "asof"),
    FLOOR: ("peer_between.py", "floor"),
}
MOST_COMPARED = 20 * 10**9
"""Maximum number of pairs that Spark's range join compares: more would take an hour."""
SKEW = "one heavy key"
NEAR, SKEWED = 1.5, 7.0
"""Goals: maximum time relative to the floor, and minimum speed relative to Spark's range join if one key has
most rows."""


def bench(cache: Path, count: int, repetitions: int) -> Iterator[dict[str, Any]]:
    """Yield a row per case and way.

    Raises:
        Failed: two ways give different answers.
    """
    for number, name in enumerate(CASES):
        folder = drawn(cache / "between", name, count)
        seen: dict[str, Runs] = {}
        pairs = _compared(folder, name, count)
        for who in in_turn(list(WAYS), number):
            if pairs.get(who, 0) <= MOST_COMPARED:
                script, way = WAYS[who]
                result = folder / f"{way}.json"
                seen[who] = [gone(script, result, way, name, folder, PASSES) for _ in range(repetitions)]
        answers = {who: runs[0][1]["totals"] for who, runs in seen.items()}
        _same(name, answers)
        yield from _told(name, count, seen, pairs, produced=answers[OURS][0])


def _compared(folder: Path, name: str, count: int) -> dict[str, int]:
    """Return how many comparisons of an interval's ends with a row each way makes, as far as known."""
    case = CASES[name]
    pairs = compared(folder, case)
    # Two binary searches for each interval, in at most two slices.
    searches = 2 * 2 * (count // ROWS_OF_ONE) * math.ceil(math.log2(count))
    sliced = compared(folder, case, case.mean * SECOND)
    return {RANGE: pairs, BUCKETS: sliced, OURS: searches, ROWS: searches}


def _same(name: str, answers: Mapping[str, Sequence[int] | None]) -> None:
    ours = answers[OURS]
    assert ours is not None
    for who, totals in answers.items():
        expected = {ROWS: ours[:1], ASOF: [*ours[:2], 0, *ours[3:5], 0]}.get(who, ours)
        if totals is not None and list(totals) != list(expected):
            raise Failed(f"between, {name}: {who} gives {totals}, transom {expected}")


def _told(
    name: str,
    count: int,
    seen: Mapping[str, Runs],
    pairs: Mapping[str, int],
    produced: int,
) -> Iterator[dict[str, Any]]:
    for who, runs in seen.items():
        row = {"bench": "between", "case": name, "events": count, "produced": produced, "who": who}
        yield {**row, "compared": pairs.get(who), **taken(runs)}
