"""The detected format of lines: its options, and its fields with their texts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from transom.formats.record_format import FieldType

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
