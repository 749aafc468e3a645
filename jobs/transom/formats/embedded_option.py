"""The option `embedded`: which text of a record is itself a record, and of which format."""

from collections.abc import Mapping
from dataclasses import dataclass

from transom.formats.record_format import FormatName

FORMATS: tuple[FormatName, ...] = ("json", "regex", "kv")
"""What a text may be."""


@dataclass(frozen=True)
class Inside:
    """What the option says.

    Attributes:
        field: the path of the text.
        format: of `FORMATS`.
        options: of that format.
    """

    field: str
    format: FormatName
    options: Mapping[str, object]

    @property
    def prefix(self) -> str:
        """How the paths of its fields begin."""
        return f"{self.field}."


def inside(options: Mapping[str, object]) -> Inside | None:
    """Return what the option `embedded` says; None where there is none."""
    given = options.get("embedded")
    if not isinstance(given, Mapping) or "field" not in given or given.get("format") not in FORMATS:
        return None
    more = {name: value for name, value in given.items() if name not in ("field", "format")}
    return Inside(str(given["field"]), given["format"], more)
