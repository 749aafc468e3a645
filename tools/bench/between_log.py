"""Generate intervals and rows for the between-join: the same files for the same count.

200,000 intervals and 5,000,000 rows of 72 hours and 10,000 keys. Cases: short, long and nested intervals,
one key with most rows, and no key.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench import version
from bench.draw import CLIENTS, FIRST, HOURS, SEED, Int64s, Rng, zipf

ROWS_OF_ONE = 25
"""Number of rows per interval."""
FILES = 16
SECOND = 1_000_000
SPAN = HOURS * 3600 * SECOND
MADE_BY = (*version.DRAWING, Path(__file__))


@dataclass(frozen=True)
class Case:
    """Parameters of generated files.

    Attributes:
        mean: the mean length of intervals, in seconds.
        heavy: the share of rows that are moved to one key, from 0 to 1.
        keyed: whether the join has a key.
        inside: how many of ten intervals are inside of another one with eight times their length.
    """

    mean: int
    heavy: float = 0.0
    keyed: bool = True
    inside: int = 0


CASES: Mapping[str, Case] = {
    "short": Case(60),
    "long": Case(7200),
    "nested": Case(600, inside=9),
    "one heavy key": Case(60, heavy=0.8),
    "no key": Case(10, keyed=False),
}


def drawn(cache: Path, name: str, count: int) -> Path:
    """Return a folder with `frames.parquet` and `rows`, with `count` rows."""
    case = CASES[name]
    folder = version.folder(cache / f"{name.replace(' ', '-')}-{count}", MADE_BY)
    if not (folder / "whole").exists():
        (folder / "rows").mkdir(parents=True, exist_ok=True)
        rng = np.random.default_rng([SEED, count, list(CASES).index(name)])
        pq.write_table(_frames(rng, case, count // ROWS_OF_ONE), folder / "frames.parquet")
        for number, many in enumerate(np.diff(np.linspace(0, count, FILES + 1).astype(int))):
            pq.write_table(_rows(rng, case, int(many)), folder / "rows" / f"{number}.parquet")
        (folder / "whole").touch()
    return folder


def _keys(rng: Rng, many: int, heavy: float = 0.0) -> Int64s:
    keys = zipf(rng, many, CLIENTS, 0.7)
    keys[rng.random(many) < heavy] = 0
    return keys


def _frames(rng: Rng, case: Case, many: int) -> pa.Table:
    start = rng.integers(0, SPAN, many)
    length = 1 + (rng.exponential(case.mean * SECOND, many)).astype(np.int64)
    key = _keys(rng, many)
    if case.inside:
        outer = np.arange(many) // 10 * 10
        inner = np.arange(many) - outer > 9 - case.inside
        length[~inner] = 8 * case.mean * SECOND
        at = rng.random(many)
        start = np.where(inner, start[outer] + (at * 7 * case.mean * SECOND).astype(np.int64), start)
        length = np.where(inner, np.minimum(length, case.mean * SECOND), length)
        key = key[outer]
    return pa.table(
        {"id": np.arange(many), "client": key, "start": _time(start), "end": _time(start + length)}
    )


def _rows(rng: Rng, case: Case, many: int) -> pa.Table:
    return pa.table(
        {
            "client": _keys(rng, many, case.heavy),
            "at": _time(rng.integers(0, SPAN, many)),
            "bytes": rng.integers(0, 10**6, many),
        }
    )


def _time(micros: Int64s) -> pa.Array:
    return pa.array(int(FIRST.timestamp()) * SECOND + micros).cast(pa.timestamp("us", "UTC"))


def compared(folder: Path, case: Case, bucket: int | None = None) -> int:
    """Return how many pairs of interval and row a join compares that uses keys and slices of time.

    Args:
        bucket: the length of slices, in microseconds; None means a single slice.
    """
    frames = pq.read_table(folder / "frames.parquet")
    rows = pq.read_table(folder / "rows")
    at, start, end = (
        table[name].cast(pa.int64()).to_numpy() - int(FIRST.timestamp()) * SECOND
        for table, name in ((rows, "at"), (frames, "start"), (frames, "end"))
    )
    width = bucket or 4 * SPAN
    of_row, first, last = at // width, start // width, (end - 1) // width
    many = last - first + 1
    of_frame = np.repeat(first, many) + np.arange(many.sum()) - np.repeat(np.cumsum(many) - many, many)
    if case.keyed:
        top = 1 + max(of_row.max(), of_frame.max())
        of_row = rows["client"].to_numpy() * top + of_row
        of_frame = np.repeat(frames["client"].to_numpy(), many) * top + of_frame
    places, counts = np.unique(of_row, return_counts=True)
    at = np.searchsorted(places, of_frame)
    there = (at < len(places)) & (places[np.minimum(at, len(places) - 1)] == of_frame)
    return int(counts[at[there]].sum())
