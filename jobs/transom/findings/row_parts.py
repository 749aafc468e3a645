"""Rows in parts that fit in memory, by a hash of some columns: rows with equal values are in one part.

Few rows are one part. More are written to a temporary file, from which a part is read when it is needed.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from tempfile import NamedTemporaryFile

import numpy as np
import pyarrow as pa

from transom.arrays.arrow import by_value, rebatch

PART = "__part"
"""The column with a row's part."""
AT_A_TIME = 2**14
"""The number of rows that are divided at once."""
Parts = Sequence[Callable[[], pa.Table]]


def part_sql(columns: Iterable[str]) -> str:
    """Return the SQL text of a row's part: two hexadecimal digits of a hash of its values in some columns."""
    texts = (f"coalesce(CAST(\"{column}\" AS varchar), '')" for column in columns)
    return f"substr(md5(concat_ws('/', {', '.join(texts)})), 1, 2)"


def divide(batches: Iterable[pa.RecordBatch], schema: pa.Schema, limit: int) -> Parts:
    """Divide rows into parts.

    Args:
        batches: the rows, with the text of `part_sql` in the column `PART`.
        schema: their schema.
        limit: the maximum number of rows of a single part; more are divided.

    Returns:
        A function for each part that returns its rows, without `PART`.
    """
    remaining, first, count = iter(batches), list[pa.RecordBatch](), 0
    for batch in remaining:
        first.append(batch)
        count += batch.num_rows
        if count > limit:
            return _write(chain(first, remaining), schema)
    only = pa.Table.from_batches(first, schema).drop_columns([PART])
    return [lambda: only]


def _write(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Parts:
    stored = schema.remove(schema.get_field_index(PART))
    places: dict[int, list[int]] = {}
    with NamedTemporaryFile(prefix="transom-findings-") as file:
        with pa.ipc.new_file(file, stored, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
            for number, part in enumerate(_divided(batches)):
                places.setdefault(part[PART][0].as_py(), []).append(number)
                writer.write_batch(part.drop_columns([PART]))
        file.flush()
        # It stays open for the parts, without a name.
        reader = pa.ipc.open_file(pa.OSFile(file.name))
    return [partial(_read, reader, of_part) for of_part in places.values()]


def _divided(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield rows of one part at a time, with its number in the column `PART`."""
    for rows in rebatch(batches, AT_A_TIME):
        encoded = rows[PART].combine_chunks().dictionary_encode()
        numbers = np.array([int(text, 16) for text in encoded.dictionary.to_pylist()])[encoded.indices]
        rows = rows.set_column(rows.schema.get_field_index(PART), PART, pa.array(numbers))
        ordered = rows.take(np.argsort(numbers, kind="stable")).combine_chunks()
        for part in by_value(ordered.to_batches(), PART):
            yield from part.to_batches()


def _read(reader: pa.RecordBatchFileReader, places: Iterable[int]) -> pa.Table:
    return pa.Table.from_batches(map(reader.get_batch, places))
