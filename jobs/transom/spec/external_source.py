"""Sources of fills: rows of the stream itself, of another stream of the lake, or of any Delta table.

For an external table the stream file declares the needed columns with their types. They are checked when the
table is read.
"""

from collections.abc import Iterator

from pydantic import Field

from transom.formats import record_format as layout
from transom.formats.record_format import FieldType
from transom.spec.base import Name, NonEmptyStr, ShorthandModel
from transom.spec.errors import Issue
from transom.spec.source import Resolution, resolution_problems

EVENTS, EVENT_TIME = "events", "event_time"


class FillerColumn(ShorthandModel):
    """A column of the source of a fill. A bare text in the file is its type."""

    SHORT = ("type", (str,), {"type": "string", "description": "the column's type"})

    type: FieldType = "string"
    """The type of its values. A table with a column of another type is refused when it is read."""
    from_: NonEmptyStr | None = Field(default=None, alias="from")
    """The name of the column in the source. Default: the same name."""
    resolution: Resolution | None = None
    """For a number, required: the step to which values are rounded, half to even, such as 0.001."""

    def _rules(self) -> Iterator[Issue]:
        yield from resolution_problems(self.type, self.resolution)

    def field(self, name: str) -> layout.Field:
        """Return the column in the form of event columns."""
        return layout.Field(name, (self.from_ or name,), self.type, self.resolution or "1")


class Filler(ShorthandModel):
    """The source of the rows that fill frames. A bare text in the file is `block`."""

    SHORT = ("block", (str,), {"type": "string", "description": "`events`, or a block of `aggregates`"})

    block: Name | None = None
    """Rows of the stream itself: events, or the finest granules of this block of `aggregates`."""
    stream: Name | None = None
    """The name of another stream of the lake, whose events are the rows."""
    table: NonEmptyStr | None = None
    """A Delta table: a path relative to the landing folder, an absolute path, or a URI."""
    time: NonEmptyStr | None = None
    """For a table, required: the timestamp column with the time of a row."""
    columns: dict[Name, FillerColumn] = Field(default_factory=dict)
    """For a table or another stream: the columns that the fill reads, with their types."""

    def _rules(self) -> Iterator[Issue]:
        places = [name for name in ("block", "stream", "table") if getattr(self, name) is not None]
        if len(places) != 1:
            got = " and ".join(places) or "none of them"
            yield Issue("", f"must be one of block, stream and table; got {got}")
            return
        if self.table is not None and self.time is None:
            yield Issue("time", "is required: the column of the table with the time of a row")
        if self.table is None and self.time is not None:
            yield Issue("time", f"only a table has one; got {self.time!r}")
        if self.block is not None and self.columns:
            yield Issue("columns", "are those of a table or of another stream; the stream knows its own")
        if EVENT_TIME in self.columns:
            yield Issue(f"columns.{EVENT_TIME}", "is the time of a row, which every filler has")

    @property
    def outside(self) -> bool:
        """Whether the rows are from another stream or a table."""
        return self.block is None

    @property
    def called(self) -> str:
        """The name of the block or stream, or the table."""
        return self.block or self.stream or self.table or ""

    @property
    def types(self) -> dict[str, FieldType]:
        """The types of the declared columns, and of the time."""
        return {name: column.type for name, column in self.columns.items()} | {EVENT_TIME: "timestamp"}
