"""Sources of fills: rows of the stream itself, of another stream of the lake, or of any Delta table. For
external tables the stream's file declares the needed columns with their types; whether they exist is checked
when the table is read."""

from typing import Any, ClassVar

from pydantic import Field, model_validator

from transom.formats import record_format as layout
from transom.formats.record_format import FieldType
from transom.spec.base import Name, NonEmptyStr, ShorthandModel
from transom.spec.errors import Issue, IssuesError
from transom.spec.source import NO_RESOLUTION, Resolution

EVENTS = "events"
EVENT_TIME = "event_time"


class FillerColumn(ShorthandModel):
    """A column of what fills frames. A bare text in the file is its type."""

    SHORT: ClassVar[tuple[str, tuple[type, ...], dict[str, Any]]] = ("type", (str,), {"type": "string"})

    type: FieldType = "string"
    """What it holds; a table's column of another type is refused when it is read."""
    from_: NonEmptyStr | None = Field(default=None, alias="from")
    """What it is called there, where that is another name."""
    resolution: Resolution | None = None
    """For a number, required: the step to which values are rounded, half to even, such as 0.001."""

    @model_validator(mode="after")
    def _fits_type(self) -> "FillerColumn":
        if self.type == "number" and self.resolution is None:
            raise IssuesError([Issue("resolution", NO_RESOLUTION)])
        if self.type != "number" and self.resolution is not None:
            rule = f"only a number has one; got {self.resolution} for type {self.type}"
            raise IssuesError([Issue("resolution", rule)])
        return self

    def field(self, name: str) -> layout.Field:
        """Return the column in the form of event columns."""
        return layout.Field(name, (self.from_ or name,), self.type, self.resolution or "1")


class Filler(ShorthandModel):
    """Where rows come from that fill frames. A bare text in the file is `block`."""

    SHORT: ClassVar[tuple[str, tuple[type, ...], dict[str, Any]]] = ("block", (str,), {"type": "string"})

    block: Name | None = None
    """Of the stream itself: events, or a block of `aggregates`, by its finest granules."""
    stream: Name | None = None
    """Another stream of the lake, by its name: its events."""
    table: NonEmptyStr | None = None
    """A Delta table: a path from the landing folder, an absolute one, or a URI."""
    time: NonEmptyStr | None = None
    """Of a table, its column that says when a row was; a timestamp."""
    columns: dict[Name, FillerColumn] = Field(default_factory=dict)
    """Of a table or another stream, the columns that the fill reads, with their types."""

    @model_validator(mode="after")
    def _one_place(self) -> "Filler":
        given = [name for name in ("block", "stream", "table") if getattr(self, name) is not None]
        if len(given) != 1:
            got = " and ".join(given) or "none of them"
            raise IssuesError([Issue("", f"must be one of block, stream and table; got {got}")])
        problems = []
        if self.table is not None and self.time is None:
            problems.append(Issue("time", "is required: which column of the table says when a row was"))
        if self.table is None and self.time is not None:
            problems.append(Issue("time", f"only a table has one; got {self.time!r}"))
        if self.block is not None and self.columns:
            rule = "are those of a table or of another stream; the stream knows its own"
            problems.append(Issue("columns", rule))
        if EVENT_TIME in self.columns:
            rule = "is the time of a row, which every filler has"
            problems.append(Issue(f"columns.{EVENT_TIME}", rule))
        if problems:
            raise IssuesError(problems)
        return self

    @property
    def outside(self) -> bool:
        """Whether it is not the stream's own."""
        return self.block is None

    @property
    def called(self) -> str:
        """What it is called: the block, stream or table."""
        return self.block or self.stream or self.table or ""

    @property
    def types(self) -> dict[str, FieldType]:
        """The types of the declared columns, and of the time."""
        return {name: column.type for name, column in self.columns.items()} | {EVENT_TIME: "timestamp"}
