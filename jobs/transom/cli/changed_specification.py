"""Which part of the stream's file may have changed since a partition was computed, in words."""

import json
from collections.abc import Mapping
from typing import cast

from transom.core.partitions import SOURCE_STAGE, PartitionKey
from transom.ledger.freshness import Freshness
from transom.spec.feature import Feature
from transom.spec.stream import Stream

LABELS = {
    "format": "`source.format`",
    "options": "`source.options`",
    "captures": "the captures of `source.path`",
    "name": "the time in `source.path`, `zone` or `event_time_range`",
    "columns": "`columns`",
    "derived": "`columns`",
    "time": "`time`",
    "time_captures": "`time`",
    "ties": "`time`",
    "rest": "`extra_fields`",
    "unique": "`unique`",
}
"""What the keys of ingest's fingerprint are called in the stream's file."""


def changed_specification(stream: Stream, freshness: Freshness, partition: PartitionKey) -> str:
    """Return what may have changed of all that shapes a partition.

    The ledger has one hash of it. Another table of the block that still has the same hash excludes what
    shapes that one.
    """
    names = set(_shape(stream, partition))
    if not names:
        return "the stream's file has this block no longer"
    for other in freshness.partitions(partition.stage, partition.hour):
        beside = other.block == partition.block and other.table != partition.table
        if beside and other in freshness.snapshot and not _is_changed(freshness, other):
            # The types that each of them depends on are of other columns.
            names -= set(_shape(stream, other)) - {"types"}
    is_source = partition.stage == SOURCE_STAGE
    labels = LABELS if is_source else _feature(stream, partition).labels
    parts = list(dict.fromkeys(words for name, words in labels.items() if name in names))
    if is_source:
        parts.append("a check or a waiver that decides whether files are complete")
    *most, last = parts
    listed = f"{', '.join(most)} or {last}" if most else last
    return f"the stream's file says something else of what shapes it than when it was computed: {listed}"


def _is_changed(freshness: Freshness, partition: PartitionKey) -> bool:
    return any(reason.code in ("specification", "dropped") for reason in freshness.why_not(partition))


def _feature(stream: Stream, partition: PartitionKey) -> Feature[Stream]:
    return next(feature for feature in stream.features if partition.table in feature.fingerprints)


def _shape(stream: Stream, partition: PartitionKey) -> Mapping[str, object]:
    if partition.stage == SOURCE_STAGE:
        return cast(dict[str, object], json.loads(stream.ingest_shape()))
    feature = _feature(stream, partition)
    if partition.block not in stream.blocks(feature.block):
        return {}
    text = feature.fingerprints[partition.table](stream, partition.block)
    return {**dict.fromkeys(feature.optional_keys.get(partition.table, ())), **json.loads(text)}
