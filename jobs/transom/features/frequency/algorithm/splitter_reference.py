"""Splitter: a Count-Min sketch of the last N steps that forgets at the rate at which it has counted, record
by record (Rivetti, Busnel and Mostefaoui, section 3.4).

A cell is a queue of sub-cells, each of which has counted a stretch of steps, taken to have been seen evenly.
What leaves the window is taken away from the oldest at its rate; the newest counts until it has `tau M / c2`
records, and is then merged into the one before it, where their rates differ by a factor of `mu` at most,
or stays as it is: a change of rate splits the cell. There are at most `c1 c2 / tau` sub-cells, beside the
oldest and the newest of each cell, of a window that has as many records all the time; `1 + ln M` times as
many of one that grows to M records.

The listing retracts every cell at every step, which costs as much as there are cells. It need not: between
two records of a cell its oldest sub-cell is retracted at one rate, so it can be brought up to date just
before it is looked at. That is what `Splitter` does, at a cost of `O(log 1/delta)` a record, amortised, as
each sub-cell is dropped once; `SplitterListing` is the paper's, and holds the same values.

Unlike those of the paper the sub-cells know how many records they have counted in all. So there are bounds:

    sub-cells but the oldest <= records of the cell in the window <= these and all records of the oldest

and no more than M, the number of records in the window: N of count-based ones. An item has been seen at most
as often as the upper one of any of its cells says. Where rates stay, sub-cells are merged for ever, and the
bounds are as far apart as what is known: a rate that has changed within a factor of `mu` may have been
another one all the time.
"""

import math
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from typing import Any

from transom.features.frequency.algorithm.reference import Cell, Counts, Shape, WindowedCountMin

TAU, MU = Fraction(1, 20), Fraction(3, 2)
"""As in the paper's evaluation."""


UNIT = 2**24
"""Parts of a record in which `FixedPointSplitter` counts."""


@dataclass
class SubCell:
    """A stretch of steps of a cell.

    Attributes:
        counter: records that have not been taken away, in the unit of the sketch.
        first_step: the first step that has not.
        last_step: the one of its last record.
        total: all records that it has counted.
        partly_expired: whether some have been taken away.
    """

    counter: Any
    first_step: int
    last_step: int
    total: int
    partly_expired: bool = False

    @property
    def rate(self) -> Any:
        """What it has counted of a step."""
        return self.counter / (self.last_step - self.first_step + 1)


def error(before: SubCell, last: SubCell) -> Any:
    """By which factor the rates of two sub-cells differ (listing 3.5): the larger over the smaller.

    The one before is taken to have lasted until the other began.
    """
    one, other = before.counter / (last.first_step - before.first_step), last.rate
    return max(one, other) / min(one, other)


class SplitterListing(WindowedCountMin):
    """Every cell at every step (listing 3.4), with fractions, which are exact.

    Args:
        tau: with how many of `M / c2` records a sub-cell is looked at; above 0, at most 1. The smaller, the
            more of them there may be.
        mu: by which factor rates may differ that are taken for one; above 0, as a rule 1 or more. The
            larger, the fewer there are.

    Raises:
        ValueError: one that cannot be.
    """

    unit = 1
    """Parts of a record in which is counted."""

    def __init__(
        self, shape: Shape, steps: int, step: int = -1, tau: Fraction = TAU, mu: Fraction = MU
    ) -> None:
        super().__init__(shape, steps, step)
        if not 0 < tau <= 1:
            raise ValueError(f"tau must be above 0 and at most 1; got {float(tau):g}")
        if mu <= 0:
            raise ValueError(f"mu must be above 0; got {float(mu):g}")
        self.tau = tau
        self.mu: Fraction | float = mu
        self.sub_cells: dict[Cell, deque[SubCell]] = {
            Cell(row, column): deque() for row in range(shape.rows) for column in range(shape.columns)
        }
        self._of_steps: deque[int] = deque()
        self._in_window = 0
        self._count_based = False

    @property
    def records(self) -> int:
        """How many records the window has, or will have where each of its steps is one: M."""
        return self.steps if self._count_based else self._in_window

    def update(self, item: bytes) -> None:
        """A record, as a step of its own."""
        self._count_based = True
        super().update(item)

    def _forget(self) -> None:
        for cell in self.sub_cells:
            self._retract(cell)

    def _retract(self, cell: Cell) -> None:
        queue = self.sub_cells[cell]
        if queue and queue[0].first_step == self.step - self.steps:
            first = queue[0]
            first.counter -= first.rate
            first.first_step += 1
            first.partly_expired = True
            if first.first_step > first.last_step:
                queue.popleft()

    def _count(self, seen: Counts) -> None:
        if len(self._of_steps) == self.steps:
            self._in_window -= self._of_steps.popleft()
        # Each record is in one cell of the first row.
        self._of_steps.append(sum(many for cell, many in seen.items() if cell.row == 0))
        self._in_window += self._of_steps[-1]
        enough = self._enough()
        for cell, many in seen.items():
            self._add(self.sub_cells.setdefault(cell, deque()), many, enough)

    def _enough(self) -> Fraction | int:
        """What a sub-cell has to count to be looked at."""
        return self.tau * self.records / self.shape.columns

    def _add(self, queue: deque[SubCell], many: int, enough: Fraction | int) -> None:
        now, last = self.step, queue[-1] if queue else None
        if last is not None and last.counter < enough:
            last.last_step = now
            last.counter += many * self.unit
            last.total += many
            return
        if last is not None and len(queue) > 1 and error(queue[-2], last) <= self.mu:
            before = queue[-2]
            before.last_step = last.last_step
            before.counter += last.counter
            before.total += last.total
            queue.pop()
        queue.append(SubCell(self._counter(many), now, now, many))

    def _counter(self, many: int) -> Fraction | int:
        return Fraction(many)

    def value(self, cell: Cell) -> Fraction:
        """What a cell holds."""
        return self._sum(self.sub_cells.get(cell, ()))

    def _sum(self, queue: Iterable[SubCell]) -> Fraction:
        return Fraction(sum(sub.counter for sub in queue)) / self.unit

    def bounds(self, item: bytes) -> tuple[Fraction, Fraction]:
        """How many records of the window the cells of an item hold at least, and at most: the least of each.

        An item was seen no more often than the second says.
        """
        of_cells = [self.bounds_of(cell) for cell in self.shape.of(item)]
        return min(low for low, _ in of_cells), min(high for _, high in of_cells)

    def bounds_of(self, cell: Cell) -> tuple[Fraction, Fraction]:
        """How many records of the window fall into a cell, at least and at most."""
        queue = self.sub_cells.get(cell, deque())
        if not queue or not queue[0].partly_expired:
            whole = self._sum(queue)
            return whole, whole
        rest = self._sum(islice(queue, 1, None))
        return rest, min(rest + queue[0].total, Fraction(self._in_window))

    def queues(self) -> Iterator[tuple[Cell, list[SubCell]]]:
        """The sub-cells of all cells that have any."""
        for cell, queue in self.sub_cells.items():
            if queue:
                yield cell, list(queue)


class Splitter(SplitterListing):
    """Cells are brought up to date when a record comes, or when they are asked for; those that have had none
    are not there."""

    def __init__(
        self, shape: Shape, steps: int, step: int = -1, tau: Fraction = TAU, mu: Fraction = MU
    ) -> None:
        super().__init__(shape, steps, step, tau, mu)
        self.sub_cells = {}

    def _forget(self) -> None:
        pass

    def _retract(self, cell: Cell) -> None:
        queue, behind = self.sub_cells[cell], self.step - self.steps + 1
        while queue and queue[0].last_step < behind:
            queue.popleft()
        if queue and queue[0].first_step < behind:
            first = queue[0]
            first.counter = self._remaining(first, first.last_step - behind + 1)
            first.first_step = behind
            first.partly_expired = True

    def _remaining(self, first: SubCell, steps: int) -> Any:
        """What a sub-cell holds whose last steps alone are in the window."""
        return first.rate * steps

    def _count(self, seen: Counts) -> None:
        for cell in seen:
            if cell in self.sub_cells:
                self._retract(cell)
        super()._count(seen)

    def value(self, cell: Cell) -> Fraction:
        """What a cell holds."""
        self._update(cell)
        return super().value(cell)

    def bounds_of(self, cell: Cell) -> tuple[Fraction, Fraction]:
        """How many records of the window fall into a cell, at least and at most."""
        self._update(cell)
        return super().bounds_of(cell)

    def queues(self) -> Iterator[tuple[Cell, list[SubCell]]]:
        """The sub-cells of all cells that have any."""
        for cell in self.sub_cells:
            self._update(cell)
        yield from super().queues()

    def _update(self, cell: Cell) -> None:
        if cell in self.sub_cells:
            self._retract(cell)


class FixedPointSplitter(Splitter):
    """What is left of a sub-cell is kept to the nearest `1 / UNIT` of a record, and rates are doubles: to the
    last bit what `transom.features.frequency.algorithm.splitter` holds of many cells at once. Fractions
    grow without end where a sub-cell is given records while others of it leave the window."""

    unit = UNIT

    def __init__(
        self, shape: Shape, steps: int, step: int = -1, tau: Fraction = TAU, mu: Fraction = MU
    ) -> None:
        super().__init__(shape, steps, step, tau, mu)
        self.mu = float(mu)

    def _enough(self) -> int:
        return math.ceil(self.tau * self.records * UNIT / self.shape.columns)

    def _counter(self, many: int) -> int:
        return many * UNIT

    def _remaining(self, first: SubCell, steps: int) -> Any:
        return round(first.counter * (steps / (first.last_step - first.first_step + 1)))
