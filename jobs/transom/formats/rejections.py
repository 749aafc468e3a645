"""Refused lines with their reasons, and conversions between Arrow arrays and numpy."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Int64s = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Objects = npt.NDArray[np.object_]


@dataclass
class Rejections:
    """The first reason why each line is refused; all arrays have the shape (lines,).

    Attributes:
        reason: the name of the reason; None if the line is not refused.
        column: the column whose value is refused; None if it is the line.
        detail: the message; None without one.
        any: whether the line is refused.
    """

    reason: Objects
    column: Objects
    detail: Objects
    any: Mask

    @classmethod
    def none(cls, lines: int) -> "Rejections":
        """Return an object of some lines, none of them refused."""
        reason, column, message = np.full((3, lines), None, dtype=object)
        return cls(reason, column, message, np.zeros(lines, dtype=bool))

    def __getitem__(self, lines: Any) -> "Rejections":
        """Return the reasons of some lines; those of a slice share their memory with this object."""
        return Rejections(self.reason[lines], self.column[lines], self.detail[lines], self.any[lines])

    def __setitem__(self, lines: Mask | Int64s, others: "Rejections") -> None:
        self.reason[lines], self.column[lines] = others.reason, others.column
        self.detail[lines], self.any[lines] = others.detail, others.any

    def add(
        self,
        where: Mask,
        reason: str,
        column: str | None = None,
        values: pa.Array | None = None,
        expected: str | None = None,
    ) -> None:
        """Refuse the lines of a mask that are not refused yet.

        Args:
            where: the lines to refuse, shape (lines,).
            reason: the name of the reason.
            column: the column whose value is refused.
            values: the refused values, for the messages, shape (lines,).
            expected: the description of a valid value, for the messages.
        """
        new = where & ~self.any
        if not new.any():
            return
        self.any |= new
        self.reason[new] = reason
        self.column[new] = column
        if values is not None:
            texts = values.filter(pa.array(new)).cast(pa.string(), safe=False).to_pylist()
            self.detail[new] = [detail(reason, value, expected) for value in texts]
        elif expected is not None:
            self.detail[new] = detail(reason, None, expected)

    def add_one(
        self, line: int, reason: str, value: object | None = None, expected: str | None = None
    ) -> None:
        """Refuse one line, unless it is already refused."""
        if not self.any[line]:
            self.any[line], self.reason[line] = True, reason
            if value is not None or expected is not None:
                self.detail[line] = detail(reason, value, expected)


def detail(reason: str, value: object | None, expected: str | None) -> str:
    """Return the message for a refused line: the reason, the value, and the expected one.

    >>> detail("bad_type", "n/a", "a number")
    'bad type: n/a; expected a number'
    """
    about = "" if value is None else f": {str(value)[:200]}"
    return reason.replace("_", " ") + about + ("" if expected is None else f"; expected {expected}")


def mask(array: pa.Array) -> Mask:
    """Return a boolean array as a numpy mask; null is false.

    >>> mask(pa.array([True, None])).tolist()
    [True, False]
    """
    return np.asarray(pc.fill_null(array, False).to_numpy(zero_copy_only=False), dtype=bool)


def int64s(array: pa.Array) -> Int64s:
    """Return whole numbers or times as int64; 0 for null."""
    numbers: Int64s = pc.fill_null(array.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    return numbers


def null_where(condition: Mask | pa.Array, values: pa.Array) -> pa.Array:
    """Return values, with null where a condition is true."""
    condition = pa.array(condition) if isinstance(condition, np.ndarray) else condition
    return pc.if_else(condition, pa.scalar(None, values.type), values)


def take_indices(rows: Int64s, lines: int) -> pa.Array:
    """Return the index of each line in `rows`, null if it is not in them: with it, `take` spreads values of
    these rows over all lines.

    >>> take_indices(np.array([1, 2]), 4).to_pylist()
    [None, 0, 1, None]
    """
    index = np.full(lines, -1, dtype=np.int64)
    index[rows] = np.arange(len(rows))
    return pa.array(index, mask=index < 0)
