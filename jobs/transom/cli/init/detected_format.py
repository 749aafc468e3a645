"""The detected format of lines: its options, and its fields with their texts."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from transom.formats.record_format import EventTime, FieldType, RecordFormat
from transom.formats.regex import Regex
from transom.formats.rejections import Rejections

SAMPLE_LINES = 5000
"""Maximum number of lines that a guess uses."""
MIN_SHARE = 0.9
"""The minimum share of lines of a form: a log may have a few others."""


@dataclass(frozen=True)
class DetectedFormat:
    """The detected format of lines.

    Attributes:
        fields: the texts of each field, by path; records without the field give no text.
        types: the types of fields that the log declares.
        preset: the preset of a known log, which has columns and time.
        notes: remarks about the guess, for people.
        utc: whether times without a zone are in UTC in this form.
        time: fields that together are the time, if the form tells.
    """

    format: str
    fields: Mapping[str, Sequence[str]]
    types: Mapping[str, FieldType] = field(default_factory=dict)
    options: Mapping[str, object] = field(default_factory=dict)
    preset: str | None = None
    notes: tuple[str, ...] = ()
    utc: bool = False
    time: tuple[str, ...] = ()


@dataclass(frozen=True)
class NearMiss:
    """A form that too few lines have.

    Attributes:
        lines: the number of lines that have it.
        why: the reason why they are not accepted.
    """

    lines: int
    why: str = ""


class NotRead(ValueError):
    """Lines of a known form that no format reads. The text has the reason and the remedy."""


def mostly(conditions: Iterable[bool]) -> bool:
    """Return whether a share of `MIN_SHARE` of the conditions holds, or more."""
    results = list(conditions)
    return sum(results) >= MIN_SHARE * len(results)


def fields_of(names: Iterable[str], rows: Sequence[Sequence[str | None]]) -> dict[str, list[str]]:
    """Return the non-empty texts of each column of rows."""
    return {name: [text for row in rows if (text := row[index])] for index, name in enumerate(names)}


def fields_of_pairs(rows: Iterable[Iterable[tuple[str, str]]]) -> dict[str, list[str]]:
    """Return the non-empty texts of each name in rows of names and texts."""
    fields: dict[str, list[str]] = {}
    for row in rows:
        for name, text in row:
            fields.setdefault(name, []).extend([text] if text else [])
    return fields


def groups_of(lines: Sequence[str], pattern: str) -> tuple[dict[str, list[str]], int]:
    """Return the texts of each group of a pattern, and the number of lines that it matches, as a job reads
    them."""
    rejections = Rejections.none(len(lines))
    reader = Regex(RecordFormat("regex", (), EventTime(()), {"pattern": pattern}))
    records = reader.parse(pa.array(lines, pa.string()), rejections)
    fields = {name: texts.drop_null().to_pylist() for name, texts in records.fields.items()}
    return fields, len(lines) - int(rejections.any.sum())


def by_pattern(
    lines: Sequence[str],
    pattern: str,
    note: str,
    types: Mapping[str, FieldType] | None = None,
    keep_empty: bool = False,
) -> DetectedFormat | NearMiss:
    """Return the format of lines that a pattern matches.

    Args:
        types: the types of its groups, if they are known.
        keep_empty: whether groups that never match are fields, too.
    """
    fields, matched = groups_of(lines, pattern)
    if matched < MIN_SHARE * len(lines):
        return NearMiss(matched)
    fields = {name: texts for name, texts in fields.items() if texts or keep_empty}
    return DetectedFormat("regex", fields, types or {}, {"pattern": pattern}, notes=(note,))
