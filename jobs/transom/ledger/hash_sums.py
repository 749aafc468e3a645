"""Sums of the hashes of many ranges of hours at once, modulo 2**128.

A hash is four numbers of 32 bits, the highest first, each in 64 bits: sums over centuries do not overflow.
"""

import hashlib
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from transom.core.partitions import BITS

Sums = npt.NDArray[np.uint64]
"""Sums of hashes: a row for each, of `DIGITS` numbers."""
DIGITS = BITS // 32
_HEX = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)


def as_rows(hashes: Iterable[int]) -> Sums:
    """Return hashes in rows."""
    return _rows(b"".join(number.to_bytes(BITS // 8) for number in hashes))


def hash_texts(texts: Iterable[str]) -> Sums:
    """Return hashes of texts in rows, as `core.partitions.text_hash`."""
    return _rows(b"".join(hashlib.sha256(text.encode()).digest()[: BITS // 8] for text in texts))


def _rows(octets: bytes) -> Sums:
    return np.frombuffer(octets, dtype=">u4").astype(np.uint64).reshape(-1, DIGITS)


def prefix_sums(hashes: Sums) -> Sums:
    """Return the sums of the first 0, 1, 2, ... hashes."""
    return np.vstack([np.zeros((1, DIGITS), dtype=np.uint64), np.cumsum(hashes, axis=0, dtype=np.uint64)])


def as_numbers(sums: Sums) -> list[int]:
    """Return sums as Python numbers."""
    numbers = (sum(digit << 32 * place for place, digit in enumerate(row[::-1])) for row in sums.tolist())
    return [number % 2**BITS for number in numbers]


def as_texts(sums: Sums) -> pa.Array:
    """Return sums as `ledger.input_hashes.format_hash` does.

    >>> as_texts(prefix_sums(as_rows([255, 2**128 - 1]))).to_pylist()[1:]
    ['000000000000000000000000000000ff', '000000000000000000000000000000fe']
    """
    digits, carry = np.empty(sums.shape, dtype=">u4"), np.zeros(len(sums), dtype=np.uint64)
    for place in reversed(range(DIGITS)):
        total = sums[:, place] + carry
        digits[:, place] = total & np.uint64(2**32 - 1)
        carry = total >> np.uint64(32)
    octets = digits.view(np.uint8)
    letters = np.stack([_HEX[octets >> 4], _HEX[octets & 15]], axis=-1).tobytes()
    offsets = np.arange(len(sums) + 1, dtype=np.int32) * (BITS // 4)
    return pa.StringArray.from_buffers(len(sums), pa.py_buffer(offsets), pa.py_buffer(letters))
