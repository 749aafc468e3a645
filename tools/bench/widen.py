"""Matches of one pattern in widening and in fixed windows, each way in its own process.

Windows count if they end in the 72 hours after the first two days, so that all have a full history. Matches
count if their last record is in these hours. The time of transom includes the first two days, that of the
other ways does not.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from bench.aggregate import OURS, STAGE
from bench.ingest import in_turn
from bench.measure import Failed, Measured, run
from bench.ways import gone, paths, warm
from bench.widen_log import BEGIN, END, lake_of, stream_of

HERE = Path(__file__).parent
PASSES = 2
SLIDING = "(a) spark, window of t_max by t"
HOURLY, AT_ONCE = "(b) spark, last t_max every hour", "(b) spark, the same in one pass"
GROUPED = "(c) spark, window(2 t_max, t_max)"
CORE = "transom, one core, no Spark"
WAYS = {
    OURS: "computed",
    STAGE: "stage",
    SLIDING: "sliding",
    HOURLY: "hourly",
    AT_ONCE: "at_once",
    GROUPED: "grouped",
}
SHORT = np.timedelta64(1, "h")
"""Matches shorter than this count as short."""
LESS = 10
"""Goal: factor by which work and delay are reduced."""


def bench(cache: Path, count: int, repetitions: int) -> Iterator[dict[str, Any]]:
    """Yield a row per way.

    Raises:
        Failed: the whole stage finds other matches than its functions.
    """
    folder = cache / "widen"
    lake, stream = lake_of(folder, count), stream_of(folder)
    seen: dict[str, list[tuple[Measured, dict[str, Any]]]] = {who: [] for who in WAYS}
    for number in range(repetitions):
        for who in in_turn(list(WAYS), number):
            seen[who].append(_gone(WAYS[who], stream, lake, folder))
    found = {who: _matches(folder / f"{way}.parquet") for who, way in WAYS.items()}
    if found[OURS] != found[STAGE]:
        raise Failed("widen: the whole stage finds other matches than its two functions do")
    rows = []
    for who, runs in seen.items():
        passes = [one["seconds"] for _, one in runs]
        work = runs[0][1]["work"]
        rows.append(
            {
                "bench": "widen", "log": "drawn", "events": count, "who": who,
                "cold": min(one[0] for one in passes), "seconds": min(map(warm, passes)),
                "warm": all(len(one) > 1 for one in passes),
                "calls": work.get("detector_calls"), "shown": work.get("records_shown"),
                "allowed": work.get("records_allowed"), **_delays(found[who]),
                "missed": len(found[HOURLY].keys() - found[who].keys()),
                "peak_mib": max(one.peak_mib for one, _ in runs), "all": passes,
            }
        )  # fmt: skip
    by_way = {row["who"]: row for row in rows}
    yield from ({**row, "aims": _aims(row, by_way)} for row in rows)
    yield _on_one_core(stream, lake, folder, count)


def _gone(way: str, stream: Path, lake: Path, folder: Path) -> tuple[Measured, dict[str, Any]]:
    """Run one way in its own process, and return its cost and its result."""
    return gone("peer_widen.py", folder / f"{way}.json", way, stream, lake, PASSES)


def _matches(file: Path) -> dict[str, tuple[np.timedelta64, np.timedelta64]]:
    """Return the duration and the delay of detection of each match whose last record counts, by its id."""
    rows = pq.read_table(file)
    first, last, detected = (
        rows[name].to_numpy().astype("datetime64[us]") for name in ("first_time", "last_time", "detected_at")
    )
    begin, end = (np.datetime64(moment.replace(tzinfo=None), "us") for moment in (BEGIN, END))
    counted = np.flatnonzero((last >= begin) & (last < end))
    # Latest first, so that the earliest replaces the others.
    order = counted[np.argsort(detected[counted])[::-1]]
    names = rows["match_id"].to_numpy()[order]
    return dict(zip(names, zip((last - first)[order], (detected - last)[order], strict=True), strict=True))


def _delays(found: Mapping[str, tuple[np.timedelta64, np.timedelta64]]) -> dict[str, Any]:
    """Return the mean delays of all matches and of short ones, in minutes."""
    some = list(found.values())
    short = [delay for length, delay in some if length < SHORT]
    return {
        "matches": len(some), "short": len(short),
        "delay_min": _minutes([delay for _, delay in some]), "short_delay_min": _minutes(short),
    }  # fmt: skip


def _minutes(delays: list[np.timedelta64]) -> float | None:
    return round(float(np.mean(delays) / np.timedelta64(1, "m")), 1) if delays else None


def _aims(row: Mapping[str, Any], by_way: Mapping[str, Mapping[str, Any]]) -> dict[str, bool]:
    """Return whether each goal is met; only for transom."""
    if row["who"] != OURS:
        return {}
    return {
        "every match of (b)": not row["missed"],
        f"at most 1/{LESS} of its records shown": row["shown"] * LESS <= by_way[HOURLY]["shown"],
        f"at most 1/{LESS} of (c)'s delay where matches are short": row["short_delay_min"] * LESS
        <= by_way[GROUPED]["short_delay_min"],
        "within the bound": row["shown"] <= row["allowed"],
    }


def _on_one_core(stream: Path, lake: Path, folder: Path, count: int) -> dict[str, Any]:
    result = folder / "core.json"
    run([sys.executable, HERE / "widen_core.py", stream, lake, result], folder / "core.log", paths())
    seen = json.loads(result.read_text())
    seconds = sum(seen["seconds"].values())
    return {
        "bench": "widen", "log": "drawn", "events": count, "who": CORE, "seconds": round(seconds, 2),
        "cold": None, "aims": {}, "per_second": round(seen["records"] / seconds), "profile": seen,
    }  # fmt: skip
