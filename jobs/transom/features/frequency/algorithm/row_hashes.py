"""The hashes of the rows of a Count-Min sketch: they give an item's column in each row.

    x = m mod P        m the lower 64 bits of MurmurHash3 (x64, 128 bits) of the item's bytes, P = 2^61 - 1
    h_i(x) = ((a_i x + b_i) mod P) mod c2

This is 2-universal (Carter and Wegman): two items with different `x` share a column with probability at most
`1 / c2`, over the choice of `a_i` from 1 up to P and of `b_i` from 0 up to P. The seed determines them. With
the lower and the upper 64 bits of the same hash of the row's number, from 0 up, as 8 bytes in little-endian
order,

    a_i = 1 + lower mod (P - 1),    b_i = upper mod P

Both hashes use the sketch's seed. The bytes of an item are those of
`transom.features.persistence.algorithm.item_slot_hash`, without the slot. The hashes are the same on every
machine.

For many items at once: `transom.features.frequency.algorithm.row_hash_arrays`.
"""

from functools import lru_cache

import mmh3

BITS = 61
PRIME = 2**BITS - 1
SEEDS = 2**32


@lru_cache(maxsize=64)
def multipliers(rows: int, seed: int) -> tuple[tuple[int, int], ...]:
    """Return `a` and `b` of each row.

    Args:
        seed: from 0 up to 2^32.
    """
    pairs = []
    for row in range(rows):
        lower, upper = mmh3.hash64(row.to_bytes(8, "little"), seed, x64arch=True, signed=False)
        pairs.append((1 + lower % (PRIME - 1), upper % PRIME))
    return tuple(pairs)


def columns(item: bytes, rows: int, width: int, seed: int) -> tuple[int, ...]:
    """Return the column of an item in each row.

    Args:
        width: the number of columns, at most 2^32.
    """
    x = mmh3.hash64(item, seed, x64arch=True, signed=False)[0] % PRIME
    return tuple((a * x + b) % PRIME % width for a, b in multipliers(rows, seed))
