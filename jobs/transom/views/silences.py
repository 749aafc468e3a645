"""The silences of a stream that hold back messages now, as findings on a page show them."""

from collections.abc import Iterator
from datetime import UTC, datetime

from transom.findings.from_ledger import Finding
from transom.spec.notify import SilenceSpec
from transom.spec.stream import Stream
from transom.storage.tables import literal


class Silences:
    """The active silences of a stream.

    Args:
        stream: the stream.
        now: the time. Default: that of the clock.
    """

    def __init__(self, stream: Stream, now: datetime | None = None) -> None:
        at = now or datetime.now(UTC)
        self._active = [silence for silence in stream.silence if silence.is_active(at)]

    def of(self, finding: Finding) -> SilenceSpec | None:
        """Return the silence of a finding, the one that ends last; None if there is none."""
        subject = finding.kind, finding.block, finding.key, finding.item
        matching = [silence for silence in self._active if silence.matches(*subject)]
        return max(matching, key=lambda silence: silence.until, default=None)

    @property
    def sql(self) -> str:
        """The SQL expression for `yes` if a finding is silenced, else `no`; the same rule as `of`."""
        terms = (f"({' AND '.join(_terms(silence))})" for silence in self._active)
        return f"CASE WHEN coalesce({' OR '.join(terms) or 'FALSE'}, FALSE) THEN 'yes' ELSE 'no' END"


def _terms(silence: SilenceSpec) -> Iterator[str]:
    if silence.key is not None:
        # Null is no value, and `x OR null` is null if x is false.
        yield f"{literal(silence.key)} IN (coalesce(key, ''), coalesce(item, ''))"
    for name, value in (("kind", silence.kind), ("block", silence.block)):
        if value is not None:
            yield f"coalesce({name}, '') = {literal(value)}"
