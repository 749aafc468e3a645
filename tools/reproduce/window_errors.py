"""Errors of windowed sketches, step by step, relative to one that stores its window.

Simple, Proportional and Perfect are differences of cumulative counts; Splitter processes single records."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from reproduce.item_streams import Floats, Ints
from transom.features.frequency.algorithm.params import MU, TAU, Shape
from transom.features.frequency.algorithm.reference import Cell
from transom.features.frequency.algorithm.row_hashes import columns_of
from transom.features.frequency.algorithm.splitter_reference import FixedPointSplitter

LOOKS = 100
"""Number of measurements of errors per window."""
VARIANTS = ("Simple", "Proportional", "Splitter")


@dataclass(frozen=True)
class Errors:
    """The measurements of a stream, from the end of the first window on.

    Attributes:
        steps: the number of records before each measurement.
        errors: the mean over the items of `(estimate - estimate of Perfect)^2`, by variant.
        splits: the number of sub-cells of Splitter beyond two per cell.
        estimates: the estimates of item 0 by variant, Perfect and the true count.
    """

    steps: Ints
    errors: dict[str, Floats]
    splits: Ints
    estimates: dict[str, Floats]


class _Hashed(FixedPointSplitter):
    """Splitter with precomputed cells of the items."""

    def __init__(self, shape: Shape, steps: int, tau: Fraction, mu: Fraction, columns: Ints) -> None:
        super().__init__(shape, steps, tau=tau, mu=mu)
        self._count_based = True
        self._of_item = [[(Cell(row, int(c)), 1) for row, c in enumerate(of)] for of in columns.T]

    def take(self, item: int) -> None:
        """Count one record of an item."""
        self.step += 1
        self._count(dict(self._of_item[item]))


def errors(
    stream: Ints, items: Ints, shape: Shape, window: int, tau: Fraction = TAU, mu: Fraction = MU
) -> Errors:
    """Process a stream and return its errors.

    Args:
        stream: the items of the records.
        items: the items whose errors are measured.
        window: the number of records of a window, N.
    """
    every = window // LOOKS
    columns = columns_of([b"%d" % n for n in range(1 + max(int(stream.max()), int(items.max())))], shape)
    looks = len(stream) // every
    cells = np.zeros((looks + 1) * shape.cells, dtype=np.int64)
    of_item = np.concatenate([[0], np.cumsum(stream == 0)])
    for row in range(shape.rows):
        at = np.arange(looks * every) // every + 1
        np.add.at(cells, (at * shape.rows + row) * shape.columns + columns[row, stream[: looks * every]], 1)
    cells = cells.reshape(-1, shape.rows, shape.columns).cumsum(axis=0)
    splitter = _Hashed(shape, window, tau, mu, columns)
    asked = columns[:, items]
    found: dict[str, list[float]] = {name: [] for name in VARIANTS}
    estimated: dict[str, list[float]] = {name: [] for name in (*VARIANTS, "Perfect", "truth")}
    steps, splits = [], []
    taken = 0
    for look in range(1, looks + 1):
        for item in stream[taken : look * every].tolist():
            splitter.take(item)
        taken = look * every
        if look <= LOOKS:
            continue
        turn = (taken - 1) // window * LOOKS
        since, past = cells[look] - cells[turn], cells[turn] - cells[turn - LOOKS]
        matrices = {
            "Perfect": cells[look] - cells[look - LOOKS],
            "Simple": since,
            "Proportional": (since * LOOKS + past * (LOOKS - look + turn)) / LOOKS,
            "Splitter": _matrix(splitter),
        }
        estimates = {name: np.rint(_least(matrix, asked)) for name, matrix in matrices.items()}
        steps.append(taken)
        splits.append(sum(max(0, len(queue) - 2) for queue in splitter.sub_cells.values()))
        for name in VARIANTS:
            found[name].append(float(np.mean((estimates[name] - estimates["Perfect"]) ** 2)))
        for name, matrix in matrices.items():
            estimated[name].append(float(_least(matrix, columns[:, :1])[0]))
        estimated["truth"].append(float(of_item[taken] - of_item[taken - window]))
    return Errors(
        np.array(steps), {name: np.array(some) for name, some in found.items()}, np.array(splits),
        {name: np.array(some) for name, some in estimated.items()},
    )  # fmt: skip


def _least(matrix: Any, columns: Ints) -> Floats:
    found: Floats = matrix[np.arange(len(columns))[:, None], columns].min(axis=0)
    return found


def _matrix(splitter: FixedPointSplitter) -> Any:
    found = np.zeros((splitter.shape.rows, splitter.shape.columns))
    for cell in list(splitter.sub_cells):
        found[cell] = float(splitter.value(cell))
    return found
