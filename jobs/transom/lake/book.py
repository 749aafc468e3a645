"""What the ledger says of each node: the small plain values that plans, claims and gates speak in."""

import hashlib
import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from itertools import accumulate
from typing import Literal

from transom.lake.cause import Cause, read

Status = Literal["writing", "published", "quarantined", "blocked", "expired", "damaged"]
STANDS: tuple[Status, ...] = ("published", "expired")
"""What others may rely on: an expired node's rows are gone, and known by their digest."""
NOT_PUBLISHED: tuple[Status, ...] = ("quarantined", "blocked", "expired", "damaged")
EMPTY_DIGEST = "0:0"
UNMADE = "unmade"
"""The digest of what is due and has not been computed: like no other."""
BITS = 128
FILLER = "filler"
"""The stage, in a book, of what is read that is not the stream's own (`transom.lake.fillers`)."""
Series = tuple[str, str, str]
"""A stage, a block and its table."""
FIRST = "ingest"
"""The stage that all others follow: whoever asks it for an hour asks them, too, and nobody else does."""
STOOD_AT, STOOD_BY, STOOD_AS, STOOD_FOR = "stood_at", "stood_by", "stood_as", "stood_for"
STOOD_CAUSES = "stood_causes"
"""What a claim notes of the rows that it is about to replace: their version of the table, their run, and
status, cause and causes of their node, where it was not simply published."""
INHERITED = "incomplete hours, first"
"""How it is put in words that an hour is incomplete only as what it is computed from is."""

CARRIED = f"earlier {INHERITED}"
"""How that is put of earlier hours of its own table, which hours behind it are no less complete for."""

WITHHELD_FILE = "withheld, the finding of"
"""How it is put in words that an hour lacks what a file holds that is withheld; its hour follows."""


@dataclass(frozen=True, order=True)
class Node:
    """One table of one block of one stage, in one hour."""

    stage: str
    block: str
    table: str
    hour: datetime

    def __str__(self) -> str:
        """As the cause of a blocked node names it."""
        return f"{self.stage} {self.block} {self.hour:%Y-%m-%dT%H:%M}"

    @property
    def key(self) -> str:
        """As a cause says which node it is about."""
        return json.dumps([self.stage, self.block, self.table, self.hour.isoformat()])


@dataclass(frozen=True)
class Entry:
    """What the ledger says of a node.

    Attributes:
        complete: False where something is missing: a file, an hour that this one is computed from.
        digest: of the rows that stand in the table (`transom.lake.digest`).
        inputs: a hash for each thing the rows were computed from; None while nothing is known. Of a node
            that is being written, of what it held, and where that stands.
        rows: how many stand. Of a damaged node 0 where they cannot be read or are gone; its digest is that
            of the rows that it has to have.
        cause: in words, for people, why the node is quarantined, blocked, expired, damaged or incomplete.
        causes: the same as data, of a node that is quarantined, blocked or incomplete; None where code has
            written it that knew words only.
        asked: False where nobody asked for the hour: files of other hours have put rows in it.
    """

    status: Status
    run_id: str
    complete: bool = True
    digest: str = EMPTY_DIGEST
    inputs: Mapping[str, str] | None = None
    rows: int = 0
    cause: str | None = None
    asked: bool = True
    causes: tuple[Cause, ...] | None = ()

    @property
    def stood_at(self) -> int | None:
        """The table's version in which the rows stand that a run has begun to replace."""
        version = (self.inputs or {}).get(STOOD_AT)
        return None if version is None else int(version)

    @property
    def stood_by(self) -> str:
        """The run whose rows stand, or stood until a run began to replace them."""
        return (self.inputs or {}).get(STOOD_BY, self.run_id)

    @property
    def damaged(self) -> bool:
        """Whether its rows are marked as damaged: nothing may read them, and the next run in whose reach the
        hour lies makes them again. While that run writes them, too."""
        return self.before().status == "damaged"

    @property
    def lacks(self) -> bool:
        """Whether something is missing that earlier hours of its own table do not account for."""
        carried = bool(self.causes) and all(cause.kind == "earlier" for cause in self.causes or ())
        return not self.complete and not carried

    @property
    def in_old_form(self) -> bool:
        """Whether it is not known for what something is missing, as only words say it."""
        return not self.complete and self.causes is None

    def before(self) -> "Entry":
        """This entry as it was before a run began to replace what it holds."""
        if self.status != "writing":
            return self
        inputs = dict(self.inputs or {})
        status, cause, causes = (inputs.pop(note, None) for note in (STOOD_AS, STOOD_FOR, STOOD_CAUSES))
        inputs = {name: value for name, value in inputs.items() if name not in (STOOD_AT, STOOD_BY)}
        stood: Status = next((known for known in NOT_PUBLISHED if known == status), "published")
        known = read(causes) if causes is not None else None if cause else ()
        return replace(
            self, status=stood, run_id=self.stood_by, inputs=inputs or None, cause=cause, causes=known
        )


@dataclass(frozen=True)
class Verdict:
    """What a check saw in one hour of a table.

    Attributes:
        accepted: who lets a failed check pass, and why; None of others.
    """

    node: Node
    check: str
    severity: Literal["error", "incomplete", "warning"]
    observed: float | None
    expected: str
    success: bool
    column: str | None = None
    subject: str | None = None
    sample: tuple[str, ...] = ()
    accepted: str | None = None

    def with_sample(self, sample: Iterable[str]) -> "Verdict":
        """This verdict with some of the rows at fault."""
        return replace(self, sample=tuple(sample))


def content(node: Node, entry: Entry | None, own: bool = False) -> int:
    """A hash of what an hour of a table is to those that read it; 0 where that is nothing, and nothing is
    missing.

    Args:
        entry: None where the hour has not been made.
        own: whether later hours of the same table read it; these do not mind what it lacks itself only for
            hours before.
    """
    digest = UNMADE if entry is None else entry.digest
    complete = entry is None or not (entry.lacks if own else not entry.complete)
    if digest == EMPTY_DIGEST and complete:
        return 0
    # What is withheld is not what it was when it was published without something.
    withheld = entry is not None and entry.status in ("quarantined", "blocked") and not complete
    fate = entry.status if entry is not None and withheld else complete
    said = f"{node.stage} {node.block} {node.table} {node.hour.timestamp():.0f} {digest} {fate}"
    return int.from_bytes(hashlib.sha256(said.encode()).digest()[: BITS // 8])


class Book(Mapping[Node, Entry]):
    """The ledger's nodes as they stood at one version.

    Args:
        fillers: hours of what is not in the ledger and is read beside it: each can be asked for, and none is
            among the nodes that the book goes through.
    """

    def __init__(
        self, entries: Mapping[Node, Entry], fillers: Mapping[Series, Mapping[datetime, Entry]] | None = None
    ) -> None:
        self._entries = dict(entries)
        self._fillers = dict(fillers or {})

    def __getitem__(self, node: Node) -> Entry:
        if node.stage == FILLER:
            return self._fillers[node.stage, node.block, node.table][node.hour]
        return self._entries[node]

    def __iter__(self) -> Iterator[Node]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    @cached_property
    def _by_series(self) -> dict[tuple[str, str, str], dict[datetime, Entry]]:
        series: dict[tuple[str, str, str], dict[datetime, Entry]] = {}
        for node, entry in self._entries.items():
            series.setdefault((node.stage, node.block, node.table), {})[node.hour] = entry
        return series

    def series(self, stage: str, block: str, table: str) -> Mapping[datetime, Entry]:
        """The hours of one block's table."""
        series = (stage, block, table)
        return self._fillers.get(series) or self._by_series.get(series, {})

    @cached_property
    def _hours(self) -> dict[str, set[datetime]]:
        hours: dict[str, set[datetime]] = {}
        for node, entry in self._entries.items():
            if entry.asked:
                hours.setdefault(node.stage, set()).add(node.hour)
        return hours

    def hours(self, stage: str) -> Set[datetime]:
        """Every hour of a stage that somebody asked for."""
        return self._hours.get(stage, set())

    @property
    def due(self) -> Set[datetime]:
        """Every hour that each stage has to have: that somebody asked the first one for, and no other.

        A gate that fails keeps the stages behind it from all hours of a run, good ones among them: these hold
        events, and count as empty nowhere. An hour that the first stage was not asked for is empty in all,
        though files of other hours may have put rows in it.
        """
        return self.hours(FIRST)

    def due_of(self, stage: str, block: str, table: str) -> Set[datetime]:
        """The hours that a block's table has to have; of what is not in the ledger, those that it has."""
        return self.series(stage, block, table).keys() if stage == FILLER else self.due

    def contents(
        self, stage: str, block: str, table: str, first: datetime, last: datetime, own: bool = False
    ) -> int:
        """What stands in some hours of one block's table that are due, both ends among them, as a number.

        It is the sum of a hash for each hour that is not empty: a month takes no longer than an hour.

        Args:
            own: whether it is later hours of the same table that read them.
        """
        series = (stage, block, table, own)
        if series not in self._contents:
            self._contents[series] = self._summed(*series)
        hours, sums = self._contents[series]
        found: int = (sums[bisect_right(hours, last)] - sums[bisect_left(hours, first)]) % 2**BITS
        return found

    @cached_property
    def _contents(self) -> dict[tuple[str, str, str, bool], tuple[list[datetime], list[int]]]:
        return {}

    def _summed(self, stage: str, block: str, table: str, own: bool) -> tuple[list[datetime], list[int]]:
        series = self.series(stage, block, table)
        hours = sorted(self.due_of(stage, block, table))
        hashes = (content(Node(stage, block, table, hour), series.get(hour), own) for hour in hours)
        return hours, list(accumulate(hashes, initial=0))

    def incomplete(self, stage: str, block: str, table: str) -> list[datetime]:
        """The hours of one block's table that are due and in which something is missing, in order."""
        series = (stage, block, table)
        if series not in self._incomplete:
            of_table, due = self.series(*series).items(), self.due_of(*series)
            lacking = (hour for hour, entry in of_table if not entry.complete and hour in due)
            self._incomplete[series] = sorted(lacking)
        return self._incomplete[series]

    @cached_property
    def _incomplete(self) -> dict[tuple[str, str, str], list[datetime]]:
        return {}

    def updated(self, entries: Mapping[Node, Entry | None]) -> "Book":
        """This book with some nodes replaced, and those that are None forgotten."""
        after = {**self._entries, **entries}
        return Book({node: entry for node, entry in after.items() if entry is not None}, self._fillers)

    def beside(self, fillers: Mapping[Series, Mapping[datetime, Entry]]) -> "Book":
        """This book with the hours of what is not in the ledger."""
        return Book(self._entries, fillers) if fillers else self
