"""The hours of frequent items that commands examine."""

from datetime import UTC, datetime, timedelta

import yaml

from transom.app.freshness import freshness_of
from transom.core.partitions import PartitionKey, PartitionState
from transom.ledger.snapshot import LedgerSnapshot
from transom.stream import parse

FIRST = datetime(2015, 5, 17, tzinfo=UTC)
TEXT = """
name: web
preset: apache/combined
source: {path: "landing/web/%Y-%m-%d/access.%H*.log.gz"}
key: [client]
frequency:
  ever: {item: [client], window: 1 hour, tick: 1 hour, epsilon: 0.1, delta: 0.1, variant: vanilla}
"""


def test_block_with_unbounded_lookback_reads_known_hours_only() -> None:
    hours = [FIRST + n * timedelta(hours=1) for n in (0, 1, 5)]
    events = {
        PartitionKey("ingest", "events", "events", hour): PartitionState("published", "a") for hour in hours
    }
    stream = parse(yaml.safe_load(TEXT))
    unmade = freshness_of(stream, LedgerSnapshot(events))
    computed = [node for hour in hours for node in unmade.partitions("frequency", hour)]
    of = freshness_of(
        stream, LedgerSnapshot({**events, **{node: PartitionState("published", "a") for node in computed}})
    )
    reads = of.reads(PartitionKey("frequency", "ever", "cells", hours[-1]))
    assert [(node.table, node.hour) for node in reads] == [
        ("tick_matrices", hours[2]), ("cells", hours[0]), ("cells", hours[1])
    ]  # fmt: skip
    assert of.stale("frequency").keys() == {*hours}
