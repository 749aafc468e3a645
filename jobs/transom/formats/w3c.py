"""Parse W3C's extended log format, as of IIS: delimited text with lines that describe the following ones."""

import pyarrow as pa

from transom.formats.delimited import Csv, read_marked
from transom.formats.record_format import RecordFormat

FIELDS = "#Fields:"
"""The beginning of the line that names the fields. Blanks separate the names, independent of the
delimiter."""


class W3c(Csv):
    """Delimited text with header lines that begin with `#`, anywhere in a file; names apply from there on."""

    def __init__(self, layout: RecordFormat) -> None:
        super().__init__(layout)
        self.awaits_header = False
        self.skipped, self.comment = 0, ""
        self._all_names: set[str] = set()

    @property
    def columns(self) -> frozenset[str]:
        """Every name in a header."""
        return frozenset(self._all_names)

    def header(self, text: pa.Array) -> int:
        """Read the header lines at the beginning, and return their number."""
        return read_marked(text, self._directive)

    def _directive(self, line: str) -> None:
        if line.startswith(FIELDS):
            self.names = line.removeprefix(FIELDS).split()
            self._note_twice()
            self._all_names |= set(self.names)
