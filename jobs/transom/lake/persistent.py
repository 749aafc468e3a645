"""Persistent items as findings: each as long as it stays, by the stream's words. No Spark."""

from transom.intervals import HOUR
from transom.lake import mirroring
from transom.lake.lasting import Lasting, Told
from transom.lake.ledger import Ledger
from transom.lake.wording import shown, text
from transom.stream import Stream
from transom.stream.persistence import Persistence
from transom.units import spoken

STAGE, TABLE, KIND = "sketch", "persistent_items", "persistent"
TIMES = ("since", "window_end")


def publish(ledger: Ledger, stream: Stream) -> bool:
    """Brings the findings up to date with the items, as they stand.

    Returns:
        Whether something was written.
    """
    told = {name: _told(name, said) for name, said in stream.persistence.items() if said.finding}
    return mirroring.publish(ledger, Lasting(STAGE, TABLE, KIND, stream.name, told))


def _told(name: str, said: Persistence) -> Told:
    title = said.title
    if title is None:
        items = ", ".join(f"{{{column}}}" for column in said.item)
        title = f"{name}: {items} is there again and again, since {{since}}"
    return Told(
        name=name,
        key=(),
        item=said.item,
        id="stay_id",
        new="entered",
        columns=("low", "high", "estimate", "slots", "records", "gap_mean_s", "gap_cv"),
        times=TIMES,
        severity=said.severity,
        title=title,
        evidence=_evidence(said),
        # Of longer slots not every hour reports.
        reach=max(said.slot // HOUR - 1, 0),
        start="since",
        end="window_end",
        exactness="CASE WHEN low IS NULL THEN 'guaranteed' WHEN low = high THEN 'exact' "
        "ELSE concat(low, '..', high) END",
    )


def _evidence(said: Persistence) -> list[str]:
    slots = f"{said.slots} slots of {spoken(said.slot)}"
    seen = (
        f"concat('in ', low, ' to ', high, {text(f' of {slots}, about ')}, "
        f"cast(round(estimate, 1) AS varchar), '; ', records, ' records')"
    )
    left = f"concat({text(f'no more in enough of the {slots} up to ')}, {shown('window_end', TIMES)})"
    gaps = (
        "concat('on average ', cast(round(gap_mean_s, 1) AS varchar), ' s from the first contact of a slot "
        "to that of the next one, with "
        "a deviation of ', cast(round(100 * coalesce(gap_cv, 0), 1) AS varchar), ' %')"
    )
    return [
        f"CASE WHEN low IS NULL THEN {left} ELSE {seen} END",
        "coalesce(slots, '')",
        f"CASE WHEN gap_mean_s IS NULL THEN '' ELSE {gaps} END",
    ]
