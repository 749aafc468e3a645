"""A table, or another stream, that a stage reads beside its own."""

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
"""The rows of some hours, as they stood when it was made: `TIME` and the declared columns."""


@dataclass(frozen=True)
class ExternalSource:
    """What is read from outside.

    Attributes:
        place: where the stream's file says so, for errors.
        name: what it is called there.
        table: the path or URI of a Delta table; None where it is a stream.
        time: its column that says when a row was; None of a list, whose rows are of all time.
        columns: what is read, by the name that it has in conditions.
    """

    place: str
    name: str
    table: str | None
    time: str | None
    columns: tuple[Field, ...]

    @property
    def series(self) -> TableKey:
        """The stage, block and table under which a book has its hours."""
        return EXTERNAL_STAGE, self.name, f"rows of {self.name}"
