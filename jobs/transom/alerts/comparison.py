"""Which messages are due: the findings of now compared with the last messages about them."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from transom.alerts.delivery import GONE, Delivery, State, content_hash
from transom.findings.from_ledger import KINDS, SEVERITIES, Finding
from transom.findings.text import short_hash
from transom.spec.notify import PAGE, RecipientSpec


@dataclass(frozen=True)
class Recipient:
    """A recipient of messages.

    Attributes:
        name: its name.
        severities: the severities of the findings that are raised.
        kinds: the kinds of the findings that are raised; None for all.
        summary_after: how long before the last requested hour the findings of a summary ended; None if there
            are no summaries.
        at_most: the maximum number of messages of a run besides the summary; None if there is no limit.
    """

    name: str
    severities: frozenset[str] = frozenset(SEVERITIES)
    kinds: frozenset[str] | None = None
    summary_after: timedelta | None = None
    at_most: int | None = None

    @classmethod
    def of(cls, name: str, spec: RecipientSpec) -> "Recipient":
        """Return a recipient of a stream file."""
        chosen = spec.severity or SEVERITIES
        if spec.minimum is not None:
            chosen = SEVERITIES[: SEVERITIES.index(spec.minimum) + 1]
        kinds = frozenset(spec.kinds) or None
        return cls(name, frozenset(chosen), kinds, spec.summary_after, spec.at_most)

    def takes(self, finding: Finding) -> bool:
        """Return whether a finding is raised. Later messages about a raised one are always sent."""
        return finding.severity in self.severities and (self.kinds is None or finding.kind in self.kinds)


THE_PAGE = Recipient(PAGE)


def due(
    recipient: Recipient,
    present: Iterable[Finding],
    last: Mapping[str, Delivery],
    raising: Callable[[Finding], Delivery],
    is_silent: Callable[[Delivery], bool] = lambda delivery: False,
) -> Iterator[Delivery]:
    """Yield the messages about findings that are there: raised, updated and ended ones.

    What was silenced is sent when the silence has ended, if the finding still goes on.

    Args:
        recipient: the recipient.
        present: the findings.
        last: the last message about each finding to the recipient, by the id of the finding.
        raising: returns a finding as a first message.
        is_silent: returns whether a silence matches a message.
    """
    for finding in present:
        before = last.get(finding.finding_id)
        if before is None or before.hash == GONE:
            if recipient.takes(finding):
                new = raising(finding)
                yield new if before is None else before.following("raised", new)
        elif before.status == "silenced" and finding.ongoing and not is_silent(before):
            if not before.muted:
                yield before.following("updated", raising(finding))
            elif recipient.takes(finding):
                yield before.following("raised", raising(finding))
        elif before.hash != content_hash(finding):
            has_ended = before.ongoing and not finding.ongoing and finding.kind not in KINDS
            state: State = "ended" if has_ended else "updated"
            yield replace(before.following(state, raising(finding)), muted=before.muted)


def gone(before: Delivery, reason: str, run_id: str, now: datetime) -> Delivery:
    """Return the message about a finding that is no longer there.

    A finding from the ledger was true, and its cause is gone: it has ended. Any other is withdrawn.
    """
    state: State = "ended" if before.kind in KINDS else "withdrawn"
    return replace(
        before.following(state, before), hash=GONE, ongoing=False, reason=reason, status="sending",
        run_id=run_id, time=now, changed_at=now,
    )  # fmt: skip


def silenced(delivery: Delivery, is_silent: bool) -> Delivery:
    """Return a message with the status `silenced` if a silence holds it back.

    A withdrawal of a finding that was sent is always sent.

    Args:
        delivery: the message.
        is_silent: whether a silence matches it.
    """
    muted = is_silent if delivery.state == "raised" else delivery.muted
    if muted or (is_silent and delivery.state != "withdrawn"):
        return replace(delivery, status="silenced", muted=muted)
    return delivery


def old_before(recipient: Recipient, latest: datetime | None) -> datetime | None:
    """Return the time before which findings that ended are in a summary; None if there is none.

    Args:
        recipient: the recipient.
        latest: the last requested hour of the stream.
    """
    after = recipient.summary_after
    return None if after is None or latest is None else latest - after


def grouped(recipient: Recipient, rows: Sequence[Delivery], limit: datetime | None) -> list[Delivery]:
    """Return rows with the messages that carry them.

    Rows of the same state and key share a message. Findings of old hours are in the summary of the run, and
    so are all rows if there are too many messages.

    Args:
        recipient: the recipient.
        rows: the rows of a run that are to be sent.
        limit: the result of `old_before`.
    """
    is_old = [limit is not None and _end(row) < limit for row in rows]
    names = [_group(row) for row in rows]
    recent = Counter(name for name, old in zip(names, is_old, strict=True) if not old)
    if recipient.at_most is not None and len(recent) > recipient.at_most:
        is_old = [True] * len(rows)
    groups: dict[tuple[str, ...], list[Delivery]] = {}
    for row, name, old in zip(rows, names, is_old, strict=True):
        groups.setdefault(() if old else name, []).append(replace(row, summary=old))
    keys = [(key_of(group), group) for group in groups.values()]
    return [replace(row, message=key) for key, group in keys for row in group]


def _end(row: Delivery) -> datetime:
    # A file without an hour is as of now.
    return (
        max(row.last_hour, row.end_time)
        if row.end_time is not None
        else datetime.max.replace(tzinfo=row.time.tzinfo)
    )


def _group(row: Delivery) -> tuple[str, ...]:
    if row.key is not None:
        return row.state, "key", row.key
    return (row.state, "item", row.item) if row.item is not None else (row.state, "finding", row.finding_id)


def key_of(rows: Iterable[Delivery]) -> str:
    """Return the stable key of a message: a hash of its recipient, findings, states and contents."""
    return short_hash("\n".join(sorted(
        f"{row.recipient} {row.finding_id} {row.sequence} {row.state} {row.hash}" for row in rows
    )))  # fmt: skip
