"""Details of a run for the table `runs`: partitions written, files read, findings changed.

The promise does not cover these records: they show how the rows became what they are, and no run reads them.
"""

from bisect import insort
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from typing import Literal

from transom.core.intervals import HOUR, UNKNOWN_HOUR
from transom.core.partitions import PartitionKey, PartitionState

DETAILS = ("written", "files", "findings")
"""The columns of `runs` that grow with the work of a run. They are deleted after `KEPT_DAYS`."""
KEPT_DAYS = 366
"""The minimum time for which the details of a run are kept, in days."""
MAX_FINDINGS = 200
"""The maximum number of findings that a run lists."""
Change = Literal["new", "updated", "withdrawn"]
CHANGES: tuple[Change, ...] = ("withdrawn", "updated", "new")
"""The changes, in the order in which a run lists them."""


@dataclass(frozen=True)
class Written:
    """Neighbouring hours of a table that a run wrote with the same outcome.

    Attributes:
        status: published, incomplete, quarantined, blocked or deleted.
        changed: whether the published rows differ from those before.
        start: the first hour.
        end: the end of the last hour.
        rows: the number of published rows.
    """

    block: str
    table: str
    status: str
    changed: bool
    start: datetime
    end: datetime
    rows: int


@dataclass(frozen=True)
class FileRead:
    """A file that a run read.

    Attributes:
        path: its path.
        hour: the hour in its name, else of its first event.
        start: the first hour of its content; None if no hour is known.
        end: the end of the last one.
        status: as in `files`.
        replaced: whether another content of the path had been read before.
        lines: the number of its lines; None if it is not known.
        records: the number of lines that became records, duplicates included.
        rejected: the number of rejected lines.
        late: whether this run was the first to read it, though an earlier run had its hour. The time of a
            file does not decide: a copy may keep it, and all files of an old log may be copied today.
    """

    path: str
    hour: datetime
    start: datetime | None
    end: datetime | None
    status: str
    replaced: bool
    lines: int | None
    records: int | None
    rejected: int | None
    late: bool

    def touches(self, hour: datetime) -> bool:
        """Return whether the file is of an hour, or has events of hours around it."""
        inside = self.start is not None and self.end is not None and self.start <= hour < self.end
        return inside or self.hour == hour


class FindingChanges:
    """The findings that the commits of a run make new, update or withdraw: their number, and the first ones.

    A finding that two commits change counts twice. A run has one commit for each kind of finding, unless
    other runs change their rows meanwhile.

    Attributes:
        counts: the number of findings with each change.
    """

    def __init__(self) -> None:
        self.counts = Counter[Change]()
        self._first: dict[Change, list[tuple[str, str, str]]] = {change: [] for change in CHANGES}

    def record(self, change: Change, finding_id: str, severity: str, title: str) -> None:
        """Record the change of a finding.

        Args:
            change: the change.
            finding_id: its id.
            severity: its severity. Unless it is among the first `MAX_FINDINGS` by id, it may be empty.
            title: its title. The same.
        """
        self.counts[change] += 1
        self._list(change, (finding_id, severity, title))

    def add(self, other: "FindingChanges") -> None:
        """Add the changes of a commit."""
        self.counts += other.counts
        for change, listed in other._first.items():
            for finding in listed:
                self._list(change, finding)

    def _list(self, change: Change, finding: tuple[str, str, str]) -> None:
        insort(self._first[change], finding)
        del self._first[change][MAX_FINDINGS:]

    @property
    def rows(self) -> list[dict[str, object]]:
        """The first changes by id, the withdrawn findings first, as in `runs`."""
        rows: list[dict[str, object]] = [
            {"finding_id": finding_id, "change": change, "severity": severity, "title": title}
            for change, listed in self._first.items()
            for finding_id, severity, title in listed
        ]
        return rows[:MAX_FINDINGS]


def outcome_of(before: PartitionState | None, after: PartitionState | None) -> tuple[str, bool, int]:
    """Return the outcome of a partition as `status`, `changed` and `rows` of `Written`.

    Args:
        before: its state when the run was planned; None if there was none.
        after: its new state; None if it was deleted.
    """
    if after is None:
        return "deleted", True, 0
    if after.status != "published":
        return after.status, False, 0
    known = None if before is None else before.state_before_claim()
    changed = known is None or known.status != "published" or known.digest != after.digest
    return "published" if after.complete else "incomplete", changed, after.rows


def written_ranges(outcomes: Mapping[PartitionKey, tuple[str, bool, int]]) -> list[Written]:
    """Return the outcomes of partitions, by intervals of neighbouring hours with the same outcome."""
    ranges: list[Written] = []
    keys = sorted(key for key in outcomes if key.hour != UNKNOWN_HOUR)
    for (_, block, table), of_table in groupby(keys, attrgetter("series")):
        for key in of_table:
            status, changed, rows = outcomes[key]
            start, last = key.hour, ranges[-1] if ranges else None
            if last and (last.block, last.table, last.status, last.changed, last.end) == (
                block, table, status, changed, start,
            ):  # fmt: skip
                start, rows = last.start, rows + last.rows
                ranges.pop()
            ranges.append(Written(block, table, status, changed, start, key.hour + HOUR, rows))
    return ranges


def as_rows(details: Iterable[Written | FileRead]) -> list[dict[str, object]]:
    """Return details as values of `runs`."""
    return list(map(asdict, details))
