"""Splitter, all cells of a matrix at once, tick by tick (Rivetti, Busnel and Mostefaoui, section 3.4; one by
one: `transom.algorithms.splitter`).

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

from transom.algorithms.exact import Int64s
from transom.algorithms.splitter import MU, TAU, UNIT

MOST = 2**37
"""Records of a window, less than which every sum is exact."""
Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
FIELDS = ("counter", "init", "last", "whole", "begun")
FEW = 4
"""Sub-cells for which there is room at the beginning."""


@dataclass(frozen=True)
class SubCells:
    """Sub-cells of many cells, one behind the other, each in the order of its steps.

    Attributes:
        many: how many each cell has.
        counter: what each held when its cell was last given records, in `1 / UNIT` of one.
        init, last, whole, begun: as of `transom.algorithms.splitter.SubCell`, then; begun is 1 or 0.
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
    """The cells of a matrix.

    Args:
        held: what they hold.
        columns: of the matrix.
        steps: of the window, N.
        tau, mu: as of `transom.algorithms.splitter.SplitterAsListed`.
    """

    def __init__(
        self, held: SubCells, columns: int, steps: int, tau: Fraction = TAU, mu: Fraction = MU
    ) -> None:
        self._columns, self._steps, self._tau, self._mu = columns, steps, tau, float(mu)
        self._many, cells = held.many.copy(), len(held.many)
        self._first = np.zeros(cells, dtype=np.int64)
        room = max(FEW, int(held.many.max(initial=0)))
        # Of each cell a ring of sub-cells.
        self._fields = {name: np.zeros((cells, room), dtype=np.int64) for name in FIELDS}
        cell = np.repeat(np.arange(cells), held.many)
        place = np.arange(len(cell)) - np.repeat(np.cumsum(held.many) - held.many, held.many)
        for name, field in self._fields.items():
            field[cell, place] = getattr(held, name)

    def advance(self, now: int, seen: Int64s, records: int) -> None:
        """Takes the records of a tick.

        Args:
            now: its number; they come in order. Ticks without a record may be left out.
            seen: how many records each cell is given.
            records: of the window that ends with the tick, M.

        Raises:
            OverflowError: a window of too many records.
        """
        if records >= MOST:
            raise OverflowError(f"a window has less than 2^37 records; got {records}")
        cells = np.flatnonzero(seen)
        if not len(cells):
            return
        self._retract(cells, now - self._steps + 1)
        counter, _, last, whole, _ = self._fields.values()
        newest = self._place(cells, self._many[cells] - 1)
        there = self._many[cells] > 0
        enough = math.ceil(self._tau * records * UNIT / self._columns)
        grows = there & (counter[cells, newest] < enough)
        at, place, more = cells[grows], newest[grows], seen[cells[grows]]
        counter[at, place] += more * UNIT
        whole[at, place] += more
        last[at, place] = now
        merges = there & ~grows & (self._many[cells] > 1)
        merges[merges] = self._alike(cells[merges])
        at, place = cells[merges], newest[merges]
        before = self._place(at, self._many[at] - 2)
        last[at, before] = last[at, place]
        counter[at, before] += counter[at, place]
        whole[at, before] += whole[at, place]
        self._many[at] -= 1
        self._push(cells[~grows], now, seen[cells[~grows]])

    def _push(self, cells: Int64s, now: int, seen: Int64s) -> None:
        """A sub-cell more for each of some cells."""
        room = self._fields["counter"].shape[1]
        if len(cells) and self._many[cells].max() == room:
            self._grow(room)
        place = self._place(cells, self._many[cells])
        values: dict[str, Int64s | int] = dict(zip(FIELDS, (seen * UNIT, now, now, seen, 0), strict=True))
        for name, value in values.items():
            self._fields[name][cells, place] = value
        self._many[cells] += 1

    def _grow(self, room: int) -> None:
        order = (self._first[:, None] + np.arange(room)) % room
        for name, field in self._fields.items():
            straight = np.take_along_axis(field, order, axis=1)
            self._fields[name] = np.concatenate([straight, np.zeros_like(straight)], axis=1)
        self._first[:] = 0

    def _place(self, cells: Int64s, number: Int64s) -> Int64s:
        """Where sub-cells lie, by their numbers in their cells."""
        place: Int64s = (self._first[cells] + number) % self._fields["counter"].shape[1]
        return place

    def _retract(self, cells: Int64s, behind: int) -> None:
        """Takes away what lies before a step."""
        counter, init, last, _, begun = self._fields.values()
        room = counter.shape[1]
        some = cells
        while True:
            some = some[self._many[some] > 0]
            some = some[last[some, self._first[some]] < behind]
            if not len(some):
                break
            self._first[some] = (self._first[some] + 1) % room
            self._many[some] -= 1
        cells = cells[self._many[cells] > 0]
        cells = cells[init[cells, self._first[cells]] < behind]
        first = self._first[cells]
        counter[cells, first] = _left(counter[cells, first], init[cells, first], last[cells, first], behind)
        init[cells, first] = behind
        begun[cells, first] = 1

    def _alike(self, cells: Int64s) -> Bools:
        """Whether the last two sub-cells of some cells have nearly the same rate."""
        counter, init, last, *_ = self._fields.values()
        before, newest = (self._place(cells, self._many[cells] - number) for number in (2, 1))
        one = counter[cells, before] / (init[cells, newest] - init[cells, before])
        other = counter[cells, newest] / (last[cells, newest] - init[cells, newest] + 1)
        found: Bools = np.maximum(one, other) / np.minimum(one, other) <= self._mu
        return found

    def held(self, now: int) -> SubCells:
        """What the cells hold at a tick, less sub-cells that lie before its window."""
        room = self._fields["counter"].shape[1]
        order = (self._first[:, None] + np.arange(room)) % room
        straight = {name: np.take_along_axis(field, order, axis=1) for name, field in self._fields.items()}
        there = (np.arange(room) < self._many[:, None]) & (straight["last"] > now - self._steps)
        return SubCells(there.sum(axis=1), *(straight[name][there] for name in FIELDS))


def values(held: SubCells, now: int, steps: int) -> Int64s:
    """What cells hold at a tick, in `1 / UNIT` of a record.

    Args:
        steps: of the window, N.
    """
    behind = now - steps + 1
    left = np.where(held.last < behind, 0, held.counter)
    partly = (held.init < behind) & (behind <= held.last)
    left[partly] = _left(held.counter[partly], held.init[partly], held.last[partly], behind)
    return _of_cells(held, left)


def bounds(held: SubCells, now: int, steps: int) -> tuple[Int64s, Int64s]:
    """How many records of the window that ends with a tick fall into each cell, at least and at most."""
    behind = now - steps + 1
    inside = held.last >= behind
    surely = inside & (held.init >= behind) & (held.begun == 0)
    low, high = (
        _of_cells(held, np.where(surely, held.whole, 0)),
        _of_cells(held, np.where(inside, held.whole, 0)),
    )
    return low, high


def _left(counter: Int64s, init: Int64s, last: Int64s, behind: int) -> Int64s:
    """What is left of sub-cells from a step on, of a steady rate."""
    found: Int64s = np.rint(counter * ((last - behind + 1) / (last - init + 1))).astype(np.int64)
    return found


def _of_cells(held: SubCells, of_sub_cells: Int64s) -> Int64s:
    """The sum of each cell."""
    sums = np.concatenate([[0], np.cumsum(of_sub_cells)])
    behind = np.cumsum(held.many)
    found: Int64s = sums[behind] - sums[behind - held.many]
    return found
