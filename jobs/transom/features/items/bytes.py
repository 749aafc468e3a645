"""Bytes of items and slots, as `transom.features.persistence.algorithm.item_slot_hash` hashes them; and rows
of bytes as columns."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from transom.core.exact_sums import Int64s

Bytes = npt.NDArray[np.uint8]


def keys_of(items: pa.Table, slots: Int64s) -> Sequence[bytes]:
    """Return the bytes to hash for items in slots: the item's, then the slot's.

    Args:
        items: a row for each slot.
    """
    joined = pc.binary_join_element_wise(*_parts(items), _numbers(slots), pa.scalar(b"", pa.binary()))
    keys: list[bytes] = joined.to_pylist()
    return keys


def bytes_of(items: pa.Table) -> Sequence[bytes]:
    """Return the bytes of each item."""
    item_bytes: list[bytes] = pc.binary_join_element_wise(
        *_parts(items), pa.scalar(b"", pa.binary())
    ).to_pylist()
    return item_bytes


def order_keys(items: pa.Table) -> Sequence[Any]:
    """Return keys that order items with equal numbers of records: their columns as text.

    Texts are ordered by UTF-8 bytes, numbers as text, so 10 comes before 9.
    """
    texts = [_text(column.combine_chunks()).to_pylist() for column in items.columns]
    return texts[0] if len(texts) == 1 else list(zip(*texts, strict=True))


def _parts(items: pa.Table) -> list[pa.Array]:
    """Return the parts of the items' bytes. With several columns, each is preceded by its length."""
    texts = [_text(column.combine_chunks()) for column in items.columns]
    if len(texts) == 1:
        return texts
    lengths = (_numbers(pc.binary_length(text).to_numpy(zero_copy_only=False)) for text in texts)
    return [part for pair in zip(lengths, texts, strict=True) for part in pair]


def binary(rows: Bytes) -> pa.Array:
    """Return rows of equal length as values of a binary column."""
    count, width = rows.shape
    buffer = pa.py_buffer(np.ascontiguousarray(rows).tobytes())
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), count, [None, buffer]).cast(pa.binary())


def rows_of(column: pa.Array, width: int) -> Bytes:
    """Return values of `width` bytes each as rows; none is null."""
    data = np.frombuffer(b"".join(column.to_pylist()), dtype=np.uint8)
    return data.reshape(-1, width)


def _numbers(numbers: npt.NDArray[Any]) -> pa.Array:
    """Return each number as 8 bytes, little-endian."""
    return binary(np.ascontiguousarray(numbers.astype("<i8")).view(np.uint8).reshape(-1, 8))


def _text(column: pa.Array) -> pa.Array:
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    return column.cast(pa.string()).cast(pa.binary())
