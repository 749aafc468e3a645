"""DistCM: nodes sketch their own records, and a coordinator adds the matrices that they send (Rivetti, Busnel
and Mostefaoui, section 3.5).

Each of k nodes sends its matrix, rounded to whole records, after every `epsilon N` of its records. Guarantee
for each cell, and cost in bits sent in a window:

    |sum of the nodes' cells - the coordinator's cell| <= k (epsilon N + 1/2)
    O(k / epsilon^2 log 1/delta log N)

This does not hold for Simple, whose matrix loses all records at once. Spark's partitions are nodes that send
once, at the end, so the coordinator's matrix is complete.
"""

from collections.abc import Sequence
from fractions import Fraction

from transom.features.frequency.algorithm.reference import Cell, WindowedCountMin, cells_of

Matrix = dict[Cell, int]


class DistributedCountMin:
    """The nodes and their coordinator.

    Args:
        nodes: sketches of the same shape, window and variant.
        every: a node sends its matrix after this number of its records, `epsilon N`; 1 or more.

    Attributes:
        sent: the number of matrices sent.
        bits: the total number of binary digits of their cells.
    """

    def __init__(self, nodes: Sequence[WindowedCountMin], every: int) -> None:
        kinds = {(node.shape, node.steps, type(node)) for node in nodes}
        if len(kinds) != 1 or every < 1:
            rule = "nodes have one shape and window, and send after 1 record or more"
            raise ValueError(f"{rule}; got {len(nodes)} of {len(kinds)} kinds, and {every}")
        self._nodes, self._every = nodes, every
        self._since = [0] * len(nodes)
        self._known: list[Matrix] = [{} for _ in nodes]
        self.sent = self.bits = 0

    def update(self, node: int, item: bytes) -> None:
        """Add a record to a node."""
        self._nodes[node].update(item)
        self._since[node] += 1
        if self._since[node] == self._every:
            self._send(node)

    def _send(self, node: int) -> None:
        matrix = {cell: round(value) for cell, value in self._values(node).items()}
        self._known[node], self._since[node] = matrix, 0
        self.sent += 1
        self.bits += sum(max(1, value.bit_length()) for value in matrix.values())

    def estimate(self, item: bytes) -> int:
        """Return the coordinator's estimate of an item's count."""
        return min(map(self._sum, cells_of(self._nodes[0].shape, item)))

    def lacking(self) -> float:
        """Return the largest difference between a cell of the coordinator and the sum of the nodes' cells."""
        nodes = [self._values(number) for number in range(len(self._nodes))]
        totals = {cell: sum(values[cell] for values in nodes) for cell in nodes[0]}
        return max(abs(float(total - self._sum(cell))) for cell, total in totals.items())

    def _sum(self, cell: Cell) -> int:
        return sum(known.get(cell, 0) for known in self._known)

    def _values(self, node: int) -> dict[Cell, int | Fraction]:
        shape = self._nodes[node].shape
        cells = (Cell(row, column) for row in range(shape.rows) for column in range(shape.columns))
        return {cell: self._nodes[node].value(cell) for cell in cells}
