"""Tables for a stage's function whose rows are data frames, and in no lake."""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime

from pyspark.sql import DataFrame

from transom.storage.store import PinnedTables, Store, in_hours


def ddl(kinds: Mapping[str, str]) -> str:
    """Return columns as a schema string for Spark."""
    return ", ".join(f"`{name}` {kind}" for name, kind in kinds.items())


class DataFrameTables(PinnedTables):
    """Pinned tables whose rows are data frames, and in no lake."""

    rows_at_hand: Mapping[str, DataFrame]

    def __init__(self, store: Store, rows: Mapping[str, DataFrame]) -> None:
        super().__init__(store, dict.fromkeys(rows, 0))
        object.__setattr__(self, "rows_at_hand", rows)

    def read(
        self, table: str, hours: Iterable[datetime], columns: Collection[str] | None = None
    ) -> DataFrame:
        """Return the rows of some hours."""
        self._many.add(table)
        return self.rows_at_hand[table].where(in_hours(hours))

    def select_small(self, *of: object) -> None:
        """Return no rows on the driver."""
