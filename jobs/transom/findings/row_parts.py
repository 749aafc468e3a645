"""Rows in parts that fit in memory, by a hash of some columns: rows with equal values are in one part.

Few rows are one part. Many are written to files of a temporary folder, and read one file at a time.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa

from transom.arrays.arrow import by_value, rebatch

PART = "__part"
"""The column with the number of a row's part."""
PART_COUNT = 256
"""The number of parts of many rows."""
MAX_ROWS = 2**15
"""The maximum number of rows of a single part, and the number of rows that are divided at once."""
Parts = Sequence[Callable[[], pa.Table]]


def part_sql(columns: Iterable[str]) -> str:
    """Return the SQL text of a row's part: two digits of a hash of its values in some columns."""
    texts = (f"coalesce(CAST(\"{column}\" AS varchar), '')" for column in columns)
    return f"substr(md5(concat_ws('/', {', '.join(texts)})), 1, 2)"


def divide(batches: Iterable[pa.RecordBatch], schema: pa.Schema, folder: Path) -> Parts:
    """Divide rows into parts.

    Args:
        batches: the rows, with the text of `part_sql` in the column `PART`.
        schema: their schema.
        folder: a folder for the parts of many rows; it need not exist.

    Returns:
        A function for each part that returns its rows without `PART`. It reads a file again each time.
    """
    remaining, first, rows = iter(batches), list[pa.RecordBatch](), 0
    for batch in remaining:
        first.append(batch)
        rows += batch.num_rows
        if rows > MAX_ROWS:
            return [partial(_read, file) for file in _write(chain(first, remaining), schema, folder)]
    only = pa.Table.from_batches(first, schema).drop_columns([PART])
    return [lambda: only]


def _write(batches: Iterable[pa.RecordBatch], schema: pa.Schema, folder: Path) -> Iterable[Path]:
    folder.mkdir(parents=True)
    stored = schema.remove(schema.get_field_index(PART))
    files: dict[int, Path] = {}
    with ExitStack() as written:
        writers: dict[int, pa.RecordBatchFileWriter] = {}
        for rows in rebatch(batches, MAX_ROWS):
            encoded = rows[PART].combine_chunks().dictionary_encode()
            numbers = np.array([int(text, 16) for text in encoded.dictionary.to_pylist()])[encoded.indices]
            order = np.argsort(numbers, kind="stable")
            ordered = rows.set_column(rows.schema.get_field_index(PART), PART, pa.array(numbers)).take(order)
            for part in by_value(ordered.combine_chunks().to_batches(), PART):
                number = part[PART][0].as_py()
                if number not in writers:
                    files[number] = folder / f"{number}.arrow"
                    options = pa.ipc.IpcWriteOptions(compression="lz4")
                    writers[number] = written.enter_context(
                        pa.ipc.new_file(str(files[number]), stored, options=options)
                    )
                writers[number].write_table(part.drop_columns([PART]))
    return files.values()


def _read(file: Path) -> pa.Table:
    with pa.OSFile(str(file)) as source:
        return pa.ipc.open_file(source).read_all()
