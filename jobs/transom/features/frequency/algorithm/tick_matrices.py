"""Compute windows of Count-Min sketches from the matrices of their ticks, all at once (Rivetti, Busnel and
Mostefaoui, sections 3.1 to 3.3 and 3.6; record by record: `transom.features.frequency.algorithm.reference`).

The matrix of a tick is a sum over its records, in any order, and the matrix of a window at tick t is a sum of
these:

    Perfect       ticks t - N + 1 to t
    Simple        ticks s to t, where s is the last one divisible by N
    Proportional  ticks s to t, and the share 1 - (t - s + 1) / N of the N ticks before s

So each window reads at most 2 N ticks and does not depend on the previous window. Matrices of Proportional
count in `1 / N` of a record.
"""

import numpy as np

from transom.core.exact_sums import MAX_EXACT_SUM, Int64s
from transom.features.frequency.algorithm.params import Shape


def shares(variant: str, steps: int, now: int) -> list[tuple[int, int, int]]:
    """Return the ticks that a window sums: the first and the last tick of each range, and its share of N.

    Args:
        variant: `perfect`, `simple` or `proportional`.
        steps: the number of ticks of the window, N.
        now: the number of its last tick, t.

    >>> shares("proportional", steps=4, now=5)  # 2/4 of ticks 0 to 3, and all of ticks 4 and 5
    [(0, 3, 2), (4, 5, 4)]
    """
    if variant == "perfect":
        return [(now - steps + 1, now, steps)]
    turn = now - now % steps
    parts = steps - 1 - now % steps
    previous = [(turn - steps, turn - 1, parts)] if variant == "proportional" and parts else []
    return [*previous, (turn, now, steps)]


def matrices_of(shape: Shape, columns: Int64s, times: Int64s, tick: Int64s, ticks: int) -> Int64s:
    """Return a matrix for each tick, shape (ticks, rows, columns).

    Args:
        shape: the shape of each matrix.
        columns: the column of each count's item in each row, shape (rows, counts).
        times: the counts.
        tick: the tick of each count, from 0 to `ticks - 1`.
        ticks: the number of ticks.

    Raises:
        OverflowError: there are too many records to add exactly.
    """
    if len(times) and int(times.max()) * len(times) >= MAX_EXACT_SUM:
        raise OverflowError(f"{len(times)} counts of up to {times.max()} records cannot be added exactly")
    matrices = np.zeros(ticks * shape.cells, dtype=np.int64)
    for row in range(shape.rows):
        np.add.at(matrices, (tick * shape.rows + row) * shape.columns + columns[row], times)
    return matrices.reshape(ticks, shape.rows, shape.columns)
