"""Create a lake with generated events, and with the ledger of their ingest."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake

from transom.core.intervals import Interval
from transom.core.partitions import PartitionKey, PartitionState
from transom.ledger.ledger import Ledger


def create(lake: Path, events: Callable[[], pa.Table], asked: Interval) -> Path:
    """Return a lake with a stream `drawn`; create it if it does not exist.

    Args:
        events: generates the events.
        asked: the requested hours of ingest.
    """
    if not (lake / "whole").exists():
        rows, root = events(), f"{lake}/drawn"
        write_deltalake(f"{root}/events", rows, partition_by=["hour"], mode="overwrite")
        counts = rows.group_by("hour").aggregate([([], "count_all")]).to_pydict()
        many = dict(zip(counts["hour"], counts["count_all"], strict=True))
        nodes = [PartitionKey("ingest", "events", "events", hour) for hour in asked.hours()]
        ledger = Ledger(root)
        ledger.claim("ingest", nodes, "drawn")
        states = {
            node: PartitionState(
                "published", "drawn", digest=f"{many.get(node.hour, 0)}:0", rows=many.get(node.hour, 0)
            )
            for node in nodes
        }
        ledger.publish("ingest", states, "drawn")
        (lake / "whole").touch()
    return lake


def stream_of(file: Path, **blocks: Any) -> Path:
    """Write the stream file, with events of the preset `apache/combined` and a path without files.

    Args:
        blocks: the blocks by the name of their field.
    """
    source = {"path": "no/%Y-%m-%d/%H.log", "expected_files": 1}
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"name": "drawn", "preset": "apache/combined", "source": source, **blocks}))
    return file
