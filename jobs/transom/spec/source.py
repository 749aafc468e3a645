"""The files of a stream: their paths, formats and columns."""

from datetime import timedelta
from decimal import Decimal, InvalidOperation
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, GetJsonSchemaHandler, StrictInt, field_validator, model_validator
from pydantic_core import CoreSchema

from transom.core.durations import Duration, format_duration
from transom.core.intervals import HOUR
from transom.core.path_pattern import PathPattern, Unit
from transom.formats import record_format as layout
from transom.formats.record_format import FieldType, FormatName
from transom.spec.base import Model, NonEmptyStr, Zone
from transom.spec.errors import Issue, IssuesError
from transom.spec.field_paths import Paths, TimeFormat, split_paths, zone_problems
from transom.spec.format_options import option_problems

MIN_UNIT_LENGTH: dict[Unit, timedelta] = {
    "second": timedelta(seconds=1), "minute": timedelta(minutes=1), "hour": HOUR, "day": timedelta(days=1),
    "month": timedelta(days=28), "year": timedelta(days=365),
}  # fmt: skip
"""Minimum length of a file's period, by the finest part of the time in its path."""
_OF_RECORDS = ("from_", "missing", "format", "zone")


class EventTimeRange(Model):
    """What a file may hold, relative to the time in its name; rows outside are refused.

    A file named for the hour `h` may hold `[h - before, h + 1 hour + after)`; one named for a longer
    stretch, `[start - before, end + after)`; one named for less than an hour, what one named for that
    hour may hold. A file without a time in its name may hold anything.
    """

    before: Duration = timedelta(days=1)
    """How much earlier than its start."""
    after: Duration = timedelta(hours=1)
    """How much later than its end."""


class Source(Model):
    """The files of a stream."""

    path: NonEmptyStr
    """Where the files are: relative to the landing root, absolute, or a URI; with strftime directives for
    their time (%Y-%m-%d/%H), {captures} that become columns, and * for what varies."""
    zone: Zone = "UTC"
    """The IANA zone of the time in the path."""
    format: FormatName | None = None
    """How a file is read; a preset may give it."""
    options: dict[str, Any] = Field(default_factory=dict)
    """What the format leaves open: variant of apache (combined, common) and of zeek (auto, tsv, json);
    delimiter (a character, or blanks: any number of blanks and tabs), quote, header (true: the first line
    names the columns; the number of the line that does; false; w3c), names, skip (how many lines come before
    the records) and comment (how lines begin that are no records) of csv; records of json, the path of a list
    such as Records[], also through lists in lists; pattern of regex, with named groups; separator, assign,
    quote and lead of kv, the names of the words with which each line begins; lead of syscalls, the names of
    the words before the call. embedded of json, csv, regex and kv, for a text that is itself a record: its
    field, its format (json, regex, kv), and the options of that; its fields are then field.name."""
    event_time_range: EventTimeRange = EventTimeRange()
    """The times that a file may hold, beside the stretch in its name."""
    arrival_delay: Duration = timedelta(minutes=10)
    """How long to wait after an hour's end before its files are taken to be there."""
    expected_files: Annotated[StrictInt, Field(ge=1)] | None = None
    """How many files an hour has; with fewer it is incomplete."""
    on_conflict: Literal["hold", "replace"] = "hold"
    """What happens to a file that differs from what was ingested, other than by having grown: hold keeps
    what stands and warns, replace takes the new content."""

    name_time: Literal["start", "end"] = "start"
    """Which time of the period that a file covers its name says; end goes with `covers`."""
    covers: Duration | None = None
    """How long the period of each file is, such as 5 minutes: a divisor of one hour, or whole hours. An hour
    is incomplete until files cover all of it. Where nothing is said, a file covers what its name says: an
    hour, a day."""
    equal_files: Literal["keep", "one"] = "keep"
    """What becomes of files of equal bytes whose names differ where the path has a *, by more than packing
    and rotation add (.gz, .zst, .1): keep, each counts; one, they count once, for deliveries that rename."""

    @field_validator("path")
    @classmethod
    def _compiles(cls, path: str) -> str:
        PathPattern(path)
        return path

    @model_validator(mode="after")
    def _options_fit(self) -> "Source":
        problems = option_problems(self.format, self.options) if self.format else []
        problems += self._period_problems()
        if problems:
            raise IssuesError(problems)
        return self

    def _period_problems(self) -> list[Issue]:
        if self.covers is None:
            rule = "end goes with covers, how long the period of a file is, such as 5 minutes"
            return [Issue("name_time", rule)] if self.name_time == "end" else []
        unit, got = PathPattern(self.path).unit, format_duration(self.covers)
        if unit is None:
            return [Issue("covers", f"goes with a time in the path; got {got} for {self.path}")]
        if not self.covers or (HOUR % self.covers and self.covers % HOUR):
            rule = "must divide one hour, as 5 minutes does, or be whole hours"
            return [Issue("covers", f"{rule}; got {got}")]
        if self.covers < MIN_UNIT_LENGTH[unit]:
            rule = f"must not be shorter than the finest part of the time in the path, a {unit}"
            return [Issue("covers", f"{rule}; got {got} for {self.path}")]
        return []

    @cached_property
    def pattern(self) -> PathPattern:
        """The compiled path."""
        return PathPattern(self.path, self.zone, self.covers, ends=self.name_time == "end")

    @property
    def periods_checked(self) -> bool:
        """Whether an hour knows which files it needs: those of the periods that divide it."""
        return self.covers is not None and self.covers <= HOUR


def _resolution(value: Any) -> Any:
    """Return a positive decimal as plain text: `0.001`."""
    try:
        step = Decimal(str(value))
    except InvalidOperation:
        step = Decimal("nan")
    # Beyond these, 2**50 steps are either nothing or everything, and the plain text grows without end.
    if not step.is_finite() or not Decimal("1e-12") <= step <= Decimal("1e12"):
        raise ValueError(f"must be a decimal from 1e-12 to 1e12, such as 0.001; got {value!r}")
    return format(step.normalize(), "f")


Resolution = Annotated[str, BeforeValidator(_resolution, json_schema_input_type=float | str)]


NO_RESOLUTION = "is required for a number, such as 0.001"


class Column(Model):
    """A column of the events: read from a record, or derived from the others (`is`). A bare text in the file
    is its `from`."""

    from_: Paths | None = Field(default=None, alias="from")
    """Where the value stands in a record; several with `|` between them, of which the first that the
    record has is taken. The column's name where nothing is said."""
    is_: NonEmptyStr | None = Field(default=None, alias="is")
    """An expression over the other columns, the captures and event_time, such as orig_bytes + resp_bytes:
    its value is the column's; a number is rounded to the resolution, and null beyond what a column holds."""
    type: FieldType = "string"
    """What the text is read as; a derived column has the type of its expression."""
    unit: NonEmptyStr | None = None
    """The unit of the value, for people."""
    resolution: Resolution | None = None
    """For a number, required: the step to which values are rounded, half to even, such as 0.001."""
    missing: tuple[str, ...] = ()
    """Texts that mean that there is no value, such as -."""
    format: TimeFormat | None = None
    """For a timestamp: iso (default), epoch, epoch_ms, epoch_us, epoch_ns or a strptime format."""
    zone: Zone | None = None
    """For a timestamp without an offset: its IANA zone."""

    @model_validator(mode="after")
    def _fits_type(self) -> "Column":
        problems = []
        if self.is_ is not None:
            of_records = [name for name in _OF_RECORDS if name in self.model_fields_set]
            if of_records:
                rule = "goes with what is read from a record; the column is derived (`is`)"
                raise IssuesError([Issue(name.rstrip("_"), rule) for name in of_records])
            return self
        if self.type == "number" and self.resolution is None:
            problems.append(Issue("resolution", NO_RESOLUTION))
        if self.type != "number" and self.resolution is not None:
            rule = f"only a number has one; got {self.resolution} for type {self.type}"
            problems.append(Issue("resolution", rule))
        for name, value in (("format", self.format), ("zone", self.zone)):
            if self.type != "timestamp" and value is not None:
                problems.append(Issue(name, f"only a timestamp has one; got {value!r} for type {self.type}"))
        problems += zone_problems(self.format, self.zone)
        if problems:
            raise IssuesError(problems)
        return self

    def field(self, name: str) -> layout.Field:
        """Return the parser's form of this column."""
        return layout.Field(
            name=name,
            paths=split_paths(self.from_ or name),
            type=self.type,
            resolution=self.resolution or "1",
            missing=self.missing,
            time_format=(self.format or "iso") if self.type == "timestamp" else None,
            zone=self.zone,
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Return the schema: a path, a mapping, or null (not this column)."""
        full = handler.resolve_ref_schema(handler(core))
        short = {"type": "string", "minLength": 1, "description": "where the value stands in a record"}
        return {"anyOf": [short, full, {"type": "null", "description": "leave the preset's column out"}]}
