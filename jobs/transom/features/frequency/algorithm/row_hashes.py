"""The hashes of the rows of a Count-Min sketch, which assign an item to a column in each row.

    x = m mod P        m the lower 64 bits of MurmurHash3 (x64, 128 bits) of the item's bytes, P = 2^61 - 1
    h_i(x) = ((a_i x + b_i) mod P) mod c2

The `h_i` are 2-universal (Carter and Wegman): two items with different `x` share a column with probability at
most `1 / c2`. Let `lower` and `upper` be the 64-bit halves of the same hash of the row's number, from 0 up,
as 8 bytes in little-endian order. Then

    a_i = 1 + lower mod (P - 1),    b_i = upper mod P

Both hashes use the sketch's seed and are the same on every machine. The bytes of an item are those of
`transom.features.persistence.algorithm.item_slot_hash`, without the slot.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import repeat

import mmh3
import numpy as np
import numpy.typing as npt

from transom.core.exact_sums import Int64s
from transom.features.frequency.algorithm.params import Shape

BITS = 61
PRIME = 2**BITS - 1
Words = npt.NDArray[np.uint64]
"""Unsigned 64-bit numbers."""


@lru_cache(maxsize=64)
def multipliers(rows: int, seed: int) -> tuple[tuple[int, int], ...]:
    """Return the multiplier `a` and the summand `b` of each row."""
    pairs = []
    for row in range(rows):
        lower, upper = mmh3.hash64(row.to_bytes(8, "little"), seed, x64arch=True, signed=False)
        pairs.append((1 + lower % (PRIME - 1), upper % PRIME))
    return tuple(pairs)


def columns(item: bytes, shape: Shape) -> tuple[int, ...]:
    """Return the column of an item in each row.

    >>> len(columns(b"/robots.txt", Shape(rows=3, columns=100)))
    3
    """
    x = mmh3.hash64(item, shape.seed, x64arch=True, signed=False)[0] % PRIME
    return tuple((a * x + b) % PRIME % shape.columns for a, b in multipliers(shape.rows, shape.seed))


def columns_of(items: Sequence[bytes], shape: Shape) -> Int64s:
    """Return the columns of many items at once, shape (rows, items)."""
    digests = b"".join(map(mmh3.mmh3_x64_128_digest, items, repeat(shape.seed)))
    x = _folded(np.frombuffer(digests, dtype="<u8")[::2].astype(np.uint64))
    columns = np.empty((shape.rows, len(x)), dtype=np.int64)
    for row, (a, b) in enumerate(multipliers(shape.rows, shape.seed)):
        columns[row] = _line(x, a, b) % np.uint64(shape.columns)
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
    # 2^32 times the middle: modulo P, its bits from the 29th on become the lowest.
    upper, rest = middle >> np.uint64(BITS - 32), middle & np.uint64(2 ** (BITS - 32) - 1)
    total = (a1 * x1 << np.uint64(3)) + upper + (rest << half) + _partly(lowest) + np.uint64(b)
    return _folded(total)


def _partly(x: Words) -> Words:
    """Reduce numbers below 2^64 modulo P, to at most P + 7."""
    return (x & np.uint64(PRIME)) + (x >> np.uint64(BITS))


def _folded(x: Words) -> Words:
    """Return numbers below 2^64 modulo P."""
    partly = _partly(x)
    return np.where(partly >= np.uint64(PRIME), partly - np.uint64(PRIME), partly)
