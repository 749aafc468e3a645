"""Items as findings: each is told as long as it stays what it is, by the stream's words. No Spark."""

from collections.abc import Sequence

from transom.features.frequency.spec import Frequency
from transom.features.persistence.spec import Persistence
from transom.findings.entities import Told
from transom.findings.sql_text import shown, text

TIMES = ("since", "window_end")


def told(
    name: str,
    said: Persistence | Frequency,
    stay: str,
    is_so: str,
    columns: Sequence[str],
    evidence: Sequence[str],
    no_more: str,
    left: str = "guaranteed",
    reach: int = 0,
) -> Told:
    """How the items of a block are told.

    Args:
        stay: the column that says which stay it is.
        is_so: what an item is, for a title where the stream's file has none.
        columns: those of the figures.
        evidence: texts, as SQL; the first one is of an item that has not left.
        no_more: what one that has left is not any more, up to a time.
        left: how exact that is.
        reach: after how many hours without a row nobody knows any more whether it stays.
    """
    item = ", ".join(f"{{{column}}}" for column in said.item)
    not_now = f"concat({text(f'{no_more} up to ')}, {shown('window_end', TIMES)})"
    # Of an item that has left there are no figures.
    bounds = "WHEN low = high THEN 'exact' ELSE concat(low, '..', high)"
    seen, *more = evidence
    return Told(
        name=name,
        key=(),
        item=said.item,
        id=stay,
        new="entered",
        columns=tuple(columns),
        times=TIMES,
        severity=said.severity,
        title=said.title or f"{name}: {item} {is_so}, since {{since}}",
        evidence=[f"CASE WHEN low IS NULL THEN {not_now} ELSE {seen} END", *more],
        reach=reach,
        start="since",
        end="window_end",
        exactness=f"CASE WHEN low IS NULL THEN {text(left)} {bounds} END",
    )
