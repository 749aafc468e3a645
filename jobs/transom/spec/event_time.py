"""The source of an event's time: fields of its record, or the number of its line."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator

from transom.core.durations import Duration, format_duration, microseconds
from transom.core.intervals import EPOCH, HOUR, micros, parse_time
from transom.formats import record_format as layout
from transom.spec.base import Model, NonEmptyStr, Zone
from transom.spec.errors import Issue
from transom.spec.source import Column, Paths, TimeFormat, split_paths, zone_problems

NAME = "name"
"""Times count from the start of the period in the file's name."""

_END = datetime(2262, 1, 1, tzinfo=UTC)


def _fields(value: Any) -> Any:
    texts = list(value) if isinstance(value, list | tuple) else [value]
    if not texts or not all(isinstance(text, str) and text for text in texts):
        raise ValueError(f"must be a field's path, or a list of them; got {value!r}")
    for text in texts:
        split_paths(text)
    return tuple(texts)


_Written = NonEmptyStr | Annotated[list[NonEmptyStr], Field(min_length=1)]
Fields = Annotated[tuple[str, ...], BeforeValidator(_fields, json_schema_input_type=_Written)]
"""One or several paths of fields."""


class Time(Model):
    """The source of `event_time`: fields of the record (`column`), or the number of its line (`lines`)."""

    column: Fields | None = None
    """A declared column, a capture of the path, or the path of a field as in a column's `from`. The texts of
    a list, such as [date, time], are joined by a space."""
    plus: Paths | None = None
    """A field with seconds that are added to the time; named as in `column`, but never a list."""
    format: TimeFormat = "iso"
    """iso, epoch, epoch_ms, epoch_us, epoch_ns, epoch_or_iso (each value is in seconds or milliseconds since
    1970, or iso), or a strptime format with the year."""
    zone: Zone | None = None
    """The IANA zone of times without an offset. Without it such times are rejected."""
    lines: Duration | None = None
    """For a log without times: the time from each line to the next."""
    from_: NonEmptyStr | None = Field(default=None, alias="from")
    """With lines, required: the time of a file's first line, such as 2024-01-01T00:00 (UTC without an
    offset), or name, the start of the period in the file's name."""
    interval: Duration | None = None
    """For readings on a schedule: the time between two readings, a divisor of one hour."""
    on_duplicate_time: Literal["first", "last", "keep"] | None = None
    """With interval, required: which reading of a key in one interval remains an event; keep is all."""

    @field_validator("from_")
    @classmethod
    def _known_start(cls, text: str | None) -> str | None:
        try:
            known = text in (None, NAME) or EPOCH <= parse_time(str(text)) < _END
        except (ValueError, OverflowError):
            known = False
        if not known:
            rule = f"must be {NAME}, or a time from 1970 to 2261 such as 2024-01-01T00:00"
            raise ValueError(f"{rule}; got {text!r}")
        return text

    def _rules(self) -> Iterator[Issue]:
        if (self.column is None) is (self.lines is None):
            which = "neither" if self.column is None else "both"
            yield Issue("", f"must have either column or lines; it has {which}")
        elif self.lines is None:
            if self.from_ is not None:
                yield Issue("from", "requires lines, which is missing")
        else:
            for name in ("plus", "format", "zone"):
                if name in self.model_fields_set and getattr(self, name) is not None:
                    yield Issue(name, "requires column; times by lines have none")
            if not self.lines:
                yield Issue("lines", f"must be above 0; got {format_duration(self.lines)}")
            if self.from_ is None:
                yield Issue("from", f"is required with lines: a time such as 2024-01-01T00:00, or {NAME}")
        if self.interval is not None and (not self.interval or HOUR % self.interval):
            got = format_duration(self.interval)
            yield Issue("interval", f"must divide one hour, as 5 minutes does; got {got}")
        if self.interval is not None and self.on_duplicate_time is None:
            yield Issue("on_duplicate_time", "is required with interval, one of first, last, keep")
        if self.interval is None and self.on_duplicate_time is not None:
            yield Issue("on_duplicate_time", "requires interval, which is missing")
        yield from zone_problems(self.format, self.zone)

    @property
    def is_local(self) -> bool:
        """Whether times may be in the hour that repeats when clocks go back."""
        return self.lines is None and layout.is_local(self.format, self.zone)

    @property
    def by_name(self) -> bool:
        """Whether times depend on the name of the file."""
        return self.from_ == NAME

    def event_time(self, columns: Mapping[str, Column]) -> layout.EventTime:
        """Return the parser's form of this time, for the declared columns."""

        def paths(text: str) -> tuple[str, ...]:
            return columns[text].field(text).paths if text in columns else split_paths(text)

        if self.lines is not None:
            start = None if self.from_ in (None, NAME) else micros(parse_time(str(self.from_)))
            return layout.EventTime((), by_lines=layout.TimeByLineNumber(microseconds(self.lines), start))
        first, *others = map(paths, self.column or ())
        added = paths(self.plus) if self.plus else ()
        return layout.EventTime(first, added, self.format, self.zone, tuple(others))
