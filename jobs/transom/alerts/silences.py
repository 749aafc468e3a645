"""Which findings the silences of a stream file match, for rows in Python and in SQL."""

from collections.abc import Iterable
from datetime import datetime

from transom.alerts.delivery import Delivery
from transom.core.intervals import Interval
from transom.findings import store
from transom.spec.notify import SilenceSpec
from transom.storage.tables import literal


def is_silent(delivery: Delivery, silences: Iterable[SilenceSpec], now: datetime) -> bool:
    """Return whether a silence that has not ended matches a message."""
    subject = delivery.kind, delivery.block, delivery.key, delivery.item
    return any(silence.is_active(now) and silence.matches(*subject) for silence in silences)


def silent_sql(silences: Iterable[SilenceSpec], now: datetime, table: str) -> str:
    """Return `is_silent` as an SQL condition, never null, on the columns of a table."""
    terms = ["FALSE"]
    for silence in silences:
        if silence.is_active(now):
            of = {"kind": silence.kind, "block": silence.block}
            same = [f"{table}.{name} = {literal(value)}" for name, value in of.items() if value is not None]
            if silence.key is not None:
                same.append(f"{literal(silence.key)} IN ({table}.key, {table}.item)")
            terms.append(f"coalesce({' AND '.join(same)}, FALSE)")
    return f"({' OR '.join(terms)})"


def count_silenced(root: str, silences: Iterable[SilenceSpec], now: datetime, interval: Interval) -> int:
    """Return the number of findings of an interval that silences match.

    Args:
        root: the stream's folder in the lake.
        silences: the silences.
        now: the current time.
        interval: the interval.
    """
    return store.count_findings(root, interval, silent_sql(silences, now, "t"))
