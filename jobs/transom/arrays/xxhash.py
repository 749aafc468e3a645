"""XXH64, vectorised: the 64-bit hash of Spark's function `xxhash64`.

Yann Collet: xxHash fast digest algorithm, https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md.
Spark hashes a whole number as its 8 bytes and a text as its UTF-8 bytes, and takes the hash of an argument as
the seed of the next one.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from transom.core.exact_sums import Int64s

Hashes = npt.NDArray[np.uint64]
SEED = 42
"""The seed of Spark's first argument."""
CHUNK = 2**14
"""The number of values that are hashed at once: their intermediate results fit in a processor's cache."""
STRIPE, WORD, HALF = 32, 8, 4
"""The bytes of a stripe, of a word and of half a word."""

_P1, _P2, _P3, _P4, _P5 = (
    np.uint64(prime)
    for prime in (
        0x9E3779B185EBCA87,
        0xC2B2AE3D27D4EB4F,
        0x165667B19E3779F9,
        0x85EBCA77C2B2AE63,
        0x27D4EB2F165667C5,
    )
)
_LANE_SEEDS = np.array(
    [(0x9E3779B185EBCA87 + 0xC2B2AE3D27D4EB4F) % 2**64, 0xC2B2AE3D27D4EB4F, 0, 2**64 - 0x9E3779B185EBCA87],
    dtype=np.uint64,
)
"""What is added to the seed at the start of each of the four lanes of stripes."""


def hash_numbers(values: Hashes, seeds: Hashes) -> Hashes:
    """Return the hash of each whole number.

    Args:
        values: the numbers, as unsigned.
        seeds: a seed for each number, or one for all.
    """
    hashes = np.empty(len(values), dtype=np.uint64)
    scratch = np.empty((2, min(CHUNK, len(values))), dtype=np.uint64)
    for start in range(0, len(values), CHUNK):
        chunk = hashes[start : start + CHUNK]
        word, spare = scratch[:, : len(chunk)]
        np.add(seeds if len(seeds) == 1 else seeds[start : start + CHUNK], _P5 + np.uint64(WORD), out=chunk)
        np.copyto(word, values[start : start + CHUNK])
        _add_word(chunk, word, spare)
        _mix(chunk, spare)
    return hashes


def hash_texts(octets: npt.NDArray[np.uint8], starts: Int64s, lengths: Int64s, seeds: Hashes) -> Hashes:
    """Return the hash of each text.

    Args:
        octets: the bytes of all texts.
        starts: the place of the first byte of each text.
        lengths: the number of bytes of each text.
        seeds: a seed for each text, or one for all.
    """
    # Padded, so that a word can be read at the place of each byte.
    padded = np.concatenate([octets, np.zeros(WORD, dtype=np.uint8)])
    words = np.ndarray(len(octets) + 1, dtype="<u8", buffer=padded, strides=(1,))
    at = starts.copy()
    seeds = np.broadcast_to(seeds, lengths.shape)
    hashes = seeds + _P5
    is_long = np.flatnonzero(lengths >= STRIPE)
    if len(is_long):
        hashes[is_long] = _hash_stripes(words, starts[is_long], lengths[is_long] // STRIPE, seeds[is_long])
        at[is_long] += lengths[is_long] // STRIPE * STRIPE
    hashes += lengths.astype(np.uint64)
    rest = lengths % STRIPE
    for number in range(STRIPE // WORD - 1):
        some = np.flatnonzero(rest >= (number + 1) * WORD)
        part, word = hashes[some], words[at[some]]
        _add_word(part, word, np.empty_like(part))
        hashes[some] = part
        at[some] += WORD
    rest %= WORD
    some = np.flatnonzero(rest >= HALF)
    half = (words[at[some]] & np.uint64(2**32 - 1)) * _P1
    hashes[some] = _rotated(hashes[some] ^ half, 23) * _P2 + _P3
    at[some] += HALF
    rest %= HALF
    for number in range(HALF - 1):
        some = np.flatnonzero(rest > number)
        octet = padded[at[some] + number].astype(np.uint64) * _P5
        hashes[some] = _rotated(hashes[some] ^ octet, 11) * _P1
    _mix(hashes, np.empty_like(hashes))
    return hashes


def _hash_stripes(words: Any, starts: Int64s, stripes: Int64s, seeds: Hashes) -> Hashes:
    """Return the hash of each text before its length and its last bytes are added."""
    lanes = seeds[:, None] + _LANE_SEEDS
    for number in range(int(stripes.max())):
        some = np.flatnonzero(stripes > number)
        places = starts[some, None] + number * STRIPE + np.arange(0, STRIPE, WORD)
        lanes[some] = _rotated(lanes[some] + words[places] * _P2, 31) * _P1
    hashes = np.zeros(len(starts), dtype=np.uint64)
    for lane, bits in zip(lanes.T, (1, 7, 12, 18), strict=True):
        hashes += _rotated(lane, bits)
    for lane in lanes.T:
        hashes = (hashes ^ (_rotated(lane * _P2, 31) * _P1)) * _P1 + _P4
    return hashes


def _add_word(hashes: Hashes, word: Hashes, spare: Hashes) -> None:
    """Add a word of 8 bytes to each hash, in place; the other arrays are overwritten."""
    word *= _P2
    _rotate(word, 31, spare)
    word *= _P1
    hashes ^= word
    _rotate(hashes, 27, spare)
    hashes *= _P1
    hashes += _P4


def _mix(hashes: Hashes, spare: Hashes) -> None:
    """Mix the bits of each hash, in place."""
    for bits, prime in ((33, _P2), (29, _P3), (32, None)):
        np.right_shift(hashes, np.uint64(bits), out=spare)
        hashes ^= spare
        if prime is not None:
            hashes *= prime


def _rotate(values: Hashes, bits: int, spare: Hashes) -> None:
    """Rotate the bits of each value to the left, in place."""
    np.right_shift(values, np.uint64(64 - bits), out=spare)
    np.left_shift(values, np.uint64(bits), out=values)
    values |= spare


def _rotated(values: Hashes, bits: int) -> Hashes:
    rotated: Hashes = (values << np.uint64(bits)) | (values >> np.uint64(64 - bits))
    return rotated
