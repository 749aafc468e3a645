"""Damage in a lake, as `verify` reports it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from transom.core.intervals import format_hours

Kind = Literal["missing", "unreadable", "different", "marked"]
"""Missing: a file or a table does not exist. Unreadable: it exists and cannot be read. Different: the rows do
not have the digest of the ledger. Marked: an earlier search found it; no run has computed it again yet."""
LEDGER = "ledger"
"""The stage, in messages, of tables without one: `ledger`, `checks`, `runs` and `findings`."""


@dataclass(frozen=True, order=True)
class Damage:
    """One damaged file, table or range of hours.

    Attributes:
        stage: the stage, or `LEDGER`.
        table: the name of the table.
        block: the block; None for all blocks of the table.
        hours: the hours; empty for the whole table.
        kind: the kind of damage.
        file: the path below the table's folder; None if it is not about a single file.
        detail: what is wrong, as text.
    """

    stage: str
    table: str
    block: str | None
    hours: tuple[datetime, ...]
    kind: Kind
    file: str | None
    detail: str

    def __str__(self) -> str:
        """Return one line: the table, the hours, the file and what is wrong."""
        block = f" of {self.block}" if self.block not in (None, self.table) else ""
        hours = f" {format_hours(self.hours)}" if self.hours else ""
        file = f"{self.file} " if self.file else ""
        return f"{self.kind}: {self.stage}, {self.table}{block}{hours}: {file}{self.detail}"
