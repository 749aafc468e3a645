"""Count-Min sketches of the last N steps, record by record (Rivetti, Busnel and Mostefaoui, sections 2.2 to
3.3 and 3.6).

How often has an item been seen? Every row of a matrix has a hash of its own, which gives each item one of its
columns; a record adds 1 to its item's cell in each row. A cell holds the records of all items that fall into
it, never fewer than those of one: the smallest of an item's cells is the nearest. Of the matrix of all M
records that count,

    rows c1 = ceil(log2(1 / delta)), columns c2 = ceil(e / epsilon)
    f <= estimate;  P(estimate - f >= epsilon (M - f)) <= delta

A step is a record (count-based windows), or a tick of time with whatever records come in it (time-based).
The window of step t are the steps `t - N + 1` to `t`. Each way has its own manner of forgetting:

    Vanilla       never: M are all records since it began
    Perfect       what leaves the window is subtracted: the matrix is the window's. It keeps the window.
    Simple        everything, whenever the number of the step is divisible by N
    Proportional  then keeps what the window before it has counted, and takes an N-th of it away at each step
    Splitter      `transom.features.frequency.algorithm.splitter_reference`

The last three have no such bound: they may count too much and too little. All of them but Splitter are sums
of the matrices of ticks, which is how they are fast (`transom.features.frequency.algorithm.tick_matrices`).
"""

import math
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from transom.features.frequency.algorithm.row_hashes import SEEDS, columns

WIDEST = 2**32
"""Columns at most."""


class Cell(NamedTuple):
    """A place of the matrix."""

    row: int
    column: int


Counts = Mapping[Cell, int]
"""How many records cells are given."""


@dataclass(frozen=True)
class Shape:
    """What a matrix is like: two can be added when they have the same.

    Attributes:
        rows: c1.
        columns: c2.
        seed: of the hashes, from 0 up to 2^32.

    Raises:
        ValueError: a shape that cannot be.
    """

    rows: int
    columns: int
    seed: int = 0

    def __post_init__(self) -> None:
        if self.rows < 1 or not 0 < self.columns <= WIDEST:
            raise ValueError(f"a matrix has 1 row or more, and 1 to 2^32 columns; got {self}")
        if not 0 <= self.seed < SEEDS:
            raise ValueError(f"seed must be from 0 up to 2^32; got {self.seed}")

    @classmethod
    def for_error(cls, epsilon: float, delta: float, seed: int = 0) -> "Shape":
        """The shape by which estimates are `epsilon M` too large at most, but with probability `delta`.

        Args:
            epsilon, delta: above 0, below 1.

        Raises:
            ValueError: one that is not.
        """
        for name, value in (("epsilon", epsilon), ("delta", delta)):
            if not 0 < value < 1:
                raise ValueError(f"{name} must be above 0 and below 1; got {value:g}")
        return cls(max(1, math.ceil(-math.log2(delta))), math.ceil(math.e / epsilon), seed)

    @property
    def epsilon(self) -> float:
        """By which share of the records an estimate may be too large: `e / c2`."""
        return math.e / self.columns

    @property
    def delta(self) -> float:
        """How likely it is by more: `2^-c1`."""
        return 2.0**-self.rows

    @property
    def cells(self) -> int:
        """How many cells there are."""
        return self.rows * self.columns

    def of(self, item: bytes) -> list[Cell]:
        """The cells of an item."""
        found = columns(item, self.rows, self.columns, self.seed)
        return [Cell(row, column) for row, column in enumerate(found)]


class WindowedCountMin(ABC):
    """A sketch of the last N steps.

    Records are given by `update`, where each is a step; or by `update_sample`, and the tick in which they
    were seen is ended by `update_tick`, so that their order within it does not matter. What is asked is
    answered as of the last step.

    Args:
        shape: of the matrix.
        steps: of the window, N; 1 or more.
        step: the number of the step before the first.

    Raises:
        ValueError: a window without a step.
    """

    def __init__(self, shape: Shape, steps: int, step: int = -1) -> None:
        if steps < 1:
            raise ValueError(f"a window has 1 step or more; got {steps}")
        self.shape, self.steps, self.step = shape, steps, step
        self._seen: Counter[Cell] = Counter()

    def update(self, item: bytes) -> None:
        """A record, as a step of its own."""
        self.update_sample(item)
        self.update_tick()

    def update_sample(self, item: bytes, times: int = 1) -> None:
        """Records of an item in the tick that has not ended.

        Args:
            times: how many, 1 or more.

        Raises:
            ValueError: there is none.
        """
        if times < 1:
            raise ValueError(f"an item is seen once or more; got {times}")
        for cell in self.shape.of(item):
            self._seen[cell] += times

    def update_tick(self) -> None:
        """Ends a tick."""
        self.step += 1
        self._forget()
        self._count(self._seen)
        self._seen = Counter()

    @abstractmethod
    def _forget(self) -> None:
        """Takes away what the step that has begun takes away."""

    @abstractmethod
    def _count(self, seen: Counts) -> None:
        """Adds the records of the step."""

    @abstractmethod
    def value(self, cell: Cell) -> int | Fraction:
        """What a cell holds."""

    def estimate(self, item: bytes) -> int:
        """How often an item was seen in the window: the smallest of its cells, to the nearest whole
        number."""
        return round(min(map(self.value, self.shape.of(item))))


class Vanilla(WindowedCountMin):
    """Never forgets (listing 2.1). Of all records since it began; the window's steps do not matter."""

    def __init__(self, shape: Shape, steps: int = 1, step: int = -1) -> None:
        super().__init__(shape, steps, step)
        self._counts: Counter[Cell] = Counter()

    def _forget(self) -> None:
        pass

    def _count(self, seen: Counts) -> None:
        self._counts.update(seen)

    def value(self, cell: Cell) -> int:
        """What a cell holds."""
        return self._counts[cell]


class Perfect(Vanilla):
    """Keeps the steps of the window, and takes each away when it leaves (listing 3.1)."""

    def __init__(self, shape: Shape, steps: int, step: int = -1) -> None:
        super().__init__(shape, steps, step)
        self._kept: deque[Counts] = deque()

    def _forget(self) -> None:
        if len(self._kept) == self.steps:
            self._counts.subtract(self._kept.popleft())

    def _count(self, seen: Counts) -> None:
        super()._count(seen)
        self._kept.append(seen)


class Simple(Vanilla):
    """Begins anew with each step whose number is divisible by N (listing 3.2)."""

    def _forget(self) -> None:
        if self.step % self.steps == 0:
            self._counts.clear()


class Proportional(WindowedCountMin):
    """Takes away what the window before the last step divisible by N has counted, in N equal parts, one at
    each step (listing 3.3)."""

    def __init__(self, shape: Shape, steps: int, step: int = -1) -> None:
        super().__init__(shape, steps, step)
        self._counts: dict[Cell, Fraction] = {}
        self._snapshot: dict[Cell, Fraction] = {}

    def _forget(self) -> None:
        if self.step % self.steps == 0:
            self._snapshot = {cell: count / self.steps for cell, count in self._counts.items()}
        for cell, part in self._snapshot.items():
            self._counts[cell] -= part

    def _count(self, seen: Counts) -> None:
        for cell, count in seen.items():
            self._counts[cell] = self._counts.get(cell, Fraction(0)) + count

    def value(self, cell: Cell) -> Fraction:
        """What a cell holds."""
        return self._counts.get(cell, Fraction(0))
