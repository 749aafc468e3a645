"""The files of a stream: their paths, their format, and the columns of their records."""

import re
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal, InvalidOperation
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, GetJsonSchemaHandler, StrictInt
from pydantic_core import CoreSchema

from transom.core.durations import Duration, format_duration
from transom.core.intervals import HOUR
from transom.core.path_pattern import PathPattern, Unit
from transom.formats import record_format as layout
from transom.formats.record_format import EPOCH_OR_ISO, EPOCHS, FieldType, FormatName
from transom.spec.base import Model, NonEmptyStr, ShorthandModel, Zone
from transom.spec.errors import Issue
from transom.spec.format_options import option_problems

MIN_UNIT_LENGTH: dict[Unit, timedelta] = {
    "second": timedelta(seconds=1), "minute": timedelta(minutes=1), "hour": HOUR, "day": timedelta(days=1),
    "month": timedelta(days=28), "year": timedelta(days=365),
}  # fmt: skip
"""Minimum length of a file's period, by the finest part of the time in its path."""


def split_paths(text: str) -> tuple[str, ...]:
    """Return the alternatives of `a | b`; raise a ValueError if one is empty."""
    paths = tuple(path.strip() for path in text.split("|"))
    if not all(paths):
        raise ValueError(f"must be a field's path, or several with | between them; got {text!r}")
    return paths


def _time_format(text: str) -> str:
    if text in ("iso", EPOCH_OR_ISO) or text in EPOCHS:
        return text
    parts = re.findall("%(.?)", text, re.DOTALL)
    unknown = [part for part in parts if not part or part not in "aAbBdfHIjmMpSyYzZ%"]
    if not parts:
        known = f"iso, {', '.join(EPOCHS)}, {EPOCH_OR_ISO}"
        raise ValueError(f"must be {known}, or a strptime format; got {text!r}")
    if unknown:
        raise ValueError(f"unknown part %{unknown[0]} in the time format; got {text!r}")
    if "Y" not in parts and "y" not in parts:
        raise ValueError(f"must hold the year, else the time is not known; got {text!r}")
    if "Z" in parts and (text.split().count("%Z") != 1 or parts.count("Z") != 1 or "z" in parts):
        raise ValueError(
            "%Z, letters of a zone such as CET, must be a word of its own, once and without %z; other "
            f"letters can be written as they are, and the zone given by `zone`; got {text!r}"
        )
    return text


Paths = Annotated[NonEmptyStr, AfterValidator(lambda text: split_paths(text) and text)]
"""The path of a field, or several with `|` between them."""

TimeFormat = Annotated[str, AfterValidator(_time_format)]
"""iso, one of the epochs, epoch_or_iso, or a strptime format with the year."""


def zone_problems(format: str | None, zone: str | None) -> Iterator[Issue]:
    """Yield the problems of the zone of times in a format."""
    if format in EPOCHS and zone is not None:
        yield Issue("zone", f"times since the epoch have none; got {zone!r}")


class EventTimeRange(Model):
    """The event times that a file may contain, relative to the period in its name. Rows outside are rejected.

    A file named for the hour `h` may contain `[h - before, h + 1 hour + after)`. A file named for a longer
    period may contain `[start - before, end + after)`. A file named for less than an hour has the range of
    its hour. A file without a time in its name may contain any time.
    """

    before: Duration = timedelta(days=1)
    """How far before the start of the period."""
    after: Duration = timedelta(hours=1)
    """How far after the end of the period."""


class Source(Model):
    """The files of a stream."""

    path: Annotated[NonEmptyStr, AfterValidator(lambda path: PathPattern(path).text)]
    """The path of the files: relative to the landing folder, absolute, or a URI. It may contain strftime
    directives for a time (%Y-%m-%d/%H), {captures} that become columns, and * for any text."""
    zone: Zone = "UTC"
    """The IANA zone of the time in the path."""
    format: FormatName | None = None
    """The format of the files. Required unless a preset sets it."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Options of the format. apache: variant (combined, common). zeek: variant (auto, tsv, json). csv:
    delimiter (a text, or blanks for any number of blanks and tabs), trim (true: blanks around values are
    removed), quote, header (true: the first line names the columns; a number: that line does; false: none
    does; w3c), names (of the columns, with header false), skip (the number of lines before the records).
    json: records (the path of a list, such as Records[], also through lists in lists). regex: pattern (with
    named groups). kv: separator (each of its characters separates), assign, quote, lead (the names of a
    line's first words). syscalls: lead (the names of the words before the call). csv, regex, kv: comment (the
    beginning of lines that are no records). json, csv, regex, kv: embedded (a text field that is itself a
    record: its field, its format json, regex or kv, and the options of that; its fields are then field.name).
    """
    event_time_range: EventTimeRange = EventTimeRange()
    """The event times that a file may contain, relative to the period in its name."""
    arrival_delay: Duration = timedelta(minutes=10)
    """How long the DAG waits after an hour's end for its files. Files that arrive after that are late."""
    expected_files: Annotated[StrictInt, Field(ge=1)] | None = None
    """The number of files of an hour. With fewer files the hour is incomplete."""
    on_conflict: Literal["hold", "replace"] = "hold"
    """What happens to a file that differs from what was ingested, other than by having grown. hold: the
    ingested rows stay, with a warning. replace: the new content is ingested."""
    name_time: Literal["start", "end"] = "start"
    """Which time of its period a file's name has; end requires `covers`."""
    covers: Duration | None = None
    """The length of a file's period, such as 5 minutes: a divisor of one hour, or whole hours. If it is at
    most an hour, an hour is incomplete until files cover all of it. Default: the period in the file's name,
    such as an hour or a day, without this check."""
    equal_files: Literal["keep", "one"] = "keep"
    """How files with equal bytes count if their names differ where the path has a *, by more than suffixes of
    compression and rotation (.gz, .zst, .1). keep: each counts. one: they count once, for deliveries that
    rename files."""

    def _rules(self) -> Iterator[Issue]:
        if self.format is not None:
            yield from option_problems(self.format, self.options)
        if self.covers is None:
            if self.name_time == "end":
                rule = "end requires covers, how long the period of a file is, such as 5 minutes"
                yield Issue("name_time", rule)
            return
        unit, got = PathPattern(self.path).unit, format_duration(self.covers)
        if unit is None:
            yield Issue("covers", f"requires a time in the path; got {got} for {self.path}")
        elif not self.covers or (HOUR % self.covers and self.covers % HOUR):
            yield Issue("covers", f"must divide one hour, as 5 minutes does, or be whole hours; got {got}")
        elif self.covers < MIN_UNIT_LENGTH[unit]:
            rule = f"must not be shorter than the finest part of the time in the path, a {unit}"
            yield Issue("covers", f"{rule}; got {got} for {self.path}")

    @cached_property
    def pattern(self) -> PathPattern:
        """The compiled path."""
        return PathPattern(self.path, self.zone, self.covers, ends=self.name_time == "end")

    @property
    def periods_checked(self) -> bool:
        """Whether files must cover each hour: `covers` is at most an hour."""
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


def resolution_problems(type: FieldType, resolution: str | None) -> Iterator[Issue]:
    """Yield the problems of the resolution of a column: a number needs one, other types have none."""
    if type == "number" and resolution is None:
        yield Issue("resolution", "is required for a number, such as 0.001")
    if type != "number" and resolution is not None:
        yield Issue("resolution", f"only a number has one; got {resolution} for type {type}")


class Column(ShorthandModel):
    """A column of the events: read from a record, or derived from other columns (`is`). A bare text in the
    file is its `from`."""

    SHORT = (
        "from",
        (str,),
        {"type": "string", "minLength": 1, "description": "the path of the value in a record"},
    )

    from_: Paths | None = Field(default=None, alias="from")
    """The path of the value in a record, or several with `|` between them: the first one with a value
    counts. Default: the column's name."""
    is_: NonEmptyStr | None = Field(default=None, alias="is")
    """An expression over the columns that are not derived, the captures and event_time, such as orig_bytes +
    resp_bytes. A number is rounded to the resolution. A value that is too large for a column is null."""
    type: FieldType = "string"
    """The type of the value. A derived column has the type of its expression."""
    unit: NonEmptyStr | None = None
    """The unit of the value, for readers of the stream file only."""
    resolution: Resolution | None = None
    """For a number, required: the step to which values are rounded, half to even, such as 0.001."""
    missing: tuple[str, ...] = ()
    """Texts that mean no value, such as -."""
    format: TimeFormat | None = None
    """For a timestamp: iso (default), another format of `time`, such as epoch_ms, or a strptime format."""
    zone: Zone | None = None
    """For a timestamp without an offset: its IANA zone."""

    def _rules(self) -> Iterator[Issue]:
        if self.is_ is not None:
            for name in ("from_", "missing", "format", "zone"):
                if name in self.model_fields_set:
                    rule = "requires a field of a record; the column is derived (`is`)"
                    yield Issue(name.rstrip("_"), rule)
            return
        yield from resolution_problems(self.type, self.resolution)
        for name, value in (("format", self.format), ("zone", self.zone)):
            if self.type != "timestamp" and value is not None:
                yield Issue(name, f"only a timestamp has one; got {value!r} for type {self.type}")
        yield from zone_problems(self.format, self.zone)

    def field(self, name: str) -> layout.Field:
        """Return the parser's form of this column."""
        paths, resolution = split_paths(self.from_ or name), self.resolution or "1"
        time_format = (self.format or "iso") if self.type == "timestamp" else None
        return layout.Field(name, paths, self.type, resolution, self.missing, time_format, self.zone)

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Return the schema: a path, a mapping, or null (not this column)."""
        schema = super().__get_pydantic_json_schema__(core, handler)
        schema["anyOf"].append({"type": "null", "description": "remove the preset's column"})
        return schema
