"""Persistent items as findings: each as long as it stays, by the stream's words. No Spark."""

from transom.core.durations import spoken
from transom.core.intervals import HOUR
from transom.features.items import findings as items
from transom.features.persistence.spec import Persistence
from transom.findings import sync as mirroring
from transom.findings.entities import Lasting, Told
from transom.findings.sql_text import text
from transom.ledger.ledger import Ledger
from transom.spec.stream import Stream

STAGE, TABLE, KIND = "sketch", "persistent_items", "persistent"


def publish(ledger: Ledger, stream: Stream) -> bool:
    """Brings the findings up to date with the items, as they stand.

    Returns:
        Whether something was written.
    """
    told = {name: _told(name, said) for name, said in stream.blocks(Persistence).items() if said.finding}
    return mirroring.publish(ledger, Lasting(STAGE, TABLE, KIND, stream.name, told))


def _told(name: str, said: Persistence) -> Told:
    slots = f"{said.slots} slots of {spoken(said.slot)}"
    seen = (
        f"concat('in ', low, ' to ', high, {text(f' of {slots}, about ')}, "
        f"cast(round(estimate, 1) AS varchar), '; ', records, ' records')"
    )
    gaps = (
        "concat('on average ', cast(round(gap_mean_s, 1) AS varchar), ' s from the first contact of a slot "
        "to that of the next one, with "
        "a deviation of ', cast(round(100 * coalesce(gap_cv, 0), 1) AS varchar), ' %')"
    )
    return items.told(
        name,
        said,
        stay="stay_id",
        is_so="is there again and again",
        columns=("low", "high", "estimate", "slots", "records", "gap_mean_s", "gap_cv"),
        evidence=[
            seen,
            "coalesce(slots, '')",
            f"CASE WHEN gap_mean_s IS NULL THEN '' ELSE {gaps} END",
        ],
        no_more=f"no more in enough of the {slots}",
        # Of longer slots not every hour reports.
        reach=max(said.slot // HOUR - 1, 0),
    )
