"""Heavy items as findings: each as long as it is heavy, by the stream's words. No Spark."""

from transom.core.durations import spoken
from transom.features.frequency.spec import Frequency
from transom.features.items import findings as items
from transom.findings import sync as mirroring
from transom.findings.entities import Lasting, Told
from transom.findings.sql_text import text
from transom.ledger.ledger import Ledger
from transom.spec.stream import Stream

STAGE, TABLE, KIND = "sketch", "frequencies", "top"


def publish(ledger: Ledger, stream: Stream) -> bool:
    """Brings the findings up to date with the items, as they stand.

    Returns:
        Whether something was written.
    """
    told = {name: _told(name, said) for name, said in stream.blocks(Frequency).items() if said.finding}
    return mirroring.publish(ledger, Lasting(STAGE, TABLE, KIND, stream.name, told))


def _told(name: str, said: Frequency) -> Told:
    ever = said.variant == "vanilla"
    of = "records since the start" if ever else f"records of the last {spoken(said.window)}"
    share = "cast(round(100.0 * estimate / window_records, 1) AS varchar)"
    seen = (
        f"concat('about ', estimate, ' of ', window_records, {text(f' {of}')}, ', ', {share}, "
        "' %; place ', rank)"
    )
    return items.told(
        name,
        said,
        stay="heavy_id",
        is_so="is among the most frequent",
        columns=("low", "high", "estimate", "rank", "window_records"),
        evidence=[seen],
        no_more=f"below {100 * said.heavy:g} % of the {of}",
        left="guaranteed" if said.never_below else "estimated",
    )
