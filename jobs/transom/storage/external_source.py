"""A table, or another stream, that a stage reads in addition to its own stream's tables."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from transom.core.partitions import EXTERNAL_STAGE, TableKey
from transom.formats.record_format import Field

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TIME = "event_time"
Rows = Callable[["SparkSession", Collection[datetime]], "DataFrame"]
"""Reads the rows of some hours at a pinned version, with `TIME` and the declared columns."""


@dataclass(frozen=True)
class ExternalSource:
    """A Delta table or a stream that is read as an input.

    Attributes:
        place: the place in the stream file that names it, for errors.
        name: its name in the stream file.
        table: the path or URI of a Delta table; None for a stream.
        time: the column with the time of a row; None for a list, whose rows are valid at any time.
        columns: the columns to read, with their names in conditions.
    """

    place: str
    name: str
    table: str | None
    time: str | None
    columns: tuple[Field, ...]

    @property
    def series(self) -> TableKey:
        """The stage, block and table of its hours in a ledger snapshot."""
        return EXTERNAL_STAGE, self.name, f"rows of {self.name}"
