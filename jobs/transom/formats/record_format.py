"""The input of a parser: a log's format, its columns and the source of its times.

A validated stream file is reduced to a `RecordFormat`. Parsers need nothing else of a stream, so they can be
tested and sent to executors without it. This module does not import Arrow.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain
from typing import Literal

FieldType = Literal["string", "integer", "number", "boolean", "timestamp"]
NUMERIC: tuple[FieldType, ...] = ("integer", "number")
FormatName = Literal["apache", "zeek", "csv", "json", "regex", "kv", "syscalls"]

EPOCHS: Mapping[str, int] = {"epoch": 1, "epoch_ms": 1_000, "epoch_us": 1_000_000, "epoch_ns": 1_000_000_000}
"""Times as numbers since 1970: the number of units per second."""
NANOSECONDS = "epoch_ns"
"""An epoch that does not fit into a double: whole nanoseconds, truncated to microseconds, as is ISO 8601."""
DOUBLES: Mapping[str, int] = {form: unit for form, unit in EPOCHS.items() if form != NANOSECONDS}
"""The epochs that are read as doubles."""
EPOCH_OR_ISO = "epoch_or_iso"
"""Seconds or milliseconds since 1970, or ISO 8601, as each text has it: Zeek's settings allow all three."""

BLANKS = "blanks"
"""The delimiter of values with any number of blanks and tabs between them, as in aligned columns."""
CALL, RETURN = "call", "return"
"""The fields of each line of `syscalls`, in addition to its arguments."""
REST = "rest"
"""The column with the fields of a record that no column and no time uses."""
EMBEDDED_FORMATS: tuple[FormatName, ...] = ("json", "regex", "kv")
"""The formats of an embedded text."""


@dataclass(frozen=True)
class Field:
    """One declared column of `events`.

    Attributes:
        name: the column's name in `events`.
        paths: the paths of the value in a record; the first one with a value is used. A path is a field's
            name, or for JSON names joined by dots (`Records.user.name`). A name that contains dots
            (`id.orig_h`) is tried whole first.
        type: the type of the values.
        resolution: for numbers, the step to which values are rounded, half to even, as decimal text
            ("0.001"). A number of more than 2**50 steps is refused. Integers have "1"; above 2**53 they are
            refused.
        missing: texts that mean "no value", in addition to that of the format (Zeek's unset field). For
            numbers, equal numbers count in any spelling (-1, -1.0).
        time_format: for timestamps, a strptime format, or `epoch`, `epoch_ms`, `epoch_us`, `epoch_ns`, `iso`,
            `epoch_or_iso`.
        zone: for timestamps without an offset, the IANA zone.
    """

    name: str
    paths: tuple[str, ...]
    type: FieldType = "string"
    resolution: str = "1"
    missing: tuple[str, ...] = ()
    time_format: str | None = None
    zone: str | None = None


def is_local(form: str, zone: str | None) -> bool:
    """Return whether times of a form may be local times of a zone whose clocks change.

    >>> is_local("iso", "Europe/Berlin"), is_local("epoch", "Europe/Berlin"), is_local("iso", "UTC")
    (True, False, False)
    """
    has_offset = form.startswith("epoch") or "%z" in form or "%Z" in form
    return zone not in (None, "UTC") and not has_offset


@dataclass(frozen=True)
class TimeByLineNumber:
    """Times for a log without times: each line is later than the previous one by the same step.

    Attributes:
        step: microseconds, positive.
        start: the time of the first line, in microseconds since 1970, UTC; None is the start of the period in
            the file's name.
    """

    step: int
    start: int | None = None


@dataclass(frozen=True)
class EventTime:
    """The source of `event_time` (UTC, microseconds) in a record.

    Attributes:
        paths: the paths of the field, as in `Field.paths`; it need not be a declared column.
        plus: the paths of a field with seconds to add (Zeek's `duration`); a missing value adds zero.
        time_format: as in `Field.time_format`.
        zone: the zone of times without an offset; None refuses them (`no_zone`). A local time that a clock
            change skips is refused (`no_such_local_time`). For one that it repeats, the order of lines
            decides (`event_time.Order`).
        more: the paths of further fields, whose texts are appended with spaces.
        by_lines: the rule for times by line number; if set, the other attributes are not used.
    """

    paths: tuple[str, ...]
    plus: tuple[str, ...] = ()
    time_format: str = "iso"
    zone: str | None = None
    more: tuple[tuple[str, ...], ...] = ()
    by_lines: TimeByLineNumber | None = None


@dataclass(frozen=True)
class RecordFormat:
    """All parameters that a parser needs to turn a file's bytes into events and rejections.

    Attributes:
        format: the parser's name.
        options: the options of the format, with their defaults. csv: `delimiter` (","; also `BLANKS`),
            `quote` ('"'), `trim` (False), `header` (True: the first line that is not empty names the columns;
            a number: that line, from 1; False: none, `names` is required; "w3c": header lines begin with `#`,
            and `#Fields:` names the columns), `names` (a list), `skip` (0; the number of lines before the
            records). csv, regex and kv: `comment` (none; the beginning of lines that are no records). apache:
            `variant` ("combined", which accepts both; or "common"). zeek: `variant` ("auto", by the first
            line that is not empty; or "tsv", "json"). json: `records` (none; the path, ending in [], of the
            list of records in a line, through lists in lists). regex: `pattern` (required; with named
            groups). kv: `separator` (blanks and tabs; each character separates), `assign` ("="), `quote`
            ('"'), `lead` (none; the names of a line's first words). syscalls: `lead` (none; the names of the
            words before the call). json, csv, regex and kv: `embedded` (none; the mapping of an
            `EmbeddedFormat`).
        fields: the declared columns, in order, without captures of the path.
        time: the source of event times.
        keep_rest: whether the other fields of a record go to the column `rest`.
    """

    format: FormatName
    fields: tuple[Field, ...]
    time: EventTime
    options: Mapping[str, object] = field(default_factory=dict)
    keep_rest: bool = False

    @property
    def paths(self) -> frozenset[str]:
        """Every path of the columns and the time."""
        return self.of_time.union(path for column in self.fields for path in column.paths)

    @property
    def of_time(self) -> frozenset[str]:
        """Every path of the time."""
        return frozenset((*self.time.paths, *self.time.plus, *chain(*self.time.more)))


@dataclass(frozen=True)
class Span:
    """The half-open interval `[start, end)`, UTC, of a file's times. Rows outside are refused."""

    start: datetime
    end: datetime


@dataclass(frozen=True)
class EmbeddedFormat:
    """The value of the option `embedded`: which text field of a record is itself a record, and its format.

    Attributes:
        field: the path of the text field.
        format: its format, one of `EMBEDDED_FORMATS`.
        options: the options of that format.
    """

    field: str
    format: FormatName
    options: Mapping[str, object]

    @property
    def prefix(self) -> str:
        """The prefix of the paths of its fields."""
        return f"{self.field}."


def embedded_format(options: Mapping[str, object]) -> EmbeddedFormat | None:
    """Return the value of the option `embedded`; None if it is not set.

    >>> embedded_format({"embedded": {"field": "log", "format": "kv", "assign": ":"}})
    EmbeddedFormat(field='log', format='kv', options={'assign': ':'})
    """
    value = options.get("embedded")
    if not isinstance(value, Mapping) or "field" not in value or value.get("format") not in EMBEDDED_FORMATS:
        return None
    inner = {name: option for name, option in value.items() if name not in ("field", "format")}
    return EmbeddedFormat(str(value["field"]), value["format"], inner)
