"""Send what is due to a recipient: at least once, and once if no run is killed and notifiers answer in time.

The rows of due messages are added with the status `sending` in one commit. If two runs want to send the same
message, one commit fails, and its run reads again. Then each message is sent, and recorded as `sent`. A run
that is killed in between leaves `sending`. These messages are sent again with the same key: by another try
of the same run at once, by another run after `LEASE`.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pkgutil import resolve_name

from deltalake import DeltaTable

from transom.alerts import store
from transom.alerts.attempts import Attempts, Send
from transom.alerts.causes import files_version, reasons
from transom.alerts.comparison import THE_PAGE, Recipient, due, gone, grouped, old_before, silenced
from transom.alerts.delivery import Delivery, Status
from transom.alerts.message import message_of
from transom.alerts.silences import is_silent, silent_sql
from transom.core.intervals import HOUR, Interval, hour_of
from transom.core.partitions import READABLE, SOURCE_STAGE
from transom.findings.from_ledger import KINDS, Finding, from_ledger
from transom.findings.source import FindingSource
from transom.findings.store import NAME as FINDINGS
from transom.findings.sync import sync_table_findings
from transom.ledger.ledger import Ledger
from transom.ledger.snapshot import LedgerSnapshot
from transom.spec.stream import Stream
from transom.storage.tables import ATTEMPTS, retry

LEASE = timedelta(minutes=15)
"""After this time without a record, the messages that another run is sending are sent again. A run sends for
`BUDGET`, and waits `attempts.LIMIT` for its last message."""
BUDGET = timedelta(minutes=10)
"""How long a run sends. The rest stays for the next run."""
ROUND = timedelta(minutes=2)
"""How long a run sends to one recipient before the others have their turn."""


@dataclass
class Result:
    """The work of a run for a recipient.

    Attributes:
        sent: the number of messages that were sent; for the page, of rows that were recorded.
        silenced: the number of rows that silences hold back.
        pending: the number of messages that are sent again, by this run or a later one.
        errors: the errors of the notifier, one for each attempt that failed.
    """

    sent: int = 0
    silenced: int = 0
    pending: int = 0
    errors: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        """Return the numbers that are not zero."""
        numbers = {"sent": self.sent, "silenced": self.silenced, "pending": self.pending}
        return ", ".join(f"{number} {name}" for name, number in numbers.items() if number) or "nothing due"

    def add(self, again: "Result") -> None:
        """Add the result of another delivery of the same run."""
        self.sent += again.sent
        self.silenced += again.silenced
        self.pending = again.pending
        self.errors += again.errors


def _now() -> datetime:
    return datetime.now(UTC)


class Courier:
    """Compares the findings of a stream with the messages about them, and sends what is due.

    Args:
        ledger: the ledger of the stream, with its tables.
        stream: the stream.
        run_id: the run; another try of it has the same.
        is_last: whether no other run is about to follow, as of a backfill. Otherwise, findings of old hours
            wait for the last one, so that there is one summary of them.
        now: returns the current time.
        attempts: the attempts of the run to send messages.
        sync: brings the findings of a source up to date with its rows.
    """

    def __init__(
        self,
        ledger: Ledger,
        stream: Stream,
        run_id: str,
        is_last: bool = True,
        now: Callable[[], datetime] = _now,
        attempts: Attempts | None = None,
        sync: Callable[[Ledger, Stream, FindingSource], bool] = sync_table_findings,
    ) -> None:
        self._ledger, self._stream, self._run_id, self._is_last = ledger, stream, run_id, is_last
        self._now, self._sync = now, sync
        self._attempts = attempts or Attempts()
        self._end = now() + BUDGET
        store.create(ledger)

    def deliver(self, recipient: Recipient, send: Send | None = None) -> Result:
        """Record what is due to a recipient, and try to send each message once.

        Args:
            recipient: the recipient.
            send: sends a message. Without it, messages are only recorded.

        Raises:
            CommitFailedError: every attempt conflicted with another commit.
        """
        result = Result()
        while rows := retry(partial(self._claim, recipient, send is not None)):
            silent = sum(row.status == "silenced" for row in rows)
            result.silenced += silent
            if send is not None:
                self._send(recipient, [row for row in rows if row.status == "sending"], send, result)
                break
            result.sent += len(rows) - silent
        store.compact(self._ledger, recipient.name)
        return result

    def has_unsent(self, recipient: Recipient) -> bool:
        """Return whether earlier messages to a recipient are not sent, as it may be down."""
        return bool(store.unsent(self._ledger.open(store.NAME), recipient.name))

    def _claim(self, recipient: Recipient, is_sent: bool) -> list[Delivery]:
        """Add the rows that are due, in one commit; return them and those to send again.

        Raises:
            CommitFailedError: another run has written the table meanwhile.
        """
        now = self._now()
        table = self._ledger.open(store.NAME)
        unsent = store.unsent(table, recipient.name)
        claimed = [row for row in unsent if self._may_take(row, now)]
        # A finding with a message that another run is sending gets the next one from a later run.
        left = {row.finding_id for row in unsent} - {row.finding_id for row in claimed}
        old = old_before(recipient, self._ledger.snapshot().required_hours.last)
        new = [row for row in self._due(table, recipient, now, old) if row.finding_id not in left]
        rows = [silenced(row, is_silent(row, self._stream.silence, now)) for row in new]
        audible = [row for row in rows if row.status != "silenced"]
        if is_sent:
            audible = grouped(recipient, audible, old)
        else:
            audible = [replace(row, status="sent") for row in audible]
        rows = [row for row in rows if row.status == "silenced"] + audible
        rows += [replace(row, status="sending", run_id=self._run_id, changed_at=now) for row in claimed]
        if rows:
            store.claim(table, recipient.name, rows)
        return rows

    def _may_take(self, row: Delivery, now: datetime) -> bool:
        return row.status == "failed" or row.run_id == self._run_id or row.changed_at + LEASE < now

    def _due(
        self, table: DeltaTable, recipient: Recipient, now: datetime, old: datetime | None
    ) -> Iterator[Delivery]:
        """Yield the rows that are due. A withdrawal waits if its hours change meanwhile."""
        # Read before the findings: what is ingested later can be a reason of a withdrawal.
        version = files_version(self._ledger)
        silent = silent_sql(self._stream.silence, now, "l")
        of, absent = self._differences(table, recipient, silent, None if self._is_last else old)
        last = {row.finding_id: row for row in of.last}

        def raising(finding: Finding) -> Delivery:
            row = Delivery.raising(recipient.name, finding, self._stream.name, self._run_id, now)
            return replace(row, files_version=version)

        yield from due(
            recipient, of.present, last, raising, lambda row: is_silent(row, self._stream.silence, now)
        )
        why = reasons(self._ledger, absent, self._lookback)
        for row in absent:
            yield replace(gone(row, why[row.finding_id], self._run_id, now), files_version=version)

    def _differences(
        self, table: DeltaTable, recipient: Recipient, silent: str, since: datetime | None
    ) -> tuple[store.Differences, list[Delivery]]:
        """Return what differs, and the last messages about findings that are gone and do not come back."""
        for _ in range(ATTEMPTS):
            snapshot = self._ledger.snapshot()
            of = store.differences(table, self._ledger.open(FINDINGS), recipient, silent, since)
            absent = self._gone(snapshot, of.absent)
            # A killed run may have published rows, and left findings of earlier ones.
            if self._synced({row.stage for row in absent if row.kind not in KINDS}):
                continue
            if self._ledger.snapshot() is snapshot:
                break
        else:
            absent = []
        return of, absent

    def _gone(self, snapshot: LedgerSnapshot, absent: Iterable[Delivery]) -> list[Delivery]:
        """Return the rows whose findings are not only missing for a while.

        A finding from the ledger is missing in `findings` while a run writes its hours, and longer if that
        run is killed. So it is computed again.
        """
        rows = [row for row in absent if self._is_settled(snapshot, row)]
        current = {
            finding.finding_id
            for stage in {row.stage for row in rows if row.kind in KINDS}
            for finding in from_ledger(
                self._stream.name, stage, snapshot, self._ledger.failures(snapshot, stage),
                rules=self._stream.built_in,
            )
        }  # fmt: skip
        return [row for row in rows if row.finding_id not in current]

    def _is_settled(self, snapshot: LedgerSnapshot, row: Delivery) -> bool:
        """Return whether the absence of a finding follows from its hours.

        If it is from the ledger, no run is writing them. Else they are published, or the stream file no
        longer has its block.
        """
        last = row.last_hour
        if row.end_time is not None:
            last = max(last, hour_of(row.end_time - timedelta(microseconds=1)))
        statuses = {
            state.status
            for partition, state in snapshot.within(Interval(row.first_hour or row.last_hour, last + HOUR))
            if partition.stage == row.stage and row.block in (None, partition.block)
        }
        if row.kind in KINDS:
            return "writing" not in statuses
        return statuses <= {*READABLE} and (bool(statuses) or self._is_removed(row))

    def _is_removed(self, row: Delivery) -> bool:
        if row.stage == SOURCE_STAGE or row.stage not in self._stream.stages:
            return row.stage != SOURCE_STAGE
        return row.block not in self._stream.blocks(self._stream.feature(row.stage).block)

    def _synced(self, stages: Collection[str]) -> bool:
        """Bring the findings of some stages up to date with their rows; return whether some were written."""
        paths = [of.findings for of in self._stream.features if of.name in stages and of.findings is not None]
        return any(self._sync(self._ledger, self._stream, resolve_name(path)) for path in paths)

    def _lookback(self, stage: str) -> timedelta:
        if stage not in self._stream.stages or stage == SOURCE_STAGE:
            return timedelta(0)
        reads = self._stream.feature(stage).lookback(self._stream)
        return max((length for _, length in reads), default=timedelta(0))

    def _send(self, recipient: Recipient, rows: Iterable[Delivery], send: Send, result: Result) -> None:
        """Try to send messages, and record each. After one without an answer, the rest waits.

        A message waits for an earlier one about the same finding.
        """
        end = min(self._end, self._now() + ROUND)
        unsent: dict[str, None] = {}
        waiting: set[str] = set()
        for message, group in self._in_order(rows).items():
            ids = {row.finding_id for row in group}
            if ids.isdisjoint(waiting) and self._now() < end:
                error = self._attempts.send(send, message_of(group))
                if error is None:
                    result.sent += 1
                    self._record(recipient, [message], "sent")
                    continue
                result.errors.append(error)
                if self._attempts.is_open(message):
                    end = self._now()
            unsent[message] = None
            waiting |= ids
        result.pending = len(unsent)
        if unsent:
            self._record(recipient, unsent, "failed")

    def _in_order(self, rows: Iterable[Delivery]) -> dict[str, list[Delivery]]:
        """Return rows by message, the oldest first.

        Before them come new messages, and after them those that this run has tried. With each come all that
        have to wait for it.
        """
        messages: dict[str, list[Delivery]] = {}
        for row in sorted(rows, key=lambda row: (row.time, row.message)):
            messages.setdefault(row.message, []).append(row)
        places: dict[str, int] = {}
        of_findings: dict[str, int] = {}
        for message, group in messages.items():
            is_new = all(row.changed_at == row.time for row in group)
            own = 2 if self._attempts.has_tried(message) else 0 if is_new else 1
            place = max(own, *(of_findings.get(row.finding_id, 0) for row in group))
            places[message] = place
            of_findings |= {row.finding_id: place for row in group}
        return {message: messages[message] for message in sorted(messages, key=places.__getitem__)}

    def _record(self, recipient: Recipient, messages: Iterable[str], status: Status) -> None:
        store.record(self._ledger, recipient.name, self._run_id, messages, status, self._now())


def recipients(stream: Stream) -> list[Recipient]:
    """Return the recipients of a stream: the page, and those of the stream file."""
    return [THE_PAGE, *(Recipient.of(name, spec) for name, spec in stream.notify.items())]
