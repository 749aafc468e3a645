"""The hash by which items are chosen to be remembered: of an item together with a slot.

    h(d, t) = m / 2^53, where m are the upper 53 of the lower 64 bits of MurmurHash3 (x64, 128 bits) of the
    item's bytes and, behind them, the slot's number as 8 bytes, two's complement, the lowest first

The bytes of an item of one column are its text in UTF-8. Of several columns each is preceded by the length
of its text as 8 bytes, the lowest first: so no two items have the same. Whole numbers are decimal, truth
values `true` and `false`, times microseconds since 1970. The same on every machine.
"""

from collections.abc import Sequence
from itertools import repeat

import mmh3
import numpy as np

from transom.core.exact_sums import Int64s

SHIFT = 11
"""Of 64 bits as many are left out as do not fit into the 53 of a double."""


def item_slot_hash(item: bytes, slot: int, seed: int) -> int:
    """The hash of an item in a slot, in steps of `2^-53`.

    Args:
        seed: from 0 up to 2^32.
    """
    key = item + slot.to_bytes(8, "little", signed=True)
    return int(mmh3.hash64(key, seed, x64arch=True, signed=False)[0]) >> SHIFT


def item_slot_hashes(keys: Sequence[bytes], seed: int) -> Int64s:
    """The hashes of many items in slots.

    Args:
        keys: of each, its bytes and the slot's behind them.
    """
    digests = b"".join(map(mmh3.mmh3_x64_128_digest, keys, repeat(seed)))
    found: Int64s = (np.frombuffer(digests, dtype="<u8")[::2] >> SHIFT).astype(np.int64)
    return found
