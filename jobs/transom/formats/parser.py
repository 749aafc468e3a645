"""The interface of a format: from lines to typed columns."""

from typing import Protocol

import pyarrow as pa

from transom.formats.field_drift import FieldDrift
from transom.formats.parsed_records import ParsedRecords
from transom.formats.typed_columns import Rejections


class Parser(Protocol):
    """One format.

    Attributes:
        shown: the names in the file's records.
    """

    shown: FieldDrift

    @property
    def columns(self) -> frozenset[str]:
        """The field names in the file so far; empty for formats without names."""

    def header(self, text: pa.Array) -> int:
        """Return the number of header lines at the beginning, and apply what they declare."""

    def parse(self, text: pa.Array, refused: Rejections) -> ParsedRecords:
        """Return the records of lines; add lines of another form to `refused`."""
