"""The input of a parser: a log's format, its columns and the source of its times.

A validated stream file is reduced to a `RecordFormat`. Parsers know nothing else about a stream, so they can
be tested, and sent to executors, on their own. This module loads no Arrow.
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
"""Times as numbers since 1970, and the number of units per second."""
NANOSECONDS = "epoch_ns"
"""An epoch that does not fit into a double: whole nanoseconds, cut to microseconds, like the digits of ISO
8601."""
DOUBLES: Mapping[str, int] = {form: unit for form, unit in EPOCHS.items() if form != NANOSECONDS}
"""The epochs that are read as doubles."""
EPOCH_OR_ISO = "epoch_or_iso"
"""Seconds or milliseconds since 1970, or ISO 8601, depending on each text: Zeek's settings allow all
three."""

BLANKS = "blanks"
"""The delimiter of values with any number of blanks and tabs between them, as in aligned columns."""
CALL, RETURN = "call", "return"
"""The fields of each line of `syscalls`, beside its arguments."""
REST = "rest"
"""The column with the fields of a record that no column and no time takes."""
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
        resolution: for numbers, the positive step, as decimal text ("0.001"), to which values are
            rounded half-even, above 2**50 of which a number is refused; integers have "1", and are refused
            above 2**53.
        missing: texts that mean "no value", beside those of the format (Zeek's unset field). For numbers,
            equal numbers count, however they are written (-1, -1.0).
        time_format: for timestamps, a strptime format, or `epoch`, `epoch_ms`, `epoch_us`, `epoch_ns`, `iso`,
            `epoch_or_iso`.
        zone: for timestamps without an offset, their IANA zone.
    """

    name: str
    paths: tuple[str, ...]
    type: FieldType = "string"
    resolution: str = "1"
    missing: tuple[str, ...] = ()
    time_format: str | None = None
    zone: str | None = None


def is_local(form: str, zone: str | None) -> bool:
    """Return whether times of a form may be local ones of a zone whose clocks change."""
    has_offset = form.startswith("epoch") or "%z" in form or "%Z" in form
    return zone not in (None, "UTC") and not has_offset


@dataclass(frozen=True)
class TimeByLineNumber:
    """Times of a log without times: each line is later than the previous one by the same step.

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
        paths: the field, as in `Field.paths`; not necessarily a declared column.
        plus: paths of a field in seconds that is added (Zeek's `duration`); a missing one adds zero.
        time_format: as in `Field.time_format`.
        zone: the zone of times without an offset; None refuses them (`no_zone`). A local time that
            a clock change skips is refused (`no_such_local_time`); one that it repeats is
            resolved by the order of lines (`event_time.Order`).
        more: paths of further fields, whose texts are appended to the first one's with spaces.
        by_lines: the time by the number of the line; then the other fields are not used.
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
        options: of the format, all optional. csv: `delimiter` (","; `BLANKS`), `header` (True:
            the first line that is not empty; a number: that line, from 1; False needs `names`; "w3c": lines
            with `#` anywhere, of which `#Fields:` names them), `names` (list of column names), `quote` ('"'),
            `skip` (0: the number of lines before the records), `comment` (the beginning of lines that are no
            records; none). apache: `variant` ("combined" or "common"; combined accepts both). zeek: `variant`
            ("auto", the default, by the first line that is not empty; "tsv", "json"). json: `records` (the
            path, ending in [], of the list of records in a line, through lists in lists; without it a
            line is a record). regex:
            `pattern` (with named groups; required). kv: `separator` (blanks and tabs), `assign` ("="),
            `quote` ('"'), `lead` (names of a line's first words; none). syscalls: `lead` (names of the words
            before the call's; none). json, csv, regex and kv: `embedded`, a mapping of `field`, a text that
            is itself a record, its `format` (json, regex or kv), and the options of that.
        fields: the declared columns, in order. Captures of the path are not among them.
        time: the source of event times.
        keep_rest: whether other fields of a record are kept, in a column `rest`.
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
    """The half-open interval `[start, end)`, UTC; a file's rows outside are refused."""

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
    """Return the value of the option `embedded`; None if it is not set."""
    value = options.get("embedded")
    if not isinstance(value, Mapping) or "field" not in value or value.get("format") not in EMBEDDED_FORMATS:
        return None
    inner = {name: option for name, option in value.items() if name not in ("field", "format")}
    return EmbeddedFormat(str(value["field"]), value["format"], inner)
