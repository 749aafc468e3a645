"""W3C's extended log format, which IIS and others write: delimited, with lines that describe what follows."""

import pyarrow as pa

from transom.formats.delimited import Csv, read_marked
from transom.formats.record_format import RecordFormat

FIELDS = "#Fields:"
"""How the line begins that names the fields, with blanks between the names whatever stands between values."""


class W3c(Csv):
    """Delimited text whose header lines begin with `#`, anywhere in a file; names hold from their line on."""

    def __init__(self, layout: RecordFormat) -> None:
        super().__init__(layout)
        self.awaits_header = False
        self.skipped, self.comment = 0, ""
        self._seen: set[str] = set()

    @property
    def columns(self) -> frozenset[str]:
        """Every name that a header gave."""
        return frozenset(self._seen)

    def header(self, text: pa.Array) -> int:
        """Reads the header lines that these lines begin with."""
        return read_marked(text, self._directive)

    def _directive(self, line: str) -> None:
        if line.startswith(FIELDS):
            self.names = line.removeprefix(FIELDS).split()
            self._note_twice()
            self._seen |= set(self.names)
