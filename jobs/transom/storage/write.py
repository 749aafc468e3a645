"""A write: the hours of a table that it replaces, and their new rows."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa
from pyspark.sql import DataFrame

from transom.core.partitions import PartitionKey
from transom.storage.data_files import DataFile
from transom.storage.tables import Table, in_hours_sql, quote_hour


@dataclass(frozen=True)
class Write:
    """Rows that replace some hours of a table.

    Attributes:
        table: the table.
        rows: all rows of `targets`, and no others, in the table's types, or a function that reads them;
            missing columns become null. An Arrow table if they are few and already on the driver.
        targets: the hours to replace, by block; a table without blocks has the only key None.
        bytes: the approximate size of the rows in bytes; None if unknown.
        gathered: whether the rows of an hour are already in few Spark partitions, so that no shuffle is
            needed.
        data_files: the same rows, in files that tasks have written. They are added unchanged if no other
            block has rows in these hours. None if there are none, or too many.
    """

    table: Table
    rows: DataFrame | pa.Table | Callable[[], DataFrame]
    targets: Mapping[str | None, Collection[datetime]]
    bytes: int | None = None
    gathered: bool = False
    data_files: Sequence[DataFile] | None = None

    @property
    def hours(self) -> set[datetime]:
        """All hours in which rows are replaced."""
        return set().union(*self.targets.values())

    def shared(self, known: Iterable[PartitionKey] | None = None) -> set[datetime]:
        """Return the hours in which rows of other blocks stay, so that they must be written again.

        Args:
            known: the partitions of the stage that have rows, by the ledger after this run's claim. If
                another run claims later, it has a higher token: either its rows are not written yet, or this
                write is refused. None if unknown: any hour may have rows of other blocks.
        """
        if None in self.targets:
            return set()
        if known is None:
            return self.hours
        in_table = (partition for partition in known if partition.table == self.table.name)
        others = {of.hour for of in in_table if of.hour not in self.targets.get(of.block, ())}
        return others & self.hours

    def predicate(self, shared: set[datetime]) -> str:
        """Return what the write replaces, as a Delta predicate.

        The predicate names no blocks for an hour that no other block has. Delta then drops its files without
        a search for rows to keep.

        Args:
            shared: the hours that other blocks have.
        """
        terms = [in_hours_sql(self.hours - shared, quote_hour)] if self.hours - shared else []
        for block, hours in self.targets.items():
            if common := shared.intersection(hours):
                terms.append(f"(block = '{block}' AND {in_hours_sql(common, quote_hour)})")
        return " OR ".join(terms)
