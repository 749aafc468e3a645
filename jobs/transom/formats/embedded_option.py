"""The option `embedded`: which text field of a record is itself a record, and its format."""

from collections.abc import Mapping
from dataclasses import dataclass

from transom.formats.record_format import FormatName

FORMATS: tuple[FormatName, ...] = ("json", "regex", "kv")
"""The formats of an embedded text."""


@dataclass(frozen=True)
class Inside:
    """The value of the option.

    Attributes:
        field: the path of the text field.
        format: its format, one of `FORMATS`.
        options: the options of that format.
    """

    field: str
    format: FormatName
    options: Mapping[str, object]

    @property
    def prefix(self) -> str:
        """The prefix of the paths of its fields."""
        return f"{self.field}."


def inside(options: Mapping[str, object]) -> Inside | None:
    """Return the value of the option `embedded`; None if it is not set."""
    given = options.get("embedded")
    if not isinstance(given, Mapping) or "field" not in given or given.get("format") not in FORMATS:
        return None
    inner_options = {name: value for name, value in given.items() if name not in ("field", "format")}
    return Inside(str(given["field"]), given["format"], inner_options)
