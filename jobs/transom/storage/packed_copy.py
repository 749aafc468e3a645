"""A copy of a table's rows in one file, as a cache of its data files.

A table that is partitioned by hours has a data file for each. Opening one takes half a millisecond, so a year
takes seconds. Data files never change. So the copy stores, with the rows of an hour, the names of the hour's
data files. The rows are valid while the hour has exactly these files. The copy is not part of the table. If
it is missing, damaged or out of date, it is written again from the data files.
"""

import uuid
from collections.abc import Collection
from contextlib import suppress
from datetime import datetime

import pyarrow as pa
import pyarrow.parquet as pq

from transom.core.intervals import moment_of, number_of
from transom.storage.data_files import hours_of
from transom.storage.driver_io import TableReader
from transom.storage.filesystem import resolve_filesystem

NAME = "_packed.parquet"
"""A vacuum of files that no version names ignores names that begin with an underscore."""
SOURCE = "__source"
"""The column of the copy with the data files of a row's hour."""
SCATTERED = 64
"""The maximum number of hours that the copy may lack before it is written again."""


class PackedCopy:
    """The rows of a table at one version.

    Attributes:
        valid: the valid rows of the copy, with its own columns after those of the table.
        uncopied: all other rows of the table.
        outdated: whether the copy lacks many hours, or has many invalid rows.

    Args:
        uri: the absolute path or URI of the table.
        stored: the table at the version.
        excluded: the hours that are omitted, and whose data files are not opened.
        own_columns: the columns that only the copy has.
    """

    def __init__(
        self, uri: str, stored: TableReader, excluded: Collection[datetime], own_columns: pa.Schema
    ) -> None:
        self._uri = uri
        numbers = set(map(number_of, excluded))
        self._sources = {hour: source for hour, source in stored.sources.items() if hour not in numbers}
        schema = [*pa.schema(stored.schema.to_arrow()), *own_columns, pa.field(SOURCE, pa.string())]
        rows = self._read(pa.schema(schema))
        sources = zip(hours_of(rows["hour"]).tolist(), rows[SOURCE].to_pylist(), strict=True)
        valid = pa.array([self._sources.get(hour) == source for hour, source in sources], pa.bool_())
        self.valid = rows.filter(valid).drop_columns(SOURCE)
        missing = self._sources.keys() - set(hours_of(self.valid["hour"]).tolist())
        self.uncopied = stored.rows(list(map(moment_of, missing)))
        invalid = rows.num_rows - self.valid.num_rows
        self.outdated = len(missing) > SCATTERED or invalid > max(SCATTERED, self.valid.num_rows)

    def replace(self, rows: pa.Table) -> None:
        """Write the copy again. If the lake cannot be written, the old one stays.

        Args:
            rows: all rows of the table, with the copy's own columns.
        """
        sources = pa.array([self._sources[hour] for hour in hours_of(rows["hour"]).tolist()], pa.string())
        with suppress(pa.ArrowException, OSError):
            system, folder = resolve_filesystem(self._uri)
            # Moved into place, so that a reader sees either the old copy or the new one.
            temporary = f"{folder}/_{uuid.uuid4().hex}.parquet"
            rows = rows.append_column(SOURCE, sources)
            try:
                pq.write_table(rows, temporary, filesystem=system, write_page_checksum=True)
                system.move(temporary, f"{folder}/{NAME}")
            except (pa.ArrowException, OSError):
                system.delete_file(temporary)

    def _read(self, schema: pa.Schema) -> pa.Table:
        try:
            system, folder = resolve_filesystem(self._uri)
            rows = pq.read_table(f"{folder}/{NAME}", filesystem=system, page_checksum_verification=True)
            return rows.select(schema.names).cast(schema)
        # Which exceptions a decoder raises for bytes of another format is not documented.
        except Exception:
            return schema.empty_table()
