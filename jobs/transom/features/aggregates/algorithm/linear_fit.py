"""Fit least-squares lines of value against time over sliding windows (Patroumpas and Sellis, section 4.B).

A series has one value in each *unit* of time, computed from the unit's values, such as their mean. It is in
fixed point with `BITS` more bits. A unit without values carries the last value before it in the window; units
before the window's first value are omitted. Without carrying, a unit without values is 0, and a window with a
value has all units. With `n` known units, numbered `x = 0 .. n - 1` from the first, and values `y(x)`:

    slope = sum((x - xbar) * y) / sum((x - xbar)**2)
          = 6 * (2 * sum(x * y) - (n - 1) * sum(y)) / (n * (n**2 - 1))
    level = sum(y) / n, the line's value at xbar = (n - 1) / 2

These are the paper's equations 6 and 7 with time centred. All sums are distributive. They are exact at
present-day times, if `|y| < MAX_UNIT_VALUE` and a window has at most `2**15` units. Fewer than two units have
no line. Shorter units make finer lines, of more values.

`Series.lines` returns the terms of many windows at once, from running sums: a carried value is the same in
every window that contains it. With v values and w windows, the cost is `O(v + w)`.

>>> key, unit, value = map(np.array, ([0, 0, 0], [5, 6, 7], [1 << BITS, 3 << BITS, 5 << BITS]))
>>> line = Series(key, unit, value, np.full(3, True)).lines(np.array([0]), np.array([3]), np.array([8]), 3)
>>> line.slope(), line.at(np.array([0]))
(array([2.]), array([1.]))
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from transom.core.exact_sums import Bools, Int64s

Floats = npt.NDArray[np.float64]

BITS = 20
ONE = 2**BITS
MAX_UNIT_VALUE = 2 ** (62 - BITS)
"""The values of units are smaller than this, in steps of their resolution."""
HALF = 31
"""Bits of the lower half of a value: int64 holds `sum(x * y)` of either half of any `2**15` units."""
_LOW = 2**HALF - 1


def split(numbers: Int64s) -> Int64s:
    """Return integers below `2**62` in two parts, with shape (2, numbers): `high * 2**HALF + low`.

    Arithmetic on both parts gives integers larger than int64. Then `low` may have any sign.
    """
    return np.stack([numbers >> HALF, numbers & _LOW])


def to_floats(parts: Int64s) -> Floats:
    """Return integers in two parts as doubles, correct except for the last digit."""
    high, low = parts
    # Carry first, so that neither part cancels digits of the other.
    doubles: Floats = (high + (low >> HALF)) * 2.0**HALF + (low & _LOW)
    return doubles


def to_ints(parts: Int64s) -> list[int]:
    """Return integers in two parts as Python ints."""
    return [(high << HALF) + low for high, low in parts.T.tolist()]


@dataclass(frozen=True)
class FittedLines:
    """The terms of the lines of many windows.

    Attributes:
        units: the number of known units, from the first with a value to the window's end; 0 without values.
        total: the sum of the values of all known units, in two parts as of `split`.
        moment: the sum of value times number from the first known unit, in two parts.
        exact: whether all values of a window are valid.
    """

    units: Int64s
    total: Int64s
    moment: Int64s
    exact: Bools

    @property
    def exists(self) -> Bools:
        """Whether each window has a line."""
        exists: Bools = self.units > 1
        return exists

    def slope(self) -> Floats:
        """Return the change of the value per unit; 0 if there is no line."""
        n = np.where(self.exists, self.units, 2)
        above = to_floats(2 * self.moment - self.total * (n - 1))
        n = n.astype(float)
        return np.where(self.exists, 6.0 * above / (n * (n - 1) * (n + 1) * ONE), 0.0)

    def at(self, number: Int64s) -> Floats:
        """Return the line's value at a unit, counted from the first known one."""
        n = np.maximum(self.units, 1)
        mean = to_floats(self.total) / (n * ONE)
        value: Floats = mean + self.slope() * (number - (n - 1) / 2)
        return value


@dataclass(frozen=True)
class Series:
    """The values of many keys, one for each unit with a value.

    Attributes:
        key: the code of each value's key.
        unit: the number of each value's unit since the epoch; ordered by key and then by unit.
        value: the values, in fixed point with `BITS` more bits; below `2**62`.
        fits: which values are valid; the others are 0.
        length: the length of a unit, in microseconds.
        carried: whether a unit without a value carries the last one; else it is 0.
    """

    key: Int64s
    unit: Int64s
    value: Int64s
    fits: Bools
    length: int = 1
    carried: bool = True

    def lines(self, first: Int64s, after: Int64s, end: Int64s, units: int) -> FittedLines:
        """Return the terms of the lines of many windows.

        Args:
            first: the position of the first value of each window.
            after: the position after its last value; all are of one key.
            end: the number of the first unit after each window.
            units: the number of units of a window, at most `2**15`.
        """
        known = first < after
        oldest, newest = np.where(known, first, 0), np.where(known, after - 1, 0)
        if not len(self.key):
            none = np.zeros((2, len(first)), dtype=np.int64)
            return FittedLines(none[0], none, none, none[0] == 0)
        base = self.unit.min()
        numbers, until = self.unit - base, end - base
        # The entry of a key's last value is not used: no window spans two keys.
        following = np.append(numbers[1:], 0) if self.carried else numbers + 1
        values = split(self.value)
        totals = running_sums(values * (following - numbers))
        moments = running_sums(values * _numbers(numbers, following))
        low, last = numbers[newest], values[:, newest]
        high = until if self.carried else low + 1
        total = totals[:, newest] - totals[:, oldest] + last * (high - low)
        moment = moments[:, newest] - moments[:, oldest] + last * _numbers(low, high)
        origin = numbers[oldest] if self.carried else until - units
        misfits = running_sums(~self.fits)
        return FittedLines(
            np.where(known, until - origin, 0),
            np.where(known, total, 0),
            np.where(known, moment - total * origin, 0),
            ~known | (misfits[after] == misfits[first]),
        )


def _numbers(low: Int64s, high: Int64s) -> Int64s:
    """Return the sum of the numbers in `[low, high)`."""
    total: Int64s = (high - low) * (low + high - 1) // 2
    return total


def running_sums(amounts: Int64s | Bools) -> Int64s:
    """Return the sums of the amounts before each position, then the sum of all; along the last axis.

    They may wrap around; a difference of two is exact if the sum of the amounts between them fits into int64.
    """
    sums = np.zeros((*amounts.shape[:-1], amounts.shape[-1] + 1), np.int64)
    np.cumsum(amounts, axis=-1, out=sums[..., 1:])
    return sums


def means(total: Int64s, values: Int64s) -> Int64s:
    """Return the means of units in fixed point, rounded half to even.

    Args:
        total: the sum of each unit's values.
        values: the number of values, at least 1; `|total| / values < 2**(62 - BITS)`.
    """
    whole, rest = np.divmod(total, values)
    # In two steps, as the total with `BITS` more bits may exceed int64.
    fraction, rest = np.divmod(rest << BITS, values)
    fixed = (whole << BITS) + fraction
    fixed += (2 * rest > values) | ((2 * rest == values) & (fixed % 2 == 1))
    return fixed
