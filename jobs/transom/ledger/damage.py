"""What is damaged in a lake: the plain values of which `verify` speaks."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from transom.core.intervals import format_hours

Kind = Literal["missing", "unreadable", "different", "marked"]
"""Missing: a file or a table is not there. Unreadable: it is, and cannot be read. Different: the rows are not
those that the ledger has the digest of. Marked: found before, and not made again yet."""
LEDGER = "ledger"
"""The stage, in words, of the tables that belong to none: `ledger`, `checks`, `runs` and `findings`."""


@dataclass(frozen=True, order=True)
class Damage:
    """Something that is not as it was written.

    Attributes:
        block: None where it is about every block of the table.
        hours: none where it is about the whole table.
        file: below the table's folder; None where no single file is meant.
        detail: what is wrong, in words.
    """

    stage: str
    table: str
    block: str | None
    hours: tuple[datetime, ...]
    kind: Kind
    file: str | None
    detail: str

    def __str__(self) -> str:
        """One line: which table, which hours, and what is wrong with which file."""
        block = f" of {self.block}" if self.block not in (None, self.table) else ""
        where = f" {format_hours(self.hours)}" if self.hours else ""
        file = f"{self.file} " if self.file else ""
        return f"{self.kind}: {self.stage}, {self.table}{block}{where}: {file}{self.detail}"
