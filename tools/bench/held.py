"""Drawn events as a lake holds them, with what a ledger says of them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake

from transom.core.intervals import Interval
from transom.core.partitions import PartitionKey, PartitionState
from transom.ledger.ledger import Ledger


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
        nodes = [PartitionKey("ingest", "events", "events", hour) for hour in asked.hours()]
        ledger = Ledger(root)
        ledger.claim("ingest", nodes, "drawn")
        said = {
            node: PartitionState(
                "published", "drawn", digest=f"{many.get(node.hour, 0)}:0", rows=many.get(node.hour, 0)
            )
            for node in nodes
        }
        ledger.publish("ingest", said, "drawn")
        (lake / "whole").touch()
    return lake


def stream_of(file: Path, **blocks: Any) -> Path:
    """The file of that stream: of events as Apache's, which come from nowhere.

    Args:
        blocks: by the name of the field.
    """
    source = {"path": "no/%Y-%m-%d/%H.log", "expected_files": 1}
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"name": "drawn", "preset": "apache/combined", "source": source, **blocks}))
    return file
