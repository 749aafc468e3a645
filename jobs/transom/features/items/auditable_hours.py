"""The hours of a block that an audit may count again: published and up to date."""

from collections.abc import Iterable
from datetime import datetime

from transom.core.partitions import PartitionKey
from transom.engine.check_builders import waivers_of
from transom.ledger.snapshot import LedgerSnapshot
from transom.ledger.stage import Stage
from transom.ledger.staleness import Staleness
from transom.spec.stream import Stream


def auditable_hours(
    stream: Stream, stage: Stage, book: LedgerSnapshot, block: str, table: str, hours: Iterable[datetime]
) -> list[datetime]:
    """Return the hours whose published rows are up to date."""
    staleness = Staleness(stage, book, waivers_of(stream))
    nodes = (PartitionKey(stage.name, block, table, hour) for hour in hours)
    return [
        node.hour
        for node in nodes
        if node in book and book[node].status == "published" and not staleness.stale(node)
    ]
