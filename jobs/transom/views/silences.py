"""The silences of a stream that hold back messages now, as findings on a page show them."""

from datetime import UTC, datetime

from transom.alerts.silences import silent_sql
from transom.findings.from_ledger import Finding
from transom.spec.notify import SilenceSpec
from transom.spec.stream import Stream


class Silences:
    """The active silences of a stream.

    Args:
        stream: the stream.
        now: the time. Default: that of the clock.
    """

    def __init__(self, stream: Stream, now: datetime | None = None) -> None:
        self._now = now or datetime.now(UTC)
        self._active = [silence for silence in stream.silence if silence.is_active(self._now)]

    def of(self, finding: Finding) -> SilenceSpec | None:
        """Return the silence of a finding, the one that ends last; None if there is none."""
        subject = finding.kind, finding.block, finding.key, finding.item
        matching = [silence for silence in self._active if silence.matches(*subject)]
        return max(matching, key=lambda silence: silence.until, default=None)

    @property
    def sql(self) -> str:
        """The SQL expression for `yes` if a finding of the table `t` is silenced, else `no`; as of `of`."""
        return f"CASE WHEN {silent_sql(self._active, self._now, 't')} THEN 'yes' ELSE 'no' END"
