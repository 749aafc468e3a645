"""The reports of commands on the hours of patterns."""

import json
from datetime import UTC, datetime
from functools import partial

import pytest
import yaml

from transom.app.freshness import freshness_of
from transom.core.partitions import PartitionKey, PartitionState
from transom.features.patterns.describe import LABELS
from transom.ledger.freshness import Freshness
from transom.ledger.snapshot import LedgerSnapshot
from transom.stream import Stream, parse
from transom.views.changed_specification import changed_specification

HOUR = datetime(2015, 5, 17, tzinfo=UTC)
TEXT = """
name: web
preset: apache/combined
source: {path: "landing/web/%Y-%m-%d/access.%H*.log.gz"}
key: [client]
patterns:
  slow: {within: 3 hours, carry: [path], steps: [{id: one, where: status = 200, times: 2}]}
  quick: {within: 10 minutes, steps: [{id: one, where: status = 200, times: 2}]}
"""


def fresh(text: str, entries: dict[PartitionKey, PartitionState]) -> Freshness:
    return freshness_of(parse(yaml.safe_load(text)), LedgerSnapshot(entries))


def written_hour(stream: Stream) -> dict[PartitionKey, PartitionState]:
    """Write an hour of all tables to the ledger, as a run does."""
    node = PartitionKey("ingest", "events", "events", HOUR)
    inputs = freshness_of(stream, LedgerSnapshot({})).recorded_inputs(node, "published")
    events = {node: PartitionState("published", "a", input_hashes=inputs)}
    requested = freshness_of(stream, LedgerSnapshot(events))
    nodes = requested.partitions("patterns", HOUR)
    snapshot = LedgerSnapshot({**events, **{node: PartitionState("published", "a") for node in nodes}})
    now = freshness_of(stream, snapshot)
    written_hour = {node: now.recorded_inputs(node, "published") for node in nodes}
    return {
        **events,
        **{node: PartitionState("published", "a", input_hashes=of) for node, of in written_hour.items()},
    }


def test_hour_of_patterns_is_as_fresh_as_its_tables() -> None:
    entries = written_hour(parse(yaml.safe_load(TEXT)))
    of = fresh(TEXT, entries)
    tables = {(node.block, node.table) for node in of.partitions("patterns", HOUR)}
    # A short pattern has no batch of an hour.
    both = {(name, table) for name in ("slow", "quick") for table in ("matches", "episodes")}
    assert tables == {("slow", "batches"), *both}
    assert (of.partitions("aggregates", HOUR), of.stale("patterns")) == ([], {})
    without = {node: entry for node, entry in entries.items() if node.table != "episodes"}
    assert fresh(TEXT, without).stale("patterns").keys() == {HOUR}


@pytest.mark.parametrize(
    ("change", "table", "texts"),
    [
        (("carry: [path]", "carry: [method]"), "matches", {"`carry`"}),
        (("times: 2", "times: 3"), "matches", {"`steps`"}),
        (("within: 3 hours", "within: 3 hours, merge_gap: 1 hour"), "episodes", {"`merge_gap`"}),
        (("within: 3 hours", "within: 3 hours, max_records: 7"), "batches", {"`max_records`"}),
    ],
)
def test_fields_of_a_pattern_have_texts(change: tuple[str, str], table: str, texts: set[str]) -> None:
    stream = parse(yaml.safe_load(TEXT.replace(*change, 1)))
    of = freshness_of(stream, LedgerSnapshot(written_hour(parse(yaml.safe_load(TEXT)))))
    node = PartitionKey("patterns", "slow", table, HOUR)
    assert "specification" in [reason.code for reason in of.why_not(node)]
    assert all(word in changed_specification(stream, of, node) for word in texts)
    shapes = [partial(stream.fingerprint, table) for table in ("batches", "matches", "episodes")]
    assert {name for shape in shapes for name in json.loads(shape("slow"))} == LABELS.keys()
