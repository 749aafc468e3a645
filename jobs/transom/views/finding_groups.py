"""Findings of the same key or item together, so that a list is one of subjects."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Generic, TypeVar

from transom.findings.from_ledger import KINDS, Finding

T = TypeVar("T")
_EARLIEST = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True)
class FindingGroup(Generic[T]):
    """The findings of a block and of one key or item, or of none, on one page.

    Attributes:
        first: the finding that is shown: one that is ongoing, else the last one.
        others: the others, the last one first.
    """

    first: T
    others: list[T]


def grouped(
    rows: Iterable[T], finding: Callable[[T], Finding], state: Callable[[T], object]
) -> list[FindingGroup[T]]:
    """Return findings by kind, block, severity, key or item, and state, in the order of the first of each.

    A finding from the ledger is a group.

    Args:
        rows: findings, or what has one.
        finding: returns the finding of a row.
        state: returns what findings of a group have in common, such as that they are withdrawn.
    """
    groups: dict[object, list[T]] = {}
    for row in rows:
        of = finding(row)
        same = (state(row), of.kind, of.stage, of.block, of.severity, of.key, of.item)
        groups.setdefault(of.finding_id if of.kind in KINDS else same, []).append(row)

    def place(row: T) -> tuple[bool, datetime]:
        return finding(row).ongoing, finding(row).end_time or _EARLIEST

    ordered = (sorted(group, key=place, reverse=True) for group in groups.values())
    return [FindingGroup(group[0], group[1:]) for group in ordered]
