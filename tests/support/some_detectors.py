"""Detectors as an operator writes them. Tasks receive this module, which their machines do not have."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from transom.features.patterns.custom_detector import Record

FAILED, BROKEN = 401, 500


def entered(records: Sequence[Record]) -> Iterator[tuple[Record, Record]]:
    """Find every failure that is directly followed by a success."""
    for one, other in pairwise(records):
        if (one["status"], other["status"]) == (FAILED, 200):
            yield one, other


def fragile(records: Sequence[Record]) -> Iterable[tuple[Record, ...]]:
    """Find the same, without handling every input."""
    for record in records:
        if record["status"] == BROKEN:
            raise LookupError(f"no such page\nat {record.time:%H:%M}")
    return list(entered(records))
