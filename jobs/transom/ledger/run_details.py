"""Details of a run for the table `runs`: partitions written, files read, findings changed.

The promise does not cover these records: they show how the rows became what they are, and no run reads them.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
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


@dataclass(frozen=True)
class SeenFinding:
    """A finding before or after a run."""

    severity: str
    title: str
    content: object


class FindingChanges:
    """The findings that a run makes new, updates or withdraws.

    A finding may move from an hour to another one, which is an update. So the findings before the first
    commit are compared with those after the last one.
    """

    def __init__(self) -> None:
        self._before: dict[str, SeenFinding] = {}
        self._after: dict[str, SeenFinding] = {}

    def record(self, before: Mapping[str, SeenFinding], after: Mapping[str, SeenFinding]) -> None:
        """Record a commit that replaced some findings, by id, by others."""
        for finding_id in before.keys() - self._after.keys():
            self._before.setdefault(finding_id, before[finding_id])
        for finding_id in before:
            self._after.pop(finding_id, None)
        self._after |= after

    def _changes(self) -> Iterator[tuple[Change, str, SeenFinding]]:
        for finding_id in sorted(self._before.keys() | self._after.keys()):
            before, after = self._before.get(finding_id), self._after.get(finding_id)
            if after is None and before is not None:
                yield "withdrawn", finding_id, before
            elif after is not None and before is None:
                yield "new", finding_id, after
            elif after is not None and after != before:
                yield "updated", finding_id, after

    @property
    def rows(self) -> list[dict[str, object]]:
        """The first changes, the withdrawn findings first, as in `runs`."""
        order = ("withdrawn", "updated", "new")
        changes = sorted(self._changes(), key=lambda change: (order.index(change[0]), change[1]))
        return [
            {"finding_id": finding_id, "change": change, "severity": of.severity, "title": of.title}
            for change, finding_id, of in changes[:MAX_FINDINGS]
        ]

    @property
    def counts(self) -> dict[str, int]:
        """The number of findings with each change."""
        return dict(Counter(change for change, _, _ in self._changes()))


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
