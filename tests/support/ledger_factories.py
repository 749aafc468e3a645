"""A ledger of a few hours, and the observed values of its checks."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from transom.core.intervals import Interval
from transom.core.partitions import CheckResult, PartitionKey, PartitionState
from transom.core.reasons import Reason, format_reasons
from transom.findings.from_ledger import Finding, from_ledger
from transom.ledger.snapshot import LedgerSnapshot

HOUR = timedelta(hours=1)
DAY = datetime(2015, 5, 17, tzinfo=UTC)
GOOD = PartitionState("published", "a")
WITHHELD = PartitionState("quarantined", "a", complete=False, reason="checks say so")


def lacking(*causes: Reason) -> PartitionState:
    """Return an incomplete hour."""
    return PartitionState("published", "a", complete=False, reason=format_reasons(causes), reasons=causes)


def waiting(cause: Reason | None) -> PartitionState:
    """Return an hour that waits for another one."""
    assert cause is not None
    return PartitionState("blocked", "b", complete=False, reason=cause.text, reasons=(cause,))


PARTIAL = lacking(Reason("check", "files_expected", "files_expected"))


def at(number: int) -> datetime:
    return DAY + number * HOUR


def between(start: int, end: int) -> Interval:
    return Interval(at(start), at(end))


def node(number: int, block: str = "events", stage: str = "ingest", of: str = "events") -> PartitionKey:
    return PartitionKey(stage, block, of, at(number))


def snapshot(
    entries: Mapping[int, PartitionState], block: str = "events", stage: str = "ingest"
) -> LedgerSnapshot:
    return LedgerSnapshot({node(number, block, stage): entry for number, entry in entries.items()})


def junk(number: int, name: str = "") -> CheckResult:
    """Return the failed check of a file with too many rejected lines."""
    path = f"landing/{number:02}{name}.log"
    rows = (f"line {number}: no_match: junk",)
    return CheckResult(
        node(number), "rejected_share", "error", 1 / 3, "at most 0.05", False, file=path, failing_rows=rows
    )


def files(number: int, observed: int, expected: int = 1) -> CheckResult:
    """Return a check of the number of files."""
    required = f"at least {expected}"
    return CheckResult(node(number), "files_expected", "incomplete", observed, required, observed >= expected)


def as_lines(result: Iterable[Finding]) -> list[str]:
    return [str(finding) for finding in result]


def of_ingest(
    snapshot: LedgerSnapshot, failures: Sequence[CheckResult] = (), stale: Sequence[PartitionKey] = ()
) -> list[Finding]:
    return from_ledger("web", "ingest", snapshot, failures, stale)
