"""Rows of a table by hours, read from one file beside its data files as far as that has them.

A table that is partitioned by hours has a data file for each, and to open one takes half a millisecond: a
year of them takes seconds. Data files never change. So the copy keeps, with the rows of an hour, which data
files the hour consisted of, and they are right as long as it consists of these. The copy is no part of the
table: it may be missing, damaged or out of date, and is made again from the data files.
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
"""What looks for data files that no version names passes over names that begin so."""
SOURCE = "__source"
"""The column of the copy that says which data files a row's hour consisted of."""
SCATTERED = 64
"""Hours that the copy does not have, up to which it is left as it is."""


class PackedCopy:
    """The rows of a table at one version.

    Attributes:
        kept: the rows that the copy has, with its own columns beside those of the table.
        fresh: all others.
        old: whether the copy lacks much, or has much that is of no use any more.

    Args:
        uri: where the table is, absolute.
        but: hours that are left out, and whose data files are not opened.
        beside: the columns of the copy.
    """

    def __init__(self, uri: str, stored: TableReader, but: Collection[datetime], beside: pa.Schema) -> None:
        self._uri = uri
        left_out = set(map(number_of, but))
        self._sources = {hour: source for hour, source in stored.sources.items() if hour not in left_out}
        schema = [*pa.schema(stored.table.schema().to_arrow()), *beside, pa.field(SOURCE, pa.string())]
        held = self._read(pa.schema(schema))
        of_rows = zip(hours_of(held["hour"]).tolist(), held[SOURCE].to_pylist(), strict=True)
        good = pa.array([self._sources.get(hour) == source for hour, source in of_rows], pa.bool_())
        self.kept = held.filter(good).drop_columns(SOURCE)
        missing = self._sources.keys() - set(hours_of(self.kept["hour"]).tolist())
        self.fresh = stored.rows(list(map(moment_of, missing)))
        left = held.num_rows - self.kept.num_rows
        self.old = len(missing) > SCATTERED or left > max(SCATTERED, self.kept.num_rows)

    def keep(self, rows: pa.Table) -> None:
        """Makes the copy anew; where the lake cannot be written it stays as it is.

        Args:
            rows: all of them, with the columns of the copy.
        """
        sources = pa.array([self._sources[hour] for hour in hours_of(rows["hour"]).tolist()], pa.string())
        with suppress(pa.ArrowException, OSError):
            system, folder = resolve_filesystem(self._uri)
            # A reader sees the old one or the new one, and nothing between.
            made = f"{folder}/_{uuid.uuid4().hex}.parquet"
            rows = rows.append_column(SOURCE, sources)
            try:
                pq.write_table(rows, made, filesystem=system, write_page_checksum=True)
                system.move(made, f"{folder}/{NAME}")
            except (pa.ArrowException, OSError):
                system.delete_file(made)

    def _read(self, schema: pa.Schema) -> pa.Table:
        try:
            system, folder = resolve_filesystem(self._uri)
            held = pq.read_table(f"{folder}/{NAME}", filesystem=system, page_checksum_verification=True)
            return held.select(schema.names).cast(schema)
        # What a decoder raises of bytes that are none of its format is not listed anywhere.
        except Exception:
            return schema.empty_table()
