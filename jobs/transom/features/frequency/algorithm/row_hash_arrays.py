"""The hashes of the rows of a Count-Min sketch, for many items at once
(`transom.features.frequency.algorithm.row_hashes`)."""

from collections.abc import Sequence
from itertools import repeat

import mmh3
import numpy as np
import numpy.typing as npt

from transom.core.exact_sums import Int64s
from transom.features.frequency.algorithm.row_hashes import BITS, PRIME, multipliers

Words = npt.NDArray[np.uint64]


def columns_of(items: Sequence[bytes], rows: int, width: int, seed: int) -> Int64s:
    """Return the columns of many items.

    Returns:
        The column of each item in each row of the sketch, shape (rows, items).
    """
    digests = b"".join(map(mmh3.mmh3_x64_128_digest, items, repeat(seed)))
    x = _folded(np.frombuffer(digests, dtype="<u8")[::2].astype(np.uint64))
    columns = np.empty((rows, len(x)), dtype=np.int64)
    for row, (a, b) in enumerate(multipliers(rows, seed)):
        columns[row] = _line(x, a, b) % np.uint64(width)
    return columns


def _line(x: Words, a: int, b: int) -> Words:
    """Return `(a x + b) mod P`, computed in parts that fit into 64 bits.

    With `a = a1 2^32 + a0` and the same for `x`, `a x = a1 x1 2^64 + (a1 x0 + a0 x1) 2^32 + a0 x0`, and
    `2^61` is 1.
    """
    half, low = np.uint64(32), np.uint64(2**32 - 1)
    a1, a0 = np.uint64(a >> 32), np.uint64(a & (2**32 - 1))
    x1, x0 = x >> half, x & low
    middle, lowest = a1 * x0 + a0 * x1, a0 * x0
    # 2^32 times the middle: its upper bits, from the 29th on, come round to the lowest.
    upper, rest = middle >> np.uint64(BITS - 32), middle & np.uint64(2 ** (BITS - 32) - 1)
    total = (a1 * x1 << np.uint64(3)) + upper + (rest << half) + _partly(lowest) + np.uint64(b)
    return _folded(total)


def _partly(x: Words) -> Words:
    """Reduce numbers below 2^64 modulo P, to at most P + 7."""
    folded: Words = (x & np.uint64(PRIME)) + (x >> np.uint64(BITS))
    return folded


def _folded(x: Words) -> Words:
    """Return numbers below 2^64 modulo P."""
    partly = _partly(x)
    return np.where(partly >= np.uint64(PRIME), partly - np.uint64(PRIME), partly)
