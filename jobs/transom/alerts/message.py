"""A message for a notifier, as plain data."""

from collections import Counter
from collections.abc import Sequence
from html import escape
from typing import Any

from transom.alerts.delivery import Delivery, cut
from transom.core.terminal import counted
from transom.findings.from_ledger import SEVERITIES
from transom.findings.text import describe_subject

LISTED = 20
"""The maximum number of findings in the text of a message."""
IN_DATA = 100
"""The maximum number of findings in its data."""
MAX_TITLE, MAX_REASON = 500, 700
"""The maximum number of characters of the title of a message or finding, and of a reason. Receivers refuse
longer messages: PagerDuty a title of more than 1,024 characters, Slack a text of more than 40,000."""


def message_of(rows: Sequence[Delivery]) -> dict[str, Any]:
    """Return the message that carries some rows. All values are JSON, and no text has control characters.

    Args:
        rows: all rows with the same message.
    """
    rows = sorted(rows, key=lambda row: (SEVERITIES.index(row.severity), row.last_hour, row.finding_id))
    first = rows[0]
    state = "summary" if first.summary else first.state
    lines = [_line(row) for row in rows[:LISTED]]
    if len(rows) > LISTED:
        lines.append(f"and {counted(len(rows) - LISTED, 'more finding')} in the table findings")
    title = cut(lines[0] if len(rows) == 1 else _title(rows), MAX_TITLE)
    text = "\n".join(lines if len(rows) == 1 else [title, *lines])
    return {
        "message": first.message,
        "recipient": first.recipient,
        "stream": first.stream,
        "state": state,
        "severity": first.severity,
        "title": title,
        "text": text,
        "html_title": escape(title, quote=False),
        "html": escape(text, quote=False),
        "number": len(rows),
        "finding_id": first.finding_id,
        "findings": list(map(_data, rows[:IN_DATA])),
    }


def _line(row: Delivery) -> str:
    about = describe_subject(row.title, row.key, row.item, row.start_time, row.end_time)
    text = cut(f"{row.state}: {row.severity} {row.kind}: {row.title}{about}", MAX_TITLE)
    return f"{text}; {cut(row.reason, MAX_REASON)}" if row.reason else text


def _title(rows: Sequence[Delivery]) -> str:
    first = rows[0]
    number = counted(len(rows), "finding")
    if first.summary:
        counts = Counter((row.state, row.severity, row.kind) for row in rows)
        parts = ", ".join(f"{count} {' '.join(group)}" for group, count in counts.most_common(10))
        return f"{first.stream}: {number} in one summary: {parts}"
    return f"{first.stream}: {number} of {first.key or first.item} {first.state}, the worst {first.severity}"


def _data(row: Delivery) -> dict[str, Any]:
    times = {name: getattr(row, name) for name in ("start_time", "end_time", "first_hour", "last_hour")}
    texts = ("finding_id", "state", "severity", "kind", "stage", "block", "key", "item", "title", "reason")
    return {
        **{name: getattr(row, name) for name in (*texts, "sequence", "ongoing")},
        **{name: None if time is None else f"{time.isoformat()}" for name, time in times.items()},
    }
