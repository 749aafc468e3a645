"""Splitter for all cells of a matrix at once, tick by tick (Rivetti, Busnel and Mostefaoui, section 3.4; cell
by cell: `transom.features.frequency.algorithm.splitter_reference`).

A tick updates only the cells that it has records for. The counter of a sub-cell is a whole number of
`1 / UNIT` of a record. It changes when records arrive, never when it is read, so the state depends on the
records alone.

Guarantee: `bounds` holds for every cell, and values equal those of `splitter_reference.FixedPointSplitter`.

Cost: `O(c1 c2)` for each tick, and amortised `O(log s)` for each cell with records, for `s` sub-cells. Memory
is `O(s)`. If the number of records in the window, M, is constant, `s <= c1 c2 (1 / tau + 2)`. If it grows to
M, `s <= c1 c2 ((1 + ln M) / tau + 2)`.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from transom.core.exact_sums import Bools, Int64s
from transom.features.frequency.algorithm.params import MU, TAU, UNIT

MAX_EXACT_RECORDS = 2**37
"""With fewer records in a window, every sum is exact."""
FIELDS = ("counter", "first_step", "last_step", "total", "partly_expired")
"""The attributes of a sub-cell."""
INITIAL_ROOM = 4
"""Minimum room for further sub-cells."""


@dataclass(frozen=True)
class SubCells:
    """Sub-cells of many cells, cell after cell, each in the order of its steps.

    Attributes:
        lengths: the number of sub-cells of each cell.
        counter: the records of the sub-cell when its cell last got records, in `1 / UNIT` of a record.
        first_step: its first step that had not expired at that time.
        last_step: the step of its last record.
        total: all records that it counted.
        partly_expired: 1 if some of its records had expired at that time, else 0.
    """

    lengths: Int64s
    counter: Int64s
    first_step: Int64s
    last_step: Int64s
    total: Int64s
    partly_expired: Int64s

    @classmethod
    def none(cls, cells: int) -> "SubCells":
        """Return cells without a record."""
        return cls(np.zeros(cells, dtype=np.int64), *(np.zeros(0, dtype=np.int64) for _ in FIELDS))


class SplitterCells:
    """The cells of a matrix, each a linked list of sub-cells in the order of their steps. Memory depends only
    on the number of sub-cells.

    Args:
        sub_cells: the initial sub-cells.
        columns: the number of columns of the matrix, `c2`.
        steps: the number of steps of the window, N.
        tau: a sub-cell counts until it has this share of `M / c2` records; above 0, at most 1. A larger value
            has fewer sub-cells and a larger error.
        mu: rates that differ by at most this factor count as equal. A larger value has fewer sub-cells and a
            larger error.
    """

    def __init__(
        self, sub_cells: SubCells, columns: int, steps: int, tau: Fraction = TAU, mu: Fraction = MU
    ) -> None:
        self._columns, self._steps, self._tau, self._mu = columns, steps, tau, float(mu)
        self._link(sub_cells)

    def _link(self, sub_cells: SubCells, more: int = INITIAL_ROOM) -> None:
        self._lengths = sub_cells.lengths.copy()
        self._used = int(sub_cells.lengths.sum())
        room = max(2 * self._used, self._used + more)
        rest = 0, room - self._used
        self._fields = {name: np.pad(getattr(sub_cells, name), rest) for name in FIELDS}
        self._previous, self._next = np.arange(room) - 1, np.arange(room) + 1
        stops = np.cumsum(sub_cells.lengths)
        # Undefined for a cell without sub-cells.
        self._oldest, self._newest = stops - sub_cells.lengths, stops - 1

    def advance(self, now: int, counts: Int64s, records: int) -> None:
        """Add the records of a tick.

        Args:
            now: the number of the tick, ascending. Ticks without a record may be skipped.
            counts: the number of records for each cell.
            records: the number of records in the window that ends with the tick, M.

        Raises:
            OverflowError: the window has too many records.
        """
        if records >= MAX_EXACT_RECORDS:
            raise OverflowError(f"a window has less than 2^37 records; got {records}")
        cells = np.flatnonzero(counts)
        if not len(cells):
            return
        if self._used + len(cells) > len(self._previous):
            # Without expired sub-cells, with room for all that these cells may need.
            self._link(self.sub_cells(now - 1), len(cells))
        self._retract(cells, now - self._steps + 1)
        counter, _, last_step, total, _ = self._fields.values()
        nonempty = self._lengths[cells] > 0
        enough = math.ceil(self._tau * records * UNIT / self._columns)
        grows = nonempty.copy()
        grows[nonempty] = counter[self._newest[cells[nonempty]]] < enough
        place, added = self._newest[cells[grows]], counts[cells[grows]]
        counter[place] += added * UNIT
        total[place] += added
        last_step[place] = now
        merges = cells[nonempty & ~grows & (self._lengths[cells] > 1)]
        merges = merges[self._similar_rates(merges)]
        place = self._newest[merges]
        previous = self._previous[place]
        last_step[previous] = last_step[place]
        counter[previous] += counter[place]
        total[previous] += total[place]
        self._newest[merges] = previous
        self._lengths[merges] -= 1
        self._push(cells[~grows], now, counts[cells[~grows]])

    def _push(self, cells: Int64s, now: int, counts: Int64s) -> None:
        """Append a sub-cell to each of the cells."""
        place = np.arange(self._used, self._used + len(cells))
        self._used += len(cells)
        values: tuple[Any, ...] = (counts * UNIT, now, now, counts, 0)
        for field, value in zip(self._fields.values(), values, strict=True):
            field[place] = value
        first = self._lengths[cells] == 0
        self._oldest[cells[first]] = place[first]
        later, appended = cells[~first], place[~first]
        self._previous[appended] = self._newest[later]
        self._next[self._newest[later]] = appended
        self._newest[cells] = place
        self._lengths[cells] += 1

    def _retract(self, cells: Int64s, start: int) -> None:
        """Remove the records before a step."""
        counter, first_step, last_step, _, partly_expired = self._fields.values()
        expiring = cells
        while True:
            expiring = expiring[self._lengths[expiring] > 0]
            expiring = expiring[last_step[self._oldest[expiring]] < start]
            if not len(expiring):
                break
            self._oldest[expiring] = self._next[self._oldest[expiring]]
            self._lengths[expiring] -= 1
        first = self._oldest[cells[self._lengths[cells] > 0]]
        first = first[first_step[first] < start]
        counter[first] = _remaining(counter[first], first_step[first], last_step[first], start)
        first_step[first] = start
        partly_expired[first] = 1

    def _similar_rates(self, cells: Int64s) -> Bools:
        """Return whether the last two sub-cells of each cell have nearly the same rate."""
        counter, first_step, last_step, *_ = self._fields.values()
        newest = self._newest[cells]
        previous = self._previous[newest]
        rate = counter[newest] / (last_step[newest] - first_step[newest] + 1)
        previous_rate = counter[previous] / (first_step[newest] - first_step[previous])
        similar: Bools = np.maximum(previous_rate, rate) / np.minimum(previous_rate, rate) <= self._mu
        return similar

    def sub_cells(self, now: int) -> SubCells:
        """Return the sub-cells at the end of a tick, without those that have left its window."""
        cells = np.flatnonzero(self._lengths)
        remaining, place = self._lengths[cells], self._oldest[cells]
        of_cells, places = [], []
        while len(cells):
            of_cells.append(cells)
            places.append(place)
            has_more = remaining > 1
            cells, remaining, place = cells[has_more], remaining[has_more] - 1, self._next[place[has_more]]
        none = np.zeros(0, dtype=np.int64)
        cell, place = np.concatenate([none, *of_cells]), np.concatenate([none, *places])
        live = self._fields["last_step"][place] > now - self._steps
        cell, place = cell[live], place[live]
        # Stable: sub-cells of a cell stay in the order of their steps.
        place = place[np.argsort(cell, kind="stable")]
        lengths = np.bincount(cell, minlength=len(self._lengths))
        return SubCells(lengths, *(self._fields[name][place] for name in FIELDS))


def values(sub_cells: SubCells, now: int, steps: int) -> Int64s:
    """Return the value of each cell in the window that ends with a tick, in `1 / UNIT` of a record.

    Args:
        sub_cells: the sub-cells at the end of the tick.
        now: the number of the tick.
        steps: the number of steps of the window, N.
    """
    start = now - steps + 1
    counters = np.where(sub_cells.last_step < start, 0, sub_cells.counter)
    partly = (sub_cells.first_step < start) & (start <= sub_cells.last_step)
    counters[partly] = _remaining(
        sub_cells.counter[partly], sub_cells.first_step[partly], sub_cells.last_step[partly], start
    )
    return _of_cells(sub_cells, counters)


def bounds(sub_cells: SubCells, now: int, steps: int, records: int) -> tuple[Int64s, Int64s]:
    """Return lower and upper bounds of each cell's number of records in the window that ends with a tick.

    Args:
        sub_cells: the sub-cells at the end of the tick.
        now: the number of the tick.
        steps: the number of steps of the window, N.
        records: the number of records in the window, M.
    """
    start = now - steps + 1
    inside = sub_cells.last_step >= start
    whole = inside & (sub_cells.first_step >= start) & (sub_cells.partly_expired == 0)
    low, high = (_of_cells(sub_cells, np.where(counted, sub_cells.total, 0)) for counted in (whole, inside))
    return low, np.minimum(high, records)


def _remaining(counter: Int64s, first_step: Int64s, last_step: Int64s, start: int) -> Int64s:
    """Return the part of each counter from a step on, at a steady rate."""
    share = (last_step - start + 1) / (last_step - first_step + 1)
    return np.rint(counter * share).astype(np.int64)


def _of_cells(sub_cells: SubCells, of_sub_cells: Int64s) -> Int64s:
    """Return the sum over the sub-cells of each cell."""
    sums, stops = np.append(0, np.cumsum(of_sub_cells)), np.cumsum(sub_cells.lengths)
    totals: Int64s = sums[stops] - sums[stops - sub_cells.lengths]
    return totals
