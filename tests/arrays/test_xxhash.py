"""Vectorised hashes equal the plain algorithm, byte by byte."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transom.arrays import xxhash
from transom.arrays.xxhash import SEED, hash_numbers, hash_texts

PRIMES = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
MASK = 2**64 - 1
SEEDS = st.integers(0, MASK)


def reference(octets: bytes, seed: int) -> int:
    """Return the hash as the specification of XXH64 describes it."""
    one, two, three, four, five = PRIMES

    def rotate(value: int, bits: int) -> int:
        return (value << bits | value >> 64 - bits) & MASK

    def number(at: int, length: int) -> int:
        return int.from_bytes(octets[at : at + length], "little")

    def round_of(lane: int, word: int) -> int:
        return rotate(lane + word * two & MASK, 31) * one & MASK

    at, hash_ = 0, seed + five
    if len(octets) >= 32:
        lanes = [seed + one + two & MASK, seed + two & MASK, seed, seed - one & MASK]
        while at + 32 <= len(octets):
            lanes = [round_of(lane, number(at + 8 * place, 8)) for place, lane in enumerate(lanes)]
            at += 32
        hash_ = sum(rotate(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)) & MASK
        for lane in lanes:
            hash_ = ((hash_ ^ round_of(0, lane)) * one + four) & MASK
    hash_ = hash_ + len(octets) & MASK
    while at + 8 <= len(octets):
        hash_ = (rotate(hash_ ^ round_of(0, number(at, 8)), 27) * one + four) & MASK
        at += 8
    if at + 4 <= len(octets):
        hash_ = (rotate(hash_ ^ number(at, 4) * one & MASK, 23) * two + three) & MASK
        at += 4
    for octet in octets[at:]:
        hash_ = rotate(hash_ ^ octet * five & MASK, 11) * one & MASK
    for bits, prime in ((33, two), (29, three), (32, 1)):
        hash_ = (hash_ ^ hash_ >> bits) * prime & MASK
    return hash_


def hashed(texts: list[bytes], seeds: list[int]) -> list[int]:
    lengths = np.array([len(text) for text in texts], dtype=np.int64)
    octets = np.frombuffer(b"".join(texts), dtype=np.uint8)
    return hash_texts(
        octets, np.cumsum(lengths) - lengths, lengths, np.array(seeds, dtype=np.uint64)
    ).tolist()


def test_reference_has_the_values_of_the_specification() -> None:
    assert reference(b"", 0) == 0xEF46DB3751D8E999
    assert reference(b"abc", 0) == 0x44BC2CF5AD770999


@given(st.lists(st.tuples(st.binary(max_size=100), SEEDS), max_size=20))
def test_hashes_of_texts_of_any_lengths_equal_the_reference(texts: list[tuple[bytes, int]]) -> None:
    expected = [reference(*text) for text in texts]
    assert hashed([text for text, _ in texts], [seed for _, seed in texts]) == expected


def test_every_length_up_to_several_stripes_is_hashed() -> None:
    texts = [bytes(range(length)) for length in range(140)]
    assert hashed(texts, [SEED]) == [reference(text, SEED) for text in texts]


@pytest.mark.parametrize("chunk", [1, 3, 100])
@given(numbers=st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), SEEDS), max_size=10))
def test_a_number_is_hashed_as_its_bytes(numbers: list[tuple[int, int]], chunk: int) -> None:
    values = np.array([value for value, _ in numbers], dtype=np.int64)
    seeds = np.array([seed for _, seed in numbers], dtype=np.uint64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(xxhash, "CHUNK", chunk)
        found = hash_numbers(values.view(np.uint64), seeds).tolist()
    expected = [reference(value.to_bytes(8, "little", signed=True), seed) for value, seed in numbers]
    assert found == expected
    one = hash_numbers(values.view(np.uint64), np.array([SEED], dtype=np.uint64)).tolist()
    assert one == [reference(value.to_bytes(8, "little", signed=True), SEED) for value, _ in numbers]
