"""Columns of Arrow tables as numpy takes them, and back."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transom.core.exact_sums import Int64s
from transom.core.intervals import HOUR_LENGTH


def concat_batches(batches: Iterable[pa.RecordBatch]) -> pa.Table | None:
    """All rows of some batches, each column in one piece; None where there is no row."""
    held = [batch for batch in batches if batch.num_rows]
    return pa.Table.from_batches(held).combine_chunks() if held else None


def rebatch(batches: Iterable[pa.RecordBatch], many: int) -> Iterator[pa.Table]:
    """All rows of some batches, in tables of at least so many rows each but for the last one."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(one.num_rows for one in held) >= many:
            yield pa.Table.from_batches(held)
            held = []
    if any(batch.num_rows for batch in held):
        yield pa.Table.from_batches(held)


def by_value(batches: Iterable[pa.RecordBatch], name: str) -> Iterator[pa.Table]:
    """The rows of each value of an integer column, of batches that are sorted by it: never more at once."""
    held: list[pa.RecordBatch] = []
    for batch in filter(len, batches):
        edges = np.flatnonzero(np.diff(batch[name].to_numpy())) + 1
        for begin, end in pairwise([0, *edges.tolist(), len(batch)]):
            piece = batch.slice(begin, end - begin)
            if held and held[0][name][0] != piece[name][0]:
                yield pa.Table.from_batches(held).combine_chunks()
                held = []
            held.append(piece)
    if held:
        yield pa.Table.from_batches(held).combine_chunks()


def encode_keys(table: pa.Table, key: Sequence[str]) -> tuple[Int64s, Int64s]:
    """A dense code for each row's key, and the first row of each code."""
    many = table.num_rows
    found = np.zeros(many, dtype=np.int64)
    for number, name in enumerate(key):
        column = _equal_as_in_spark(table[name]).combine_chunks().dictionary_encode(null_encoding="encode")
        found = found * len(column.dictionary) + column.indices.to_numpy(zero_copy_only=False)
        if number:
            # Dense again at once, so that the product of many columns cannot overflow.
            found = np.unique(found, return_inverse=True)[1].astype(np.int64)
    firsts = np.zeros(1 + found.max(initial=-1), dtype=np.int64)
    # Of several rows the last one that is set stays.
    firsts[found[::-1]] = np.arange(many - 1, -1, -1)
    return found, firsts


def ranks(column: pa.ChunkedArray) -> Int64s:
    """A number for each text, in the order of the texts."""
    encoded = column.combine_chunks().dictionary_encode()
    order = pc.sort_indices(encoded.dictionary).to_numpy()
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    found: Int64s = rank[encoded.indices.to_numpy(zero_copy_only=False)]
    return found


def common_codes(columns: Sequence[pa.ChunkedArray]) -> list[Int64s]:
    """Codes of the values of several columns of one type, equal where the values are; -1 for null."""
    values = pa.chunked_array([chunk for column in columns for chunk in column.chunks], columns[0].type)
    encoded = _equal_as_in_spark(values).combine_chunks().dictionary_encode().indices
    found = encoded.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return np.split(found, np.cumsum([len(column) for column in columns])[:-1])


def _equal_as_in_spark(values: pa.ChunkedArray) -> pa.ChunkedArray:
    # Arrow tells zero from its negative, and what is no number from another such; Spark does not.
    if not pa.types.is_floating(values.type):
        return values
    return pc.if_else(pc.is_nan(values), math.nan, pc.add(values, 0.0))


def int64s(column: pa.ChunkedArray) -> Int64s:
    """Whole numbers and times; 0 for null."""
    array = column.combine_chunks().cast(pa.int64()).fill_null(0)
    numbers: Int64s = array.to_numpy(zero_copy_only=False)
    return numbers


def build_batches(many: int, columns: Mapping[str, Any], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """So many rows of a schema.

    Args:
        columns: arrays, lists of values, or one value for all rows; those that are not given are null.
    """
    if not many:
        return
    arrays = []
    for field in schema:
        held = columns.get(field.name)
        if held is None:
            arrays.append(pa.nulls(many, field.type))
        elif isinstance(held, np.ndarray | pa.Array | pa.ChunkedArray):
            arrays.append(as_type(held, field.type))
        else:
            values = pa.array(held) if isinstance(held, list) else pa.repeat(pa.scalar(held), many)
            arrays.append(values.cast(field.type))
    yield from pa.Table.from_arrays(arrays, schema=schema).to_batches(max_chunksize=65536)


def lists(flat: Int64s, many: int) -> pa.Array:
    """Numbers as so many lists of equal length."""
    length = len(flat) // many
    return pa.ListArray.from_arrays(pa.array(np.arange(many + 1) * length, pa.int32()), pa.array(flat))


def as_type(values: Any, kind: pa.DataType) -> pa.Array | pa.ChunkedArray:
    """Values as an Arrow array of a type."""
    if isinstance(values, np.ndarray):
        return pa.array(values).cast(kind)
    cast: pa.Array | pa.ChunkedArray = values.cast(kind)
    return cast


def hour_of_end(end: Int64s) -> Int64s:
    """The hour of a window's end: a report that comes at an hour's end completes that hour."""
    return (end - 1) - (end - 1) % HOUR_LENGTH


def overlaps_any(start: Int64s, end: Int64s, hours: Int64s) -> Any:
    """Which windows reach one of some hours.

    Args:
        start, end: of windows `[start, end)`, in microseconds.
        hours: ordered, in microseconds.
    """
    if not len(hours):
        return np.zeros(len(start), dtype=bool)
    next_one = np.searchsorted(hours, start - start % HOUR_LENGTH)
    return np.append(hours, np.iinfo(np.int64).max)[next_one] < end
