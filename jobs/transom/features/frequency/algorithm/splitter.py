"""Splitter, all cells of a matrix at once, tick by tick (Rivetti, Busnel and Mostefaoui, section 3.4; one by
one: `transom.features.frequency.algorithm.splitter_reference`).

A tick gives each cell the number of its records. Cells that have any are brought up to date and take them;
the others are left as they are, however long. What a sub-cell still holds is a whole number of `1 / UNIT` of
a record and is written down when records come, never when it is looked at: so what is held depends on the
records alone, not on when somebody has looked.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from transom.core.exact_sums import Int64s
from transom.features.frequency.algorithm.splitter_reference import MU, TAU, UNIT

MAX_EXACT_RECORDS = 2**37
"""Records of a window, less than which every sum is exact."""
Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
FIELDS = ("counter", "init", "last", "whole", "begun")
INITIAL_ROOM = 4
"""Sub-cells for which there is room at the beginning."""


@dataclass(frozen=True)
class SubCells:
    """Sub-cells of many cells, one behind the other, each in the order of its steps.

    Attributes:
        many: how many each cell has.
        counter: what each held when its cell was last given records, in `1 / UNIT` of one.
        init, last, whole, begun: as of `transom.features.frequency.algorithm.splitter_reference.SubCell`,
        then; begun is 1 or 0.
    """

    many: Int64s
    counter: Int64s
    init: Int64s
    last: Int64s
    whole: Int64s
    begun: Int64s

    @classmethod
    def none(cls, cells: int) -> "SubCells":
        """Cells without a record."""
        return cls(np.zeros(cells, dtype=np.int64), *(np.zeros(0, dtype=np.int64) for _ in FIELDS))


class SplitterCells:
    """The cells of a matrix, each a list of linked sub-cells in the order of their steps: memory goes by how
    many these are, wherever they are.

    Args:
        sub_cells: what they hold.
        columns: of the matrix.
        steps: of the window, N.
        tau, mu: as of `transom.features.frequency.algorithm.splitter_reference.SplitterListing`.
    """

    def __init__(
        self, held: SubCells, columns: int, steps: int, tau: Fraction = TAU, mu: Fraction = MU
    ) -> None:
        self._columns, self._steps, self._tau, self._mu = columns, steps, tau, float(mu)
        self._link(held)

    def _link(self, held: SubCells) -> None:
        self._many = held.many.copy()
        self._used = int(held.many.sum())
        room = max(INITIAL_ROOM, 2 * self._used)
        self._fields = {name: _with_room(getattr(held, name), room) for name in FIELDS}
        place = np.arange(self._used)
        self._before, self._after = _with_room(place - 1, room), _with_room(place + 1, room)
        behind = np.cumsum(held.many)
        # Of a cell that has none they say nothing.
        self._oldest, self._newest = behind - held.many, behind - 1

    def advance(self, now: int, seen: Int64s, records: int) -> None:
        """Takes the records of a tick.

        Args:
            now: its number; they come in order. Ticks without a record may be left out.
            seen: how many records each cell is given.
            records: of the window that ends with the tick, M.

        Raises:
            OverflowError: a window of too many records.
        """
        if records >= MAX_EXACT_RECORDS:
            raise OverflowError(f"a window has less than 2^37 records; got {records}")
        cells = np.flatnonzero(seen)
        if not len(cells):
            return
        if self._used + len(cells) > len(self._before):
            self._link(self.sub_cells(now - 1))
            if self._used + len(cells) > len(self._before):
                self._grow(2 * (self._used + len(cells)))
        self._retract(cells, now - self._steps + 1)
        counter, _, last, whole, _ = self._fields.values()
        there = self._many[cells] > 0
        enough = math.ceil(self._tau * records * UNIT / self._columns)
        grows = there.copy()
        grows[there] = counter[self._newest[cells[there]]] < enough
        place, more = self._newest[cells[grows]], seen[cells[grows]]
        counter[place] += more * UNIT
        whole[place] += more
        last[place] = now
        merges = cells[there & ~grows & (self._many[cells] > 1)]
        merges = merges[self._alike(merges)]
        place = self._newest[merges]
        before = self._before[place]
        last[before] = last[place]
        counter[before] += counter[place]
        whole[before] += whole[place]
        self._newest[merges] = before
        self._many[merges] -= 1
        self._push(cells[~grows], now, seen[cells[~grows]])

    def _push(self, cells: Int64s, now: int, seen: Int64s) -> None:
        """A sub-cell more for each of some cells."""
        place = np.arange(self._used, self._used + len(cells))
        self._used += len(cells)
        values: dict[str, Int64s | int] = dict(zip(FIELDS, (seen * UNIT, now, now, seen, 0), strict=True))
        for name, value in values.items():
            self._fields[name][place] = value
        first = self._many[cells] == 0
        self._oldest[cells[first]] = place[first]
        later, behind = cells[~first], place[~first]
        self._before[behind] = self._newest[later]
        self._after[self._newest[later]] = behind
        self._newest[cells] = place
        self._many[cells] += 1

    def _grow(self, room: int) -> None:
        self._fields = {name: _with_room(field, room) for name, field in self._fields.items()}
        self._before, self._after = _with_room(self._before, room), _with_room(self._after, room)

    def _retract(self, cells: Int64s, behind: int) -> None:
        """Takes away what lies before a step."""
        counter, init, last, _, begun = self._fields.values()
        some = cells
        while True:
            some = some[self._many[some] > 0]
            some = some[last[self._oldest[some]] < behind]
            if not len(some):
                break
            self._oldest[some] = self._after[self._oldest[some]]
            self._many[some] -= 1
        first = self._oldest[cells[self._many[cells] > 0]]
        first = first[init[first] < behind]
        counter[first] = _remaining(counter[first], init[first], last[first], behind)
        init[first] = behind
        begun[first] = 1

    def _alike(self, cells: Int64s) -> Bools:
        """Whether the last two sub-cells of some cells have nearly the same rate."""
        counter, init, last, *_ = self._fields.values()
        newest = self._newest[cells]
        before = self._before[newest]
        one = counter[before] / (init[newest] - init[before])
        other = counter[newest] / (last[newest] - init[newest] + 1)
        found: Bools = np.maximum(one, other) / np.minimum(one, other) <= self._mu
        return found

    def sub_cells(self, now: int) -> SubCells:
        """What the cells hold at a tick, less sub-cells that lie before its window."""
        cells = np.flatnonzero(self._many)
        left, place = self._many[cells], self._oldest[cells]
        of_cells, places = [], []
        while len(cells):
            of_cells.append(cells)
            places.append(place)
            more = left > 1
            cells, left, place = cells[more], left[more] - 1, self._after[place[more]]
        cell, place = (
            np.concatenate([np.zeros(0, dtype=np.int64), *all_of]) for all_of in (of_cells, places)
        )
        there = self._fields["last"][place] > now - self._steps
        cell, place = cell[there], place[there]
        # Stable: those of a cell stay in the order of their steps.
        place = place[np.argsort(cell, kind="stable")]
        many = np.bincount(cell, minlength=len(self._many))
        return SubCells(many, *(self._fields[name][place] for name in FIELDS))


def _with_room(values: Int64s, room: int) -> Int64s:
    """Values, and places for more behind them."""
    found = np.zeros(room, dtype=np.int64)
    found[: len(values)] = values
    return found


def values(held: SubCells, now: int, steps: int) -> Int64s:
    """What cells hold at a tick, in `1 / UNIT` of a record.

    Args:
        steps: of the window, N.
    """
    behind = now - steps + 1
    left = np.where(held.last < behind, 0, held.counter)
    partly = (held.init < behind) & (behind <= held.last)
    left[partly] = _remaining(held.counter[partly], held.init[partly], held.last[partly], behind)
    return _of_cells(held, left)


def bounds(held: SubCells, now: int, steps: int, records: int) -> tuple[Int64s, Int64s]:
    """How many records of the window that ends with a tick fall into each cell, at least and at most.

    Args:
        steps: of the window, N.
        records: of the window, M.
    """
    behind = now - steps + 1
    inside = held.last >= behind
    surely = inside & (held.init >= behind) & (held.begun == 0)
    low, high = (
        _of_cells(held, np.where(surely, held.whole, 0)),
        _of_cells(held, np.where(inside, held.whole, 0)),
    )
    return low, np.minimum(high, records)


def _remaining(counter: Int64s, init: Int64s, last: Int64s, behind: int) -> Int64s:
    """What is left of sub-cells from a step on, of a steady rate."""
    found: Int64s = np.rint(counter * ((last - behind + 1) / (last - init + 1))).astype(np.int64)
    return found


def _of_cells(held: SubCells, of_sub_cells: Int64s) -> Int64s:
    """The sum of each cell."""
    sums = np.concatenate([[0], np.cumsum(of_sub_cells)])
    behind = np.cumsum(held.many)
    found: Int64s = sums[behind] - sums[behind - held.many]
    return found
