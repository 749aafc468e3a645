"""What every format has: from lines to typed columns."""

from typing import Protocol

import pyarrow as pa

from transom.formats.field_drift import FieldDrift
from transom.formats.parsed_records import ParsedRecords
from transom.formats.typed_columns import Rejections


class Parser(Protocol):
    """One format.

    Attributes:
        shown: which names the file's records have shown.
    """

    shown: FieldDrift

    @property
    def columns(self) -> frozenset[str]:
        """The field names that the file has shown so far; none for formats without names."""

    def header(self, text: pa.Array) -> int:
        """How many lines at the beginning of these describe the format; it reads on by what they say."""

    def parse(self, text: pa.Array, refused: Rejections) -> ParsedRecords:
        """What the lines hold; lines of another form are noted in `refused`."""
