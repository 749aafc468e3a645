"""Rows of a result table as findings: brought up to date hour by hour, whoever has changed them. No Spark.

What an hour of a block is to say follows from the table's rows and the stream's words. Each finding carries a
hash of what it is made of, so that any run sees which hours say something else than what stands, and writes
these alone: a run that has no other work mends what a killed one has left.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeVar

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError

from transom.findings.store import NAME
from transom.ledger.ledger import Ledger
from transom.ledger.state import Book
from transom.storage.tables import ATTEMPTS, Table, in_hours_sql

MOST = 250_000
"""Rows of a table that one commit is made of, where an hour alone has not more."""

M = TypeVar("M")
At = tuple[str, datetime]
"""An hour of a block."""


@dataclass(frozen=True)
class Telling:
    """What an hour of a block is to say.

    Attributes:
        mark: a hash of it, None where that is nothing.
        rows: of how many rows of the table it is made.
    """

    mark: str | None
    rows: int = 0


@dataclass(frozen=True)
class Standing:
    """What findings are made of.

    Attributes:
        book: the ledger of the stage.
        rows: the table as it stood then; None where there is none.
        findings: what has been told.
    """

    book: Book
    rows: DeltaTable | None
    findings: DeltaTable


class Mirror(Protocol):
    """The findings of one kind, of the rows of one table."""

    stage: str
    table: str
    kind: str

    def differing(self, now: Standing) -> Mapping[At, Telling]:
        """The hours that say something else than what stands, in order."""

    def made(self, now: Standing, hours: Mapping[At, str]) -> Iterable[pa.Table]:
        """What some hours are to say, by their marks."""


def own(mirror: Mirror) -> str:
    """A condition on findings that they are of a mirror."""
    return f"stage = '{mirror.stage}' AND kind = '{mirror.kind}'"


def publish(ledger: Ledger, mirror: Mirror) -> bool:
    """Brings findings up to date with the rows that they are made of.

    A commit that meets another one is made again from the start.

    Returns:
        Whether something was written.
    """
    table = Table.load(NAME)
    ledger.create(table)
    written = False
    refused = 0
    done: set[tuple[At, str | None]] = set()
    while refused < ATTEMPTS:
        now = _consistent(ledger, mirror)
        found = mirror.differing(now)
        differing = {at: telling for at, telling in found.items() if (at, telling.mark) not in done}
        if not differing:
            return written
        some = _first(differing)
        try:
            _replace(now, table, mirror, some)
            written = True
            done.update(some.items())
        except CommitFailedError:
            refused += 1
    raise CommitFailedError(
        f"{mirror.stage}: findings were written by others at every one of {ATTEMPTS} attempts"
    )


def _consistent(ledger: Ledger, mirror: Mirror) -> Standing:
    """The findings, then a ledger, and the table as it stood then: a change of the rows lies between a claim
    and a publication, and one of them would show."""
    findings = ledger.open(NAME)
    while True:
        book = ledger.book([mirror.stage])
        uri = f"{ledger.root}/{mirror.table}"
        rows = DeltaTable(uri) if DeltaTable.is_deltatable(uri) else None
        if ledger.book([mirror.stage]) is book:
            return Standing(book, rows, findings)


def _first(differing: Mapping[At, Telling]) -> dict[At, str | None]:
    """As many of some hours as one commit takes, at least one."""
    taken: dict[At, str | None] = {}
    total = 0
    for at, telling in differing.items():
        total += telling.rows
        if taken and total > MOST:
            break
        taken[at] = telling.mark
    return taken


def _replace(now: Standing, table: Table, mirror: Mirror, hours: Mapping[At, str | None]) -> None:
    schema = table.arrow_schema()
    told = {at: mark for at, mark in hours.items() if mark is not None}
    made = [found.cast(schema) for found in mirror.made(now, told)]
    where = " OR ".join(
        f"(block = '{block}' AND {in_hours_sql(of_block)})" for block, of_block in by_block(hours)
    )
    write_deltalake(
        now.findings,
        pa.concat_tables([schema.empty_table(), *made]),
        mode="overwrite",
        predicate=f"{own(mirror)} AND ({where})",
        # Only what was made of the rows as they are after this version may follow it.
        commit_properties=CommitProperties(max_commit_retries=0),
    )


def by_block(hours: Mapping[At, M]) -> Iterator[tuple[str, dict[datetime, M]]]:
    """Hours with what is said of them, by their blocks."""
    blocks: dict[str, dict[datetime, M]] = {}
    for (block, hour), mark in hours.items():
        blocks.setdefault(block, {})[hour] = mark
    yield from blocks.items()
