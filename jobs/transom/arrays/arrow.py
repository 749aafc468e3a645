"""Convert between columns of Arrow tables and numpy arrays."""

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
    """Return all rows of batches as a table with one chunk per column; None if there is no row."""
    nonempty = [batch for batch in batches if batch.num_rows]
    return pa.Table.from_batches(nonempty).combine_chunks() if nonempty else None


def rebatch(batches: Iterable[pa.RecordBatch], min_rows: int) -> Iterator[pa.Table]:
    """Yield all rows of batches in tables of at least `min_rows` rows; the last one may have fewer."""
    pending: list[pa.RecordBatch] = []
    for batch in batches:
        pending.append(batch)
        if sum(batch.num_rows for batch in pending) >= min_rows:
            yield pa.Table.from_batches(pending)
            pending = []
    if any(batch.num_rows for batch in pending):
        yield pa.Table.from_batches(pending)


def by_value(batches: Iterable[pa.RecordBatch], name: str) -> Iterator[pa.Table]:
    """Yield a table for each value of an integer column, by which the batches are sorted."""
    pieces: list[pa.RecordBatch] = []
    for batch in filter(len, batches):
        edges = np.flatnonzero(np.diff(batch[name].to_numpy())) + 1
        for begin, end in pairwise([0, *edges.tolist(), len(batch)]):
            piece = batch.slice(begin, end - begin)
            if pieces and pieces[0][name][0] != piece[name][0]:
                yield pa.Table.from_batches(pieces).combine_chunks()
                pieces = []
            pieces.append(piece)
    if pieces:
        yield pa.Table.from_batches(pieces).combine_chunks()


def encode_keys(table: pa.Table, key: Sequence[str]) -> tuple[Int64s, Int64s]:
    """Return a dense code for the key of each row, and the first row of each code.

    >>> codes, firsts = encode_keys(pa.table({"host": ["b", "a", "b"]}), ["host"])
    >>> codes.tolist(), firsts.tolist()
    ([0, 1, 0], [0, 1])
    """
    count = table.num_rows
    codes = np.zeros(count, dtype=np.int64)
    for number, name in enumerate(key):
        column = _equal_as_in_spark(table[name]).combine_chunks().dictionary_encode(null_encoding="encode")
        codes = codes * len(column.dictionary) + column.indices.to_numpy(zero_copy_only=False)
        if number:
            # Dense after each column, so that the product of many columns cannot overflow.
            codes = np.unique(codes, return_inverse=True)[1].astype(np.int64)
    firsts = np.zeros(1 + codes.max(initial=-1), dtype=np.int64)
    # Backwards, so that the first row of a code is written last.
    firsts[codes[::-1]] = np.arange(count - 1, -1, -1)
    return codes, firsts


def ranks(column: pa.ChunkedArray) -> Int64s:
    """Return the rank of each text among the distinct texts, shape (rows,)."""
    encoded = column.combine_chunks().dictionary_encode()
    order = pc.sort_indices(encoded.dictionary).to_numpy()
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    row_ranks: Int64s = rank[encoded.indices.to_numpy(zero_copy_only=False)]
    return row_ranks


def common_codes(columns: Sequence[pa.ChunkedArray]) -> list[Int64s]:
    """Return codes for several columns of one type: equal values have equal codes, null has -1."""
    values = pa.chunked_array([chunk for column in columns for chunk in column.chunks], columns[0].type)
    encoded = _equal_as_in_spark(values).combine_chunks().dictionary_encode().indices
    codes = encoded.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return np.split(codes, np.cumsum([len(column) for column in columns])[:-1])


def _equal_as_in_spark(values: pa.ChunkedArray) -> pa.ChunkedArray:
    # Arrow distinguishes 0.0 from -0.0, and one NaN from another; Spark does not.
    if not pa.types.is_floating(values.type):
        return values
    return pc.if_else(pc.is_nan(values), math.nan, pc.add(values, 0.0))


def int64s(column: pa.ChunkedArray) -> Int64s:
    """Return whole numbers or times as int64; 0 for null."""
    array = column.combine_chunks().cast(pa.int64())
    # It copies a column without nulls, too.
    if array.null_count:
        array = array.fill_null(0)
    numbers: Int64s = array.to_numpy(zero_copy_only=False)
    return numbers


def build_batches(count: int, columns: Mapping[str, Any], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield batches of a schema with `count` rows.

    Args:
        count: the number of rows.
        columns: by name arrays, lists of values, or one value for all rows; missing columns are null.
    """
    if not count:
        return
    arrays = []
    for field in schema:
        column = columns.get(field.name)
        if column is None:
            arrays.append(pa.nulls(count, field.type))
        elif isinstance(column, np.ndarray | pa.Array | pa.ChunkedArray):
            arrays.append(as_type(column, field.type))
        else:
            values = pa.array(column) if isinstance(column, list) else pa.repeat(pa.scalar(column), count)
            arrays.append(values.cast(field.type))
    yield from pa.Table.from_arrays(arrays, schema=schema).to_batches(max_chunksize=65536)


def lists(flat: Int64s, count: int) -> pa.Array:
    """Return numbers as `count` lists of equal length.

    >>> lists(np.arange(4), 2).to_pylist()
    [[0, 1], [2, 3]]
    """
    length = len(flat) // count
    return pa.ListArray.from_arrays(pa.array(np.arange(count + 1) * length, pa.int32()), pa.array(flat))


def as_type(values: Any, kind: pa.DataType) -> pa.Array | pa.ChunkedArray:
    """Return values as an Arrow array of a type."""
    if isinstance(values, np.ndarray):
        return pa.array(values).cast(kind)
    cast: pa.Array | pa.ChunkedArray = values.cast(kind)
    return cast


def hour_of_end(end: Int64s) -> Int64s:
    """Return the hour of each window's end: a report at an hour's end belongs to that hour."""
    return (end - 1) - (end - 1) % HOUR_LENGTH


def overlaps_any(start: Int64s, end: Int64s, hours: Int64s) -> Any:
    """Return which windows overlap any of the hours.

    Args:
        start: the starts of the windows, in microseconds.
        end: their ends, exclusive, in microseconds.
        hours: ascending, in microseconds.
    """
    if not len(hours):
        return np.zeros(len(start), dtype=bool)
    following = np.searchsorted(hours, start - start % HOUR_LENGTH)
    return np.append(hours, np.iinfo(np.int64).max)[following] < end
