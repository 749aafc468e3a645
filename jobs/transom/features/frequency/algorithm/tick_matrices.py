"""Windows of Count-Min sketches from the matrices of their ticks, all at once (Rivetti, Busnel and
Mostefaoui, sections 3.1 to 3.3 and 3.6; one by one: `transom.features.frequency.algorithm.reference`).

A tick's matrix is the sum of its records, in whatever order and on whichever machines they were counted. What
a windowed sketch holds at a tick t is a sum of these:

    Perfect       those of the window, t - N + 1 to t
    Simple        those since the last tick s that is divisible by N, s included
    Proportional  the same, and of the N ticks before s the share 1 - (t - s + 1) / N

So each reads 2 N ticks at most, and none depends on the answer before. Estimates of Proportional are `N`-ths:
they are kept as whole numbers of them.
"""

from dataclasses import dataclass

import numpy as np

from transom.core.exact_sums import MAX_EXACT_SUM, Int64s
from transom.features.frequency.algorithm.reference import Shape


@dataclass(frozen=True)
class TickShare:
    """Of some ticks, so much.

    Attributes:
        first, last: ticks.
        parts: of N.
    """

    first: int
    last: int
    parts: int


def shares(variant: str, steps: int, now: int) -> list[TickShare]:
    """What of which ticks a window holds at one.

    Args:
        variant: perfect, simple or proportional.
        steps: of the window, N.
    """
    if variant == "perfect":
        return [TickShare(now - steps + 1, now, steps)]
    turn = now - now % steps
    found = [TickShare(turn, now, steps)]
    left = steps - (now - turn + 1)
    if variant == "proportional" and left:
        found.insert(0, TickShare(turn - steps, turn - 1, left))
    return found


def matrices_of(shape: Shape, columns: Int64s, times: Int64s, tick: Int64s, ticks: int) -> Int64s:
    """A matrix for each tick: `(ticks, rows, columns)`.

    Args:
        columns: of the item of each count, in each row: `(rows, counts)`.
        times: how often it was seen.
        tick: in which tick, from 0 up.
        ticks: how many there are.

    Raises:
        OverflowError: there are more records than can be added exactly.
    """
    if len(times) and int(times.max()) * len(times) >= MAX_EXACT_SUM:
        raise OverflowError(f"{len(times)} counts of up to {times.max()} records cannot be added exactly")
    found = np.zeros(ticks * shape.cells, dtype=np.int64)
    for row in range(shape.rows):
        np.add.at(found, (tick * shape.rows + row) * shape.columns + columns[row], times)
    return found.reshape(ticks, shape.rows, shape.columns)
