"""Drawn events as a lake holds them, with what a ledger says of them."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake

from transom.intervals import Interval
from transom.lake.book import Entry, Node
from transom.lake.ledger import Ledger


def held(lake: Path, events: Callable[[], pa.Table], asked: Interval) -> Path:
    """The lake, made where it is not there yet, of a stream `drawn`.

    Args:
        events: draws them.
        asked: the hours that ingest has been asked for.
    """
    if not (lake / "whole").exists():
        rows, root = events(), f"{lake}/drawn"
        write_deltalake(f"{root}/events", rows, partition_by=["hour"], mode="overwrite")
        counts = rows.group_by("hour").aggregate([([], "count_all")]).to_pydict()
        many = dict(zip(counts["hour"], counts["count_all"], strict=True))
        nodes = [Node("ingest", "events", "events", hour) for hour in asked.hours()]
        ledger = Ledger(root)
        ledger.claim("ingest", nodes, "drawn")
        said = {
            node: Entry(
                "published", "drawn", digest=f"{many.get(node.hour, 0)}:0", rows=many.get(node.hour, 0)
            )
            for node in nodes
        }
        ledger.publish("ingest", said, "drawn")
        (lake / "whole").touch()
    return lake
