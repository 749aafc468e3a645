"""What some lines look like: a format, its options, its fields with their texts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from transom.formats.record_format import FieldType

SAMPLE_LINES = 5000
"""Lines that a guess goes by."""
MIN_SHARE = 0.9
"""The share of lines that must be of a form: a log has others here and there."""


@dataclass(frozen=True)
class DetectedFormat:
    """What some lines look like.

    Attributes:
        fields: the texts of each field, by its path; where a record has none it has no text.
        types: of fields whose type the log says itself.
        preset: a known log, which says columns and time.
        notes: what a person should know of the guess.
        utc: whether times that do not say their zone are in UTC, as the form has it.
        time: fields that make the time together, as far as the form says it.
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
        lines: how many have it.
        why: they are not taken by it all the same.
    """

    lines: int
    why: str = ""


class NotRead(ValueError):
    """Lines of a form that is known and that no format reads: why, and what to do."""
