"""The row hash of `storage.digest` for Arrow rows: a task computes it while it writes them.

Text is hashed once for each distinct value.
"""

from collections.abc import Iterable
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transom.arrays.xxhash import SEED, Hashes, hash_numbers, hash_texts
from transom.core.exact_sums import Int64s

_SEEDS = np.array([SEED], dtype=np.uint64)


def row_hashes(rows: pa.RecordBatch | pa.Table, columns: Iterable[str]) -> Int64s:
    """Return the 64-bit hash of some columns of each row, as `digest.row_hash_sql` defines it."""
    combined = np.zeros(rows.num_rows, dtype=np.uint64)
    for name in columns:
        values = rows.column(name)
        combined ^= _hash(values if isinstance(values, pa.Array) else values.combine_chunks(), _seeds(name))
    return hash_numbers(combined, _SEEDS).view(np.int64)


@cache
def name_hash(name: str) -> int:
    """Return the hash of a column's name, as `xxhash64` of Spark."""
    octets = np.frombuffer(name.encode(), dtype=np.uint8)
    length = np.array([len(octets)])
    return int(hash_texts(octets, np.zeros(1, dtype=np.int64), length, _SEEDS).view(np.int64)[0])


def _seeds(name: str) -> Hashes:
    return hash_numbers(np.array([name_hash(name)]).view(np.uint64), _SEEDS)


def _hash(values: pa.Array, seeds: Hashes) -> Hashes:
    """Return the hash of each value with its seed; that of null is the seed.

    Args:
        values: the values.
        seeds: a seed for each value, or one for all.
    """
    kind = values.type
    if pa.types.is_list(kind):
        hashes = _hash_lists(values, seeds)
    elif pa.types.is_struct(kind):
        combined = np.zeros(len(values), dtype=np.uint64)
        for field, members in zip(kind, values.flatten(), strict=True):
            combined ^= _hash(members, _seeds(field.name))
        hashes = hash_numbers(combined, seeds)
    elif not (pa.types.is_string(kind) or pa.types.is_binary(kind)):
        hashes = hash_numbers(_bits(values), seeds)
    elif len(seeds) == 1:
        encoded = values.dictionary_encode()
        # An index more, as the dictionary of nulls is empty.
        distinct = np.append(_hash_texts(encoded.dictionary, seeds), seeds)
        hashes = distinct[encoded.indices.fill_null(len(encoded.dictionary)).to_numpy(zero_copy_only=False)]
    else:
        hashes = _hash_texts(values, seeds)
    if values.null_count:
        hashes = np.where(values.is_valid().to_numpy(zero_copy_only=False), hashes, seeds)
    return hashes


def _hash_lists(values: pa.Array, seeds: Hashes) -> Hashes:
    lengths = values.value_lengths().fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    ends = np.cumsum(lengths)
    elements = values.flatten()
    places = np.arange(len(elements)) - np.repeat(ends - lengths, lengths)
    hashes = _hash(elements, hash_numbers(places.view(np.uint64), _SEEDS))
    combined = np.bitwise_xor.accumulate(np.append(np.zeros(1, dtype=np.uint64), hashes))
    return hash_numbers(
        combined[ends] ^ combined[ends - lengths], hash_numbers(lengths.view(np.uint64), seeds)
    )


def _hash_texts(values: pa.Array, seeds: Hashes) -> Hashes:
    if not len(values):
        return np.empty(0, dtype=np.uint64)
    _, offsets, octets = values.buffers()
    edges = np.frombuffer(offsets, dtype=np.int32)[values.offset : values.offset + len(values) + 1]
    edges = edges.astype(np.int64)
    texts = np.frombuffer(octets or b"", dtype=np.uint8)[edges[0] : edges[-1]]
    return hash_texts(texts, edges[:-1] - edges[0], np.diff(edges), seeds)


def _bits(values: pa.Array) -> Hashes:
    """Return numbers, times and truth values as Spark hashes them; null is any number."""
    if not pa.types.is_floating(values.type):
        whole: Int64s = values.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
        return whole.view(np.uint64)
    numbers = pc.fill_null(values, 0.0).to_numpy(zero_copy_only=False)
    # One zero and one NaN, for any sign and bits.
    bits: Hashes = np.where(np.isnan(numbers), np.nan, numbers + 0.0).view(np.uint64)
    return bits
