"""A message about one finding to one recipient: a row of the table `deliveries`."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from typing import Any, Literal

from transom.core.terminal import escape_control_chars
from transom.findings.from_ledger import KINDS, Finding, Severity
from transom.findings.text import short_hash

State = Literal["raised", "updated", "ended", "withdrawn"]
Status = Literal["sending", "sent", "failed", "silenced"]
GONE = "gone"
"""The hash of a row whose finding is no longer in `findings`."""
MAX_TEXT = 1000
"""The maximum number of characters of a title, key or item in a message."""


@dataclass(frozen=True)
class Delivery:
    """A row of the table `deliveries`, whose description has all attributes."""

    stream: str
    recipient: str
    finding_id: str
    sequence: int
    state: State
    stage: str
    kind: str
    severity: Severity
    block: str | None
    key: str | None
    item: str | None
    title: str
    start_time: datetime | None
    end_time: datetime | None
    first_hour: datetime | None
    last_hour: datetime
    ongoing: bool
    hash: str
    status: Status
    run_id: str
    time: datetime
    changed_at: datetime
    muted: bool = False
    summary: bool = False
    message: str = ""
    reason: str | None = None
    files_version: int | None = None

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> "Delivery":
        """Return the delivery of a row of the table."""
        values = {name: row[name] for name in _COLUMNS}
        times = {name: time.astimezone(UTC) for name, time in values.items() if isinstance(time, datetime)}
        return cls(**values | times)

    @classmethod
    def raising(cls, recipient: str, finding: Finding, stream: str, run_id: str, now: datetime) -> "Delivery":
        """Return the first message about a finding to a recipient."""
        return cls(
            stream=stream,
            recipient=recipient,
            finding_id=finding.finding_id,
            sequence=1,
            state="raised",
            stage=finding.stage,
            kind=finding.kind,
            severity=finding.severity,
            block=finding.block,
            key=_short(finding.key),
            item=_short(finding.item),
            title=_short(finding.title) or "",
            start_time=finding.start_time,
            end_time=finding.end_time,
            first_hour=finding.first_hour,
            last_hour=finding.hour,
            ongoing=finding.ongoing,
            hash=content_hash(finding),
            status="sending",
            run_id=run_id,
            time=now,
            changed_at=now,
        )

    def following(self, state: State, latest: "Delivery") -> "Delivery":
        """Return the next message about the same finding, with the content of `latest`."""
        return replace(latest, state=state, sequence=self.sequence + 1)


_COLUMNS = tuple(field.name for field in fields(Delivery))


def content_hash(finding: Finding) -> str:
    """Return a hash of what counts as a change of a finding.

    The text, and the end of a finding that continues, do not: a long episode would be a message every hour.
    A finding from the ledger stays until its cause is gone; of it, only the severity counts.
    """
    content: list[object] = [finding.severity]
    if finding.kind not in KINDS:
        end = None if finding.ongoing or finding.end_time is None else finding.end_time.isoformat()
        content += [finding.ongoing, end]
    return short_hash(json.dumps(content))


def cut(text: str, limit: int) -> str:
    """Return a text with escaped control characters, and at most `limit` characters."""
    plain = escape_control_chars(text[: limit + 1])
    return plain if len(plain) <= limit else f"{plain[: limit - 1]}…"


def _short(text: str | None) -> str | None:
    return None if text is None else cut(text, MAX_TEXT)
