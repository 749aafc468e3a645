"""Records per second of each windowed Count-Min sketch, one by one, and for all cells of a tick at once.

The listing of Splitter visits every cell at every record, so it slows down with more columns. The lazy form,
also with fractions, does not: its cost is independent of the number of columns."""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from transom.features.frequency.algorithm.params import Shape
from transom.features.frequency.algorithm.reference import (
    Perfect,
    Proportional,
    Simple,
    Vanilla,
    WindowedCountMin,
)
from transom.features.frequency.algorithm.row_hashes import columns_of
from transom.features.frequency.algorithm.splitter import SplitterCells, SubCells
from transom.features.frequency.algorithm.splitter_reference import (
    FixedPointSplitter,
    Splitter,
    SplitterListing,
)
from transom.features.frequency.algorithm.tick_matrices import matrices_of

COLUMNS = (28, 280, 2800)
RECORDS, FEW, WINDOW = 200_000, 20_000, 5_000
"""Records for fast forms, records for listings, and steps of the window."""
TICK = 1000
"""Records per tick, if all cells of a tick are counted at once."""
LISTED, LAZY, FIXED, AT_ONCE = (
    "splitter as listed",
    "splitter",
    "splitter, fixed point",
    "splitter, ticks at once",
)
STEADY, SLOWER = (LAZY, FIXED), 1.5
"""Forms whose cost is independent of the columns, and the maximum slowdown by caches."""
KINDS: dict[str, tuple[Callable[..., WindowedCountMin], int]] = {
    "vanilla": (Vanilla, RECORDS), "perfect": (Perfect, RECORDS), "simple": (Simple, RECORDS),
    "proportional": (Proportional, FEW), LISTED: (SplitterListing, FEW), LAZY: (Splitter, FEW),
    FIXED: (FixedPointSplitter, RECORDS),
}  # fmt: skip


def bench(repetitions: int) -> Iterator[dict[str, Any]]:
    """Yield a row per sketch and number of columns."""
    rng = np.random.default_rng(9)
    numbers = (rng.zipf(1.2, RECORDS) % 1000).astype(np.int64)
    items = [b"%d" % n for n in range(1000)]
    stream = [items[n] for n in numbers.tolist()]
    fewest: dict[str, float] = {}
    for columns in COLUMNS:
        shape = Shape(1, columns)
        for who, (kind, many) in KINDS.items():
            seconds = min(_one_by_one(kind(shape, WINDOW), stream[:many]) for _ in range(repetitions))
            yield _row(who, columns, many, seconds, fewest)
        for who, way in (("perfect, ticks at once", _added), (AT_ONCE, _advanced)):
            seconds = min(way(shape, items, numbers) for _ in range(repetitions))
            yield _row(who, columns, RECORDS, seconds, fewest)


def _row(who: str, columns: int, many: int, seconds: float, fewest: dict[str, float]) -> dict[str, Any]:
    to_fewest = round(seconds / fewest.setdefault(who, seconds), 2)
    return {
        "bench": "updates", "who": who, "columns": columns, "events": many, "seconds": round(seconds, 3),
        "a_second": round(many / seconds), "to_fewest": to_fewest,
    }  # fmt: skip


def _one_by_one(sketch: WindowedCountMin, stream: Sequence[bytes]) -> float:
    began = time.perf_counter()
    for item in stream:
        sketch.update(item)
    return time.perf_counter() - began


def _matrices(shape: Shape, items: Sequence[bytes], numbers: Any) -> Any:
    tick = np.arange(len(numbers)) // TICK
    ticks = len(numbers) // TICK
    columns = columns_of(items, shape)
    return matrices_of(shape, columns[:, numbers], np.ones_like(numbers), tick, ticks)


def _added(shape: Shape, items: Sequence[bytes], numbers: Any) -> float:
    began = time.perf_counter()
    sums = _matrices(shape, items, numbers).cumsum(axis=0)
    steps = WINDOW // TICK
    _ = sums[steps:] - sums[:-steps]
    return time.perf_counter() - began


def _advanced(shape: Shape, items: Sequence[bytes], numbers: Any) -> float:
    began = time.perf_counter()
    steps = WINDOW // TICK
    cells = SplitterCells(SubCells.none(shape.cells), shape.columns, steps)
    for now, matrix in enumerate(_matrices(shape, items, numbers)):
        cells.advance(now, matrix.reshape(-1), min(now + 1, steps) * TICK)
    return time.perf_counter() - began
