"""Bytes of items and slots, as described in `persistence.algorithm.item_slot_hash`; and rows of bytes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from transom.core.exact_sums import Int64s

Bytes = npt.NDArray[np.uint8]


def bytes_of(items: pa.Table, slots: Int64s | None = None) -> Sequence[bytes]:
    """Return the bytes to hash for each item, followed by those of its slot if there are slots.

    With several columns, each is preceded by its length.
    """
    parts = [_text(column) for column in items.columns]
    if len(parts) > 1:
        lengths = (_numbers(pc.binary_length(text).to_numpy(zero_copy_only=False)) for text in parts)
        parts = [part for pair in zip(lengths, parts, strict=True) for part in pair]
    if slots is not None:
        parts.append(_numbers(slots))
    joined: list[bytes] = pc.binary_join_element_wise(*parts, pa.scalar(b"", pa.binary())).to_pylist()
    return joined


def order_keys(items: pa.Table) -> Sequence[Any]:
    """Return keys that order items with equal numbers of records: their columns as text, in UTF-8.

    Numbers are ordered as text, too, so 10 comes before 9.
    """
    texts = [_text(column).to_pylist() for column in items.columns]
    return texts[0] if len(texts) == 1 else list(zip(*texts, strict=True))


def binary(rows: Bytes) -> pa.Array:
    """Return rows of equal length as values of a binary column."""
    count, width = rows.shape
    buffer = pa.py_buffer(np.ascontiguousarray(rows).tobytes())
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), count, [None, buffer]).cast(pa.binary())


def rows_of(column: pa.Array, width: int) -> Bytes:
    """Return values of `width` bytes each, without nulls, as rows."""
    return np.frombuffer(b"".join(column.to_pylist()), dtype=np.uint8).reshape(-1, width)


def _numbers(numbers: npt.NDArray[Any]) -> pa.Array:
    """Return each number as 8 bytes, little-endian."""
    return binary(np.ascontiguousarray(numbers.astype("<i8")).view(np.uint8).reshape(-1, 8))


def _text(column: pa.ChunkedArray) -> pa.Array:
    array = column.combine_chunks()
    if pa.types.is_timestamp(array.type):
        array = array.cast(pa.int64())
    return array.cast(pa.string()).cast(pa.binary())
