"""The detected format of lines, with its options, and its fields with their texts."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from transom.formats.pairs import KeyValue
from transom.formats.record_format import EventTime, FieldType, FormatName, RecordFormat
from transom.formats.registry import make_parser
from transom.formats.rejections import Rejections

SAMPLE_LINES = 5000
"""Maximum number of lines that detection uses."""
MIN_SHARE = 0.9
"""Minimum share of lines that must have a form: a log may have a few others."""


@dataclass(frozen=True)
class LogFormat:
    """The detected format of lines.

    Attributes:
        fields: the texts of each field by path; a record without the field adds no text.
        types: the types of fields that the log declares.
        preset: the preset of a known log; it defines columns and time.
        notes: remarks on the detection for the user.
        utc: whether times without a zone are in UTC in this form.
        time: the fields of the time, if the form determines them.
    """

    format: FormatName
    fields: Mapping[str, Sequence[str]]
    types: Mapping[str, FieldType] = field(default_factory=dict)
    options: Mapping[str, object] = field(default_factory=dict)
    preset: str | None = None
    notes: tuple[str, ...] = ()
    utc: bool = False
    time: tuple[str, ...] = ()


@dataclass(frozen=True)
class NearMiss:
    """A form that too few lines have, or that is not accepted.

    Attributes:
        lines: the number of lines that have it.
        why: why the form is not accepted.
    """

    lines: int
    why: str = ""


class NotRead(ValueError):
    """Lines have a known form, but no format reads it. The message has the reason and the remedy."""


def mostly(conditions: Iterable[bool]) -> bool:
    """Return whether a share of conditions of at least `MIN_SHARE` is true."""
    results = list(conditions)
    return sum(results) >= MIN_SHARE * len(results)


def fields_of(names: Iterable[str], rows: Sequence[Sequence[str | None]]) -> dict[str, list[str]]:
    """Return the non-empty texts of each column of rows."""
    return {name: [text for row in rows if (text := row[index])] for index, name in enumerate(names)}


def read_lines(
    lines: Sequence[str], form: FormatName, options: Mapping[str, object]
) -> tuple[dict[str, list[str]], int, int]:
    """Read lines as a job does, and return the non-empty texts of each field, the number of records, and the
    number of rejected lines."""
    parser = make_parser(RecordFormat(form, (), EventTime(()), options, keep_rest=True))
    text = pa.array(lines, pa.string())
    fields: dict[str, list[str]] = {}
    read = refused = 0
    for start, end in parser.bodies(text):
        rejections = Rejections.none(end - start)
        for name, texts in parser.parse(text[start:end], rejections).fields.items():
            fields.setdefault(name, []).extend(filter(None, texts.to_pylist()))
        refused += int(rejections.any.sum())
        read += end - start
    return fields, read - refused, refused


def read_pairs(lines: Sequence[str], options: Mapping[str, object]) -> dict[str, list[str]]:
    """Read lines of pairs as a job does, and return the non-empty texts of each name."""
    pairs = KeyValue(RecordFormat("kv", (), EventTime(()), options)).pairs(pa.array(lines, pa.string()))
    names = pairs.names.take(pa.array(np.argsort(pairs.rows, kind="stable"))).to_pylist()
    return {name: pairs.field(name).drop_null().to_pylist() for name in dict.fromkeys(names)}


def by_pattern(
    lines: Sequence[str],
    pattern: str,
    note: str,
    types: Mapping[str, FieldType] | None = None,
    keep_empty: bool = False,
) -> LogFormat | NearMiss:
    """Return the format of lines that a pattern matches.

    Args:
        types: the types of its groups, as far as they are known.
        keep_empty: whether groups without any text are also fields.
    """
    options = {"pattern": pattern}
    fields, matched, _ = read_lines(lines, "regex", options)
    if matched < MIN_SHARE * len(lines):
        return NearMiss(matched)
    fields = {name: texts for name, texts in fields.items() if texts or keep_empty}
    return LogFormat("regex", fields, types or {}, options, notes=(note,))
