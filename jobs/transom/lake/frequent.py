"""Heavy items as findings: each as long as it is heavy, by the stream's words. No Spark."""

from transom.lake import mirroring
from transom.lake.lasting import Lasting, Told
from transom.lake.ledger import Ledger
from transom.lake.wording import shown, text
from transom.stream import Stream
from transom.stream.frequency import Frequency
from transom.units import spoken

STAGE, TABLE, KIND = "sketch", "frequencies", "top"
TIMES = ("since", "window_end")


def publish(ledger: Ledger, stream: Stream) -> bool:
    """Brings the findings up to date with the items, as they stand.

    Returns:
        Whether something was written.
    """
    told = {name: _told(name, said) for name, said in stream.frequency.items() if said.finding}
    return mirroring.publish(ledger, Lasting(STAGE, TABLE, KIND, stream.name, told))


def _told(name: str, said: Frequency) -> Told:
    title = said.title
    if title is None:
        items = ", ".join(f"{{{column}}}" for column in said.item)
        title = f"{name}: {items} is among the most frequent, since {{since}}"
    return Told(
        name=name,
        key=(),
        item=said.item,
        id="heavy_id",
        new="entered",
        columns=("low", "high", "estimate", "rank", "window_records"),
        times=TIMES,
        severity=said.severity,
        title=title,
        evidence=_evidence(said),
        reach=0,
        start="since",
        end="window_end",
        exactness="CASE WHEN low IS NULL THEN 'guaranteed' WHEN low = high THEN 'exact' "
        "ELSE concat(low, '..', high) END",
    )


def _evidence(said: Frequency) -> list[str]:
    of = f" records of the last {spoken(said.window)}"
    share = "cast(round(100.0 * estimate / window_records, 1) AS varchar)"
    seen = (
        f"concat('about ', estimate, ' of ', window_records, {text(of)}, ', ', {share}, ' %; the ', rank, "
        "'. of all')"
    )
    least = f"{said.heavy:.0%}" if said.heavy * 100 == round(said.heavy * 100) else f"{said.heavy:g}"
    left = f"concat({text(f'no more {least} of the{of} up to ')}, {shown('window_end', TIMES)})"
    return [f"CASE WHEN low IS NULL THEN {left} ELSE {seen} END"]
