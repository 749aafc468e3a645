"""The hash of an item and a slot that decides whether the item is tracked from this slot on.

    h(d, t) = m / 2^53, where m are the upper 53 of the lower 64 bits of MurmurHash3 (x64, 128 bits) of the
    item's bytes followed by the slot's number as 8 bytes, two's complement, little-endian

The bytes of an item with one column are its text in UTF-8. With several columns each is preceded by the
length of its text as 8 bytes, little-endian. Whole numbers are decimal, truth values `true` and `false`,
times microseconds since 1970. The hash is the same on every machine.
"""

from collections.abc import Sequence
from itertools import repeat

import mmh3
import numpy as np

from transom.core.exact_sums import Int64s

SHIFT = 11
"""The number of bits to drop so that 64 bits become the 53 of a double."""


def item_slot_hash(item: bytes, slot: int, seed: int) -> int:
    """Return the hash of an item in a slot, in steps of `2^-53`, with a seed from 0 up to 2^32."""
    key = item + slot.to_bytes(8, "little", signed=True)
    return int(mmh3.hash64(key, seed, x64arch=True, signed=False)[0]) >> SHIFT


def item_slot_hashes(keys: Sequence[bytes], seed: int) -> Int64s:
    """Return the hashes of many keys: the bytes of an item followed by those of its slot."""
    digests = b"".join(map(mmh3.mmh3_x64_128_digest, keys, repeat(seed)))
    return (np.frombuffer(digests, dtype="<u8")[::2] >> SHIFT).astype(np.int64)
