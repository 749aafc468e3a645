"""All about one finding: evidence, raw lines, and what else is known about its key."""

from collections.abc import Mapping
from dataclasses import dataclass

from transom.charts.section import Section
from transom.findings.from_ledger import Finding
from transom.views.findings import Withdrawal
from transom.views.open_stream import OpenStream

RAW_LINES = 20
"""The maximum number of raw lines of a finding."""
OTHERS = 20
"""The maximum number of other findings of the same key."""


@dataclass(frozen=True)
class FindingDetail:
    """A finding with all that belongs to it.

    Attributes:
        finding: the finding.
        withdrawal: why it was withdrawn; None if it is true.
        key: the text of each column of its key or item; empty if it is about none.
        raw: the raw lines behind it, or the failing rows of its check; without a table if there are none.
        others: other findings of its key, the worst first.
        more_others: how many of them are not in `others`.
    """

    finding: Finding
    withdrawal: Withdrawal | None
    key: Mapping[str, str]
    raw: Section
    others: list[Finding]
    more_others: int


def finding_of(opened: OpenStream, finding_id: str) -> FindingDetail | None:
    """Return a finding with all that belongs to it; None if there is no such finding."""
    raise NotImplementedError
