"""The hash of an item and a slot, which decides whether the item is tracked from this slot on.

    h(d, t) = m / 2^53

where m is the upper 53 bits of the lower 64 bits of MurmurHash3 (x64, 128 bits). It hashes the bytes of the
item, and then the slot's number as 8 bytes, two's complement, little-endian.

The bytes of an item with one column are its text in UTF-8. With several columns, each text is preceded by its
length as 8 bytes, little-endian. The text of a whole number is decimal, of a truth value `true` or `false`,
and of a time the microseconds since 1970. The hash is the same on every machine.
"""

from collections.abc import Sequence
from itertools import repeat

import mmh3
import numpy as np

from transom.core.exact_sums import Int64s

SHIFT = 11
"""The number of bits to drop so that 64 bits become the 53 of a double."""


def item_slot_hash(item: bytes, slot: int, seed: int) -> int:
    """Return the hash of an item in a slot, in steps of `2^-53`.

    Args:
        item: the bytes of the item.
        slot: the number of the slot since 1970.
        seed: from 0 to 2^32 - 1.
    """
    key = item + slot.to_bytes(8, "little", signed=True)
    return int(mmh3.hash64(key, seed, x64arch=True, signed=False)[0]) >> SHIFT


def item_slot_hashes(keys: Sequence[bytes], seed: int) -> Int64s:
    """Return the hashes of many keys, each the bytes of an item and then of a slot."""
    digests = b"".join(map(mmh3.mmh3_x64_128_digest, keys, repeat(seed)))
    return (np.frombuffer(digests, dtype="<u8")[::2] >> SHIFT).astype(np.int64)
